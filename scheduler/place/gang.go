package place

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// Gang places all members or none, and returns where each is, in the order in which they were given. The largest choose first, since what is
// left fits the small ones more often than the other way round.
func (t *Table) Gang(members []ClassID) ([]Placement, bool) {
	order := make([]int, len(members))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return t.largestFirst(members[a], members[b]) })
	out := make([]Placement, len(members))
	ok := t.Try(func() bool {
		for _, i := range order {
			p, ok := t.Place(members[i])
			if !ok {
				return false
			}
			out[i] = p
		}
		return true
	})
	if !ok {
		return nil, false
	}
	return out, true
}

func (t *Table) largestFirst(a, b ClassID) int {
	x, y := &t.classes[a].want, &t.classes[b].want
	return cmp.Or(cmp.Compare(y[gpus], x[gpus]), cmp.Compare(y[cpu], x[cpu]), cmp.Compare(y[memory], x[memory]), cmp.Compare(a, b))
}

// Empty closes a machine and places all of its pods elsewhere, or changes nothing. Pods that are being deleted, those that belong to the
// machine and our fillers need no other place.
func (t *Table) Empty(id fleet.NodeID) (moved []Placement, ok bool) {
	row := t.row(id, fleet.Online)
	ok = t.Try(func() bool {
		t.setOpen(row, false)
		t.setOpen(row+1, false)
		movers := append(t.lift(row, stays), t.lift(row+1, stays)...)
		slices.SortFunc(movers, t.byNeed)
		for _, p := range movers {
			to, holds := t.pick(&t.classes[p.class])
			if to == none {
				return false
			}
			p.row, p.holds = to, holds
			moved = append(moved, t.put(p))
		}
		return true
	})
	if !ok {
		return nil, false
	}
	return moved, true
}

// HandOver gives cells of a machine to its other side, if the pods of the side that gives them fit what it keeps: all their requests together, with
// those of pods that belong to the machine, and each of them into cells. A pod that floated holds its cells from then on. Else nothing changes.
func (t *Table) HandOver(id fleet.NodeID, cells []int) (kept []Placement, ok bool) {
	giver := t.sideThatHas(id, cells)
	n := t.byID[id]
	row := 2*n + int32(giver)
	ok = t.Try(func() bool {
		// The trees need not follow every step.
		wasOpen := [2]bool{t.open[2*n], t.open[2*n+1]}
		t.setOpen(2*n, false)
		t.setOpen(2*n+1, false)
		if kept, ok = t.handOver(n, row, cells); !ok {
			return false
		}
		t.setOpen(2*n, wasOpen[onlineSide])
		t.setOpen(2*n+1, wasOpen[offlineSide])
		return true
	})
	if !ok {
		return nil, false
	}
	return kept, true
}

func (t *Table) handOver(n, row int32, cells []int) (kept []Placement, ok bool) {
	t.lift(row, filler)
	for i := t.nodes[n].from; i < t.nodes[n].to; i++ {
		if slices.Contains(cells, t.cells[i].id) {
			t.assignCell(i, n, 1-side(row&1))
		}
	}
	// A machine's own labels are no reason to keep all of it.
	if t.hasCells(row) && t.overdrawn(row) {
		return nil, false
	}
	movers := append(t.lift(row, stays), t.lift(row, leaves)...)
	slices.SortStableFunc(movers, t.byNeed)
	for _, p := range movers {
		if !t.seat(&p) {
			return nil, false
		}
		kept = append(kept, t.put(p))
	}
	return kept, true
}

// sideThatHas finds the side that has all of the cells. Cells of two sides, or of no machine, are a mistake of the caller.
func (t *Table) sideThatHas(id fleet.NodeID, cells []int) side {
	var has [2]int
	for _, c := range t.cellsOf(t.row(id, fleet.Online)) {
		if slices.Contains(cells, c.id) {
			has[c.side]++
		}
	}
	switch len(cells) {
	case has[onlineSide]:
		return onlineSide
	case has[offlineSide]:
		return offlineSide
	}
	panic("place: machine " + string(id) + " has no such cells on one side")
}

// lift takes the pods of a role off a row and returns them.
func (t *Table) lift(row int32, r role) []pod {
	var out []pod
	for ref := t.first[row]; ref != none; {
		p := t.pods[ref]
		if p.role == r {
			t.Remove(ref)
			out = append(out, p)
		}
		ref = p.next
	}
	return out
}

// byNeed orders pods by what they ask for, the largest first, and then by UID. Equal pods without a UID are alike.
func (t *Table) byNeed(a, b pod) int {
	return cmp.Or(t.largestFirst(a.class, b.class), cmp.Compare(a.uid, b.uid))
}

// seat finds cells of its own row for a pod; one that floats is held to few.
func (t *Table) seat(p *pod) bool {
	c := &t.classes[p.class]
	if room := t.room(p.row); !room.fits(&c.want) {
		return false
	}
	policy := c.shape.Cells
	if policy == Float {
		policy = FewCells
	}
	n := &t.nodes[p.row>>1]
	t.trial = append(t.trial[:0], t.cells[n.from:n.to]...)
	holds, ok := t.tryCells(t.trial, n, side(p.row&1), &c.want, policy)
	p.holds = slices.Clone(holds)
	return ok
}

func (t *Table) hasCells(row int32) bool {
	return slices.ContainsFunc(t.cellsOf(row), func(c cell) bool { return c.side == side(row&1) })
}

func (t *Table) overdrawn(row int32) bool {
	for d := range t.free {
		if t.free[d][row] < 0 {
			return true
		}
	}
	return false
}
