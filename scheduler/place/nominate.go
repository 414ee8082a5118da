package place

import (
	"cmp"
	"maps"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// A nomination is a pod that waits for room to come on a machine: that of its victims, and of other pods that leave. It holds room against pods of its own
// and of lower priority, and only what it needs: what is to come counts for it, so that of what is free now it holds the rest alone. A pod of higher
// priority takes what it likes; [Table.Comes] says then that the nomination comes to nothing.

// held is what the nominations of a machine hold of what is free there now.
type held struct {
	rows  [2][resources]int64
	cells []cellHold
	asks  []ask
	roots []rootHold
}

// Nominate has a pod wait for the room of a preemption's victims, or for room that comes without any. The victims count no more for spreading. The pod can
// be bound when [Table.Settle] says so.
func (t *Table) Nominate(p Preemption) Decision {
	for _, ref := range p.Victims {
		if t.pods[ref].role == stays {
			t.Leaving(ref)
		}
	}
	return t.Hold(p.Class, p.Node, p.cells)
}

// Hold nominates a pod for a machine and cells that were found before.
func (t *Table) Hold(id ClassID, node fleet.NodeID, cells []int) Decision {
	i := t.byID[node]
	c := &t.classes[id]
	return t.decision(t.put(pod{class: id, row: 2*i + int32(c.side), role: awaits, assumed: true, named: cells, holds: t.holdsOn(c, i, cells)}).Pod)
}

// Settle reports whether the machine of a pod, nominated or decided, has room for it now next to all that is there, and admits it.
func (t *Table) Settle(ref PodRef) bool { return t.fitsAgain(ref, false) }

// Comes reports whether the machine of a nominated pod will have room for it when all that leave are gone.
func (t *Table) Comes(ref PodRef) bool { return t.fitsAgain(ref, true) }

func (t *Table) fitsAgain(ref PodRef, coming bool) bool {
	p := &t.pods[ref]
	c := &t.classes[p.class]
	if p.role == stays {
		for _, h := range p.holds {
			for _, v := range t.cells[h.cell].free {
				if v < 0 {
					return false
				}
			}
		}
	}
	t.without(ref, -1, c.counts())
	filter := FilterNone
	t.asIf(c, p.row>>1, coming, func() {
		t.lend(t.usable(c, p.row>>1), func() { filter, _ = t.judge(c, p.row) })
	})
	t.without(ref, 1, c.counts())
	if p.role == awaits {
		t.setHeld(p.row >> 1)
	}
	return filter == FilterNone
}

// Await finds a machine whose room a pod of a class can have without a victim: the first by name where only nominations of lower priority are in its way, or
// else the first where pods that leave are. Nothing changes; see [Table.Nominate].
func (t *Table) Await(id ClassID, facts *PreemptionFacts) (Preemption, bool) {
	c := &t.classes[id]
	t.rankNames()
	machines := slices.Collect(maps.Keys(t.futures))
	slices.SortFunc(machines, func(a, b int32) int { return cmp.Compare(t.rank[a], t.rank[b]) })
	zones := t.zonesOf(c)
	asked := 0
	for _, coming := range [...]bool{false, true} {
		for _, i := range machines {
			if !zones.allow(t.nodes[i].zoneAt) || t.admits(c, 2*i+int32(c.side)) != FilterNone {
				continue
			}
			if facts.Also != nil {
				if asked++; asked > mostAsked {
					return Preemption{}, false
				}
			}
			if p, ok := t.awaitOn(id, i, coming, facts); ok {
				return p, true
			}
		}
	}
	return Preemption{}, false
}

// AwaitOn is Await on one machine, for pods that are for that machine alone.
func (t *Table) AwaitOn(id ClassID, machine fleet.NodeID, facts *PreemptionFacts) (Preemption, bool) {
	i, ok := t.byID[machine]
	if !ok {
		return Preemption{}, false
	}
	if p, ok := t.awaitOn(id, i, false, facts); ok {
		return p, true
	}
	return t.awaitOn(id, i, true, facts)
}

func (t *Table) awaitOn(id ClassID, i int32, coming bool, facts *PreemptionFacts) (Preemption, bool) {
	c := &t.classes[id]
	out := Preemption{Class: id, Node: t.nodes[i].id}
	ok := false
	t.asIf(c, i, coming, func() {
		f, holds := t.judge(c, 2*i+int32(c.side))
		ok = f == FilterNone && t.spreads(c, i) && (facts.Also == nil || facts.Also(t.nodes[i].name, t.liftedOn(i)))
		for _, h := range holds {
			out.cells = append(out.cells, t.cells[h.cell].id)
		}
		slices.Sort(out.cells)
	})
	return out, ok
}

// asIf has do look at a machine as it is for a class: nominations of lower priority hold nothing of it; and, where the room that is to come counts, those that
// leave are gone.
func (t *Table) asIf(c *class, i int32, coming bool, do func()) {
	if t.futures[i] == 0 {
		do()
		return
	}
	var lifted []PodRef
	for row := 2 * i; row < 2*i+2; row++ {
		for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
			if p := &t.pods[ref]; !p.lifted && (p.role == awaits && t.classes[p.class].shape.Priority < c.shape.Priority || coming && p.comes()) {
				lifted = append(lifted, ref)
			}
		}
	}
	for _, ref := range lifted {
		t.without(ref, -1, c.counts())
	}
	t.setHeld(i)
	do()
	for _, ref := range lifted {
		t.without(ref, 1, c.counts())
	}
	t.setHeld(i)
}

