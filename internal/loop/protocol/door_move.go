package protocol

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// CheckMove lets a move pass while the loan stands where the decision saw it, and the phase machine allows the same step from the fresh
// facts: a Clean report that was withdrawn, a deadline that moved or a pod that did not acknowledge after all stops it here.
func (d *Door) CheckMove(m *planner.Move) error {
	switch m.Kind {
	case planner.MoveBegin:
		return d.checkBegin(m)
	case planner.MoveAdopt:
		return d.checkAdopt(m)
	case planner.MoveClear:
		return d.checkClear(m)
	}
	l := d.fresh.Loan(m.Before.ID)
	switch {
	case l == nil || l.UID != m.Before.UID:
		return fmt.Errorf("the loan is gone")
	case l.Phase != m.Before.Phase || l.Epoch != m.Before.Epoch:
		return fmt.Errorf("the loan is %s at epoch %d now, not %s at %d", l.Phase, l.Epoch, m.Before.Phase, m.Before.Epoch)
	case !l.Deadline.Equal(m.Before.Deadline):
		return fmt.Errorf("the deadline is %s now", l.Deadline)
	case !l.KillAt.Equal(m.Before.KillAt):
		return fmt.Errorf("the kill is announced for %s now", l.KillAt)
	}
	var entry *fleet.ShareParcel
	node := d.fresh.Node(l.Node)
	if node != nil {
		entry = node.Share.Find(l.ID)
	} else if m.Kind != planner.MoveNodeGone && m.Kind != planner.MoveForget {
		return fmt.Errorf("node %s is gone", l.NodeName)
	}
	return d.checkStep(m, l, entry)
}

// checkStep takes the step again from the fresh loan.
func (d *Door) checkStep(m *planner.Move, l *fleet.Loan, entry *fleet.ShareParcel) error {
	var err error
	switch m.Kind {
	case planner.MoveLend:
		if err = errors.Join(d.checkEmpty(l), d.checkStays(l)); err == nil {
			_, err = l.Lend(d.fresh.At, entry)
		}
	case planner.MoveCancel:
		_, err = l.Cancel(d.fresh.At, reason.Reason{})
	case planner.MoveRecall:
		err = d.checkRecall(m, l)
	case planner.MoveTurnBack:
		_, err = l.TurnBack(d.fresh.At, reason.Reason{})
	case planner.MoveAnnounce:
		err = d.checkAnnounce(m, l)
	case planner.MoveDrain:
		err = d.checkDrain(l)
	case planner.MoveFence, planner.MoveWriteOff:
		err = d.checkForce(m.Kind, l)
	case planner.MoveReturn:
		if _, err = l.Return(d.fresh.At, entry); err == nil {
			err = d.checkShut(l)
		}
	case planner.MoveNodeGone:
		if d.fresh.Node(l.Node) != nil {
			err = fmt.Errorf("node %s is there", l.NodeName)
		}
	case planner.MoveForget:
		if !l.Phase.Ended() {
			err = fmt.Errorf("the loan is %s", l.Phase)
		}
	case planner.MoveRepair:
		if l.Phase.Ended() {
			err = fmt.Errorf("the loan is over")
		}
	default:
		panic("a move that the door does not know: " + string(m.Kind))
	}
	return err
}

// checkDrain lets evictions begin after the notice. A machine that goes back to offline is drained of online by scale-in alone, and only then.
func (d *Door) checkDrain(l *fleet.Loan) error {
	if !d.fromOffline(l) {
		_, err := l.Drain(d.fresh.At, d.allAcked(l.Node))
		return err
	}
	if pod := d.occupied(l.Node, fleet.PodOnline); pod != "" {
		return fmt.Errorf("online pod %s is on the machine", pod)
	}
	_, err := l.Drain(d.fresh.At, true)
	return err
}

