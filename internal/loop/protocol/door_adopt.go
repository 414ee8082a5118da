package protocol

import (
	"fmt"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// checkAdopt lets a loan be made again while no loan has a cell of it, and either an entry of the share that none answers for says that its cells are
// away, or offline pods are on cells of which nothing says so.
func (d *Door) checkAdopt(m *planner.Move) error {
	l := &m.After
	n := d.fresh.Node(l.Node)
	switch {
	case d.fresh.Loan(l.ID) != nil:
		return fmt.Errorf("a loan of this name exists")
	case n == nil || n.Name != l.NodeName:
		return fmt.Errorf("node %s is gone", l.NodeName)
	case !d.fromOffline(l) && l.Deadline.Sub(d.now()) < leastNotice:
		return fmt.Errorf("its offline pods would have less than %s", leastNotice)
	}
	if err := d.checkPool(l.From); err != nil && d.fresh.Pool(l.From) != nil {
		return err
	}
	for _, o := range d.loansOn(l.Node) {
		if !o.Phase.Ended() && fleet.Overlap(o.Cells, l.Cells) {
			return fmt.Errorf("cells %v are in loan %s", o.Cells, o.ID)
		}
	}
	orphan := false
	for i := range n.Share.Parcels {
		e := &n.Share.Parcels[i]
		if !fleet.Overlap(e.Cells, l.Cells) {
			continue
		}
		if !d.replaceable(e) {
			return fmt.Errorf("the node's share has cells %v in loan %s", e.Cells, e.Loan)
		}
		orphan = orphan || e.Holder != l.From
	}
	if !orphan && (d.fromOffline(l) || d.occupied(l.Node, fleet.PodOffline) == "") {
		return fmt.Errorf("nothing of its borrower is on node %s", l.NodeName)
	}
	return nil
}

// replaceable reports whether an entry of a share may give way to that of a loan that is made again: none answers for it, or its loan is over.
func (d *Door) replaceable(e *fleet.ShareParcel) bool {
	l := d.fresh.Loan(e.Loan)
	return l == nil || l.UID != e.LoanUID || l.Phase.Ended()
}

// misplaced reports whether an entry of a share names cells of which its loan, which goes on, has none.
func (d *Door) misplaced(e *fleet.ShareParcel, cells []int) bool {
	l := d.fresh.Loan(e.Loan)
	return l != nil && l.UID == e.LoanUID && !l.Phase.Ended() && !fleet.Overlap(l.Cells, cells)
}

// checkClear lets an entry be removed whose loan is gone while it gives its cells to their home, or to a pool that has none of them.
func (d *Door) checkClear(m *planner.Move) error {
	n := d.fresh.Node(m.Before.Node)
	if n == nil || n.Name != m.Before.NodeName {
		return fmt.Errorf("node %s is gone", m.Before.NodeName)
	}
	i := slices.IndexFunc(n.Share.Parcels, func(e fleet.ShareParcel) bool { return e.LoanUID == m.Before.UID && e.Loan == m.Before.ID })
	switch {
	case i < 0:
		return fmt.Errorf("the share has no entry of loan %s", m.Before.ID)
	case !d.fresh.Orphaned(&n.Share.Parcels[i]):
		return fmt.Errorf("loan %s is there", m.Before.ID)
	case n.Share.Parcels[i].Holder != m.Before.From && fleet.Overlap(n.Share.Parcels[i].Cells, n.AllCells()):
		return fmt.Errorf("the share says that pool %s holds cells %v", n.Share.Parcels[i].Holder, n.Share.Parcels[i].Cells)
	}
	return nil
}
