package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/reclaim"
)

// Loans the other way: at a peak, in a burst or for a festival online borrows machines of offline pools, with a due time. They are emptied by
// notice, acknowledgement and eviction, as recalled ones are, and given back by scale-in alone: no online pod is ever evicted, killed or fenced
// for one, and the due time yields to what online needs.

// fromOffline reports whether a loan's parcel is at home in an offline pool.
func (m *maker) fromOffline(l *fleet.Loan) bool { return m.in.Snapshot.FromOffline(l) }

// borrow begins loans for what is short, and returns what stays so.
func (m *lender) borrow(l *ledger, ask reclaim.Ask, short fleet.Resources, idle bool) fleet.Resources {
	s := m.in.Snapshot
	// A paused pool borrows for pods that wait now, and for nothing that is only foreseen.
	if by := m.in.permit(lendingOf(l.pool), gives); !by.None() && !ask.Emergency && !short.Floor().IsZero() {
		m.withholdOnce(Subject{SubjectPool, string(l.pool.ID)}, reason.Of(reason.BorrowMachines), by, ask.Why)
		return short
	}
	for i := range s.Pools {
		p := &s.Pools[i]
		if p.Class != fleet.Offline || short.Floor().IsZero() {
			continue
		}
		if by := m.in.permit(lendingOf(p), gives); !by.None() {
			if p.Hold.Any() {
				m.withholdOnce(Subject{SubjectPool, string(p.ID)}, reason.Of(reason.LendTo, l.pool.ID), by, ask.Why)
			}
			continue
		}
		count, budget := m.movesLeft(p, ask.Emergency)
		want := reclaim.BorrowAsk{Pool: p, To: l.pool.ID, Amount: short, Count: max(count, 1), TakeStable: m.takesStable(), Idle: idle,
			Begun: m.begun, Emergency: ask.Emergency}
		take, left := reclaim.Borrowable(s, want, m.recalls())
		if count > 0 {
			short = left // A machine that the budget withholds covers nothing: it is looked for to be named.
		}
		for _, c := range take {
			if lead := reclaim.LongestLead(s, p, m.recalls()); !ask.Emergency && ask.Due.Add(-c.Notice-lead.Drain-lead.Clean).After(s.At.Add(m.in.Options.Interval)) {
				continue // There is time: the next cycle sees the tide more clearly.
			}
			if count <= 0 {
				m.withholdOnce(Subject{SubjectPool, string(p.ID)}, reason.Of(reason.LendNode, c.Node.Name), budget,
					reason.Of(reason.Flood, ask.Why, reason.Reason{}))
				break
			}
			c.Why = reason.Of(reason.Flood, ask.Why, c.Why)
			loan := m.newLoan(p.ID, l.pool.ID, c.Candidate)
			loan = loan.Invite(s.At, s.At.Add(c.Notice), m.dueOf(l, ask.Due), c.Why)
			m.propose(passBorrow, MoveBegin, loan, loan, loan.Reason)
		}
	}
	return short
}

// borrowAhead borrows what will be short once all that can come home is home, and reports whether it began anything. Recalls and what else a
// shortage calls for wait for their own lead.
func (m *lender) borrowAhead(l *ledger, ask reclaim.Ask) bool {
	s := m.in.Snapshot
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.Lasts() {
			continue // it brings nothing
		}
		kept := n.Pool == l.pool.ID && m.on(n.ID).Moves.EmptyingAlone()
		if kept || slices.ContainsFunc(l.Borrowed, func(x *fleet.Loan) bool { return x.Node == n.ID && x.Phase == fleet.Noticed }) {
			ask.Amount = ask.Amount.Sub(m.on(n.ID).Free().CPUAndMemory())
		}
	}
	_, short := reclaim.Choose(s, ask, m.recalls())
	if short.Floor().IsZero() {
		return false
	}
	before := len(m.plan.Moves)
	m.borrow(l, ask, short, false)
	return len(m.plan.Moves) > before
}

// takesStable reports whether an approved festival plan of now, or of the hour ahead, lets members below their minimum go.
func (m *lender) takesStable() bool {
	s := m.in.Snapshot
	return slices.ContainsFunc(s.Festivals, func(f fleet.Festival) bool {
		return f.Approved && f.TakeStable && !s.At.Before(f.Start.Add(-time.Hour)) && s.At.Before(f.End)
	})
}

