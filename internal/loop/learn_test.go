package loop_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/looptest"
)

// The number of readings does not grow with the services, and a service that exports nothing, from the beginning or any more, makes no
// reading longer than the one before.
func TestReadings(t *testing.T) {
	t.Parallel()
	o := smallWorld()
	o.Services = 4
	died := o.Start.Add(30 * time.Minute)
	o.Twist = func(id fleet.ServiceID, at time.Time, load float64) float64 {
		if id == "shop/svc-001" || id == "shop/svc-002" && at.After(died) {
			return math.NaN()
		}
		return load
	}
	w := looptest.New(o)
	l := run(t, w, 1, 2*time.Hour)
	perCycle := map[time.Time]int{}
	for _, r := range w.Reads {
		perCycle[r.At]++
		if perCycle[r.At] > 3 {
			t.Errorf("%s: %d readings in one cycle", r.At, perCycle[r.At])
		}
		if back := r.At.Sub(r.From); back > 45*time.Minute && !r.At.Equal(o.Start) {
			t.Errorf("%s: %d services are read from %s back", r.At, r.Services, back)
		}
	}
	if n := len(perCycle); n < 2*12-1 || n > 2*12+2 {
		t.Errorf("history was read in %d cycles of two hours, want one each 5 minutes", n)
	}

	// An outage of the source: afterwards one reading covers it for all, and nothing is learned again.
	down := w.Now()
	w.HistoryErr = looptest.ErrDown
	goOn(t, w, l, 1, time.Hour)
	w.HistoryErr, w.Reads = nil, nil
	goOn(t, w, l, 1, time.Minute)
	if len(w.Reads) == 0 || len(w.Reads) > 2 {
		t.Fatalf("%d readings after an outage", len(w.Reads))
	}
	for _, r := range w.Reads {
		if r.From.Before(down.Add(-45*time.Minute)) || r.From.After(down) {
			t.Errorf("after an outage from %s on %d services are read from %s on", down, r.Services, r.From)
		}
	}
}

// Late data of a service is read whole, wherever it was when the first look found nothing: at a first sample after an
// hour, after a night, and of a service of which the source gave no answer while it answered for others.
func TestFirstSamplesComeLate(t *testing.T) {
	t.Parallel()
	const late = "shop/svc-001"
	for _, c := range []struct {
		name   string
		after  time.Duration
		unread bool
	}{{"an hour", time.Hour, false}, {"a night", 9 * time.Hour, false}, {"no answer for an hour", time.Hour, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := smallWorld()
			o.Services = 3
			var w *looptest.World
			o.Twist = func(id fleet.ServiceID, _ time.Time, load float64) float64 {
				if id == late && !c.unread && w.Now().Before(o.Start.Add(c.after)) {
					return math.NaN()
				}
				return load
			}
			w = looptest.New(o)
			if c.unread {
				w.Unread = map[fleet.ServiceID]error{late: looptest.ErrDown}
			}
			l := run(t, w, 1, c.after)
			if p := w.Portraits[late]; p.Begun() {
				t.Fatalf("the portrait has begun without a sample")
			}
			cycles := map[time.Time]bool{}
			for _, r := range w.Reads {
				cycles[r.At] = true
			}
			if most := int(c.after/(5*time.Minute)) + 2; len(cycles) > most {
				t.Errorf("history was read in %d cycles, want at most %d", len(cycles), most)
			}
			w.Unread = nil
			goOn(t, w, l, 1, 15*time.Minute)
			p, other := w.Portraits[late], w.Portraits["shop/svc-000"]
			if !p.Begun() || p.Begin.After(other.Begin) {
				t.Errorf("the portrait begins at %v, that of a service that was read from the start at %v", p.Begin, other.Begin)
			}
		})
	}
}

// A source that knows more than it did is read back, within a day: a Prometheus that was restored with a gap, one that gets the samples of a time in which it was not reached, and
// the history of another target. A workload that was only renamed keeps what was learned, and so does a portrait that knows more than the source.
func TestHistoryThatComesBackIsReadBack(t *testing.T) {
	long(t)
	t.Parallel()
	const id = "shop/svc-001"
	day := 24 * time.Hour
	for _, c := range []struct {
		name string
		// known says whether the source has a sample; after is set once it was restored.
		known func(age time.Duration, after bool) bool // age before the start of the test; negative later
		moved bool
		again bool
	}{
		{"restored, with a gap of a day", func(age time.Duration, after bool) bool { return age < 0 || after && age > day }, false, true},
		{"restored, with no gap", func(age time.Duration, after bool) bool { return age < day || after }, false, true},
		{"a hole of two days is filled", func(age time.Duration, after bool) bool { return after || age < 2*day || age > 4*day }, false, true},
		{"an hour that was lost", func(age time.Duration, after bool) bool { return after || age < 2*day || age > 2*day+time.Hour }, false, false},
		{"the older half is gone", func(age time.Duration, after bool) bool { return !after || age < 3*day }, false, false},
		{"another target with a history of its own", func(time.Duration, bool) bool { return true }, true, true},
		{"a workload that was renamed", func(age time.Duration, after bool) bool { return !after || age < -2*time.Hour }, true, false},
		{"nothing happened", func(time.Duration, bool) bool { return true }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := smallWorld()
			o.Services, o.History = 2, 9*day
			restored := o.Start.Add(2 * time.Hour)
			var w *looptest.World
			o.Twist = func(s fleet.ServiceID, at time.Time, load float64) float64 {
				after := w != nil && !w.Now().Before(restored)
				if s == id && !c.known(o.Start.Sub(at), after) {
					return math.NaN()
				}
				if s == id && c.moved && after && c.again {
					return 3 * load
				}
				return load
			}
			w = looptest.New(o)
			l := run(t, w, 1, 2*time.Hour)
			begin, points := w.Portraits[id].Begin, w.Portraits[id].Quality.Points
			if c.moved {
				w.Service(1).Target.Name = "another"
			}
			goOn(t, w, l, 1, 25*time.Hour)
			p := w.Portraits[id]
			// A day is 288 steps: what was only followed has no more than those.
			again := p.Quality.Points > points+330 || p.Begin.Before(begin) || c.moved && p.Peak > 1.5*o.Peak
			if !p.Begun() || again != c.again {
				t.Errorf("read back: %v, want %v; begins at %v, was %v; %d points, were %d", again, c.again, p.Begin, begin, p.Quality.Points, points)
			}
			whole := 0
			for _, r := range w.Reads {
				if r.At.Sub(r.From) > 10*day {
					whole++
				}
			}
			if whole > 6 {
				t.Errorf("the backfill was read %d times", whole)
			}
		})
	}
}

