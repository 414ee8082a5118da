package place

import (
	"cmp"
	"math"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// Fit is how much room there is for a class.
type Fit struct {
	// Total is how many more pods of the class can be placed now.
	Total int64
	// Whole is how many the same free room would hold if it were one machine.
	Whole int64
	// ByPool parts Total by the home pools of the machines, those with any, by id.
	ByPool []PoolFit
}

// PoolFit is how many pods fit on the machines of one pool.
type PoolFit struct {
	Pool fleet.PoolID
	Pods int64
}

// Fragmentation is the share of the room that is free for the class and of no use to it, because it lies in pieces that are too small or
// lacks something: 0 when every piece can be used, 1 when there is room and none of it can.
func (f Fit) Fragmentation() float64 {
	if f.Whole <= 0 {
		return 0
	}
	return 1 - float64(f.Total)/float64(f.Whole)
}

// Fits counts the pods of a class that [Table.Place] would place one after the other.
func (t *Table) Fits(id ClassID) Fit {
	c := &t.classes[id]
	mine := make([]bool, len(t.domains))
	for _, ch := range c.domains {
		mine[ch.domain] = true
	}
	var f Fit
	var whole fleet.Resources
	byPool := map[fleet.PoolID]int64{}
	for row := range int32(len(t.open)) {
		if d := t.domainOf[row]; !t.open[row] || !mine[d] {
			continue
		}
		v := t.room(row)
		whole = whole.Add(v.resources().Floor())
		if n := t.count(c, row, &v); n > 0 {
			f.Total += n
			byPool[t.domains[t.domainOf[row]].pool] += n
		}
	}
	unit := c.want.resources()
	f.Whole = whole.Count(unit)
	for pool, n := range byPool {
		f.ByPool = append(f.ByPool, PoolFit{pool, n})
	}
	slices.SortFunc(f.ByPool, func(a, b PoolFit) int { return cmp.Compare(a.Pool, b.Pool) })
	return f
}

// count is how many pods of a class fit a row: a quotient, and where cells count the number that can be bound one after the other.
func (t *Table) count(c *class, row int32, room *vec) int64 {
	if !room.fits(&c.want) {
		return 0 // also where something is overdrawn that the class does not ask for
	}
	n := int64(math.MaxInt64)
	for d := range resources {
		if c.want[d] > 0 {
			n = min(n, room[d]/c.want[d])
		}
	}
	if p := c.perHost(); p > 0 {
		n = min(n, int64(p-t.onHost(c.group, row>>1)))
	}
	if c.shape.Cells == Float || n <= 0 {
		return max(n, 0)
	}
	m := &t.nodes[row>>1]
	t.trial = append(t.trial[:0], t.cells[m.from:m.to]...)
	for k := range n {
		if _, ok := t.tryCells(t.trial, m, side(row&1), &c.want, c.shape.Cells); !ok {
			return k
		}
	}
	return n
}