// Loans end within a day, if the tide is not seen to fall before; dueStep is how finely its fall is looked for.
const (
	longestBorrow = 24 * time.Hour
	dueStep       = 15 * time.Minute
)

// dueOf is when what the pool's services ask for will fit its own machines again, for as long as a term. A flood that comes later than that is
// looked for from its own time on: before it they fit.
func (m *lender) dueOf(l *ledger, flood time.Time) time.Time {
	if l.due.IsZero() {
		own := l.Capacity.CPUAndMemory().Sub(l.Kept(l.pool.LowWatermark))
		at := m.in.Options.Interval
		if wait := flood.Sub(m.in.Snapshot.At); wait > l.pool.MinimumTerm {
			at = wait
		}
		for ; at < longestBorrow; at += dueStep {
			if l.need(at, at+l.pool.MinimumTerm).CPUAndMemory().Fits(own) {
				break
			}
		}
		l.due = m.in.Snapshot.At.Add(min(max(at, l.pool.MinimumTerm), longestBorrow)).Truncate(time.Minute)
	}
	return l.due
}

// keepBorrowed takes back the notices of borrowed machines that were to go home, as long as something is short, and returns what still is.
func (m *lender) keepBorrowed(l *ledger, ask reclaim.Ask) fleet.Resources {
	s, short := m.in.Snapshot, ask.Amount
	for _, loan := range l.Borrowed {
		n := s.Node(loan.Node)
		if short.Floor().IsZero() || loan.Phase != fleet.Noticed || n == nil || !n.Admits(l.pool.ID) || m.decided(loan.ID) {
			continue
		}
		room := withGPUs(m.on(n.ID).Free())
		if !reclaim.Helps(room, short) {
			continue
		}
		after, err := loan.TurnBack(s.At, reason.Of(reason.TideTurned, ask.Why))
		after.Due = loan.Due
		m.step(passBringHome, MoveTurnBack, *loan, after, err)
		short = short.Sub(room)
	}
	return short
}

// held reports whether online has a borrowed machine or is about to get it, so that it is not on its way home.
func held(x *fleet.Loan) bool { return x.Phase == fleet.Lent || x.Phase == fleet.Emptying }

// giveBack sends borrowed machines home that online does not need: those with the fewest online pods first, as many as
// the room beyond the high watermark allows, and once they are due as many as online can do without. It says why
// nothing else may begin: a pool that keeps what it borrowed lends nothing. A machine on its way home may take hours,
// since its pods leave by scale-in alone, and holds nothing up.
func (m *lender) giveBack(l *ledger, lead time.Duration, spare fleet.Resources) reason.Reason {
	s := m.in.Snapshot
	lent := slices.DeleteFunc(slices.Clone(l.Borrowed), func(x *fleet.Loan) bool { return !held(x) })
	kept := len(lent)
	if kept == 0 {
		return reason.Reason{}
	}
	lent = slices.DeleteFunc(lent, func(x *fleet.Loan) bool { return s.Node(x.Node) == nil || m.decided(x.ID) })
	slices.SortFunc(lent, func(a, b *fleet.Loan) int {
		return cmp.Or(fleet.TrueFirst(a.Phase == fleet.Emptying, b.Phase == fleet.Emptying), cmp.Compare(m.on(a.Node).Asked().CPU, m.on(b.Node).Asked().CPU), cmp.Compare(a.ID, b.ID))
	})
	// A machine to come is no room yet, so those that are emptied in vain are judged with it.
	spare = spare.Add(l.Coming.CPUAndMemory())
	due := l.Above(l.pool.LowWatermark).Sub(l.need(0, lead).CPUAndMemory())
	for _, x := range lent {
		room := s.Node(x.Node).Allocatable.CPUAndMemory()
		over := !x.Due.IsZero() && !s.At.Before(x.Due)
		if !room.Fits(spare) && !(over && x.Phase == fleet.Lent && room.Fits(due)) {
			continue
		}
		spare, due = spare.Sub(room), due.Sub(room)
		if x.Phase == fleet.Emptying {
			after, err := x.Cancel(s.At, reason.Of(reason.TideTurned, reason.Of(reason.BorrowNotNeeded)))
			m.step(passGiveBack, MoveCancel, *x, after, err)
			m.uninvite(x.ID)
			continue
		}
		after, err := x.Recall(s.At, s.At.Add(reclaim.EmergencyNotice), cmp.Or(x.Due, s.At), reason.Of(reason.Ebb, reason.Of(reason.DoWithout)))
		m.step(passGiveBack, MoveRecall, *x, after, err)
	}
	return reason.Of(reason.KeepsBorrowed, kept)
}

