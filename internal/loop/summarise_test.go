package loop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

func TestSummariesAreMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		s    Summary
		next time.Time
	}{
		"never made":        {Summary{}, time.Time{}.Add(day)},
		"judged":            {Summary{Made: noon, From: noon.Add(-week), CoreHoursToday: 1}, noon.Add(week)},
		"three days old":    {Summary{Made: noon, From: noon.Add(-3 * day)}, noon.Add(5*day + lateHistory)},
		"old, but no cost":  {Summary{Made: noon, From: noon.Add(-15 * day)}, noon.Add(day)},
		"nothing was there": {Summary{Made: noon}, noon.Add(day)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.s.next(); !got.Equal(c.next) {
				t.Errorf("made anew at %s, want %s", got, c.next)
			}
		})
	}
}

// asked is a History that notes whom it was asked for and has nothing.
type asked struct {
	History
	services []fleet.ServiceID
	from     time.Time
	err      error
}

func (a *asked) Since(_ context.Context, services []fleet.Service, from, _ time.Time) (iter.Seq2[fleet.ServiceID, portrait.Batch], error) {
	a.services, a.from = nil, from
	for i := range services {
		a.services = append(a.services, services[i].ID)
	}
	return func(func(fleet.ServiceID, portrait.Batch) bool) {}, a.err
}

// However many summaries are due, a bounded number of them is made at a time, in one reading: those that have waited longest, then by name.
func TestSummariesTakeTurns(t *testing.T) {
	h := &asked{}
	l := New(Ports{History: h}, DefaultOptions())
	var services []fleet.Service
	for i := range 25 {
		services = append(services, fleet.Service{ID: fleet.ServiceID(fmt.Sprintf("shop/s%02d", i))})
	}
	l.summaries["shop/s00"] = Summary{Made: noon.Add(-day), CoreHoursToday: 1}     // is good for six days more
	l.summaries["shop/s01"] = Summary{Made: noon.Add(-8 * day), CoreHoursToday: 1} // due, but less than those without any
	want := func(first, n int) {
		t.Helper()
		if len(h.services) != n || n > 0 && h.services[0] != services[first].ID || !slices.IsSorted(h.services[:max(n-1, 0)]) {
			t.Errorf("read for %d services: %v; want %d from %s on", len(h.services), h.services, n, services[first].ID)
		}
	}
	h.err = errors.New("too much")
	l.summarise(t.Context(), noon, services)
	want(2, 20)
	if !h.from.Equal(noon.Add(-l.o.Backfill)) || len(l.summaries) != 2 {
		t.Errorf("read from %s on; %d summaries after a reading that failed", h.from, len(l.summaries))
	}
	h.err = nil
	l.summarise(t.Context(), noon, services)
	want(2, 20)
	l.summarise(t.Context(), noon.Add(5*time.Minute), services)
	want(22, 4)
	if last := h.services[len(h.services)-1]; last != "shop/s01" {
		t.Errorf("%s came last, want the one that had a summary", last)
	}
	h.services = nil
	l.summarise(t.Context(), noon.Add(10*time.Minute), services)
	want(0, 0)
	if s := l.summaries["shop/s24"]; s.Verdict != "needs eight days of history" || !s.Made.Equal(noon.Add(5*time.Minute)) {
		t.Errorf("a service without history: %+v", s)
	}
}
