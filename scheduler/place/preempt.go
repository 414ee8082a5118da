package place

import (
	"cmp"
	"iter"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// PreemptionFacts is what a preemption must know of pods beyond the table. Its functions are asked about the pods of a few machines alone.
type PreemptionFacts struct {
	// Pod says what protects a pod; nil for nothing.
	Pod func(PodRef) PodFacts
	// Allowed is how many pods of each disruption budget may go now.
	Allowed []int
	Gangs   []GangFacts
	// Also says what else must hold of a machine without some of its pods, beyond what the table judges; nil for nothing. It may ask for victims where the
	// table has room already.
	Also func(node string, gone []PodRef) bool
}

// PodFacts is what protects one pod.
type PodFacts struct {
	// Protected: it must not be taken, since it started a short time ago, or is one of ours.
	Protected bool
	// Budgets are the pod's disruption budgets, as indexes of PreemptionFacts.Allowed.
	Budgets []int
	// Gang is its gang, as an index of PreemptionFacts.Gangs plus one; 0 for none.
	Gang int
	// Started orders victims: of equal ones the one that started last goes first.
	Started int64
}

// GangFacts is a gang of which less than Min pods are of no use: where one more would be too many, all go.
type GangFacts struct {
	Min     int
	Members []PodRef
}

// Preemption is which pods must go so that a pod fits a machine.
type Preemption struct {
	Class ClassID
	Node  fleet.NodeID
	// Victims go, in the order of their references; they may be on other machines too, where a gang goes as a whole.
	Victims []PodRef
	// Broken is how many of them go against their disruption budget.
	Broken int
	// Highest is the highest priority among the victims, and whether it is a guaranteed pod.
	Highest    int32
	Guaranteed bool
	cells      []int
}

// preemptKey is that of the view which orders machines by what a preemption there would cost.
const preemptKey = "\x00preempt"

// mostTried is how many machines are judged exactly once one is found. Machines come in the order of the highest level that must go and of the pods
// at and below it.
const mostTried = 16

// mostAsked is how many machines are asked in vain where room alone does not say whether a preemption helps: each question is about the pods of a machine.
const mostAsked = 256

// Preempt finds the pods that must go so that a pod of a class fits: the fewest against their budgets, then those of the lowest standing, then the
// fewest. The victims on a machine are minimal: none could stay. Nothing changes; see [Table.Nominate]. Where no machine could help, the heads of
// an index say so without a look at any.
func (t *Table) Preempt(id ClassID, facts *PreemptionFacts) (Preemption, bool) {
	t.levelsOn()
	c := &t.classes[id]
	var best Preemption
	found, tried := false, 0
	q := contest{}
	if c.pinned == nil {
		q.add(t, entry{v: t.view(id, preemptKey), at: 1})
	}
	zones := t.zonesOf(c)
	for i := range t.preemptable(c, &q) {
		if !zones.allow(t.nodes[i].zoneAt) {
			continue
		}
		if tried++; found && (tried > mostTried || c.pinned == nil && best.Broken == 0 && t.cannotBeat(c, i, &best)) || (facts.Also != nil || len(c.limits) > 0) && tried > mostAsked {
			break
		}
		if p, ok := t.preemptOn(id, i, facts); ok && (!found || t.cheaper(&p, &best)) {
			best, found = p, true
		}
	}
	return best, found
}

// PreemptOn is Preempt on one machine, for pods that are for that machine alone.
func (t *Table) PreemptOn(id ClassID, machine fleet.NodeID, facts *PreemptionFacts) (Preemption, bool) {
	i, ok := t.byID[machine]
	c := &t.classes[id]
	if !ok || t.admits(c, 2*i+int32(c.side)) != FilterNone {
		return Preemption{}, false
	}
	return t.preemptOn(id, i, facts)
}

// MayPreemptOn reports whether pods of lower standing have so much of a machine that a pod of a class might take their room. After an event only the
// classes for which it says so of a machine that changed need another search.
func (t *Table) MayPreemptOn(id ClassID, machine fleet.NodeID) bool {
	i, ok := t.byID[machine]
	c := &t.classes[id]
	row := 2*i + int32(c.side)
	if !ok || t.admits(c, row) != FilterNone {
		return false
	}
	t.levelsOn()
	below, _ := t.levels.number(c.shape.precedence())
	if !c.shape.Daemon {
		_, _, ok = t.freeable(c, row, below)
		return ok
	}
	for d := range t.free {
		free := int64(0)
		t.asIf(c, i, true, func() { free = t.freeOnAll(row, d) })
		for k := range below {
			for r := row &^ 1; r <= row|1 && int(r) < len(t.levels.sums[k]); r++ {
				free += t.levels.sums[k][r][d]
			}
		}
		if c.want[d] > 0 && c.want[d] > free {
			return false
		}
	}
	return true
}

// cannotBeat reports whether a machine, and so all that come after it, is no better than the best that keeps to its budgets: a pod of higher standing
// must go, or there is one victim already.
func (t *Table) cannotBeat(c *class, i int32, best *Preemption) bool {
	below, _ := t.levels.number(c.shape.precedence())
	k, _, _ := t.freeable(c, 2*i+int32(c.side), below)
	n := t.levels.all[k].compare(precedence{best.Highest, best.Guaranteed})
	return n > 0 || n == 0 && len(best.Victims) == 1
}

// preemptable yields the machines on which a preemption might help, cheapest first.
func (t *Table) preemptable(c *class, q *contest) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for _, name := range c.pinned {
			i, ok := t.byName[name]
			if ok && t.admits(c, 2*i+int32(c.side)) == FilterNone && !yield(i) {
				return
			}
		}
		for e, ok := q.next(t); ok; e, ok = q.next(t) {
			if !yield(e.node()) {
				return
			}
		}
	}
}