// followBorrowed takes a loan from an offline pool one step further.
func (m *follower) followBorrowed(l *fleet.Loan, e *fleet.ShareParcel, n *fleet.Node) {
	s := m.in.Snapshot
	online, offline := m.sides(n.ID)
	switch l.Phase {
	case fleet.Emptying:
		// While offline pods may still land it is not empty, whatever was reported.
		if e.IsClean(l.Epoch) && !n.Marks.OfflineLabel && len(offline) == 0 {
			after, err := l.Lend(s.At, e)
			m.step(passFollow, MoveLend, *l, after, err)
			return
		}
		m.invite(l, offline)
	case fleet.Noticed:
		if len(online) == 0 && n.Marks.HolderTaint {
			after, err := l.Drain(s.At, true)
			after.Reason = reason.Of(reason.ScaledIn)
			m.step(passFollow, MoveDrain, *l, after, err)
		}
	case fleet.Draining:
		if e.IsClean(l.Epoch) {
			after, err := l.Return(s.At, e)
			m.step(passFollow, MoveReturn, *l, after, err)
		}
	}
}

// sides are the pods of online and offline work on a machine.
func (m *maker) sides(node fleet.NodeID) (online, offline []*fleet.Pod) {
	for _, p := range m.on(node).Pods {
		switch p.Class {
		case fleet.PodOnline:
			online = append(online, p)
		case fleet.PodOffline:
			offline = append(offline, p)
		}
	}
	return online, offline
}

// invite gives offline pods their notice, waits for their answers or the deadline, and evicts them. It gives up a
// machine that cannot be emptied.
func (m *maker) invite(l *fleet.Loan, offline []*fleet.Pod) {
	s := m.in.Snapshot
	if s.At.Sub(l.Deadline) >= m.in.Options.EmptyFor {
		after, err := l.Cancel(s.At, reason.Of(reason.Pinned, reason.Of(reason.PastDeadline, m.in.Options.EmptyFor)))
		m.step(passFollow, MoveCancel, *l, after, err)
		return
	}
	own := []*fleet.Loan{l}
	after, _ := m.announceAgain(l, own)
	over := !s.At.Before(after.Deadline)
	for _, p := range offline {
		switch {
		case p.Deleting, p.Refused.Holds(s.At):
		case over || answers(p, own):
			m.ends[p.ID] = true
			m.plan.Evictions = append(m.plan.Evictions, Eviction{Pod: PodRef{p.Name, p.ID}, Loan: l.ID, Job: p.Job,
				Why: reason.Of(reason.Borrowed, l.NodeName, l.Reason)})
		default:
			m.notify(l, p, own, after.Deadline)
		}
	}
}

// uninvite leaves the pods of a loan alone whose machine stays after all.
func (m *maker) uninvite(l fleet.LoanID) {
	m.plan.Notices = slices.DeleteFunc(m.plan.Notices, func(n Notice) bool { return n.Loan == l })
	m.plan.Evictions = slices.DeleteFunc(m.plan.Evictions, func(e Eviction) bool {
		if e.Loan == l {
			delete(m.ends, e.Pod.ID)
		}
		return e.Loan == l
	})
}

// lenders shows the offline pools that have something out.
func (m *lender) lenders() {
	s := m.in.Snapshot
	for i := range s.Pools {
		p := &s.Pools[i]
		out := slices.ContainsFunc(s.Loans, func(l fleet.Loan) bool { return l.From == p.ID && !l.Phase.Ended() })
		if p.Class != fleet.Offline || !out {
			continue
		}
		own := m.room.Pool(p.ID)
		l := &ledger{in: m.in, pool: p, PoolRoom: fleet.PoolRoom{Machines: own.Machines, Capacity: own.Holds}}
		m.plan.Pools = append(m.plan.Pools, m.view(l, 0))
	}
	slices.SortStableFunc(m.plan.Pools, func(a, b PoolView) int { return cmp.Compare(a.Pool, b.Pool) })
}

// borrowedCapacity is what the pool holds of offline pools.
func (l *ledger) borrowedCapacity() fleet.Resources {
	var sum fleet.Resources
	for _, x := range l.Borrowed {
		if x.Phase.Away() {
			sum = sum.Add(x.Capacity)
		}
	}
	return sum
}
