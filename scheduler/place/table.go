package place

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// Table is machines, their free room and the pods on them. It has one owner: nothing in it may be used by two goroutines at once.
type Table struct {
	nodes []node // by id
	byID  map[fleet.NodeID]int32
	zones []string

	// Columns by row; a machine's rows are 2·node for online and 2·node+1 for offline.
	free     [resources][]int64 // what the side's cells hold less what its pods ask for; negative where the facts overdraw
	open     []bool             // pods may land
	first    []PodRef           // the head of the row's list of pods
	domainOf []int32
	cells    []cell // of all machines, each machine's in the order of its ids

	domains []domain
	index   index

	classes    []class
	classOf    map[Shape]ClassID
	groupOf    map[string]int32
	groupZones [][]int32 // pods of a group by zone

	pods  []pod
	spare []PodRef // free slots of pods

	log   []change
	marks []int // lengths of the log at which open transactions began

	picks []choice // scratch of pick
	trial []cell   // scratch of tryCells
	holds []hold   // scratch of tryCells
}

// none stands for no row, pod or group.
const none = -1

// node is the part of a machine that does not change.
type node struct {
	facts    *fleet.Node
	zone     int32
	from, to int32 // its cells
	home     side
}

// cell is one NUMA cell: what it can hold, what is not held by pods that are bound, and the side that may use it. The cell of a machine of
// unknown topology is the whole machine.
type cell struct {
	capacity, free [perCell]int64
	id, socket     int
	side           side
}

// hold is what a bound pod holds of a cell.
type hold struct {
	cell   int32
	amount [perCell]int64
}

// side is which half of a machine a row is.
type side uint8

const (
	onlineSide  side = 0
	offlineSide side = 1
)

func sideOf(c fleet.Class) side {
	if c == fleet.Offline {
		return offlineSide
	}
	return onlineSide
}

// domain is the rows that are alike in all that a shape can ask for but room.
type domain struct {
	domainKey
	zone int32
	root int32 // of its tree of open rows
}

type domainKey struct {
	side  side
	pool  fleet.PoolID
	home  bool
	gpu   bool
	model string
	zone  string
}

func (k *domainKey) compare(o *domainKey) int {
	return cmp.Or(cmp.Compare(k.side, o.side), cmp.Compare(k.pool, o.pool), fleet.TrueFirst(k.home, o.home), fleet.TrueFirst(k.gpu, o.gpu),
		cmp.Compare(k.model, o.model), cmp.Compare(k.zone, o.zone))
}

// room is what is free for the pods of a row: what a machine's other side overdraws is missing here.
func (t *Table) room(row int32) vec {
	var v vec
	for d := range t.free {
		v[d] = t.free[d][row] + min(t.free[d][row^1], 0)
	}
	s := side(row & 1)
	for _, c := range t.cellsOf(row) {
		if c.side == s {
			v[hole] = max(v[hole], c.free[cpu])
		}
	}
	return v
}

func (t *Table) cellsOf(row int32) []cell {
	n := &t.nodes[row>>1]
	return t.cells[n.from:n.to]
}

// refresh brings the trees in line with the rows of a machine.
func (t *Table) refresh(row int32) {
	t.refreshRow(row)
	t.refreshRow(row ^ 1)
}

func (t *Table) refreshRow(row int32) {
	in := t.index.in[row]
	if !in && !t.open[row] {
		return // while a table is built no row is open
	}
	v, d := t.room(row), &t.domains[t.domainOf[row]]
	if in && t.open[row] && t.index.room[row] == v {
		return
	}
	if in {
		d.root = t.index.remove(d.root, row)
	}
	if t.open[row] {
		d.root = t.index.insert(d.root, row, v)
	}
}

// capacity is what the cells of the row's side can hold.
func (t *Table) capacity(row int32) vec {
	n, s := &t.nodes[row>>1], side(row&1)
	cells := t.cells[n.from:n.to]
	ids := make([]int, 0, 8)
	for i := range cells {
		if cells[i].side == s {
			ids = append(ids, cells[i].id)
		}
	}
	switch len(ids) {
	case 0:
		return vec{}
	case len(cells):
		return vecOf(n.facts.Allocatable)
	}
	return vecOf(n.facts.CapacityOf(ids))
}

// SetOpen says whether pods of a side may land on a machine. Those that are on it stay.
func (t *Table) SetOpen(id fleet.NodeID, class fleet.Class, open bool) {
	t.setOpen(t.row(id, class), open)
}

func (t *Table) setOpen(row int32, open bool) {
	if t.open[row] == open {
		return
	}
	t.note(change{kind: opened, row: row})
	t.open[row] = open
	t.refreshRow(row)
}

// give hands a cell to a side: what it can hold moves with it, what pods hold of it does not.
func (t *Table) give(c int32, n int32, to side) {
	if t.cells[c].side == to {
		return
	}
	t.note(change{kind: given, row: n, cell: c})
	row := 2 * n
	before := [2]vec{t.capacity(row), t.capacity(row + 1)}
	t.cells[c].side = to
	for s := range before {
		after := t.capacity(row + int32(s))
		for d := range t.free {
			t.free[d][row+int32(s)] += after[d] - before[s][d]
		}
	}
	t.refresh(row)
}

// row finds the row of a machine and a side; a machine that the table was not built with is a mistake of the caller.
func (t *Table) row(id fleet.NodeID, class fleet.Class) int32 {
	n, ok := t.byID[id]
	if !ok {
		panic("place: unknown machine " + string(id))
	}
	return 2*n + int32(sideOf(class))
}

// Give hands cells of a machine to a side, as somebody else decided: it is not asked whether what the other side has there still fits. A row
// that is overdrawn gives no room, and takes as much from the other one, until its pods are gone.
func (t *Table) Give(id fleet.NodeID, cells []int, to fleet.Class) {
	n := t.row(id, fleet.Online) >> 1
	for i := t.nodes[n].from; i < t.nodes[n].to; i++ {
		if slices.Contains(cells, t.cells[i].id) {
			t.give(i, n, sideOf(to))
		}
	}
}