// ratePreempt is the score of a machine in the view of preemptions, or unfit.
func (t *Table) ratePreempt(c *class, p *profile, i int32) int32 {
	if p.bits[i>>6]>>(i&63)&1 == 0 {
		return unfit
	}
	below, _ := t.levels.number(c.shape.precedence())
	k, count, ok := t.freeable(c, 2*i+int32(c.side), below)
	if !ok {
		return unfit
	}
	return -int32(k)<<12 - int32(min(count, 1<<12-1))
}

// preemptOn finds the minimal victims on one machine. The room of those that leave is to come anyway, and nominations of lower priority give way.
func (t *Table) preemptOn(id ClassID, i int32, facts *PreemptionFacts) (out Preemption, ok bool) {
	t.asIf(&t.classes[id], i, true, func() { out, ok = t.victimsOn(id, i, facts) })
	return out, ok
}

func (t *Table) victimsOn(id ClassID, i int32, facts *PreemptionFacts) (Preemption, bool) {
	c := &t.classes[id]
	row := 2*i + int32(c.side)
	mine := c.shape.precedence()
	type candidate struct {
		ref    PodRef
		facts  PodFacts
		level  precedence
		amount vec
		breaks bool
	}
	all := make([]candidate, 0, t.podsOn[i])
	add := func(ref PodRef) {
		p := &t.pods[ref]
		x := candidate{ref: ref, level: t.classes[p.class].shape.precedence()}
		if p.role != stays || x.level.compare(mine) >= 0 {
			return
		}
		if facts.Pod != nil {
			x.facts = facts.Pod(ref)
		}
		if !x.facts.Protected {
			x.amount = t.amountOf(p)
			all = append(all, x)
		}
	}
	for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
		add(ref)
	}
	if c.shape.Daemon { // it takes room of either side
		for ref := t.first[row^1]; ref != none; ref = t.pods[ref].next {
			add(ref)
		}
	}
	allowed := slices.Clone(facts.Allowed)
	breaks := func(x *candidate) bool {
		for _, b := range x.facts.Budgets {
			if allowed[b] <= 0 {
				return true
			}
		}
		return false
	}
	for k := range all {
		all[k].breaks = breaks(&all[k])
	}
	// The first to be spared are those against whose budget it would be, then those of the highest level, then the largest and the oldest.
	slices.SortFunc(all, func(a, b candidate) int {
		if a.breaks != b.breaks {
			return fleet.TrueFirst(a.breaks, b.breaks)
		}
		if n := b.level.compare(a.level); n != 0 {
			return n
		}
		for _, d := range [...]int{gpus, cpu, memory} {
			if a.amount[d] != b.amount[d] {
				return cmp.Compare(b.amount[d], a.amount[d])
			}
		}
		if a.facts.Started != b.facts.Started {
			return cmp.Compare(a.facts.Started, b.facts.Started)
		}
		if n := cmp.Compare(t.pods[a.ref].uid, t.pods[b.ref].uid); n != 0 {
			return n
		}
		return cmp.Compare(a.ref, b.ref)
	})
	lift := func(ref PodRef, times int64) { t.without(ref, times, c.counts()) }
	for k := range all {
		lift(all[k].ref, -1)
	}
	fits := func() bool {
		if f, _ := t.judge(c, row); f != FilterNone || !t.spreads(c, i) {
			return false
		}
		if facts.Also == nil {
			return true
		}
		return facts.Also(t.nodes[i].name, t.liftedOn(i))
	}
	helps := fits()
	out := Preemption{Class: id, Node: t.nodes[i].id}
	var gone []candidate
	if helps {
		for k := range all {
			lift(all[k].ref, 1)
			if !fits() {
				lift(all[k].ref, -1)
				gone = append(gone, all[k])
			}
		}
		_, holds := t.judge(c, row)
		for _, h := range holds {
			out.cells = append(out.cells, t.cells[h.cell].id)
		}
		slices.Sort(out.cells)
	}
	for k := range all {
		if t.pods[all[k].ref].lifted {
			lift(all[k].ref, 1)
		}
	}
	if !helps || len(gone) == 0 {
		return Preemption{}, false // nothing helps, or nothing need go
	}
	highest := gone[0].level
	taken := map[int]int{}
	for k := range gone {
		x := &gone[k]
		if breaks(x) {
			out.Broken++
		}
		for _, b := range x.facts.Budgets {
			allowed[b]--
		}
		out.Victims = append(out.Victims, x.ref)
		if x.facts.Gang > 0 {
			taken[x.facts.Gang-1]++
		}
		if x.level.compare(highest) > 0 {
			highest = x.level
		}
	}
	if !t.takeGangs(&out, taken, facts, allowed, mine) {
		return Preemption{}, false
	}
	for _, ref := range out.Victims {
		if l := t.classes[t.pods[ref].class].shape.precedence(); l.compare(highest) > 0 {
			highest = l
		}
	}
	slices.Sort(out.Victims)
	out.Highest, out.Guaranteed = highest.priority, highest.guaranteed
	return out, true
}

