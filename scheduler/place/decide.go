package place

import (
	"cmp"
	"iter"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// Decision is where a pod is to be bound. Its room is held from the moment of the decision.
type Decision struct {
	Pod  PodRef
	Node fleet.NodeID
	Name string
	// Cells are those that the pod holds, sorted; none where it floats. [Table.Bound] takes them back after a restart.
	Cells []int
	// Roots are the PCIe roots of which it holds devices, by their place in Machine.Roots.
	Roots []int
}

// Candidate is a machine that a pod of a class fits, and how good it is.
type Candidate struct {
	Node  fleet.NodeID
	Name  string
	Score int64
}

// Decide chooses the machine with the best score for a pod of a class, the first by name of equal ones, and holds the room there until
// [Table.Forget] or, once bound, [Table.Remove]. It returns false where the pod fits nowhere; [Table.Explain] says why.
func (t *Table) Decide(c ClassID) (Decision, bool) {
	row := t.best(c)
	if row == none {
		return Decision{}, false
	}
	return t.assume(c, row), true
}

// Scan is Decide by a look at every machine, without an index: what an index is measured against. Claims are left out.
func (t *Table) Scan(c ClassID) (Decision, bool) {
	i := int32(none)
	if t.classes[c].pinned == nil {
		i = t.scan(c)
	}
	if i == none {
		return Decision{}, false
	}
	return t.assume(c, 2*i+int32(t.classes[c].side)), true
}

// Assume holds room for a pod of a class on a machine that the caller chose among the candidates, or returns false where it does not fit there now.
func (t *Table) Assume(c ClassID, id fleet.NodeID) (Decision, bool) {
	i, ok := t.byID[id]
	if !ok {
		return Decision{}, false
	}
	zones := t.zonesOf(&t.classes[c])
	if !t.CanPlaceOn(c, id) || !zones.allow(t.nodes[i].zoneAt) {
		return Decision{}, false
	}
	return t.assume(c, 2*i+int32(t.classes[c].side)), true
}

// CanPlaceOn reports whether a machine takes a pod of a class now, apart from the skew over zones, which depends on the other machines too. After an
// event only the classes for which it says so of a machine that changed need another decision, and those whose [Table.SpreadVersion] is another one.
func (t *Table) CanPlaceOn(id ClassID, machine fleet.NodeID) bool {
	i, ok := t.byID[machine]
	if !ok {
		return false
	}
	c, f := &t.classes[id], FilterNone
	t.lend(t.usable(c, i), func() { f, _ = t.judge(c, 2*i+int32(c.side)) })
	return f == FilterNone && t.spreads(c, i)
}

// assume puts a pod that fits on a row. Its reservation there is spent first.
func (t *Table) assume(id ClassID, row int32) Decision {
	c := &t.classes[id]
	ids := t.usable(c, row>>1)
	var ref PodRef
	t.lend(ids, func() {
		_, holds := t.fitsNow(c, row)
		p := pod{class: id, row: row, role: stays, assumed: true, holds: slices.Clone(holds)}
		for _, h := range p.holds {
			p.named = append(p.named, t.cells[h.cell].id)
		}
		slices.Sort(p.named)
		p.roots = t.chooseRoots(&t.nodes[row>>1], c, p.holds)
		ref = t.put(p).Pod
		if len(ids) > 0 {
			t.spend(ids, t.amountOf(&t.pods[ref]))
		}
	})
	return t.decision(ref)
}

func (t *Table) decision(ref PodRef) Decision {
	p := &t.pods[ref]
	n := &t.nodes[p.row>>1]
	d := Decision{Pod: ref, Node: n.id, Name: n.name}
	d.Cells = p.named
	for _, h := range p.roots {
		d.Roots = append(d.Roots, int(h.at))
	}
	return d
}

// Confirm says that a pod that was decided is bound.
func (t *Table) Confirm(ref PodRef, uid fleet.UID) {
	p := &t.pods[ref]
	if p.role == 0 {
		panic("place: there is no such pod")
	}
	p.assumed, p.uid = false, uid
}

// Forget takes back a decision whose bind failed.
func (t *Table) Forget(ref PodRef) {
	if !t.pods[ref].assumed {
		panic("place: the pod is bound, or not there")
	}
	t.Remove(ref)
}

// Bound takes down a fact: a pod is bound to a machine, whether it fits or not, and whether the machine is known yet. The cells are those that the
// binding of ours named; none for pods that float and for pods of other schedulers.
func (t *Table) Bound(s Shape, id fleet.NodeID, uid fleet.UID, cells []int) PodRef {
	i, ok := t.byID[id]
	if !ok {
		i = t.newNode(id)
	}
	c := t.Class(s)
	p := pod{uid: uid, class: c, row: 2*i + int32(sideOf(s.Side)), role: stays, named: slices.Compact(slices.Sorted(slices.Values(cells)))}
	p.holds = t.holdsOn(&t.classes[c], i, cells)
	p.roots = t.chooseRoots(&t.nodes[i], &t.classes[c], p.holds)
	return t.put(p).Pod
}

// holdsOn is what a pod holds of the cells that its binding named: each in turn holds what it can, as when they were chosen, and the last one the rest.
func (t *Table) holdsOn(c *class, i int32, ids []int) []cellHold {
	var out []cellHold
	n := &t.nodes[i]
	rest := [perCell]int64(c.want[:perCell])
	for _, id := range ids {
		k := slices.IndexFunc(t.cells[n.from:n.to], func(x cell) bool { return x.id == id })
		if k < 0 || slices.ContainsFunc(out, func(h cellHold) bool { return h.cell == n.from+int32(k) }) {
			continue
		}
		h := cellHold{cell: n.from + int32(k)}
		for d := range rest {
			h.amount[d] = min(rest[d], t.cells[h.cell].capacity[d])
			rest[d] -= h.amount[d]
			if c.shape.Exclusive {
				h.amount[d] = t.cells[h.cell].capacity[d]
			}
		}
		out = append(out, h)
	}
	if len(out) > 0 {
		for d := range rest {
			out[len(out)-1].amount[d] += rest[d]
		}
	}
	return out
}

// Leaving says that a pod is to go: it holds its room until it is removed, and counts no more for spreading or as a victim.
func (t *Table) Leaving(ref PodRef) { t.setRole(ref, leaves) }

// Stays takes [Table.Leaving] back.
func (t *Table) Stays(ref PodRef) { t.setRole(ref, stays) }

func (t *Table) setRole(ref PodRef, r role) {
	p := &t.pods[ref]
	if p.role == 0 {
		panic("place: there is no such pod")
	}
	t.charge(p, -1)
	t.countFuture(p, -1)
	p.role = r
	t.countFuture(p, 1)
	t.setHeld(p.row >> 1)
	t.charge(p, 1)
}

// Resize gives a pod that is there another shape, as after a resize in place. It keeps its cells.
func (t *Table) Resize(ref PodRef, s Shape) PodRef {
	was := t.decision(ref)
	uid, role, assumed, late := t.pods[ref].uid, t.pods[ref].role, t.pods[ref].assumed, t.pods[ref].late
	t.Remove(ref)
	if role == awaits {
		return t.Hold(t.Class(s), was.Node, was.Cells).Pod
	}
	out := t.Bound(s, was.Node, uid, was.Cells)
	t.pods[out].assumed = assumed
	if role == leaves {
		t.Leaving(out)
		t.Late(out, late)
	}
	return out
}

// best finds the row with the best score, or none.
func (t *Table) best(id ClassID) int32 {
	c := &t.classes[id]
	if claimed := t.claimedBest(c); len(claimed) > 0 {
		return claimed[0].row
	}
	if c.pinned != nil {
		for s := range t.amongPinned(id) {
			return s.row
		}
		return none
	}
	if !c.asked && t.scans(c) {
		c.asked = true
		if i := t.lastScan(id); i != none {
			return 2*i + int32(c.side)
		}
		return none
	}
	if c.viewKey() == "" {
		if i := t.view(id, "").domains[0].top(); i != none {
			return 2*i + int32(c.side)
		}
		return none
	}
	v := t.view(id, c.viewKey())
	more := t.moreBy(c, v)
	best, score := int32(none), int64(0)
	for d := range v.domains {
		i := v.domains[d].top()
		if i == none || more[d] == refused {
			continue
		}
		if s := int64(v.score[i]) + more[d]; best == none || s > score || s == score && t.rank[i] < t.rank[best] {
			best, score = i, s
		}
	}
	if best == none {
		return none
	}
	return 2*best + int32(c.side)
}

// spreadsZones reports whether the zones of a class are compared.
func (c *class) spreadsZones() bool {
	return c.group != none && (c.shape.Zones || c.shape.ZoneSkew > 0)
}

// viewKey is the label key by whose domains the index of a class is parted.
func (c *class) viewKey() string {
	switch {
	case len(c.limits) > 0:
		return spreadKey
	case c.spreadsZones():
		return zoneKey
	}
	return ""
}

// moreBy says what each domain of the index of a class adds to the score of its machines, or that it is refused.
func (t *Table) moreBy(c *class, v *view) []int64 {
	if v.parts != nil {
		return t.weigh(c, v)
	}
	zones := t.zonesOf(c)
	out := slices.Grow(t.weighed[:0], len(v.domains))[:len(v.domains)]
	t.weighed = out
	for d := range v.domains {
		if out[d] = zones.score(int32(d)); !zones.allow(int32(d)) {
			out[d] = refused
		}
	}
	return out
}

type scored struct {
	row   int32
	score int64
}

// byScore yields the rows that a pod of a class fits, best first, and before them those with claims that it may use.
func (t *Table) byScore(id ClassID) iter.Seq[scored] {
	return after(t.claimedBest(&t.classes[id]), t.unclaimed(id))
}

// after yields rows with claims before all others.
func after(claimed []scored, others iter.Seq[scored]) iter.Seq[scored] {
	if len(claimed) == 0 {
		return others
	}
	return func(yield func(scored) bool) {
		for _, s := range claimed {
			if !yield(s) {
				return
			}
		}
		for s := range others {
			if !slices.ContainsFunc(claimed, func(c scored) bool { return c.row == s.row }) && !yield(s) {
				return
			}
		}
	}
}

func (t *Table) unclaimed(id ClassID) iter.Seq[scored] {
	c := &t.classes[id]
	if c.pinned != nil {
		return t.amongPinned(id)
	}
	return func(yield func(scored) bool) {
		var q contest
		v := t.view(id, c.viewKey())
		if v.key == "" {
			q.add(t, entry{v: v, at: 1})
		} else {
			for d, more := range t.moreBy(c, v) {
				if more != refused {
					q.add(t, entry{v: v, domain: d, at: 1, more: more})
				}
			}
		}
		for e, ok := q.next(t); ok; e, ok = q.next(t) {
			i := e.node()
			if !yield(scored{2*i + int32(c.side), int64(e.v.score[i]) + e.more}) {
				return
			}
		}
	}
}

// amongPinned judges the machines that a class names one by one, best first.
func (t *Table) amongPinned(id ClassID) iter.Seq[scored] {
	return func(yield func(scored) bool) {
		t.rankNames()
		c := &t.classes[id]
		zones := t.zonesOf(c)
		var all []scored
		for _, name := range c.pinned {
			i, ok := t.byName[name]
			row := 2*i + int32(c.side)
			if !ok || slices.ContainsFunc(all, func(s scored) bool { return s.row == row }) {
				continue
			}
			if f, holds := t.judge(c, row); f == FilterNone && zones.allow(t.nodes[i].zoneAt) && t.spreads(c, i) {
				all = append(all, scored{row, t.score(c, row, holds).Total + zones.score(t.nodes[i].zoneAt)})
			}
		}
		slices.SortFunc(all, func(a, b scored) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(t.rank[a.row>>1], t.rank[b.row>>1]))
		})
		for _, s := range all {
			if !yield(s) {
				return
			}
		}
	}
}

