package fleet

import "slices"

// Access says which cells of a machine are whose, and on which side of it pods may land. [AccessOf] is the one answer to both: the planner and its marks, the
// door before every write, the scheduler's table, the node agent and the simulator ask here.
//
//	of the machine's parcels   the home side lands on                              the borrower's lands on
//	none is there              all cells                                           nothing
//	one is emptied, or lent    nothing: what is there leaves by scale-in           the cells that are lent
//	one is on its way home     nothing                                             nothing: all of them come home together
//	one came home              the cells at home, whatever the others wait for     nothing
//
// The lowest line that holds for a parcel decides. So room that came home is open from the moment at which the share says so. It waits neither until its loan is
// forgotten nor for the other parcels of the machine.
//
// A pool of the same side stands for the home: a machine may have come to another pool of its side since the share was written.
//
// A scheduler that knows the marks of a node alone, and no cells, is kept off by the taint for longer: see [Access.Whole].
type Access struct {
	node    *Node
	parcels []ShareParcel
	classOf func(PoolID) Class
	// lends: a borrower has a parcel and keeps it. comes: a parcel is on its way home. home: a parcel is at home, whose loan is not forgotten yet.
	lends, comes, home bool
	borrower           PoolID
}

// AccessOf reads the parcels of a machine: those of its share, or what a plan makes of them. classOf is the class of a pool, and empty for one that is not known.
func AccessOf(n *Node, parcels []ShareParcel, classOf func(PoolID) Class) Access {
	a := Access{node: n, parcels: parcels, classOf: classOf}
	for i := range parcels {
		switch p := &parcels[i]; {
		case p.Next == "" && SameSide(p.Holder, n.Pool, classOf):
			a.home = true
		case p.Next == "":
			a.lends, a.borrower = true, p.Holder
		case SameSide(p.Next, n.Pool, classOf):
			a.comes = true
		}
	}
	return a
}

// SameSide reports whether two pools are one, or of one class.
func SameSide(a, b PoolID, classOf func(PoolID) Class) bool {
	return a == b || classOf(a) != "" && classOf(a) == classOf(b)
}

// Holder is the side that has a cell now, and moves reports whether the cell is being prepared for the other one. Where the holder's pool is gone, it is the side
// that is not to have the cell next. It is empty where neither pool is known.
func (a *Access) Holder(cell int) (side Class, moves bool) {
	i := slices.IndexFunc(a.parcels, func(p ShareParcel) bool { return slices.Contains(p.Cells, cell) })
	if i < 0 {
		return a.classOf(a.node.Pool), false
	}
	p := &a.parcels[i]
	return HolderOf(p, a.classOf), p.Next != ""
}

// HolderOf is the side that has a parcel now; see [Access.Holder].
func HolderOf(p *ShareParcel, classOf func(PoolID) Class) Class {
	if c := classOf(p.Holder); c != "" {
		return c
	}
	switch classOf(p.Next) {
	case Online:
		return Offline
	case Offline:
		return Online
	}
	return ""
}

// Side is the side that a cell belongs to and stays with; empty while it moves.
func (a *Access) Side(cell int) Class {
	side, moves := a.Holder(cell)
	if moves {
		return ""
	}
	return side
}

// Open reports whether pods of a side may land on the machine, on the cells of their side.
func (a *Access) Open(side Class) bool {
	home := a.classOf(a.node.Pool)
	switch {
	case side == "" || home == "":
		return false
	case side != home:
		return a.lends && !a.comes && !a.home
	case len(a.parcels) == 0:
		return true
	case !a.home:
		return false
	}
	// Where the topology is not the one that parcels were made of, cells that no parcel names say nothing: all of the machine is home, or nothing.
	return a.Whole(side) || !a.strange()
}

// strange reports whether a parcel names a cell that the machine is not known to have: its topology came, changed or went after the loan began.
func (a *Access) strange() bool {
	cells := a.node.AllCells()
	return slices.ContainsFunc(a.parcels, func(p ShareParcel) bool {
		return slices.ContainsFunc(p.Cells, func(c int) bool { return !slices.Contains(cells, c) })
	})
}

// Whole reports whether a side has every cell of the machine, and keeps them. A scheduler that places pods by the marks of the node alone lands them there only
// then, since nothing keeps its pods to the cells of their side.
func (a *Access) Whole(side Class) bool {
	for i := range a.parcels {
		if p := &a.parcels[i]; p.Next != "" || HolderOf(p, a.classOf) != side {
			return false // its cells may be named as an earlier topology had them
		}
	}
	return !slices.ContainsFunc(a.node.AllCells(), func(c int) bool { return a.Side(c) != side })
}

// Taints reports whether the holder taint must keep online pods off the machine. byCells says that who places the pods of
// its pool reads the cells of the share: there the taint is for a machine of which online keeps nothing. On the others it would only bring out who evicts what a taint
// forbids, as a descheduler does.
func (a *Access) Taints(byCells bool) bool {
	if a.Whole(Online) {
		return false
	}
	keeps := slices.ContainsFunc(a.node.AllCells(), func(c int) bool { return a.Side(c) == Online })
	return !byCells || a.classOf(a.node.Pool) != Online || a.strange() || !keeps
}

// Borrower is the pool to which parcels are lent that are not on their way back; empty without one.
func (a *Access) Borrower() PoolID { return a.borrower }

// ParcelOf is the entry that a loan has in the share of its machine.
func ParcelOf(l *Loan) ShareParcel {
	return ShareParcel{Cells: l.Cells, Holder: l.Holder(), Next: l.Next(), Loan: l.ID, LoanUID: l.UID, Epoch: l.Epoch}
}

// Parcels are what the share of a machine says, and what its loans are about to write into it: those that are under way
// and have no entry yet. Where the two differ the share counts, since schedulers use it.
func (n *Node) Parcels(loans []*Loan) []ShareParcel {
	out := slices.Clip(n.Share.Parcels)
	for _, l := range loans {
		if !l.Phase.Ended() && n.Share.Find(l.ID) == nil {
			out = append(out, ParcelOf(l))
		}
	}
	return out
}