// takeGangs adds the rest of each gang of which too few would stay; false where one of the rest must not go. The rest
// of the budgets is spent.
func (t *Table) takeGangs(out *Preemption, taken map[int]int, facts *PreemptionFacts, allowed []int, mine precedence) bool {
	for g := range facts.Gangs {
		x := &facts.Gangs[g]
		if taken[g] == 0 || len(x.Members)-taken[g] >= x.Min {
			continue
		}
		for _, ref := range x.Members {
			if slices.Contains(out.Victims, ref) {
				continue
			}
			var f PodFacts
			if facts.Pod != nil {
				f = facts.Pod(ref)
			}
			if f.Protected || t.classes[t.pods[ref].class].shape.precedence().compare(mine) >= 0 {
				return false
			}
			if slices.ContainsFunc(f.Budgets, func(b int) bool { return allowed[b] <= 0 }) {
				out.Broken++
			}
			for _, b := range f.Budgets {
				allowed[b]--
			}
			out.Victims = append(out.Victims, ref)
		}
	}
	return true
}

// cheaper orders preemptions.
func (t *Table) cheaper(a, b *Preemption) bool {
	x, y := precedence{a.Highest, a.Guaranteed}, precedence{b.Highest, b.Guaranteed}
	return cmp.Or(cmp.Compare(a.Broken, b.Broken), x.compare(y), cmp.Compare(len(a.Victims), len(b.Victims)),
		cmp.Compare(t.rank[t.byID[a.Node]], t.rank[t.byID[b.Node]])) < 0
}

// without takes a pod off its machine for a question, times -1, or puts it back. That is undone before anything else reads the table, so it is not noted as a change.
func (t *Table) without(ref PodRef, times int64, counted bool) {
	p := &t.pods[ref]
	p.lifted = times < 0
	t.chargeRoom(p, times)
	if counted {
		t.countGroup(p, int32(times))
		t.countSets(p, int32(times))
	}
	t.setAvail(p.row >> 1)
}