// Candidates yields the machines that a pod of a class fits, best first. The table must not change meanwhile.
func (t *Table) Candidates(id ClassID) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		for s := range t.byScore(id) {
			n := &t.nodes[s.row>>1]
			if !yield(Candidate{n.id, n.name, s.score}) {
				return
			}
		}
	}
}

// Explanation says what became of every machine for a pod of a class.
type Explanation struct {
	// Machines is how many there are, Fit how many the pod fits.
	Machines, Fit int
	// Removed is how many machines each filter removed.
	Removed [Filters]int
	// Best is the machine with the best score, and its terms; empty where none fits.
	Best  fleet.NodeID
	Name  string
	Score Score
	// Next is the name of the machine that stands behind it, and NextScore what that has; empty where one alone fits.
	Next      string
	NextScore int64
}

// Explain says where [Table.Decide] would put a pod of a class now, and why. It reads what Decide reads, so that the two of them together cost little
// more than the decision: no machine is looked at twice. Where the pods of a class name their machines, these are looked at, and the others count as removed by
// the selector.
func (t *Table) Explain(id ClassID) Explanation {
	c := &t.classes[id]
	e := Explanation{Machines: t.known}
	var two []scored
	if c.pinned != nil {
		t.explainPinned(c, &e)
		two = firstTwo(t.byScore(id))
	} else {
		two = t.explainScored(id, t.claimedBest(c), &e)
	}
	for _, n := range e.Removed {
		e.Fit -= n
	}
	e.Fit += e.Machines
	if len(two) > 0 {
		row, zones := two[0].row, t.zonesOf(c)
		t.lend(t.usable(c, row>>1), func() {
			_, holds := t.judge(c, row)
			e.Score = t.score(c, row, holds)
		})
		e.Score.Zones = zones.score(t.nodes[row>>1].zoneAt)
		if e.Score.sum(); len(c.limits) > 0 {
			e.Score.Zones += two[0].score - e.Score.Total
			e.Score.sum()
		}
		e.Best, e.Name = t.nodes[row>>1].id, t.nodes[row>>1].name
	}
	if len(two) > 1 {
		e.Next, e.NextScore = t.nodes[two[1].row>>1].name, two[1].score
	}
	return e
}

