package place

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/rules"
)

// Machine is all that a table knows of a machine. [Table.SetMachine] adds it, or brings what is known in line with it.
type Machine struct {
	ID fleet.NodeID
	// Name decides between machines that are equal otherwise, and is what matchFields compare.
	Name string
	// Pool is the home pool, Home the class of that pool, Borrower the pool to which parcels of the machine are lent.
	Pool, Borrower fleet.PoolID
	Home           fleet.Class
	Zone           string
	GPUModel       string

	Allocatable fleet.Resources
	Ephemeral   fleet.Bytes
	// Extended are further resources by name. They belong to the machine, whatever side holds its cells.
	Extended rules.Amounts

	Labels        rules.Labels
	Taints        []rules.Taint
	Unschedulable bool
	// Closed says that no pod of a side may land: the machine is not ready, its loan is under way, or it is not ours.
	Closed Sides

	// Cells are empty where the topology is unknown: such a machine is one cell with the number 0.
	Cells []Cell
	// Holder is who has the one cell of a machine of unknown topology.
	Holder Holder
	Roots  []Root
	Images []Image
}

// Sides names none, one or both sides of a machine.
type Sides struct{ Online, Offline bool }

func (s Sides) has(x side) bool { return x == onlineSide && s.Online || x == offlineSide && s.Offline }

// Cell is a NUMA cell of a machine.
type Cell struct {
	fleet.Cell
	Holder Holder
	// Distances to the cells of the machine, in the order of Machine.Cells; empty where they are unknown.
	Distances []int
}

// Holder is who may use a cell.
type Holder uint8

// The holders.
const (
	// AtHome: the side of the home pool has the cell.
	AtHome Holder = iota
	HeldOnline
	HeldOffline
	// Moving: the cell is to change hands. Nothing new lands on it; what is there holds its room.
	Moving
)

// Root is a PCIe root of a machine with what hangs on it.
type Root struct {
	// Cell is the number of the cell that the root belongs to.
	Cell       int
	GPUs, NICs int64
}

// kind is what machines that were bought together have in common. Its CapacityOf says what their cells can hold.
type kind struct {
	fleet.Node
	distances [][]int // by cell, in the order of the cells' numbers; nil where they are unknown
	roots     []Root
}

// node is one machine in the table.
type node struct {
	id             fleet.NodeID
	name           string
	kind           *kind
	pool, borrower fleet.PoolID
	zone           string
	zoneAt         int32
	labels         rules.Labels
	taints         []rules.Taint
	cordoned       bool
	from, to       int32 // its cells
	roots          int32 // the first of its roots in the table, or none
	home           side
	// known is false while only pods were reported that are on it; such a machine gives no room.
	known   bool
	ranked  bool
	sharers int32 // pods that hold several cells
	ports   int32 // pods that take ports
	moves   bool  // some of its cells are to change hands
	images  []int32
}

// SetMachine adds a machine or changes one: its room, its labels and taints, who holds its cells, and whether pods may land. Pods that are on it
// stay, whether they still fit or not. Where a table has been changed in any order, it decides as one that was built from the outcome.
func (t *Table) SetMachine(m Machine) {
	t.outside()
	i, ok := t.byID[m.ID]
	if !ok {
		i = t.newNode(m.ID)
	}
	n := &t.nodes[i]
	if n.name != m.Name {
		t.leaveTrees(i) // which are ordered by the old name
		if t.byName[n.name] == i {
			delete(t.byName, n.name)
		}
		n.name, n.ranked = m.Name, false
		t.fresh = append(t.fresh, i)
	}
	t.byName[n.name] = i
	t.countGroups(i, -1)
	if !n.known {
		t.known++
	}
	t.setImages(i, m.Images)
	n.known, n.pool, n.borrower, n.home = true, m.Pool, m.Borrower, sideOf(m.Home)
	n.labels, n.taints, n.cordoned = m.Labels, m.Taints, m.Unschedulable
	n.zone, n.zoneAt = m.Zone, t.zoneNumber(m.Zone)
	t.setKind(i, &m)
	n.moves = false
	for k := n.from; k < n.to; k++ {
		t.cells[k].side = m.holder(t.cells[k].id)
		n.moves = n.moves || t.cells[k].side == noSide
	}
	t.setSupplies(i, &m)
	t.modelOf[i], _ = intern(t.models, m.GPUModel)
	for s := range side(2) {
		row := 2*i + int32(s)
		t.setCapacity(row)
		t.open[row] = !m.Closed.has(s)
		t.domainOf[row] = t.domain(n.keyOf(s))
	}
	t.countGroups(i, 1)
	t.relabels.add(i)
	t.touch(i)
}

