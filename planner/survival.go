package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reclaim"
)

const (
	// survivalStep is the grid of promises, and how often the planner looks for promises to extend.
	survivalStep = 15 * time.Minute
	// extendBefore is how near its end a promise is extended, and extendBy the least by which: one write buys the borrower at least this.
	extendBefore, extendBy = 30 * time.Minute, 2 * time.Hour
	// promiseMost bounds a promise. Further ahead the forecast says little: in two days of week.yaml 64 % of the terms were broken without a bound.
	promiseMost = 4 * time.Hour
)

// survivals fixes the promises of lent parcels. It looks along the forecast, at the quantile that services are sized by, for the times at which the
// first, the second, ... machine has to be recalled. Machines whose promises end first take the earliest of these times, as a recall takes
// them; so a new promise never relies on time that an older one uses.
// Lending keeps the high watermark free and a recall only the low one; a promise keeps as much again, since a forecast of hours is worse than one of
// a lead.
func (m *lender) survivals(l *ledger, lead Lead) {
	s := m.in.Snapshot
	m.survivesBorrowed(l)
	if !m.promises(l.pool.ID) {
		return
	}
	queue := reclaim.Order(s, l.pool, m.recalls())
	slices.SortStableFunc(queue, func(a, b reclaim.Standing) int { return cmp.Compare(promiseOf(a).Unix(), promiseOf(b).Unix()) })
	have := l.Above(2*l.pool.HighWatermark - l.pool.LowWatermark).Add(l.Coming.CPUAndMemory())
	var horizon time.Duration
	for _, v := range l.services {
		horizon = max(horizon, v.target.AheadStep*time.Duration(len(v.target.Ahead)))
	}
	// A notice is planned at most this long before the need: see foreseen and bringHome.
	early := lead.Total() + lookStep + m.in.Options.Interval
	after := lead.Notice + lead.Drain + lead.Clean
	next := 0
	for at := time.Duration(0); at < horizon && next < len(queue); at += survivalStep {
		for need := l.need(at, at+survivalStep).CPUAndMemory(); next < len(queue) && !need.Sub(have).Floor().IsZero(); next++ {
			have = have.Add(queue[next].Gain.CPUAndMemory())
			m.promise(l.pool, queue[next].Loans, s.At.Add(at-early), after)
		}
	}
	for ; next < len(queue); next++ {
		m.promise(l.pool, queue[next].Loans, s.At.Add(horizon-early), after)
	}
}

// promiseOf is when the last promise on a machine ends. A machine with a parcel that has none yet comes last.
func promiseOf(x reclaim.Standing) time.Time {
	var last time.Time
	for _, l := range x.Loans {
		if l.ExpectedUntil.IsZero() {
			return time.Unix(1<<40, 0)
		}
		last = later(last, l.ExpectedUntil)
	}
	return last
}

// promises reports whether it is time to look: in the first minute of each step, and while a lent parcel has no promise. The forecast is walked
// along for every service, which is more than all the rest of a quiet cycle.
func (m *lender) promises(pool fleet.PoolID) bool {
	s := m.in.Snapshot
	if s.At.Sub(s.At.Truncate(survivalStep)) < m.in.Options.Interval {
		return true
	}
	return slices.ContainsFunc(s.Loans, func(l fleet.Loan) bool {
		return l.From == pool && l.Phase == fleet.Lent && l.ExpectedUntil.IsZero()
	})
}

// survivesBorrowed promises what online borrows until it is due.
func (m *lender) survivesBorrowed(l *ledger) {
	for _, x := range l.Borrowed {
		if x.Phase == fleet.Lent && x.Due.After(x.ExpectedUntil) && !m.decided(x.ID) {
			m.plan.Survivals = append(m.plan.Survivals, Survival{x.ID, x.Due, x.Due})
		}
	}
}

// promise fixes the promise of loans that have none, and extends one that is about to end where that is worth a write.
func (m *lender) promise(pool *fleet.Pool, loans []*fleet.Loan, until time.Time, after time.Duration) {
	now := m.in.Snapshot.At
	until = now.Add(min(until.Sub(now), promiseMost)).Truncate(survivalStep)
	for _, l := range loans {
		switch was := l.ExpectedUntil; {
		case m.decided(l.ID), m.goesHome(l.Node):
			continue
		case was.IsZero():
			// Lending left room for the minimum term.
			until = later(until, later(now, l.Since.Add(pool.MinimumTerm)))
		case was.Sub(now) > extendBefore || until.Sub(later(was, now)) < extendBy:
			continue
		}
		m.plan.Survivals = append(m.plan.Survivals, Survival{l.ID, until, until.Add(after)})
	}
}