// checkForce lets a machine be fenced or written off that offline borrowed, and no other.
func (d *Door) checkForce(kind planner.MoveKind, l *fleet.Loan) error {
	if d.fromOffline(l) {
		return fmt.Errorf("loan %s is at home in an offline pool: nothing is forced for its return", l.ID)
	}
	var err error
	if kind == planner.MoveFence {
		if _, err = l.Fence(d.fresh.At, reason.Reason{}); err == nil {
			err = d.checkPatience(l)
		}
	} else {
		_, err = l.WriteOff(d.fresh.At, reason.Reason{})
	}
	return err
}

// checkPatience refuses to cut a machine off on which a pod is that was never evicted, until the patience of the pool is over: the fence would end
// what a disruption budget protects.
func (d *Door) checkPatience(l *fleet.Loan) error {
	var ladder fleet.Ladder
	if from := d.fresh.Pool(l.From); from != nil {
		ladder = from.Ladder
	}
	until := l.PatienceEnds(ladder, d.thawed)
	if !d.fresh.At.Before(until) {
		return nil
	}
	for _, p := range d.on()[l.Node] {
		if p.Unevicted() {
			return fmt.Errorf("pod %s was never evicted, and is waited for until %s", p.Name, until.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// checkBegin refuses a loan of cells that another loan or the node's share still names, and of a node that changed.
func (d *Door) checkBegin(m *planner.Move) error {
	l := &m.After
	n := d.fresh.Node(l.Node)
	switch {
	case d.fresh.Loan(l.ID) != nil:
		return fmt.Errorf("a loan of this name exists")
	case n == nil || n.Name != l.NodeName:
		return fmt.Errorf("node %s is gone", l.NodeName)
	case !n.Ready:
		return fmt.Errorf("node %s is not ready", l.NodeName)
	case n.Leaving != "":
		return fmt.Errorf("node %s is about to leave: %s", l.NodeName, n.Leaving)
	case n.Pool != l.From:
		return fmt.Errorf("node %s is at home in pool %q", l.NodeName, n.Pool)
	case l.Kind == fleet.KindSocket && !n.AgentAlive:
		return fmt.Errorf("node %s has no live agent to confine what stays", l.NodeName)
	}
	if err := d.checkPool(l.From); err != nil {
		return err
	}
	if d.fromOffline(l) && l.Deadline.Sub(d.now()) < leastNotice && d.occupied(l.Node, fleet.PodOffline) != "" {
		return fmt.Errorf("its offline pods would have less than %s", leastNotice)
	}
	if l.Kind == fleet.KindNode && !d.fromOffline(l) {
		if err := d.checkOwn(l.Node); err != nil {
			return err
		}
	}
	if p := n.Share.Over(l.Cells); p != nil {
		return fmt.Errorf("the node's share has cells %v in loan %s", p.Cells, p.Loan)
	}
	for _, o := range d.loansOn(l.Node) {
		if fleet.Overlap(o.Cells, l.Cells) {
			return fmt.Errorf("cells %v are in loan %s", o.Cells, o.ID)
		}
	}
	return nil
}

func (d *Door) checkPool(id fleet.PoolID) error {
	p := d.fresh.Pool(id)
	if p == nil {
		return fmt.Errorf("pool %s is gone", id)
	}
	if !p.Mode.Acts() {
		return fmt.Errorf("the mode of pool %s is %s", id, p.Mode)
	}
	return nil
}

// checkEmpty looks once more for pods of the home's side before a whole machine of theirs changes hands: one may have been bound after the
// report. While the holder taint is not there, or of an offline home the label still is, another may be bound in the next moment.
func (d *Door) checkEmpty(l *fleet.Loan) error {
	from := d.fresh.Pool(l.From)
	switch {
	case from == nil:
		return nil
	case from.Class == fleet.Offline:
		if n := d.fresh.Node(l.Node); n != nil && n.Marks.OfflineLabel {
			return fmt.Errorf("node %s still asks for offline pods", l.NodeName)
		}
		if pod := d.occupied(l.Node, fleet.PodOffline); pod != "" {
			return fmt.Errorf("offline pod %s is on the machine", pod)
		}
		return nil
	}
	if n := d.fresh.Node(l.Node); n != nil && !n.Marks.HolderTaint && d.taints(n) {
		return fmt.Errorf("node %s lacks the holder taint that keeps online pods away", l.NodeName)
	}
	if n := d.fresh.Node(l.Node); n == nil || !fleet.TakeAll(n, d.loansOn(l.Node)) {
		return nil // online keeps cells there, and its pods with them
	}
	if pod := d.occupied(l.Node, fleet.PodOnline); pod != "" {
		return fmt.Errorf("online pod %s is on the machine", pod)
	}
	return nil
}

// checkStays refuses to hand over a parcel of a machine that is on its way home: all of them come home together.
func (d *Door) checkStays(l *fleet.Loan) error {
	for _, o := range d.loansOn(l.Node) {
		if o.ID != l.ID && o.Phase.Away() && o.Phase != fleet.Lent {
			return fmt.Errorf("loan %s of the same machine is %s", o.ID, o.Phase)
		}
	}
	return nil
}

// loansOn lists the loans of a machine.
func (d *Door) loansOn(node fleet.NodeID) []*fleet.Loan { return d.loans()[node] }

// checkShut is the same of the way home: a machine that is still marked for offline pods may get one in the next moment.
func (d *Door) checkShut(l *fleet.Loan) error {
	to, n := d.fresh.Pool(l.To), d.fresh.Node(l.Node)
	if to == nil || to.Class != fleet.Offline || n == nil {
		return nil
	}
	if n.Marks.OfflineLabel {
		return fmt.Errorf("node %s still has the label that lets offline pods land", l.NodeName)
	}
	if l.Kind != fleet.KindNode {
		return nil
	}
	if name := d.occupied(l.Node, fleet.PodOffline); name != "" {
		return fmt.Errorf("offline pod %s is on the machine", name)
	}
	return nil
}

func (d *Door) checkRecall(m *planner.Move, l *fleet.Loan) error {
	// A parcel that online borrowed goes back whatever the lender's mode says by now. So does one whose pool is gone.
	if err := d.checkPool(l.From); err != nil && !d.fromOffline(l) && d.fresh.Pool(l.From) != nil {
		return err
	}
	if left := m.After.Deadline.Sub(d.now()); left < leastNotice {
		return fmt.Errorf("a notice of which %s are left is shorter than %s", left, leastNotice)
	}
	_, err := l.Recall(d.fresh.At, m.After.Deadline, m.After.Due, reason.Reason{})
	return err
}

// checkAnnounce lets a deadline come nearer only by an emergency that leaves the least notice, and a kill never. One that ran out is announced
// again as a notice of its own.
func (d *Door) checkAnnounce(m *planner.Move, l *fleet.Loan) error {
	now, to := d.now(), m.After.Deadline
	moves := !to.Equal(l.Deadline)
	if moves && (to.Before(l.Deadline) || !now.Before(l.Deadline)) && to.Sub(now) < leastNotice {
		return fmt.Errorf("the deadline would come in less than %s", leastNotice)
	}
	var err error
	switch {
	case to.After(l.Deadline):
		_, err = l.AnnounceAgain(to, reason.Reason{})
	case moves || l.Phase != fleet.Draining:
		_, err = l.Announce(to, reason.Reason{})
	}
	if err == nil && !m.After.KillAt.Equal(l.KillAt) {
		_, err = l.AnnounceKill(d.fresh.At, m.After.KillAt, reason.Reason{})
	}
	return err
}

// allAcked reports whether each offline pod of a machine answered one of the machine's notices in its present epoch. The loans of one
// machine come home together, so an answer to one of them is an answer to all.
func (d *Door) allAcked(node fleet.NodeID) bool {
	noticed := slices.DeleteFunc(slices.Clone(d.loansOn(node)), func(l *fleet.Loan) bool { return l.Phase != fleet.Noticed })
	for _, p := range d.on()[node] {
		if p.Class != fleet.PodOffline || p.Deleting {
			continue
		}
		if !slices.ContainsFunc(noticed, func(l *fleet.Loan) bool { return acked(p, l) }) {
			return false
		}
	}
	return true
}