// firstTwo are the first rows of many.
func firstTwo(all iter.Seq[scored]) []scored {
	out := make([]scored, 0, 2)
	for s := range all {
		if out = append(out, s); len(out) == 2 {
			break
		}
	}
	return out
}

// explainScored counts machines by the scores that a decision reads, and returns the best two: the claimed ones come first.
func (t *Table) explainScored(id ClassID, claimed []scored, e *Explanation) []scored {
	c := &t.classes[id]
	var scores []int32
	var removed byFilter
	var others iter.Seq[scored]
	if c.asked || !t.scans(c) {
		v := t.view(id, c.viewKey())
		scores, removed, others = v.score, v.removed, t.unclaimed(id)
		if v.parts != nil {
			for d, more := range t.weigh(c, v) {
				if more == refused {
					removed[FilterSpread] += v.parts.all[d].fit
				}
			}
		}
	} else {
		t.lastScan(id)
		scores, removed, others = t.scores, t.scanned.removed, t.scannedBest(c)
	}
	profile := t.settleProfile(c.profile)
	for f := FilterNone + 1; f < Filters; f++ {
		e.Removed[f] = int(profile.removed[f] + removed[f])
	}
	for _, x := range claimed {
		if s := scores[x.row>>1]; !fits(s) {
			e.Removed[s-unfit]-- // what is set aside there is for this class
		}
	}
	if zones := t.zonesOf(c); zones.skew > 0 {
		for i, s := range scores {
			if fits(s) && !zones.allow(t.nodes[i].zoneAt) {
				e.Removed[FilterZoneSkew]++
			}
		}
	}
	return firstTwo(after(claimed, others))
}

