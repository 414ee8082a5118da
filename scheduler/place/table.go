package place

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// Table is machines, their free room and the pods on them. It has one owner: nothing in it may be used by two goroutines at once.
type Table struct {
	nodes  []node
	byID   map[fleet.NodeID]int32
	vacant []int32 // free slots of nodes
	kinds  map[kindKey]*kind
	blank  *kind
	byName map[string]int32
	// changes names machines of which anything has changed, relabels those that were added, changed or taken out.
	changes, relabels journal
	// rank is the place of a node in the order of names, by slot. It is brought up to date when it is next needed.
	rank   []int32
	fresh  []int32 // nodes without a rank
	byRank []int32

	zones    []string
	zoneOf   map[string]int32
	models   map[string]int32 // of GPUs, by name
	supplyOf map[string]int32
	supplies []supply
	imageOf  map[string]int32
	images   []image
	known    int // machines that are there

	// Columns by row; a machine's rows are 2·node for online and 2·node+1 for offline.
	free [resources][]int64 // what the side's cells hold less what its pods ask for; negative where the facts overdraw
	// capacityOf is what the side's cells hold.
	capacityOf [resources][]int64
	open       []bool   // pods may land
	first      []PodRef // the head of the row's list of pods
	domainOf   []int32
	cells      []cell // of all machines, each machine's in the order of its ids
	roots      []root
	// Free places of cells and roots, by how many of them follow each other.
	spareCells, spareRoots map[int][]int32

	domains  []domain
	domainAt map[domainKey]int32
	index    index
	stale    []int32 // rows that the trees do not show as they are
	isStale  []bool

	classes    []class
	classOf    map[shapeKey]ClassID
	groupOf    map[string]int32
	groupZones [][]int32         // pods of a group by zone
	groupHosts []map[int32]int32 // and by machine
	// groupMask has, by node, a bit for each group that has had pods there since it was last empty: where it is not set, there are none.
	groupMask []uint64
	// Sets of pods that constraints count, over which machines, and how many they are.
	setOf     map[string]int32
	sets      []podSet
	spanAt    map[spanKey]int32
	spans     []span
	counterAt map[counterKey]int32
	counters  []counter
	weighed   []int64   // scratch of moreBy
	raw       []float64 // scratch of weigh
	seen      []bool    // scratch of weigh

	avail          [2]avail // by side
	podsOn         []int32  // by node
	modelOf        []int32  // the model of its GPUs, by node
	weights        Weights
	weightsVersion int

	profiles       []profile
	profileAt      map[profileKey]int32
	columns        map[string]*column
	views          map[viewKey]*view
	slots          int // machines in all views
	oldest, newest *view
	games          []int32 // scratch of playAbove
	scores         []int32 // of the last scan
	scanned        scanned
	sums           []int64 // scratch of addImages

	levels  levels
	claims  []claim
	claimed map[int32]int32 // claims by node
	futures map[int32]int32 // nominations, and pods that leave, by node
	held    map[int32]held  // by node with nominations
	lent    []int32         // the cells of the claims that are lent just now

	pods  []pod
	spare []PodRef // free slots of pods

	log   []change
	marks []int // lengths of the log at which open transactions began

	picks []choice   // scratch of pick
	trial []cell     // scratch of tryCells
	holds []cellHold // scratch of tryCells
	key   []byte     // scratch of the keys of kinds and shapes
}

// New is a table without machines.
func New() *Table {
	t := &Table{byID: map[fleet.NodeID]int32{}, kinds: map[kindKey]*kind{}, zoneOf: map[string]int32{}, models: map[string]int32{}, supplyOf: map[string]int32{ephemeralName: ephemeral}, supplies: []supply{{name: ephemeralName}}, imageOf: map[string]int32{},
		spareCells: map[int][]int32{}, spareRoots: map[int][]int32{}, domainAt: map[domainKey]int32{}, classOf: map[shapeKey]ClassID{},
		groupOf: map[string]int32{}, weights: DefaultWeights(),
		byName: map[string]int32{}, profileAt: map[profileKey]int32{}, columns: map[string]*column{}, claimed: map[int32]int32{}, futures: map[int32]int32{}, held: map[int32]held{}, views: map[viewKey]*view{},
		setOf: map[string]int32{}, spanAt: map[spanKey]int32{}, counterAt: map[counterKey]int32{}}
	return t
}