// A service that appears is learned in the cycle that sees it first, and its status says what Auto would have been; one
// that goes is forgotten.
func TestServicesComeAndGo(t *testing.T) {
	long(t)
	t.Parallel()
	o := smallWorld()
	o.History = 9 * 24 * time.Hour
	w := looptest.New(o)
	l := run(t, w, 1, time.Minute)
	w.AddService()
	goOn(t, w, l, 1, time.Nanosecond)
	if r := w.Reads[len(w.Reads)-1]; r.Services != 1 || w.Now().Sub(r.From) < 14*24*time.Hour {
		t.Errorf("the new service was not read at once and alone: %+v", r)
	}
	report := w.Reports[len(w.Reports)-1]
	if s, ok := report.Summaries["shop/svc-002"]; !ok || s.CoreHours <= 0 {
		t.Errorf("the new service has no summary: %+v", report.Summaries)
	}
	w.DropService("shop/svc-000")
	goOn(t, w, l, 1, time.Hour)
	if _, ok := w.Portraits["shop/svc-000"]; ok || len(w.Portraits) != 2 || len(w.Tides) != 2 {
		t.Errorf("a service that is gone is still stored: %d portraits, %d tides", len(w.Portraits), len(w.Tides))
	}
}

// The summary of Auto survives restarts, and appears as soon as there are eight days of history.
func TestSummariesOutliveTheProcess(t *testing.T) {
	t.Parallel()
	o := smallWorld()
	o.History = 8*24*time.Hour - 30*time.Minute
	w := looptest.New(o)
	summary := func() loop.Summary { return w.Reports[len(w.Reports)-1].Summaries["shop/svc-000"] }
	whole := func() (n int) {
		for _, r := range w.Reads {
			if r.At.Sub(r.From) > 7*24*time.Hour {
				n++
			}
		}
		return n
	}
	run(t, w, 1, 20*time.Minute)
	if s := summary(); s.Verdict != "needs eight days of history" || whole() != 1 {
		t.Fatalf("half an hour short of eight days: %+v, from %d readings", s, whole())
	}
	run(t, w, 2, time.Hour)
	s := summary()
	if s.CoreHours <= 0 || whole() != 2 {
		t.Fatalf("with eight days and a restart: %+v, from %d readings of the whole history", s, whole())
	}
	run(t, w, 3, 6*time.Minute)
	if again := summary(); again != s || whole() != 2 {
		t.Errorf("after another restart %+v, want the same without another reading: %+v", again, s)
	}
	w.Summaries = nil
	run(t, w, 4, 6*time.Minute)
	if again := summary(); again.CoreHours <= 0 || whole() != 3 {
		t.Errorf("portraits without summaries, as an older version stored them: %+v", again)
	}
}

// A cycle that cannot see or cannot write is an error, and the loop goes on.
func TestCyclesThatFail(t *testing.T) {
	w := looptest.New(smallWorld())
	l := run(t, w, 1, time.Minute)
	w.ObserveErr = looptest.ErrDown
	if _, err := l.Cycle(t.Context()); !errors.Is(err, looptest.ErrDown) {
		t.Errorf("a cycle without facts: %v", err)
	}
	w.ObserveErr, w.ApplyErr = nil, looptest.ErrDown
	n := len(w.Records)
	if _, err := l.Cycle(t.Context()); !errors.Is(err, looptest.ErrDown) || len(w.Records) != n+1 {
		t.Errorf("a cycle without writes must be journalled, and fail: %v, %d records", err, len(w.Records)-n)
	}
	w.ApplyErr = nil
	goOn(t, w, l, 1, time.Minute)
	if len(w.Records) < n+4 {
		t.Errorf("the loop stands: %d records", len(w.Records)-n)
	}
}

// halting is a clock that stops.
type halting struct{ *looptest.World }

func (halting) Park(context.Context, time.Time, bool) error { return looptest.ErrDown }

func TestRunEnds(t *testing.T) {
	w := looptest.New(smallWorld())
	ports := w.Ports()
	ports.Clock = halting{w}
	if err := loop.New(ports, loop.DefaultOptions()).Run(t.Context(), 1); !errors.Is(err, looptest.ErrDown) {
		t.Errorf("a clock that stops: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Portraits = nil
	if err := loop.New(w.Ports(), loop.DefaultOptions()).Run(ctx, 1); err != nil || w.Portraits == nil {
		t.Errorf("a loop that is told to stop saves and ends: %v, %v", err, w.Portraits)
	}
}