// RemoveMachine takes a machine out, and the claims on its room. Pods that are on it are still known until they are removed: if the machine comes back, they
// hold room again.
func (t *Table) RemoveMachine(id fleet.NodeID) {
	t.outside()
	i, ok := t.byID[id]
	if !ok || !t.nodes[i].known {
		return
	}
	for _, claim := range t.claimsOn(i) {
		t.endClaim(claim)
	}
	n := &t.nodes[i]
	t.countGroups(i, -1)
	n.known = false
	t.known--
	t.setImages(i, nil)
	for s := range int32(2) {
		t.open[2*i+s] = false
	}
	t.relabels.add(i)
	t.touch(i)
	t.release(i)
}

// Known reports whether a machine is in the table.
func (t *Table) Known(id fleet.NodeID) bool {
	i, ok := t.byID[id]
	return ok && t.nodes[i].known
}

// Generation grows with every change of a machine and of what is on it; 0 for a machine that the table does not know.
func (t *Table) Generation(id fleet.NodeID) uint64 {
	i, ok := t.byID[id]
	if !ok {
		return 0
	}
	return t.changes.last[i]
}

// Version grows with every change of the table: while it stays, so does what [Table.Explain] says of a class.
func (t *Table) Version() uint64 { return t.changes.end() }

// outside refuses what cannot be undone within a transaction.
func (t *Table) outside() {
	if len(t.marks) > 0 {
		panic("place: machines change outside of transactions")
	}
}

// touch brings what is derived from a machine in line with it.
func (t *Table) touch(i int32) {
	t.setAvail(i)
	t.changes.add(i)
	t.refresh(2 * i)
}

// newNode gives a machine a slot, one that is free if there is one.
func (t *Table) newNode(id fleet.NodeID) int32 {
	var i int32
	if k := len(t.vacant); k > 0 {
		i = t.vacant[k-1]
		t.vacant = t.vacant[:k-1]
	} else {
		i = int32(len(t.nodes))
		t.nodes = append(t.nodes, node{})
		for range 2 {
			for d := range t.free {
				t.free[d], t.capacityOf[d] = append(t.free[d], 0), append(t.capacityOf[d], 0)
			}
			t.open, t.first, t.domainOf = append(t.open, false), append(t.first, none), append(t.domainOf, none)
		}
		for s := range t.avail {
			a := &t.avail[s]
			for d := range a.free {
				a.free[d] = append(a.free[d], 0)
			}
			for d := range a.scale {
				a.scale[d] = append(a.scale[d], 0)
			}
		}
		t.podsOn, t.groupMask, t.modelOf = append(t.podsOn, 0), append(t.groupMask, 0), append(t.modelOf, none)
	}
	t.nodes[i] = node{id: id, name: string(id), kind: t.unknownKind(), roots: none, zoneAt: t.zoneNumber("")}
	t.byID[id] = i
	t.fresh = append(t.fresh, i)
	t.relabels.add(i)
	t.touch(i)
	return i
}