// intern numbers a name by a map of all names that were numbered; fresh says that it was not among them.
func intern(numbers map[string]int32, name string) (number int32, fresh bool) {
	number, ok := numbers[name]
	if !ok {
		number = int32(len(numbers))
		numbers[name] = number
	}
	return number, !ok
}

// none stands for no row, pod or group.
const none = -1

// cell is one NUMA cell: what it can hold, what is not held by pods that are bound, and the side that may use it. The cell of a machine of
// unknown topology is the whole machine.
type cell struct {
	capacity, free [perCell]int64
	id, socket     int
	side           side
}

// cellHold is what a bound pod holds of a cell.
type cellHold struct {
	cell   int32
	amount [perCell]int64
}

// side is which half of a machine a row is; noSide is that of a cell which nothing may land on.
type side uint8

const (
	onlineSide  side = 0
	offlineSide side = 1
	noSide      side = 2
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

// keyOf is all of a machine's row that a planner's shape can ask for but room.
func (n *node) keyOf(s side) domainKey {
	return domainKey{side: s, pool: n.pool, home: s == n.home, gpu: n.kind.Allocatable.GPU > 0, model: n.kind.GPUModel, zone: n.zone}
}

// domain finds the domain of a key, which is a new one where no machine was like that, and shows it to the classes.
func (t *Table) domain(k domainKey) int32 {
	d, ok := t.domainAt[k]
	if ok {
		return d
	}
	d = int32(len(t.domains))
	t.domainAt[k] = d
	t.domains = append(t.domains, domain{domainKey: k, zone: t.zoneNumber(k.zone), root: none})
	for i := range t.classes {
		t.classes[i].addDomain(&t.domains[d], d)
	}
	return d
}

// room is what is free for the pods of a row: what a machine's other side overdraws is missing here, unless cells that are to change hands
// hold it.
func (t *Table) room(row int32) vec {
	var v vec
	slack := t.moving(row)
	for d := range t.free {
		v[d] = t.free[d][row] + min(t.free[d][row^1]+slack[d], 0)
	}
	s := side(row & 1)
	for _, c := range t.cellsOf(row) {
		if c.side == s {
			v[hole] = max(v[hole], c.free[cpu])
		}
	}
	return v
}

// moving is what the cells of a machine that are to change hands can hold: it belongs to neither side.
func (t *Table) moving(row int32) vec {
	n := &t.nodes[row>>1]
	if !n.moves {
		return vec{}
	}
	all := vecOf(n.kind.Allocatable)
	for s := range int32(2) {
		for d := range t.free {
			all[d] -= t.capacityOf[d][row&^1+s]
		}
	}
	return all
}

func (t *Table) cellsOf(row int32) []cell {
	n := &t.nodes[row>>1]
	return t.cells[n.from:n.to]
}

// refresh says that the rows of a machine have changed.
func (t *Table) refresh(row int32) {
	t.refreshRow(row &^ 1)
	t.refreshRow(row | 1)
}

// refreshRow says that a row has changed. The trees follow when they are next asked: a table whose trees are never asked has none.
func (t *Table) refreshRow(row int32) {
	if int(row) < len(t.isStale) && !t.isStale[row] {
		t.isStale[row] = true
		t.stale = append(t.stale, row)
	}
}

// settle brings the trees in line with the rows.
func (t *Table) settle() {
	t.rankNames()
	if rows := int32(len(t.open)); t.index.rows() < rows {
		for row := t.index.rows(); row < rows; row++ {
			t.isStale = append(t.isStale, true)
			t.stale = append(t.stale, row)
		}
		t.index.grow(int(rows))
	}
	t.index.rank = t.rank
	for _, row := range t.stale {
		t.isStale[row] = false
		t.settleRow(row)
	}
	t.stale = t.stale[:0]
}

// rankNames numbers the nodes in the order of their names, then of their ids. The order of those that were there before stays, so trees and
// indexes that were ordered by the old numbers are ordered by the new ones.
func (t *Table) rankNames() {
	if len(t.fresh) == 0 {
		return
	}
	before := func(a, b int32) int {
		return cmp.Or(cmp.Compare(t.nodes[a].name, t.nodes[b].name), cmp.Compare(t.nodes[a].id, t.nodes[b].id))
	}
	fresh := slices.DeleteFunc(t.fresh, func(i int32) bool { return t.nodes[i].id == "" })
	slices.SortFunc(fresh, before)
	fresh = slices.Compact(fresh)
	old := slices.DeleteFunc(t.byRank, func(i int32) bool { return !t.nodes[i].ranked })
	merged := make([]int32, 0, len(old)+len(fresh))
	for len(old) > 0 && len(fresh) > 0 {
		if before(fresh[0], old[0]) < 0 {
			merged, fresh = append(merged, fresh[0]), fresh[1:]
		} else {
			merged, old = append(merged, old[0]), old[1:]
		}
	}
	t.byRank, t.fresh = append(append(merged, old...), fresh...), t.fresh[:0]
	t.rank = slices.Grow(t.rank[:0], len(t.nodes))[:len(t.nodes)]
	for r, i := range t.byRank {
		t.rank[i], t.nodes[i].ranked = int32(r), true
	}
}

func (t *Table) settleRow(row int32) {
	in := t.index.in[row]
	if !in && !t.open[row] {
		return
	}
	v, d := t.room(row), t.domainOf[row]
	if in && t.open[row] && t.index.room[row] == v && t.index.domain[row] == d {
		return
	}
	if in {
		old := &t.domains[t.index.domain[row]]
		old.root = t.index.remove(old.root, row)
	}
	if t.open[row] {
		t.index.domain[row] = d
		t.domains[d].root = t.index.insert(t.domains[d].root, row, v)
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
	case len(cells): // all of them; a machine of which only pods are known has none
		return vecOf(n.kind.Allocatable)
	}
	return vecOf(n.kind.CapacityOf(ids))
}

// setCapacity brings the columns of a row in line with its cells.
func (t *Table) setCapacity(row int32) {
	v := t.capacity(row)
	for d := range t.free {
		t.free[d][row] += v[d] - t.capacityOf[d][row]
		t.capacityOf[d][row] = v[d]
	}
	t.setScale(row)
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
	t.relabels.add(row >> 1) // a profile knows which machines are open
	t.changed(row)
}

// assignCell hands a cell to a side: what it can hold moves with it, what pods hold of it does not.
func (t *Table) assignCell(c int32, n int32, to side) {
	if t.cells[c].side == to {
		return
	}
	t.note(change{kind: given, row: n, cell: c, side: t.cells[c].side})
	row := 2 * n
	t.cells[c].side = to
	t.setCapacity(row)
	t.setCapacity(row + 1)
	t.changed(row)
}

// changed says that a row, and with it its machine, has changed.
func (t *Table) changed(row int32) {
	t.touch(row >> 1)
}

// row finds the row of a machine and a side; a machine that the table was not built with is a mistake of the caller.
func (t *Table) row(id fleet.NodeID, class fleet.Class) int32 {
	n, ok := t.byID[id]
	if !ok {
		panic("place: unknown machine " + string(id))
	}
	return 2*n + int32(sideOf(class))
}

// Assign hands cells of a machine to a side, as the controller decided: it is not asked whether what the other side has
// there still fits. A row that is overdrawn gives no room, and takes as much from the other one, until its pods are
// gone.
func (t *Table) Assign(id fleet.NodeID, cells []int, to fleet.Class) {
	n := t.row(id, fleet.Online) >> 1
	for i := t.nodes[n].from; i < t.nodes[n].to; i++ {
		if slices.Contains(cells, t.cells[i].id) {
			t.assignCell(i, n, sideOf(to))
		}
	}
}
