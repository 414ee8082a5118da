package planner

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/reclaim"
)

// emptyingOf lists the pool's loans that have not left yet, oldest first.
func emptyingOf(s *fleet.Snapshot, pool fleet.PoolID) []*fleet.Loan {
	var out []*fleet.Loan
	for i := range s.Loans {
		if l := &s.Loans[i]; l.From == pool && l.Phase == fleet.Emptying {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b *fleet.Loan) int { return a.Created.Compare(b.Created) })
	return out
}

// keepEmptying calls off loans that did not leave yet, as far as what is free of their machines covers a shortage, and returns what is short
// then. A machine that is full yet covers nothing and goes on: its pods leave only when online wants fewer. So does one of which another
// parcel is away, which keeps online off it: that one must come home first (see [maker.bringHome]).
func (m *lender) keepEmptying(l *ledger, ask reclaim.Ask) fleet.Resources {
	s, short := m.in.Snapshot, ask.Amount
	var left []freed
	for _, loan := range slices.Backward(emptyingOf(s, l.pool.ID)) { // the newest has lost least
		n := s.Node(loan.Node)
		if n == nil || !n.Lasts() || !m.on(loan.Node).Moves.EmptyingAlone() {
			continue
		}
		switch free := withGPUs(m.on(n.ID).Free()); {
		case m.returning[loan.ID]: // called off by this plan already
			short = short.Sub(free)
		case !m.decided(loan.ID) && free.CPU >= leastRoom:
			left = append(left, freed{loan, free})
		}
	}
	for !short.Floor().IsZero() {
		left = slices.DeleteFunc(left, func(f freed) bool { return !reclaim.Helps(f.free, short) })
		if len(left) == 0 {
			break
		}
		i := bestFor(left, short)
		after, err := left[i].loan.Cancel(s.At, reason.Of(reason.TideTurned, ask.Why))
		m.step(passBringHome, MoveCancel, *left[i].loan, after, err)
		short = short.Sub(left[i].free)
		left = slices.Delete(left, i, i+1)
	}
	return short
}

// stopEmptying calls off what is still being emptied of a machine that goes home.
func (m *maker) stopEmptying(node fleet.NodeID, why reason.Reason) {
	for _, l := range m.on(node).Loans {
		if l.Phase == fleet.Emptying {
			after, err := l.Cancel(m.in.Snapshot.At, reason.Of(reason.TideTurned, why))
			m.step(passBringHome, MoveCancel, *l, after, err)
		}
	}
}

// freed is the room that calling a loan off gives back at once.
type freed struct {
	loan *fleet.Loan
	free fleet.Resources
}

// bestFor is the loan that covers a shortage with the least left over, or else the one that covers most of it; the first of equals. So the
// fewest are called off.
func bestFor(left []freed, short fleet.Resources) int {
	best, covered := 0, short.Fits(left[0].free)
	for i := 1; i < len(left); i++ {
		covers, less := short.Fits(left[i].free), left[i].free.CPU < left[best].free.CPU
		if covers && (!covered || less) || !covers && !covered && left[i].free.CPU > left[best].free.CPU {
			best, covered = i, covers
		}
	}
	return best
}

// giveUpPinned cancels loans whose machines cannot be emptied, because their services will not shrink after all. Late
// loans are given up by [maker.giveUpLate].
func (m *lender) giveUpPinned(l *ledger, term time.Duration) {
	s, o := m.in.Snapshot, m.in.Options
	drops := l.drops(term)
	for _, loan := range emptyingOf(s, l.pool.ID) {
		if s.At.Sub(loan.Created) < o.EmptyFor || !emptyingWhole(m.on(loan.Node)) {
			continue
		}
		for _, p := range m.on(loan.Node).Pods {
			if p.Class == fleet.PodOnline && !p.Deleting && drops[p.Service] <= 0 {
				after, err := loan.Cancel(s.At, reason.Of(reason.Pinned, reason.Of(reason.CannotEmpty, reason.Of(reason.PodStays, p.Name))))
				m.step(passGiveUp, MoveCancel, *loan, after, err)
				break
			}
		}
	}
}

// giveUpLate cancels a loan that could not be handed over for as long as anybody waits, whatever stands in its way: it keeps a slot of the move
// budget from others, and its machine from online.
func (m *maker) giveUpLate(l *fleet.Loan, n *fleet.Node) {
	s, most := m.in.Snapshot, m.in.Options.EmptyMax
	if s.At.Sub(l.Created) < most {
		return
	}
	why := reason.Of(reason.NotReportedClean)
	stays := slices.IndexFunc(m.on(n.ID).Pods, func(p *fleet.Pod) bool { return p.Class == fleet.PodOnline })
	switch {
	case !n.AgentAlive && n.AgentKnown:
		why = reason.Of(reason.AgentDead)
	case stays >= 0 && m.occupied(l):
		why = reason.Of(reason.PodStays, m.on(n.ID).Pods[stays].Name)
	case n.Agentless() && l.Kind == fleet.KindSocket:
		why = reason.Of(reason.SocketNeedsAgent)
	case n.Agentless():
		why = reason.Of(reason.FactsNotClean)
	}
	after, err := l.Cancel(s.At, reason.Of(reason.Pinned, reason.Of(reason.NotEmptied, most, why)))
	m.step(passFollow, MoveCancel, *l, after, err)
}