// reserve makes room in the columns for a number of machines that are about to be added.
func (t *Table) reserve(machines int) {
	rows := 2 * machines
	t.nodes, t.fresh = slices.Grow(t.nodes, machines), slices.Grow(t.fresh, machines)
	for d := range t.free {
		t.free[d], t.capacityOf[d] = slices.Grow(t.free[d], rows), slices.Grow(t.capacityOf[d], rows)
	}
	t.open, t.first, t.domainOf = slices.Grow(t.open, rows), slices.Grow(t.first, rows), slices.Grow(t.domainOf, rows)
	for s := range t.avail {
		a := &t.avail[s]
		for d := range a.free {
			a.free[d] = slices.Grow(a.free[d], machines)
		}
		for d := range a.scale {
			a.scale[d] = slices.Grow(a.scale[d], machines)
		}
	}
	t.podsOn, t.groupMask, t.modelOf = slices.Grow(t.podsOn, machines), slices.Grow(t.groupMask, machines), slices.Grow(t.modelOf, machines)
}

// release frees the slot of a machine that is gone and has no pods.
func (t *Table) release(i int32) {
	n := &t.nodes[i]
	if n.known || t.podsOn[i] > 0 || t.claimed[i] > 0 || len(t.marks) > 0 {
		return
	}
	t.leaveTrees(i)
	delete(t.byID, n.id)
	t.groupMask[i] = 0
	if t.byName[n.name] == i {
		delete(t.byName, n.name)
	}
	t.freeCells(n)
	for s := range int32(2) {
		row := 2*i + s
		for d := range t.free {
			t.free[d][row], t.capacityOf[d][row] = 0, 0
		}
		t.domainOf[row] = none
		t.setScale(row)
	}
	*n = node{roots: none, kind: t.unknownKind()}
	t.vacant = append(t.vacant, i)
}

// leaveTrees takes the rows of a machine out of the trees.
func (t *Table) leaveTrees(i int32) {
	for row := 2 * i; row < 2*i+2 && row < t.index.rows(); row++ {
		if t.index.in[row] {
			d := &t.domains[t.index.domain[row]]
			d.root = t.index.remove(d.root, row)
			t.refreshRow(row)
		}
	}
}

// unknownKind is that of a machine of which only pods are known: it can hold nothing.
func (t *Table) unknownKind() *kind {
	if t.blank == nil {
		t.blank = &kind{}
	}
	return t.blank
}

// zoneNumber interns a zone.
func (t *Table) zoneNumber(zone string) int32 {
	z, fresh := intern(t.zoneOf, zone)
	if fresh {
		t.zones = append(t.zones, zone)
		for g := range t.groupZones {
			t.groupZones[g] = append(t.groupZones[g], 0)
		}
	}
	return z
}

// countGroups counts the pods on a machine in their groups, or takes them out: those on a machine that is not known count nowhere.
func (t *Table) countGroups(i int32, times int32) {
	for row := 2 * i; row < 2*i+2; row++ {
		for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
			t.countGroup(&t.pods[ref], times)
		}
	}
}

func (t *Table) countGroup(p *pod, times int32) {
	i, g := p.row>>1, t.classes[p.class].group
	if g == none || p.role != stays && p.role != awaits || !t.nodes[i].known {
		return
	}
	t.groupZones[g][t.nodes[i].zoneAt] += times
	if k := t.groupHosts[g][i] + times; k == 0 {
		delete(t.groupHosts[g], i)
	} else {
		t.groupHosts[g][i] = k
		t.groupMask[i] |= 1 << (g & 63)
	}
}

// setKind gives a machine what its kind can hold. Its pods take their cells and roots again, as if they had been reported after it.
func (t *Table) setKind(i int32, m *Machine) {
	n, k := &t.nodes[i], t.kindOf(m)
	if k == n.kind && n.to > n.from {
		return
	}
	refs := t.podsOf(i)
	if h, ok := t.held[i]; ok { // of the cells that were
		t.takeHeld(i, &h, -1)
		delete(t.held, i)
	}
	claims := t.claimsOn(i)
	for _, id := range claims {
		t.setAside(id, -1)
	}
	for _, ref := range refs {
		t.charge(&t.pods[ref], -1)
	}
	t.freeCells(n)
	n.kind = k
	n.from, n.to = t.newCells(max(len(k.Cells), 1))
	cells := t.cells[n.from:n.to]
	if len(k.Cells) == 0 {
		cells[0] = newCell(k.Allocatable, 0, 0)
	}
	for c := range k.Cells {
		cells[c] = newCell(k.CapacityOf([]int{k.Cells[c].ID}), k.Cells[c].ID, k.Cells[c].Socket)
	}
	t.setRoots(n, k.roots)
	for _, ref := range refs {
		p := &t.pods[ref]
		p.holds = t.holdsOn(&t.classes[p.class], i, p.named)
		if p.role != awaits {
			p.roots = t.chooseRoots(n, &t.classes[p.class], p.holds)
		}
		t.charge(p, 1)
	}
	t.setHeld(i)
	if n.sharers > 0 {
		t.shareCells(i)
	}
	for _, id := range claims {
		t.setAside(id, 1)
	}
}

