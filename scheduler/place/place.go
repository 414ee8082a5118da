package place

import (
	"iter"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// PodRef names a pod of a table for as long as it is there.
type PodRef int32

// Placement is where a pod is, or would be.
type Placement struct {
	Pod PodRef
	// UID is that of a pod of the snapshot; empty for one that was placed.
	UID  fleet.UID
	Node fleet.NodeID
	// Cells are those that the pod holds, sorted; none where it floats.
	Cells []int
}

// pod is a pod on a row. Pods of a row form a list, and one that leaves keeps its place in it, so that undoing restores the order too.
type pod struct {
	uid        fleet.UID
	class      ClassID
	row        int32
	prev, next PodRef
	role       role
	assumed    bool  // decided here, and not yet bound for all we know
	lifted     bool  // for as long as a preemption is tried
	late       bool  // it leaves, and its room is not to be counted on
	named      []int // the cells that its binding names, in the order in which they are filled
	holds      []cellHold
	roots      []rootHold
}

// role is what a pod is to those who want to empty its machine.
type role uint8

const (
	stays  role = iota + 1 // it must go elsewhere
	leaves                 // it is being deleted, and leaves by itself
	filler                 // ours: it holds room and is taken away
	system                 // it belongs to the machine
	awaits                 // it is nominated: it waits for room to come, and is not there
)

// Place puts a pod of a class where the package's doc says, or returns false where none fits.
func (t *Table) Place(c ClassID) (Placement, bool) {
	row, holds := t.pick(&t.classes[c])
	if row == none {
		return Placement{}, false
	}
	return t.put(pod{class: c, row: row, role: stays, holds: holds}), true
}

// Put puts a pod of a class on a machine, as another scheduler decided, whether it fits or not.
func (t *Table) Put(c ClassID, id fleet.NodeID) Placement {
	return t.put(pod{class: c, row: t.row(id, t.classes[c].shape.Side), role: stays})
}

// Remove takes a pod off its machine.
func (t *Table) Remove(ref PodRef) {
	was := t.pods[ref]
	if was.role == 0 {
		panic("place: there is no such pod")
	}
	t.note(change{kind: removed, ref: ref, was: was})
	t.unlink(ref)
	t.pods[ref] = pod{}
	t.spare = append(t.spare, ref)
	t.release(was.row >> 1)
}

// Pods yields the pods of the table, in the order of their references.
func (t *Table) Pods() iter.Seq[Placement] {
	return func(yield func(Placement) bool) {
		for ref := range t.pods {
			if t.pods[ref].role != 0 && !yield(t.placement(PodRef(ref))) {
				return
			}
		}
	}
}

// pick finds the row for a pod of a class, and the cells there.
func (t *Table) pick(c *class) (int32, []cellHold) {
	t.settle()
	order := c.domains
	if c.shape.Zones && c.group != none {
		order = t.byZone(c)
	}
	var holds []cellHold
	accept := t.acceptor(c, &holds)
	best := int32(none)
	for i, ch := range order {
		if i > 0 && best != none && ch.rank != order[i-1].rank {
			break
		}
		if r := t.index.fullest(t.domains[ch.domain].root, &c.want, accept); r != none && (best == none || t.index.before(r, best)) {
			best = r
		}
	}
	if best == none {
		return none, nil
	}
	if accept != nil {
		accept(best) // A later domain's candidate may have been the last to be tried.
	}
	return best, slices.Clone(holds)
}

// byZone orders a class's domains by how many pods of its group their zones have, then by rank. It gives each pair a rank of its own.
func (t *Table) byZone(c *class) []choice {
	t.picks = t.picks[:0]
	for _, ch := range c.domains {
		// Ranks are below four.
		ch.rank += 4 * t.groupZones[c.group][t.domains[ch.domain].zone]
		t.picks = append(t.picks, ch)
	}
	slices.SortStableFunc(t.picks, func(a, b choice) int { return int(a.rank - b.rank) })
	return t.picks
}

// acceptor judges what the trees do not know: cells, and the pods of the group on the machine. It is nil where they know all.
func (t *Table) acceptor(c *class, holds *[]cellHold) func(row int32) bool {
	if c.shape.Cells == Float && c.perHost() == 0 {
		return nil
	}
	return func(row int32) bool {
		if p := c.perHost(); p > 0 && t.onHost(c.group, row>>1) >= p {
			return false
		}
		n := &t.nodes[row>>1]
		t.trial = append(t.trial[:0], t.cells[n.from:n.to]...)
		h, ok := t.tryCells(t.trial, n, side(row&1), &c.want, c.shape.Cells)
		*holds = h
		return ok
	}
}

func (c *class) perHost() int32 {
	if c.group == none {
		return 0
	}
	return c.shape.PerHost
}

// counts reports whether where a pod of a class fits depends on how many pods of a group or a set there are.
func (c *class) counts() bool { return c.perHost() > 0 || len(c.limits) > 0 }

// onHost counts the pods of a group on a machine.
func (t *Table) onHost(group, n int32) int32 {
	if t.groupMask[n]&(1<<(group&63)) == 0 {
		return 0
	}
	return t.groupHosts[group][n]
}

// PodsOn counts the pods on a machine.
func (t *Table) PodsOn(id fleet.NodeID) int {
	k, online := 0, t.row(id, fleet.Online)
	for row := online; row < online+2; row++ {
		for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
			k++
		}
	}
	return k
}

