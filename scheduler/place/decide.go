package place

import (
	"iter"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// Decision is where a pod is to be bound. Its room is held from the moment of the decision.
type Decision struct {
	Pod  PodRef
	Node fleet.NodeID
	Name string
	// Cells are those that the pod holds, sorted; none where it floats.
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

// Assume holds room for a pod of a class on a machine that the caller chose among the candidates, or returns false where it does not fit there now.
func (t *Table) Assume(c ClassID, id fleet.NodeID) (Decision, bool) {
	i, ok := t.byID[id]
	if !ok {
		return Decision{}, false
	}
	row := 2*i + int32(sideOf(t.classes[c].shape.Side))
	if f, _ := t.judge(&t.classes[c], row); f != FilterNone || !t.zoneAllows(&t.classes[c], row) {
		return Decision{}, false
	}
	return t.assume(c, row), true
}

// assume puts a pod that fits on a row.
func (t *Table) assume(id ClassID, row int32) Decision {
	c := &t.classes[id]
	_, holds := t.fitsNow(c, row)
	p := pod{class: id, row: row, role: stays, assumed: true, holds: slices.Clone(holds)}
	p.roots = t.chooseRoots(&t.nodes[row>>1], c, p.holds)
	ref := t.put(p).Pod
	return t.decision(ref)
}

func (t *Table) decision(ref PodRef) Decision {
	p := &t.pods[ref]
	n := &t.nodes[p.row>>1]
	d := Decision{Pod: ref, Node: n.id, Name: n.name}
	for _, h := range p.holds {
		d.Cells = append(d.Cells, t.cells[h.cell].id)
	}
	slices.Sort(d.Cells)
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
	p := pod{uid: uid, class: c, row: 2*i + int32(sideOf(s.Side)), role: stays}
	p.holds = t.holdsOn(&t.classes[c], i, cells)
	p.roots = t.chooseRoots(&t.nodes[i], &t.classes[c], p.holds)
	return t.put(p).Pod
}

// holdsOn is what a pod holds of the cells that its binding named: of each what it has free, and what is missing of the first.
func (t *Table) holdsOn(c *class, i int32, ids []int) []hold {
	var out []hold
	n := &t.nodes[i]
	rest := [perCell]int64(c.want[:perCell])
	for k := n.from; k < n.to; k++ {
		if x := &t.cells[k]; slices.Contains(ids, x.id) {
			h := hold{cell: k}
			for d := range rest {
				h.amount[d] = min(rest[d], max(x.free[d], 0))
				if c.shape.Exclusive {
					h.amount[d] = x.capacity[d]
				}
				rest[d] -= min(rest[d], h.amount[d])
			}
			out = append(out, h)
		}
	}
	if len(out) > 0 {
		for d := range rest {
			out[0].amount[d] += rest[d]
		}
	}
	return out
}

// Leaving says that a pod is being deleted: it holds its room until it is removed, and counts no more for spreading.
func (t *Table) Leaving(ref PodRef) {
	p := t.pods[ref]
	if p.role == 0 {
		panic("place: there is no such pod")
	}
	t.charge(&t.pods[ref], -1)
	t.pods[ref].role = leaves
	t.charge(&t.pods[ref], 1)
}

// Resize gives a pod that is there another shape, as after a resize in place. It keeps its cells.
func (t *Table) Resize(ref PodRef, s Shape) PodRef {
	was := t.placement(ref)
	uid, role, assumed := t.pods[ref].uid, t.pods[ref].role, t.pods[ref].assumed
	t.Remove(ref)
	out := t.Bound(s, was.Node, uid, was.Cells)
	t.pods[out].assumed = assumed
	if role == leaves {
		t.Leaving(out)
	}
	return out
}

// best finds the row with the best score.
func (t *Table) best(id ClassID) int32 {
	best := int32(none)
	for ch := range t.byScore(id) {
		best = ch.row
		break
	}
	return best
}

type scored struct {
	row   int32
	score int64
}

// byScore yields the rows that a pod of a class fits, best first.
func (t *Table) byScore(id ClassID) iter.Seq[scored] {
	return func(yield func(scored) bool) {
		t.rankNames()
		c := &t.classes[id]
		var all []scored
		for row := int32(sideOf(c.shape.Side)); int(row) < len(t.open); row += 2 {
			f, holds := t.judge(c, row)
			if f != FilterNone || !t.zoneAllows(c, row) {
				continue
			}
			all = append(all, scored{row, t.score(c, row, holds).Total + t.zoneScore(c, row)})
		}
		slices.SortFunc(all, func(a, b scored) int {
			if a.score != b.score {
				if a.score > b.score {
					return -1
				}
				return 1
			}
			return int(t.rank[a.row>>1] - t.rank[b.row>>1])
		})
		for _, s := range all {
			if !yield(s) {
				return
			}
		}
	}
}

// zoneScore is the term of a row's zone.
func (t *Table) zoneScore(c *class, row int32) int64 {
	if !c.shape.Zones || c.group == none {
		return 0
	}
	counts := t.groupZones[c.group]
	more := counts[t.nodes[row>>1].zoneAt] - slices.Min(counts)
	return t.weights.of(side(row&1)).Zones * (whole - whole/10*int64(min(more, 10)))
}

// zoneAllows reports whether one more pod of the group may land in the zone of a row.
func (t *Table) zoneAllows(c *class, row int32) bool {
	if c.shape.ZoneSkew <= 0 || c.group == none {
		return true
	}
	counts := t.groupZones[c.group]
	least := int32(-1)
	for r := int32(sideOf(c.shape.Side)); int(r) < len(t.open); r += 2 {
		if n := counts[t.nodes[r>>1].zoneAt]; t.fixed(c, r) == FilterNone && (least < 0 || n < least) {
			least = n
		}
	}
	return counts[t.nodes[row>>1].zoneAt]+1-least <= c.shape.ZoneSkew
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

// CanPlace reports whether a pod of a class fits somewhere now: an event need wake only the classes for which it says so.
func (t *Table) CanPlace(c ClassID) bool { return t.best(c) != none }

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
}

// Explain looks at every machine. It is for people, and costs a pass.
func (t *Table) Explain(id ClassID) Explanation {
	c := &t.classes[id]
	var e Explanation
	for row := int32(sideOf(c.shape.Side)); int(row) < len(t.open); row += 2 {
		if !t.nodes[row>>1].known {
			continue
		}
		e.Machines++
		f, _ := t.judge(c, row)
		if f == FilterNone && !t.zoneAllows(c, row) {
			f = FilterZoneSkew
		}
		if f == FilterNone {
			e.Fit++
		} else {
			e.Removed[f]++
		}
	}
	if row := t.best(id); row != none {
		_, holds := t.judge(c, row)
		e.Score = t.score(c, row, holds)
		e.Score.Zones = t.zoneScore(c, row)
		e.Score.sum()
		e.Best, e.Name = t.nodes[row>>1].id, t.nodes[row>>1].name
	}
	return e
}