func (t *Table) claimsOn(i int32) []ClaimID {
	var out []ClaimID
	for id := range t.claims {
		if t.claims[id].claimant != "" && t.claims[id].row>>1 == i {
			out = append(out, ClaimID(id))
		}
	}
	return out
}

// podsOf lists the pods on a machine.
func (t *Table) podsOf(i int32) []PodRef {
	var out []PodRef
	for row := 2 * i; row < 2*i+2; row++ {
		for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
			out = append(out, ref)
		}
	}
	return out
}

func (t *Table) newCells(n int) (from, to int32) {
	if free := t.spareCells[n]; len(free) > 0 {
		from = free[len(free)-1]
		t.spareCells[n] = free[:len(free)-1]
		return from, from + int32(n)
	}
	from = int32(len(t.cells))
	t.cells = append(t.cells, make([]cell, n)...)
	return from, from + int32(n)
}

func (t *Table) freeCells(n *node) {
	if k := int(n.to - n.from); k > 0 {
		t.spareCells[k] = append(t.spareCells[k], n.from)
	}
	if k := len(n.kind.roots); k > 0 {
		t.spareRoots[k] = append(t.spareRoots[k], n.roots)
	}
}

// holder is the side of a cell.
func (m *Machine) holder(id int) side {
	h := m.Holder
	for i := range m.Cells {
		if m.Cells[i].ID == id {
			h = m.Cells[i].Holder
		}
	}
	switch h {
	case HeldOnline:
		return onlineSide
	case HeldOffline:
		return offlineSide
	case Moving:
		return noSide
	}
	return sideOf(m.Home)
}

// kindKey is all of a machine that its kind is made of.
type kindKey struct {
	allocatable fleet.Resources
	model       string
	topology    string
}

func (t *Table) kindOf(m *Machine) *kind {
	b := t.key[:0]
	for i := range m.Cells {
		c := &m.Cells[i]
		b = appendInts(b, int64(c.ID), int64(c.Socket), int64(c.Capacity.CPU), int64(c.Capacity.Memory), c.Capacity.GPU, c.Capacity.Pods, int64(len(c.Distances)))
		for _, d := range c.Distances {
			b = appendInts(b, int64(d))
		}
	}
	for _, r := range m.Roots {
		b = append(b, 'r')
		b = appendInts(b, int64(r.Cell), r.GPUs, r.NICs)
	}
	t.key = b
	if k, ok := t.kinds[kindKey{m.Allocatable, m.GPUModel, string(b)}]; ok {
		return k
	}
	k := &kind{Node: fleet.Node{Allocatable: m.Allocatable, GPUModel: m.GPUModel}, roots: slices.Clone(m.Roots)}
	order := make([]int, len(m.Cells))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(m.Cells[a].ID, m.Cells[b].ID) })
	for _, i := range order {
		k.Cells = append(k.Cells, m.Cells[i].Cell)
		var row []int
		for _, j := range order {
			if j < len(m.Cells[i].Distances) {
				row = append(row, m.Cells[i].Distances[j])
			}
		}
		k.distances = append(k.distances, row)
	}
	t.kinds[kindKey{m.Allocatable, m.GPUModel, string(b)}] = k
	return k
}