// liftedOn lists the pods of a machine that are taken off it for a question, but for nominations, which no other judge knows.
func (t *Table) liftedOn(i int32) []PodRef {
	var out []PodRef
	for row := 2 * i; row < 2*i+2; row++ {
		for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
			if p := &t.pods[ref]; p.lifted && p.role != awaits {
				out = append(out, ref)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Coming lists the pods that leave, and the nominations of lower priority than a class: what [Table.Comes] counts as gone. For a trial in a transaction.
func (t *Table) Coming(id ClassID) []PodRef {
	var out []PodRef
	for i := range t.futures {
		for row := 2 * i; row < 2*i+2; row++ {
			for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
				if p := &t.pods[ref]; p.comes() || p.role == awaits && t.classes[p.class].shape.Priority < t.classes[id].shape.Priority {
					out = append(out, ref)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// Late says that a pod which leaves is not to be counted on: it should be gone by now, or takes too long. With false its room is to come again.
// It reports whether that is news.
func (t *Table) Late(ref PodRef, late bool) bool {
	p := &t.pods[ref]
	if p.late == late {
		return false
	}
	t.countFuture(p, -1)
	p.late = late
	t.countFuture(p, 1)
	t.setHeld(p.row >> 1)
	t.changed(p.row)
	return true
}

// Empties reports whether pods leave a machine that are counted on.
func (t *Table) Empties(machine fleet.NodeID) bool {
	i, ok := t.byID[machine]
	for row := 2 * i; ok && t.futures[i] > 0 && row < 2*i+2; row++ {
		for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
			if t.pods[ref].comes() {
				return true
			}
		}
	}
	return false
}

// comes reports whether the room of a pod is to come.
func (p *pod) comes() bool { return p.role == leaves && !p.late }

// countFuture counts a pod among those that make the room of its machine another one later.
func (t *Table) countFuture(p *pod, times int32) {
	if p.role != awaits && !p.comes() {
		return
	}
	i := p.row >> 1
	if t.futures[i] += times; t.futures[i] == 0 {
		delete(t.futures, i)
	}
}

// setHeld says again what the nominations of a machine hold of what is free.
func (t *Table) setHeld(i int32) {
	was, some := t.held[i]
	if !some && t.futures[i] == 0 {
		return
	}
	if some {
		t.takeHeld(i, &was, -1)
		delete(t.held, i)
	}
	if is, some := t.heldNow(i); some {
		t.takeHeld(i, &is, 1)
		t.held[i] = is
	}
	t.setAvail(i)
}

func (t *Table) takeHeld(i int32, h *held, times int64) {
	for s := range h.rows {
		for d := range t.free {
			t.free[d][2*i+int32(s)] -= times * h.rows[s][d]
		}
	}
	for _, x := range h.cells {
		t.cells[x.cell].take(x.amount, times)
	}
	for _, a := range h.asks {
		t.supplies[a.supply].take(i, times*a.amount)
	}
	t.takeRoots(&t.nodes[i], h.roots, times)
}

// heldNow is what the nominations of a machine ask for beyond the room that is to come there: so much of what is free now they hold.
func (t *Table) heldNow(i int32) (h held, some bool) {
	var nominated, coming [2][resources]int64
	cells, asks := map[int32][perCell]int64{}, map[int32]int64{}
	daemon := false
	for s := range int32(2) {
		for ref := t.first[2*i+s]; ref != none; ref = t.pods[ref].next {
			p := &t.pods[ref]
			if p.lifted || p.role != awaits && !p.comes() {
				continue
			}
			sum, times := &coming[s], int64(-1)
			if p.role == awaits {
				sum, times, some = &nominated[s], 1, true
				daemon = daemon || t.classes[p.class].shape.Daemon
			}
			if c := &t.classes[p.class]; p.role == awaits && c.shape.OneRoot && t.nodes[i].roots != none {
				if at := t.oneRoot(&t.nodes[i], c, p.holds); at >= 0 { // else it is to come
					x := rootHold{at: int32(at), gpus: c.want[gpus], nics: c.nics}
					t.takeRoots(&t.nodes[i], []rootHold{x}, 1)
					h.roots = append(h.roots, x)
				}
			}
			v := t.amountOf(p)
			for d := range sum {
				sum[d] += v[d]
			}
			for _, x := range p.holds {
				of := cells[x.cell]
				for d := range of {
					of[d] += times * x.amount[d]
				}
				cells[x.cell] = of
			}
			for _, a := range t.classes[p.class].asks {
				asks[a.supply] += times * a.amount
			}
		}
	}
	t.takeRoots(&t.nodes[i], h.roots, -1) // they were taken to distinguish several
	if !some {
		return h, false
	}
	for s := range h.rows {
		for d := range h.rows[s] {
			more := coming[s][d]
			if daemon { // it takes room of either side
				more += coming[1-s][d]
			}
			h.rows[s][d] = max(nominated[s][d]-more, 0)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(cells)) {
		x := cellHold{cell: k, amount: cells[k]}
		for d := range x.amount {
			x.amount[d] = max(x.amount[d], 0)
		}
		h.cells = append(h.cells, x)
	}
	for _, k := range slices.Sorted(maps.Keys(asks)) {
		h.asks = append(h.asks, ask{k, max(asks[k], 0)})
	}
	return h, true
}
