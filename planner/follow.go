package planner

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// follow takes loans that were already announced one step further, and fixes what a crash left between two writes. It
// starts nothing.
func (m *follower) follow() {
	s := m.in.Snapshot
	for i := range s.Loans {
		l := &s.Loans[i]
		node := s.Node(l.Node)
		if node == nil && !l.Phase.Ended() {
			m.propose(passFollow, MoveNodeGone, *l, l.NodeGone(s.At), reason.Of(reason.NodeGone, l.NodeName, l.Node))
			continue
		}
		if l.Phase.Ended() {
			m.forget(l)
			continue
		}
		entry := node.Share.Find(l.ID)
		if m.superseded(l, entry, node) || m.repair(l, node) || m.pool(l) == nil && m.orphaned(l) {
			continue
		}
		if m.stopLeaving(l, node) {
			continue
		}
		if m.fromOffline(l) {
			m.followBorrowed(l, entry, node)
			continue
		}
		if m.recallAsked(l) || m.recallLeaving(l, node) {
			continue
		}
		switch l.Phase {
		case fleet.Emptying:
			m.emptied(l, entry, node)
		case fleet.Lent:
			m.boundLate(l, node)
		case fleet.Noticed:
			m.noticed(l)
		case fleet.Draining, fleet.Fenced, fleet.WrittenOff:
			m.draining(l, entry)
		}
	}
}

// together recalls what is still lent of machines of which another parcel goes home, by this plan or since a leader before: that leader died between the notices of two
// parcels, or the second write was refused. It comes after the passes that recall, adopt and turn back, and asks for none of their reasons: one parcel that is away keeps
// the machine from all that the others came home for.
func (m *follower) together() {
	s, o := m.in.Snapshot, m.in.Options
	for i := range s.Loans {
		l := &s.Loans[i]
		if l.Phase != fleet.Lent || m.fromOffline(l) || s.Node(l.Node) == nil || !m.goesHome(l.Node) {
			continue
		}
		why := reason.Of(reason.Together)
		m.stopEmptying(l.Node, why)
		if m.decided(l.ID) {
			continue
		}
		deadline := s.At.Add(m.noticeOn(l))
		after, err := l.Recall(s.At, deadline, deadline.Add(o.Drain+o.Clean), why)
		m.step(passTogether, MoveRecall, *l, after, err)
	}
}

// goesHome reports whether a parcel of the machine is on its way home, did not come, or came and is kept for its claimant, once this plan is carried out.
func (m *maker) goesHome(node fleet.NodeID) bool {
	return m.recalled[node] || slices.ContainsFunc(m.on(node).Loans, func(l *fleet.Loan) bool {
		at, decided := m.proposed[l.ID]
		return (l.Phase.Away() && l.Phase != fleet.Lent || l.Phase == fleet.Returned) && !m.fromOffline(l) && !(decided && at.kind == MoveTurnBack)
	})
}

// recallAsked recalls what an operator asks for, as long as it is lent or on its way out. It reports whether that was the loan's step.
func (m *follower) recallAsked(l *fleet.Loan) bool {
	if l.Asked == "" {
		return false
	}
	s, o := m.in.Snapshot, m.in.Options
	switch l.Phase {
	case fleet.Emptying:
		after, err := l.Cancel(s.At, reason.Of(reason.Asked, l.Asked))
		m.step(passFollow, MoveCancel, *l, after, err)
	case fleet.Lent:
		deadline := s.At.Add(m.noticeOn(l))
		after, err := l.Recall(s.At, deadline, deadline.Add(o.Drain+o.Clean), reason.Of(reason.Asked, l.Asked))
		m.step(passFollow, MoveRecall, *l, after, err)
	default:
		return false
	}
	return true
}

// stopLeaving calls off what is being emptied on a machine that is about to leave, or was cordoned: the borrower would get a machine that takes no pods. A
// kubelet that is silent for a moment ends no loan. It reports whether that was the loan's step.
func (m *follower) stopLeaving(l *fleet.Loan, n *fleet.Node) bool {
	why := n.Leaving
	if why == "" && n.Shut.By == fleet.ShutByCordon {
		why = n.Shut.String()
	}
	if why == "" || l.Phase != fleet.Emptying {
		return false
	}
	after, err := l.Cancel(m.in.Snapshot.At, reason.Of(reason.NodeLifecycle, why))
	m.step(passFollow, MoveCancel, *l, after, err)
	return true
}

