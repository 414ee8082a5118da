package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/reclaim"
	"github.com/springtide/springtide/signal"
)

// recalls are the times that recalls are computed with.
func (m *maker) recalls() reclaim.Options {
	o := m.in.Options
	return reclaim.Options{Drain: o.Drain, Clean: o.Clean, Paces: m.in.Paces, RecallRest: o.RecallRest, On: m.room}
}

func (m *lender) leadOf(l *ledger) Lead {
	return Lead{Lead: reclaim.LongestLead(m.in.Snapshot, l.pool, m.recalls()), StartUp: l.startUp(), Cycle: m.in.Options.Interval, Late: l.late()}
}

// borrowLead is the longest from the decision to borrow a machine of an offline pool to a ready online pod on it: the work there has the notice of
// its own pool, which may be longer than that of what is lent to it.
func (m *lender) borrowLead(own Lead) time.Duration {
	var longest time.Duration
	for i := range m.in.Snapshot.Pools {
		if p := &m.in.Snapshot.Pools[i]; p.Class == fleet.Offline && p.Mode.Acts() {
			longest = max(longest, Lead{reclaim.LongestLead(m.in.Snapshot, p, m.recalls()), own.StartUp, own.Cycle, own.Late}.Total())
		}
	}
	return longest
}

// late is the longest by which slow scrapes delay the live load of the pool's services: a recall that depends on it begins as much earlier, as their own
// scale-out does. Sources are few, so that one that is slow is no odd service.
func (l *ledger) late() time.Duration {
	var longest time.Duration
	for _, v := range l.services {
		longest = max(longest, signal.LateBy(l.in.Live[v.svc.ID].Window))
	}
	return longest
}

// coveredStarts is the share of a pool's requested CPU whose services must have started within the lead: one slow service of a few pods is
// left to the watermark and does not bring every machine home half an hour early.
const coveredStarts = 0.95

// startUp is the time within which coveredStarts of what the pool's services ask for is ready.
func (l *ledger) startUp() time.Duration {
	type start struct {
		took time.Duration
		cpu  fleet.MilliCPU
	}
	var starts []start
	var all, sum fleet.MilliCPU
	for _, v := range l.services {
		p := l.in.Portraits[v.svc.ID]
		s := start{hpa.StartUp(v.svc, &p, l.in.Options.StartUp), v.svc.Request.CPU * fleet.MilliCPU(max(v.pods, 1))}
		starts = append(starts, s)
		all += s.cpu
	}
	slices.SortFunc(starts, func(a, b start) int { return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.cpu, b.cpu)) })
	for _, s := range starts {
		if sum += s.cpu; float64(sum) >= coveredStarts*float64(all) {
			return s.took
		}
	}
	return l.in.Options.StartUp
}
