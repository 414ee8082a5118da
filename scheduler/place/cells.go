package place

import (
	"cmp"
	"math"
	"slices"
)

// tryCells binds a pod to cells of a row by its policy and returns what it holds of each, or false. The cells given, which are those of the machine, are
// changed as if the pod were on them.
func (t *Table) tryCells(cells []cell, n *node, s side, want *vec, policy CellPolicy) ([]cellHold, bool) {
	t.holds = t.holds[:0]
	if policy == Float {
		return nil, true
	}
	rest := [perCell]int64(want[:perCell])
	if t.oneCell(cells, n.from, s, rest, noSocket) {
		return t.holds, true
	}
	if policy == OneCell {
		return nil, false
	}
	few := func(socket int) bool {
		return t.closest(cells, n, func(order []int32) bool { return t.fewCells(cells, n.from, s, rest, socket, order) },
			func() { t.giveBack(cells, n.from) })
	}
	for i := range cells {
		// Each socket once, in the order of its first cell; then all cells, whatever their socket.
		if firstOfSocket(cells, i) && few(cells[i].socket) {
			return t.holds, true
		}
	}
	if policy == OneSocket {
		return nil, false
	}
	return t.holds, few(noSocket)
}

// closest takes as few cells as it can, of these the ones that are closest to each other: it tries the cells in the order of their distance from each
// of them in turn (in their own order where distances are unknown), then those with the most of each resource first. It keeps the order that takes the
// fewest cells, of these the one with the smallest distances. The result of take is in t.holds; back undoes it.
func (t *Table) closest(cells []cell, n *node, take func(order []int32) bool, back func()) bool {
	if len(cells) > mostSeeds {
		return take(nil)
	}
	d := n.kind.distances
	if len(d) < len(cells) || slices.ContainsFunc(d, func(row []int) bool { return len(row) < len(cells) }) {
		d = nil
	}
	var order, best [mostSeeds]int32
	least, fewest := math.MaxInt, math.MaxInt
	try := func(compare func(a, b int32) int) {
		order := order[:len(cells)]
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, compare)
		if !take(order) {
			return
		}
		sum := 0
		for _, a := range t.holds {
			for _, b := range t.holds {
				if d != nil {
					sum += d[a.cell-n.from][b.cell-n.from]
				}
			}
		}
		if len(t.holds) < fewest || len(t.holds) == fewest && sum < least {
			fewest, least = len(t.holds), sum
			copy(best[:], order)
		}
		back()
		t.holds = t.holds[:0]
	}
	if d == nil {
		try(func(a, b int32) int { return 0 })
	}
	for seed := range d {
		if seed < len(cells) {
			try(func(a, b int32) int { return cmp.Compare(d[seed][a], d[seed][b]) })
		}
	}
	for r := range perCell {
		try(func(a, b int32) int { return cmp.Compare(cells[b].capacity[r], cells[a].capacity[r]) })
	}
	return fewest < math.MaxInt && take(best[:len(cells)])
}

// mostSeeds bounds the cells of a machine whose distances are looked at.
const mostSeeds = 32

// ordered is the cell that comes at a place in an order; nil for the cells' own order.
func ordered(order []int32, i int) int {
	if order == nil {
		return i
	}
	return int(order[i])
}

// giveBack returns what t.holds took of cells.
func (t *Table) giveBack(cells []cell, first int32) {
	for _, h := range t.holds {
		cells[h.cell-first].take(h.amount, -1)
	}
}

// bindCells binds a pod of a class to cells of its side by its policy, as tryCells does.
func (t *Table) bindCells(cells []cell, n *node, s side, c *class) ([]cellHold, bool) {
	if c.shape.Cells == Restricted {
		most, ok := t.fewest(n, s, c)
		if !ok {
			return nil, false
		}
		holds, ok := t.chooseCells(cells, n, s, c)
		return holds, ok && len(holds) <= most
	}
	return t.chooseCells(cells, n, s, c)
}

// chooseCells does so without the bound of [Restricted].
func (t *Table) chooseCells(cells []cell, n *node, s side, c *class) ([]cellHold, bool) {
	policy := c.shape.Cells
	switch {
	case c.shape.Exclusive:
		return t.wholeCells(cells, n, s, c)
	case policy == PreferCells || policy == Restricted:
		policy = FewCells
	}
	return t.tryCells(cells, n, s, &c.want, policy)
}