// recallLeaving recalls what is lent of a machine that is about to leave, with the whole notice and within the budget of recalls, so that the work there is
// saved before the drain. It reports whether that was the loan's step.
func (m *follower) recallLeaving(l *fleet.Loan, n *fleet.Node) bool {
	if n.Leaving == "" || l.Phase != fleet.Lent {
		return false
	}
	s, o := m.in.Snapshot, m.in.Options
	why := reason.Of(reason.NodeLifecycle, n.Leaving)
	// A whole fleet may get such a mark at once.
	if pool := m.pool(l); pool != nil && !m.recalled[l.Node] && m.recalledLately(pool) >= perMinute(pool) {
		m.withhold(Subject{SubjectLoan, string(l.ID)}, reason.Of(reason.RecallNode, l.NodeName),
			reason.Of(reason.RecallBudget, perMinute(pool)), why)
		return false
	}
	deadline := s.At.Add(m.noticeOn(l))
	after, err := l.Recall(s.At, deadline, deadline.Add(o.Drain+o.Clean), why)
	m.step(passFollow, MoveRecall, *l, after, err)
	return true
}

// orphaned sends home the machines of a pool that is gone: no other part judges when their room is wanted. Online gives
// back what it holds as ever, when it can do without. It reports whether that was the loan's step.
func (m *follower) orphaned(l *fleet.Loan) bool {
	s, o := m.in.Snapshot, m.in.Options
	why, by := func(so reason.Reason) reason.Reason {
		return reason.Of(reason.PoolGone, l.From,
			so)
	}, m.in.permit(permitted{}, takes)
	switch {
	case l.Phase == fleet.Emptying:
		after, err := l.Cancel(s.At, why(reason.Reason{}))
		m.step(passFollow, MoveCancel, *l, after, err)
	case l.Phase != fleet.Lent || m.fromOffline(l):
		return false
	case !by.None():
		m.withhold(Subject{SubjectLoan, string(l.ID)}, reason.Of(reason.RecallNode, l.NodeName), by,
			why(reason.Of(reason.CreatePoolOrHome)))
	default:
		deadline := s.At.Add(m.noticeOn(l))
		after, err := l.Recall(s.At, deadline, deadline.Add(o.Drain+o.Clean), why(reason.Of(reason.MachinesGoHome)))
		m.step(passFollow, MoveRecall, *l, after, err)
	}
	return true
}

// emptied hands a parcel over that is clean. One of a machine that goes home stays, since all parcels of a machine come home together.
func (m *follower) emptied(l *fleet.Loan, entry *fleet.ShareParcel, node *fleet.Node) {
	at := m.in.Snapshot.At
	if st := m.on(l.Node).Moves; st.Leaving() {
		after, err := l.Cancel(at, reason.Of(reason.TideTurned, reason.Of(reason.OnItsWayHome)))
		m.step(passFollow, MoveCancel, *l, after, err)
		return
	}
	// Without the taint an online pod may still land where its scheduler reads marks: the mark may have been refused that went up with the loan.
	// One that did keeps the machine until it leaves, or the loan is given up.
	access := m.access(node)
	if !entry.IsClean(l.Epoch) || !node.Marks.HolderTaint && access.Taints(m.in.Snapshot.ByCells(node.Pool)) || m.occupied(l) {
		m.giveUpLate(l, node)
		return
	}
	if m.handOverHeld(l) {
		return
	}
	if m.on(l.Node).Moves.Live > 1 {
		m.clean = append(m.clean, l) // this plan may yet recall the other parcels
		return
	}
	after, err := l.Lend(at, entry)
	m.step(passFollow, MoveLend, *l, after, err)
}