// scannedBest yields the best two machines of the last scan.
func (t *Table) scannedBest(c *class) iter.Seq[scored] {
	return func(yield func(scored) bool) {
		for _, x := range [...]rated{t.scanned.best, t.scanned.second} {
			if x.node == none || !yield(scored{2*x.node + int32(c.side), x.score}) {
				return
			}
		}
	}
}

// explainPinned asks the machines that a class names.
func (t *Table) explainPinned(c *class, e *Explanation) {
	e.Removed[FilterSelector] = t.known
	for k, name := range c.pinned {
		i, ok := t.byName[name]
		if !ok || !t.nodes[i].known || slices.Contains(c.pinned[:k], name) {
			continue
		}
		e.Removed[FilterSelector]--
		if f := t.filterOn(c, 2*i+int32(c.side)); f != FilterNone {
			e.Removed[f]++
		}
	}
}

// filterOn is the filter that a row fails, or none, with what is set aside there for the class.
func (t *Table) filterOn(c *class, row int32) Filter {
	f := FilterNone
	t.lend(t.usable(c, row>>1), func() { f, _ = t.judge(c, row) })
	if zones := t.zonesOf(c); f == FilterNone && !zones.allow(t.nodes[row>>1].zoneAt) {
		f = FilterZoneSkew
	}
	if f == FilterNone && !t.spreads(c, row>>1) {
		f = FilterSpread
	}
	return f
}