// put adds a pod to its row, whether it fits or not.
func (t *Table) put(p pod) Placement {
	var ref PodRef
	fresh := len(t.spare) == 0
	if fresh {
		ref = PodRef(len(t.pods))
		t.pods = append(t.pods, pod{})
	} else {
		ref = t.spare[len(t.spare)-1]
		t.spare = t.spare[:len(t.spare)-1]
	}
	p.prev, p.next = none, t.first[p.row]
	t.pods[ref] = p
	t.relink(ref)
	t.note(change{kind: placed, ref: ref, fresh: fresh})
	return t.placement(ref)
}

// relink puts a pod into the list where its own links say, and takes its room.
func (t *Table) relink(ref PodRef) {
	p := &t.pods[ref]
	if p.prev == none {
		t.first[p.row] = ref
	} else {
		t.pods[p.prev].next = ref
	}
	if p.next != none {
		t.pods[p.next].prev = ref
	}
	t.charge(p, 1)
	t.cellsChanged(p, 1)
	t.countFuture(p, 1)
	t.setHeld(p.row >> 1)
}

// unlink takes a pod out of its list and gives its room back.
func (t *Table) unlink(ref PodRef) {
	p := &t.pods[ref]
	if p.prev == none {
		t.first[p.row] = p.next
	} else {
		t.pods[p.prev].next = p.next
	}
	if p.next != none {
		t.pods[p.next].prev = p.prev
	}
	t.charge(p, -1)
	t.cellsChanged(p, -1)
	t.countFuture(p, -1)
	t.setHeld(p.row >> 1)
}

// cellsChanged follows a pod with cells that came or went.
func (t *Table) cellsChanged(p *pod, times int32) {
	n := &t.nodes[p.row>>1]
	if t.sharesCells(p) {
		n.sharers += times
	}
	if len(p.named) > 0 && n.sharers > 0 {
		t.shareCells(p.row >> 1)
	}
}

// charge takes what a pod asks for from its machine, or gives it back.
func (t *Table) charge(p *pod, times int64) {
	t.chargeRoom(p, times)
	if t.podsOn[p.row>>1] == 0 {
		t.groupMask[p.row>>1] = 0
	}
	t.countGroup(p, int32(times))
	t.countSets(p, int32(times))
	t.chargeLevel(p, times)
	t.changed(p.row)
}

// chargeRoom does so in the columns alone. A nomination takes none of what is there; see [Table.setHeld].
func (t *Table) chargeRoom(p *pod, times int64) {
	c, n := &t.classes[p.class], &t.nodes[p.row>>1]
	if len(c.ports) > 0 {
		n.ports += int32(times)
	}
	t.podsOn[p.row>>1] += int32(times)
	if p.role == awaits {
		return
	}
	amount := t.amountOf(p)
	for d := range t.free {
		t.free[d][p.row] -= times * amount[d]
	}
	for _, h := range p.holds {
		t.cells[h.cell].take(h.amount, times)
	}
	t.takeRoots(n, p.roots, times)
	for _, a := range c.asks {
		t.supplies[a.supply].take(p.row>>1, times*a.amount)
	}
}

// amountOf is what a pod takes from its row: a pod that has its cells for itself takes all of them.
func (t *Table) amountOf(p *pod) vec {
	c := &t.classes[p.class]
	v := c.want
	if c.shape.Exclusive && len(p.holds) > 0 {
		for d := range perCell {
			v[d] = 0
			for _, h := range p.holds {
				v[d] += h.amount[d]
			}
		}
	}
	return v
}

func (t *Table) placement(ref PodRef) Placement {
	p := &t.pods[ref]
	out := Placement{Pod: ref, UID: p.uid, Node: t.nodes[p.row>>1].id}
	for _, h := range p.holds {
		out.Cells = append(out.Cells, t.cells[h.cell].id)
	}
	slices.Sort(out.Cells)
	return out
}