// handOverHeld withholds the hand-over of a parcel whose pool is paused: it stays empty, and is given up in time as one
// that cannot be emptied.
func (m *follower) handOverHeld(l *fleet.Loan) bool {
	pool := m.pool(l)
	if pool == nil || !pool.Hold.Any() {
		return false
	}
	by := m.in.permit(handOverOf(pool), gives)
	m.withhold(Subject{SubjectLoan, string(l.ID)}, reason.Of(reason.HandOver), by, l.Reason)
	m.giveUpLate(l, m.in.Snapshot.Node(l.Node))
	return true
}

// boundLate recalls a machine on which an online pod was bound after the margin: a scheduler decided by marks that were long out of date, or
// does not ask for them. No agent keeps the two sides apart there.
func (m *follower) boundLate(l *fleet.Loan, n *fleet.Node) {
	pod := m.guestOfOnline(l, n)
	if pod == nil {
		return
	}
	s, o := m.in.Snapshot, m.in.Options
	deadline := s.At.Add(m.noticeOn(l))
	after, err := l.Recall(s.At, deadline, deadline.Add(o.Drain+o.Clean), reason.Of(reason.LateBind, pod.Name))
	m.step(passFollow, MoveRecall, *l, after, err)
}

// guestOfOnline is an online pod on a machine that is lent whole and has no agent; nil without one.
func (m *maker) guestOfOnline(l *fleet.Loan, n *fleet.Node) *fleet.Pod {
	if !n.Agentless() || l.Kind != fleet.KindNode {
		return nil
	}
	for _, p := range m.on(n.ID).Pods {
		if p.Class == fleet.PodOnline && !p.Deleting {
			return p
		}
	}
	return nil
}

// handOver gives emptied parcels of machines that lend others to the borrower, but for those whose machine this plan
// recalls.
func (m *follower) handOver() {
	s := m.in.Snapshot
	for _, l := range m.clean {
		after, err := l.Lend(s.At, s.Node(l.Node).Share.Find(l.ID))
		m.step(passHandOver, MoveLend, *l, after, err)
	}
}

// occupied reports whether online pods are on a machine of which, with this loan, online keeps nothing.
func (m *maker) occupied(l *fleet.Loan) bool {
	from, n := m.pool(l), m.in.Snapshot.Node(l.Node)
	return from != nil && from.Class == fleet.Online && n != nil && fleet.TakeAll(n, m.on(l.Node).Loans) &&
		slices.ContainsFunc(m.on(l.Node).Pods, func(p *fleet.Pod) bool { return p.Class == fleet.PodOnline })
}

// forget ends the object of a loan that is over: a cancelled one at once, a returned one when an online pod took the
// room or none came. Its room is open to online from the return on (fleet.AccessOf). The object holds back the next
// loan of the machine. While other parcels of the machine are on their way home it stays in any case: its entry in the
// share is what keeps the cells at home open next to them.
func (m *follower) forget(l *fleet.Loan) {
	s := m.in.Snapshot
	if n := s.Node(l.Node); n != nil && s.Pool(n.Pool) == nil && n.Marks != (fleet.NodeMarks{}) {
		return // no pool answers for the machine: only the loan shows that its marks are ours to take off
	}
	why := reason.Of(reason.LoanCancelled)
	switch {
	case l.Phase == fleet.Returned && m.lentAgain(l):
		why = reason.Of(reason.LentAgain)
	case l.Phase == fleet.Returned:
		claimed := slices.ContainsFunc(m.on(l.Node).Pods, func(p *fleet.Pod) bool {
			// A claimant may have waited for the room since before it was clean: it takes it when it starts there.
			return p.Class == fleet.PodOnline && (p.Created.After(l.CleanAt) || p.Started.OK && p.Started.Value.After(l.CleanAt))
		})
		switch {
		case m.fromOffline(l):
			why = reason.Of(reason.MachineHome)
		case s.Node(l.Node) == nil:
			why = reason.Of(reason.MachineVanished)
		case slices.ContainsFunc(m.on(l.Node).Loans, func(o *fleet.Loan) bool { return o.Phase.Moving() && o.Phase != fleet.Emptying }):
			return
		case claimed:
			why = reason.Of(reason.RoomTaken)
		case s.At.Sub(l.Since) >= m.in.Options.ClaimHold:
			why = reason.Of(reason.RoomUnclaimed, m.in.Options.ClaimHold)
		default:
			return
		}
	}
	m.propose(passFollow, MoveForget, *l, *l, reason.Of(reason.Forgotten, why))
}

