package loop

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

const (
	// lateHistory is how long after its last step history is taken to be whole: the step itself, the scrape and the rule that records it.
	lateHistory = 30 * time.Minute
	// summariesAtOnce bounds the summaries that one reading of history makes anew: a replay of a week costs as much as some thirty tides.
	// Twenty each five minutes bring 2,000 services round in eight hours, and a week of them needs one.
	summariesAtOnce = 20
)

// next is when a summary is worth making anew. One that judges has other days to look at after a week; one that lacked history waits for
// the eighth day, and one that lacked anything else is tried again after a day. One that was never made is due.
func (s *Summary) next() time.Time {
	if s.CoreHoursStatic > 0 {
		return s.Made.Add(week)
	}
	if enough := s.From.Add(week + day + lateHistory); !s.From.IsZero() && enough.After(s.Made) {
		return enough
	}
	return s.Made.Add(day)
}

// summarise makes the summaries that are due, the longest due first, from one reading of history for all of them. A reading that fails is
// only told: summaries move nothing, and the readings that do have failed before it if the source is down.
func (l *Loop) summarise(ctx context.Context, now time.Time, services []fleet.Service) {
	var due []fleet.Service
	for i := range services {
		if x := l.summaries[services[i].ID]; !now.Before(x.next()) {
			due = append(due, services[i])
		}
	}
	slices.SortStableFunc(due, func(a, b fleet.Service) int {
		x, y := l.summaries[a.ID], l.summaries[b.ID]
		return cmp.Or(x.next().Compare(y.next()), cmp.Compare(a.ID, b.ID))
	})
	due = due[:min(len(due), summariesAtOnce)]
	if len(due) == 0 {
		return
	}
	batches, due, err := l.since(ctx, due, now.Add(-l.o.Backfill), now)
	if err != nil {
		l.p.Log.Warn("summaries could not be made again", "services", len(due), "err", err)
		return
	}
	l.sumUp(due, batches, now)
}

// sumUp makes the summaries of services from their whole history.
func (l *Loop) sumUp(services []fleet.Service, batches iter.Seq2[fleet.ServiceID, portrait.Batch], now time.Time) {
	of := make(map[fleet.ServiceID]portrait.Batch, len(services))
	for id, b := range batches {
		of[id] = b
	}
	sums := make([]Summary, len(services))
	each(len(services), func(i int) {
		sums[i] = Backcast(&services[i], of[services[i].ID], l.o)
		sums[i].Made = now
	})
	for i := range sums {
		l.summaries[services[i].ID] = sums[i]
	}
}
