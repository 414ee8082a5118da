package protocol

import (
	"fmt"

	"github.com/springtide/springtide/fleet"
)

// checkOpen lets a machine be opened to offline pods only while the facts say that they may land there: at home in an offline pool and not
// lent out, or lent, with nothing of it on its way home or there, and the share saying so too. A label from a plan of before would let pods land on a
// parcel that was recalled, or came home, meanwhile.
func (d *Door) checkOpen(n *fleet.Node, want bool) error {
	if !want {
		return nil
	}
	lent := false
	for _, l := range d.loansOn(n.ID) {
		switch {
		case l.Phase.Ended():
			continue
		case l.Phase.Away() && l.Phase != fleet.Lent, !d.offlineComes(l):
			return fmt.Errorf("loan %s is %s: nothing of its borrower may land on node %s", l.ID, l.Phase, n.Name)
		case l.Phase != fleet.Lent:
			continue
		}
		if e := n.Share.Find(l.ID); e == nil || e.Holder != l.Holder() || e.Next != l.Next() || e.Epoch != l.Epoch {
			return fmt.Errorf("loan %s is Lent, and the share of node %s does not say so", l.ID, n.Name)
		}
		lent = true
	}
	access := fleet.AccessOf(n, n.Share.Parcels, d.fresh.ClassOf)
	switch home := d.fresh.ClassOf(n.Pool); {
	case home != fleet.Offline && !lent:
		return fmt.Errorf("nothing of node %s is lent", n.Name)
	case home != fleet.Offline && !access.Open(fleet.Offline):
		return fmt.Errorf("a part of node %s came home: the others are to come too", n.Name)
	case home == fleet.Offline && !access.Whole(fleet.Offline):
		return fmt.Errorf("online has a part of node %s", n.Name)
	}
	return nil
}

// checkShareEmpty refuses to let online pods land on a machine of which the share says that offline holds a part, or is to get one. Loans
// and shares are watched apart: a loan that is not seen yet, though its share is, is no loan that is gone.
func (d *Door) checkShareEmpty(n *fleet.Node) error {
	for i := range n.Share.Parcels {
		e := &n.Share.Parcels[i]
		for _, id := range []fleet.PoolID{e.Holder, e.Next} {
			if p := d.fresh.Pool(id); p != nil && p.Class == fleet.Offline {
				return fmt.Errorf("the share has cells %v in loan %s: the holder taint must stay", e.Cells, e.Loan)
			}
		}
	}
	return nil
}