// lentAgain reports whether another loan has cells of a loan that is over: that loan was adopted. A plan that merely adopts is no reason to forget, since the
// door refuses an adoption that a stalled watch proposed, and the claim of the loan stands.
func (m *follower) lentAgain(l *fleet.Loan) bool {
	return slices.ContainsFunc(m.on(l.Node).Loans, func(o *fleet.Loan) bool { return o.Phase.Away() && fleet.Overlap(o.Cells, l.Cells) })
}

// agree reports whether a loan and a NodeShare say the same: the loan has one entry, and that says what the loan says.
func agree(l *fleet.Loan, s *fleet.Share) bool {
	e := s.Find(l.ID)
	return e != nil && says(e, l) && !twice(l, s)
}

// says reports whether an entry of a NodeShare says what a loan says.
func says(e *fleet.ShareParcel, l *fleet.Loan) bool {
	return e.LoanUID == l.UID && e.Holder == l.Holder() && e.Next == l.Next() && e.Epoch == l.Epoch && fleet.SameCells(e.Cells, l.Cells)
}

// twice reports whether a NodeShare has more than one entry of a loan, which only a hand can write.
func twice(l *fleet.Loan, s *fleet.Share) bool {
	n := 0
	for i := range s.Parcels {
		if s.Parcels[i].Loan == l.ID && s.Parcels[i].LoanUID == l.UID {
			n++
		}
	}
	return n > 1
}

// Drift counts the parcels of which the loans and the NodeShares, which are two records of who holds what, tell different stories: loans that
// are under way and are not in their machine's share as they stand, and entries that no loan answers for. A crash between two writes leaves
// one, which the next cycle repairs; a loan that was deleted by hand leaves one until the planner adopted its parcel.
func Drift(s *fleet.Snapshot) int {
	n := 0
	for i := range s.Loans {
		l := &s.Loans[i]
		if node := s.Node(l.Node); node != nil && !l.Phase.Ended() && !agree(l, &node.Share) {
			n++
		}
	}
	for i := range s.Nodes {
		for k := range s.Nodes[i].Share.Parcels {
			if s.Orphaned(&s.Nodes[i].Share.Parcels[k]) {
				n++
			}
		}
	}
	return n
}

// superseded ends a loan that never had its share and whose cells another loan has by now: its creation came late, or twice. It holds nothing, and
// would wait for the other's return to begin by a reason that was of its day.
func (m *follower) superseded(l *fleet.Loan, e *fleet.ShareParcel, node *fleet.Node) bool {
	if e != nil || l.Phase != fleet.Emptying {
		return false
	}
	other := node.Share.Over(l.Cells)
	if other == nil {
		return false
	}
	after, err := l.Cancel(m.in.Snapshot.At, reason.Of(reason.ParcelTaken, other.Loan))
	m.step(passFollow, MoveCancel, *l, after, err)
	return true
}

