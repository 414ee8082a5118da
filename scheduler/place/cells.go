package place

import (
	"cmp"
	"math"
	"slices"
)

// tryCells binds a pod to cells of a row by its policy and returns what it holds of each, or false. The cells given, which are those of the machine, are
// changed as if the pod were on them.
func (t *Table) tryCells(cells []cell, n *node, s side, want *vec, policy CellPolicy) ([]hold, bool) {
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

// closest takes cells that are as close to each other as they can be: it tries the cells in the order of their distance from each of them in turn, and
// keeps the order that takes the fewest cells, of these the one with the smallest distances. Where distances are unknown the cells are tried in their own
// order. The result of take is in t.holds; back undoes it.
func (t *Table) closest(cells []cell, n *node, take func(order []int32) bool, back func()) bool {
	d := n.kind.distances
	if len(d) < len(cells) || len(cells) > mostSeeds || slices.ContainsFunc(d, func(row []int) bool { return len(row) < len(cells) }) {
		return take(nil)
	}
	var order, best [mostSeeds]int32
	least, fewest := math.MaxInt, math.MaxInt
	try := order[:len(cells)]
	for seed := range cells {
		for i := range try {
			try[i] = int32(i)
		}
		slices.SortFunc(try, func(a, b int32) int { return cmp.Or(cmp.Compare(d[seed][a], d[seed][b]), cmp.Compare(a, b)) })
		if !take(try) {
			continue
		}
		sum := 0
		for _, a := range t.holds {
			for _, b := range t.holds {
				sum += d[a.cell-n.from][b.cell-n.from]
			}
		}
		if len(t.holds) < fewest || len(t.holds) == fewest && sum < least {
			fewest, least, best = len(t.holds), sum, order
		}
		back()
		t.holds = t.holds[:0]
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
func (t *Table) bindCells(cells []cell, n *node, s side, c *class) ([]hold, bool) {
	policy := c.shape.Cells
	if c.shape.Exclusive {
		return t.wholeCells(cells, n, s, c)
	}
	switch policy {
	case PreferCells:
		return t.tryCells(cells, n, s, &c.want, FewCells)
	case Restricted:
		holds, ok := t.tryCells(cells, n, s, &c.want, FewCells)
		return holds, ok && len(holds) <= fewest(t.cells[n.from:n.to], &c.want)
	}
	return t.tryCells(cells, n, s, &c.want, policy)
}

// fewest is how many cells a pod would need if all were free: those with the most of each resource come first.
func fewest(cells []cell, want *vec) int {
	need := 1
	for d := range perCell {
		var caps []int64
		for i := range cells {
			caps = append(caps, cells[i].capacity[d])
		}
		slices.SortFunc(caps, func(a, b int64) int { return cmp.Compare(b, a) })
		k, sum := 0, int64(0)
		for k < len(caps) && sum < want[d] {
			sum += caps[k]
			k++
		}
		need = max(need, k)
	}
	return need
}

// wholeCells takes as few cells as hold the pod of those that no bound pod holds, all of each: of one socket where that is possible.
func (t *Table) wholeCells(cells []cell, n *node, s side, c *class) ([]hold, bool) {
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
	return t.holds, c.shape.Cells != Restricted || len(t.holds) <= fewest(t.cells[n.from:n.to], &c.want)
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
		t.holds = append(t.holds, hold{n.from + int32(i), x.capacity})
		done := true
		for d := range rest {
			rest[d] -= min(rest[d], x.capacity[d])
			done = done && rest[d] == 0
		}
		if done {
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
	t.holds = append(t.holds, hold{number, amount})
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