// fewest is how many cells a pod takes where it has the machine for itself: the same choice, on cells that are all free and of its side.
func (t *Table) fewest(n *node, s side, c *class) (int, bool) {
	empty := slices.Clone(t.cells[n.from:n.to])
	for i := range empty {
		empty[i].side, empty[i].free = s, empty[i].capacity
	}
	holds, ok := t.chooseCells(empty, n, s, c)
	return len(holds), ok
}

// wholeCells takes as few cells as hold the pod of those that no bound pod holds, all of each: of one socket where that is possible.
func (t *Table) wholeCells(cells []cell, n *node, s side, c *class) ([]cellHold, bool) {
	whole := func(socket int) bool {
		return t.closest(cells, n, func(order []int32) bool { return t.takeWhole(cells, n, s, c, socket, order) }, func() {})
	}
	if c.shape.Cells == OneCell {
		ok := t.takeWhole(cells, n, s, c, noSocket, nil)
		return t.holds, ok && len(t.holds) == 1
	}
	for i := range cells {
		if firstOfSocket(cells, i) && whole(cells[i].socket) {
			return t.holds, true
		}
	}
	if c.shape.Cells == OneSocket || !whole(noSocket) {
		return nil, false
	}
	return t.holds, true
}

// takeWhole takes cells that no bound pod holds, in an order, until they hold the pod.
func (t *Table) takeWhole(cells []cell, n *node, s side, c *class, socket int, order []int32) bool {
	t.holds = t.holds[:0]
	rest := [perCell]int64(c.want[:perCell])
	for k := range cells {
		i := ordered(order, k)
		x := &cells[i]
		if !x.of(s, socket) || x.free != x.capacity {
			continue
		}
		left := rest
		for d := range left {
			left[d] -= min(left[d], x.capacity[d])
		}
		if left == rest {
			continue // such as a cell of memory alone where a CPU is what is left to find
		}
		rest = left
		t.holds = append(t.holds, cellHold{n.from + int32(i), x.capacity})
		if rest == ([perCell]int64{}) {
			return true
		}
	}
	return false
}

func firstOfSocket(cells []cell, i int) bool {
	for k := range i {
		if cells[k].socket == cells[i].socket {
			return false
		}
	}
	return true
}

// noSocket stands for every socket.
const noSocket = -1

// oneCell takes all of an amount from the fullest cell that has it.
func (t *Table) oneCell(cells []cell, first int32, s side, rest [perCell]int64, socket int) bool {
	best := -1
	for i := range cells {
		c := &cells[i]
		if !c.of(s, socket) || !c.has(rest) {
			continue
		}
		if best < 0 || c.free[gpus] < cells[best].free[gpus] || c.free[gpus] == cells[best].free[gpus] && c.free[cpu] < cells[best].free[cpu] {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	t.hold(&cells[best], first+int32(best), rest)
	return true
}

// fewCells takes whole free cells, in an order, until what is left fits into one cell: a pod that is larger than a cell shares at most the last.
func (t *Table) fewCells(cells []cell, first int32, s side, rest [perCell]int64, socket int, order []int32) bool {
	for k := range cells {
		i := ordered(order, k)
		c := &cells[i]
		if !c.of(s, socket) || c.free != c.capacity {
			continue
		}
		// Of each resource all that is asked for is taken, or all that the cell has; so no cell is taken from twice.
		var part [perCell]int64
		for d := range part {
			part[d] = min(rest[d], c.free[d])
			rest[d] -= part[d]
		}
		if part == ([perCell]int64{}) {
			continue
		}
		t.hold(c, first+int32(i), part)
		if rest == ([perCell]int64{}) || t.oneCell(cells, first, s, rest, socket) {
			return true
		}
	}
	t.giveBack(cells, first)
	t.holds = t.holds[:0]
	return false
}

func (t *Table) hold(c *cell, number int32, amount [perCell]int64) {
	c.take(amount, 1)
	t.holds = append(t.holds, cellHold{number, amount})
}

func (c *cell) of(s side, socket int) bool {
	return c.side == s && (socket == noSocket || c.socket == socket)
}

func (c *cell) has(want [perCell]int64) bool {
	return c.free[gpus] >= want[gpus] && c.free[cpu] >= want[cpu] && c.free[memory] >= want[memory]
}

func (c *cell) take(amount [perCell]int64, times int64) {
	for d := range amount {
		c.free[d] -= times * amount[d]
	}
}