// repair brings a loan and its entry in the NodeShare in line. The share is written first and the phase follows, so after a crash between the two the
// share is at most one step ahead. A share that handed the parcel over stands, and the loan follows: a scheduler that reads shares may have bound pods of the
// new side there already, which a loan that still empties or drains knows nothing of. Otherwise the loan's view is written again. While the epochs agree
// that is safe, since no pod may land on a parcel that moves. A share of a higher epoch belongs to a recall or a turn back that was not finished; reports
// for that epoch may be about to arrive, so the loan takes an epoch above it and every older report is void. The same holds of an entry of other cells: what was
// reported clean is not the parcel.
func (m *follower) repair(l *fleet.Loan, n *fleet.Node) bool {
	if agree(l, &n.Share) {
		return false
	}
	after, e := *l, n.Share.Find(l.ID)
	why := reason.Of(reason.ShareMissing)
	if e != nil && e.LoanUID != l.UID {
		why = reason.Of(reason.ShareDiffers, reason.Of(reason.EarlierLoan, e.LoanUID))
		e = nil
	}
	if e != nil {
		differs := reason.Of(reason.OtherHolder, e.Holder, e.Next, e.Epoch, l.Holder(), l.Next(), l.Epoch)
		switch {
		case !fleet.SameCells(e.Cells, l.Cells):
			differs = reason.Of(reason.OtherCells, e.Cells, l.Cells)
			after.Epoch = max(e.Epoch, l.Epoch) + 1
		case twice(l, &n.Share):
			differs = reason.Of(reason.TwoEntries)
			after.Epoch = max(e.Epoch, l.Epoch) + 1
		case e.Epoch > l.Epoch:
			after.Epoch = e.Epoch + 1
		}
		why = reason.Of(reason.ShareDiffers, differs)
		for _, handOver := range [...]func(time.Time, *fleet.ShareParcel) (fleet.Loan, error){l.Lend, l.Return} {
			if done, err := handOver(m.in.Snapshot.At, e); err == nil && says(e, &done) {
				after = done
			}
		}
		if done, err := m.adoptAgain(l, e); err == nil {
			after = done
		}
	}
	m.propose(passFollow, MoveRepair, *l, after, why)
	return true
}

// noticed waits for acknowledgements or the deadline, repeats notices that are missing, and lets heartbeats move the deadline.
func (m *follower) noticed(l *fleet.Loan) {
	s := m.in.Snapshot
	pool := m.terms(l)
	loans := m.noticedOn(l.Node)
	deadline, again := m.deadlineOf(l), false
	if after, yes := m.announceAgain(l, loans); yes {
		deadline, again = after.Deadline, true
	}
	var beat time.Time
	for _, p := range m.on(l.Node).Pods {
		if p.Class != fleet.PodOffline || p.Deleting {
			continue
		}
		if l == loans[0] { // the first loan of the machine speaks for all of them: they come home together
			m.notify(l, p, loans, deadline)
		}
		if p.Heartbeat.OK && p.Heartbeat.Value.After(beat) {
			beat = p.Heartbeat.Value
		}
	}
	if again {
		return
	}
	acked := m.allAnswered(l.Node, loans)
	if after, err := l.Drain(s.At, acked); err == nil {
		// The time of the kill counts from the first eviction that was accepted. With no pod to evict it counts from
		// now.
		if m.ending(l) {
			after, err = after.AnnounceKill(s.At, m.killAt(l), after.Reason)
		}
		if m.step(passFollow, MoveDrain, *l, after, err) {
			m.evict(&after)
		}
		return
	}
	if _, shortened := m.shortened[l.ID]; shortened || !beat.After(l.Deadline) {
		return
	}
	to := beat
	if last := l.FirstNotice.Add(pool.NoticeMax); to.After(last) {
		to = last
	}
	if to.After(l.Due) {
		to = l.Due
	}
	if to.After(l.Deadline) {
		after, err := l.Announce(to, reason.Of(reason.Heartbeat))
		m.step(passHeartbeat, MoveAnnounce, *l, after, err)
	}
}

// takeBack frees pods of notices that stand no more: the tide turned, or their machine stayed with its borrower for another reason.
func (m *follower) takeBack() {
	s := m.in.Snapshot
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Class != fleet.PodOffline || p.NoticeLoan == "" || p.Deleting || m.on(p.Node).Moves.Leaving() {
			continue
		}
		m.plan.Notices = append(m.plan.Notices, Notice{Pod: PodRef{p.Name, p.ID}, Loan: p.NoticeLoan, Epoch: p.NoticeEpoch, TakenBack: true})
	}
}

// noticedOn lists the machine's loans that stand in Noticed, by id.
func (m *maker) noticedOn(node fleet.NodeID) []*fleet.Loan {
	var out []*fleet.Loan
	for _, l := range m.on(node).Loans {
		if l.Phase == fleet.Noticed {
			out = append(out, l)
		}
	}
	return out
}

func priorityOf(s *fleet.Snapshot, p *fleet.Pod) fleet.JobPriority {
	if j := s.Job(p.Job); j != nil {
		return j.Priority
	}
	return p.Rank
}
