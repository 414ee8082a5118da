package planner

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reclaim"
)

// Survival says until when the borrower of a lent parcel may expect to work on it: the forecast, at the quantile that services are sized by,
// asks for it not earlier. What online borrows it expects to keep until it is due. It is no promise; a recall gives notice all the same.
type Survival struct {
	Loan  fleet.LoanID
	Until time.Time
	// Due is when the parcel is to be home and clean by that: never sooner than a notice given now allows. A recall sets its own.
	Due time.Time
}

// survivalStep is the grid of what is told, and the least by which it comes nearer before it is told anew. Further away it moves only when
// that is worth a write: by twice the step, and a quarter of what is left.
const survivalStep = 15 * time.Minute

// survivals looks along the forecast for the time at which each lent machine of a pool will have to be left, in the order in which they would
// be recalled now. Those that nothing asks for are expected to stay to the end of the forecast.
func (m *maker) survivals(l *ledger, lead Lead) {
	s := m.in.Snapshot
	m.survivesBorrowed(l)
	if !m.tellsSurvival(l.pool.ID) {
		return
	}
	queue := reclaim.Order(s, l.pool, m.recalls())
	if len(queue) == 0 {
		return
	}
	have := only(l.usable).Add(only(l.coming)).Sub(only(share(l.capacity, l.pool.LowWatermark)))
	var horizon time.Duration
	for _, v := range l.services {
		horizon = max(horizon, v.target.AheadStep*time.Duration(len(v.target.Ahead)))
	}
	home := lead.Clean + lead.Drain
	early := lead.StartUp + home
	soonest := s.At.Add(lead.Notice + home)
	next := 0
	for at := time.Duration(0); at < horizon && next < len(queue); at += survivalStep {
		for need := only(l.need(at, at+survivalStep)); next < len(queue) && !need.Sub(have).Floor().IsZero(); next++ {
			have = have.Add(only(queue[next].Gain))
			m.survives(queue[next].Loans, s.At.Add(max(at-early, 0)), home, soonest)
		}
	}
	for ; next < len(queue); next++ {
		m.survives(queue[next].Loans, s.At.Add(horizon), home, soonest)
	}
}

// tellsSurvival reports whether it is time to look: in the first minute of each step, and in the first of a loan. The forecast is walked along
// for every service, which is more than all the rest of a quiet cycle.
func (m *maker) tellsSurvival(pool fleet.PoolID) bool {
	s, minute := m.in.Snapshot, m.in.Options.Interval
	if s.At.Sub(s.At.Truncate(survivalStep)) < minute {
		return true
	}
	return slices.ContainsFunc(s.Loans, func(l fleet.Loan) bool {
		return l.From == pool && l.Phase == fleet.Lent && l.ExpectedUntil.IsZero() && s.At.Sub(l.Since) < minute
	})
}

// survivesBorrowed tells of machines that online borrows: they are needed until they are due, as far as anybody knows.
func (m *maker) survivesBorrowed(l *ledger) {
	for _, x := range l.borrowed {
		if x.Phase == fleet.Lent && !x.Due.IsZero() && !x.ExpectedUntil.Equal(x.Due) && !m.decided(x.ID) {
			m.plan.Survivals = append(m.plan.Survivals, Survival{x.ID, x.Due, x.Due})
		}
	}
}

func (m *maker) survives(loans []*fleet.Loan, until time.Time, home time.Duration, soonest time.Time) {
	now := m.in.Snapshot.At
	until = until.Truncate(survivalStep)
	for _, l := range loans {
		was := l.ExpectedUntil
		farther := max(2*survivalStep, was.Sub(now)/4)
		if !m.decided(l.ID) && (was.IsZero() || was.Sub(until) >= survivalStep || until.Sub(was) >= farther) {
			m.plan.Survivals = append(m.plan.Survivals, Survival{l.ID, until, later(until.Add(home), soonest)})
		}
	}
}

// survivesUntil is what the loans of a machine say of it, expected and due: the earliest times, or nothing before they were told.
func (m *maker) survivesUntil(n *fleet.Node) (until, due string) {
	var first, home time.Time
	for _, l := range m.loans[n.ID] {
		if l.Phase != fleet.Lent || l.ExpectedUntil.IsZero() {
			continue
		}
		if first.IsZero() || l.ExpectedUntil.Before(first) {
			first = l.ExpectedUntil
		}
		if home.IsZero() || !l.Due.IsZero() && l.Due.Before(home) {
			home = l.Due
		}
	}
	if m.recalled[n.ID] {
		return "", ""
	}
	return stamped(first), stamped(home)
}

func stamped(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
