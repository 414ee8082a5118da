package loop

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

const (
	// lateHistory is how long after its last step history is taken to be whole: the step itself, the scrape and the rule that records it.
	lateHistory = 30 * time.Minute
	// summariesAtOnce bounds the services whose whole history one reading brings, and the summaries that are made of it: a replay of a week costs as much as some
	// thirty tides. Twenty each five minutes bring 5,760 services round in a day; in larger fleets each one waits longer.
	summariesAtOnce = 20
	// readBackGain is how much more the source must know than a portrait has learned for it to be learned again.
	readBackGain = 6 * time.Hour
)

// next is when a summary is worth making again. One that judges has other days to look at after a week; one that lacked
// history waits for the eighth day, and one that lacked anything else is tried again after a day. One that was never
// made is due.
func (s *Summary) next() time.Time {
	if s.CoreHoursToday > 0 {
		return s.Made.Add(week)
	}
	if enough := s.From.Add(week + day + lateHistory); !s.From.IsZero() && enough.After(s.Made) {
		return enough
	}
	return s.Made.Add(day)
}

// look is when the whole backfill of a service was last read, and of what.
type look struct {
	at time.Time
	of subject
}

// subject is what a history is of: another one is learned again.
type subject struct {
	target fleet.Name
	kind   string
	// load is the query of the work that arrives, which has units of its own; empty where requests or CPU are the load.
	load string
}

func subjectOf(s *fleet.Service) subject {
	out := subject{target: s.Target, kind: s.TargetKind}
	if l := s.SLO.Level(fleet.LevelNameThroughput); l != nil {
		out.load = l.Source.Query
	}
	return out
}

// nextLook is when the whole backfill of a service is to be read: once a day, when its summary is due, and when it is
// of something else.
func (l *Loop) nextLook(s *fleet.Service) time.Time {
	last, sum := l.progressOf(s.ID).look, l.summaries[s.ID]
	next := sum.next()
	if daily := last.at.Add(day); daily.Before(next) {
		next = daily
	}
	if last.of != subjectOf(s) {
		next = time.Time{}
	}
	return next
}

// summarise reads the whole backfill of the services whose turn it is, the longest due first, in one reading for all of them: their summaries are made again, and what the
// source knows more than their portraits have learned is read back. A reading that fails is only logged: the readings that move something have failed before it if the
// source is down.
func (l *Loop) summarise(ctx context.Context, now time.Time, services []fleet.Service) {
	var due []fleet.Service
	for i := range services {
		s := &services[i]
		if p := l.progressOf(s.ID); p.look.at.IsZero() { // a process that starts does not read everything at once
			p.look = look{now, subjectOf(s)}
		}
		if !now.Before(l.nextLook(s)) {
			due = append(due, services[i])
		}
	}
	slices.SortStableFunc(due, func(a, b fleet.Service) int {
		return cmp.Or(l.nextLook(&a).Compare(l.nextLook(&b)), cmp.Compare(a.ID, b.ID))
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
	of := maps.Collect(batches)
	var sums []fleet.Service
	for i := range due {
		s := &due[i]
		l.readBack(s, of[s.ID])
		l.progressOf(s.ID).look = look{now, subjectOf(s)}
		if x := l.summaries[s.ID]; !now.Before(x.next()) {
			sums = append(sums, *s)
		}
	}
	l.sumUp(sums, of, now)
}

// readBack has a portrait learned again from the whole backfill at the next reading, where the source knows more of it than was learned: a Prometheus was restored, or brings
// samples of a time in which it was not reached. A service that was given another target is learned again where the source knows at least as much of that: of a workload that
// was only renamed it knows less.
func (l *Loop) readBack(s *fleet.Service, b portrait.Batch) {
	p, ok := l.portraits[s.ID]
	if !ok || !p.Begun() || p.Doubt.Quarantined() {
		return
	}
	known := p.Lacks(&b)
	progress := l.progressOf(s.ID)
	last := progress.look
	moved := !last.at.IsZero() && last.of != subjectOf(s)
	if least := int(readBackGain / p.Step); known >= least || moved && known > -least {
		progress.again = true
		l.p.Log.Info("the source knows more history than was learned: it is read back", "service", s.ID, "steps",
			known, "subject changed", moved)
	}
}

// sumUp makes the summaries of services from their whole history.
func (l *Loop) sumUp(services []fleet.Service, of map[fleet.ServiceID]portrait.Batch, now time.Time) {
	sums := make([]Summary, len(services))
	each(len(services), func(i int) {
		sums[i] = Backcast(&services[i], of[services[i].ID], l.o)
		sums[i].Made = now
	})
	for i := range sums {
		l.summaries[services[i].ID] = sums[i]
	}
}
