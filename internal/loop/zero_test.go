package loop_test

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/looptest"
	"github.com/springtide/springtide/portrait"
)

// office is a world of services that serve from 07:00 to 22:00 and nothing at night. The count of an ingress is known
// at all times, and the CPU of pods while there are any.
type office struct {
	*looptest.World
	// asleep are the times of the first service at zero, by cycle.
	asleep map[int64]bool
	// size is its replicas and ready pods by cycle.
	size, ready map[int64]int
	burst, dark [2]time.Time
}

func within(at time.Time, span [2]time.Time) bool { return !at.Before(span[0]) && at.Before(span[1]) }

// newOffice is an office of services behind an ingress, or of workers that read a queue and export no requests.
func newOffice(least int32, workers bool) *office {
	w := &office{asleep: map[int64]bool{}, size: map[int64]int{}, ready: map[int64]int{}}
	o := smallWorld()
	o.History = 16 * 24 * time.Hour
	o.Start = o.Start.Add(18 * time.Hour) // an evening
	if !workers {
		o.Requests = 10
	}
	o.Twist = func(_ fleet.ServiceID, at time.Time, load float64) float64 {
		// People come within an hour, and go within one.
		edge := min(at.Sub(at.Truncate(24*time.Hour).Add(7*time.Hour)), at.Truncate(24*time.Hour).Add(22*time.Hour).Sub(at))
		if within(at, w.burst) {
			return load
		}
		return load * min(1, max(0, edge.Minutes()/60))
	}
	o.Lie = func(_, at time.Time, of portrait.Signal, value float64) (float64, bool) {
		if of == portrait.CPU {
			return value, !w.asleep[at.Truncate(5*time.Minute).Unix()]
		}
		return value, !within(at, w.dark)
	}
	w.World = looptest.New(o)
	for i := range 2 {
		s := w.Service(i)
		if s.Min = least; workers {
			s.Metrics = []fleet.Metric{{Name: "queue", Type: fleet.MetricQuery, Target: 2}}
			continue
		}
		s.SLO.Levels[0].Source = fleet.Source{Preset: fleet.PresetIngressNginx}
	}
	w.Each = func(s *fleet.Snapshot) {
		first := &s.Services[0]
		w.asleep[s.At.Truncate(5*time.Minute).Unix()] = first.Desired.Value == 0 && len(first.Pods) == 0
		w.size[s.At.Unix()/60], w.ready[s.At.Unix()/60] = int(first.Desired.Value), int(first.Ready())
	}
	return w
}

// at is the size and the ready pods of the first service at a time of the second day.
func (w *office) at(hour, minute int) (size, ready int) {
	at := time.Date(2026, 3, 17, hour, minute, 0, 0, time.UTC).Unix() / 60
	return w.size[at], w.ready[at]
}

func (w *office) run(t *testing.T) {
	t.Helper()
	until := time.Date(2026, 3, 17, 9, 0, 0, 0, time.UTC)
	if err := w.Run(loop.New(w.Ports(), loop.DefaultOptions()), 1, until); err != nil {
		t.Fatal(err)
	}
}

// TestRestsAtNight: a service without load has no replicas, its tide stays trusted though its pods write no samples,
// and the forecast has replicas ready before the load returns.
func TestRestsAtNight(t *testing.T) {
	for name, workers := range map[string]bool{"behind an ingress": false, "workers": true} {
		t.Run(name, func(t *testing.T) {
			w := newOffice(0, workers)
			w.run(t)
			for _, hour := range []int{1, 4} {
				if n, _ := w.at(hour, 0); n != 0 {
					t.Errorf("%d replicas at %d:00, though nothing arrives", n, hour)
				}
			}
			if n, ready := w.at(7, 0); ready < 1 {
				t.Errorf("%d of %d replicas are ready as the office opens: nothing woke the service ahead", ready, n)
			}
			for i := range w.Reports {
				if r := &w.Reports[i]; r.Trusted != 2 {
					t.Fatalf("%d of 2 tides are trusted at %s, in a night at zero", r.Trusted, r.At)
				}
			}
			if sum := accountOf(t, w.World, "shop/svc-000").Budget.Sum(); sum.Unknown > 10 || sum.Known() < 14*60 {
				t.Errorf("%+v minutes of 15 hours: a night at zero keeps its levels", sum)
			}
		})
	}
	kept := newOffice(1, false)
	kept.run(t)
	if n, _ := kept.at(4, 0); n != 1 {
		t.Errorf("%d replicas at 4:00 with a minimum of 1", n)
	}
}

// TestWakesOnABurst: requests that no forecast knew of wake a service within two cycles.
func TestWakesOnABurst(t *testing.T) {
	w := newOffice(0, false)
	from := time.Date(2026, 3, 17, 3, 30, 0, 0, time.UTC)
	w.burst = [2]time.Time{from, from.Add(10 * time.Minute)}
	w.run(t)
	if n, _ := w.at(3, 29); n != 0 {
		t.Fatalf("%d replicas before the burst", n)
	}
	if n, _ := w.at(3, 32); n == 0 {
		t.Error("nothing woke the service two minutes into a burst")
	}
}

// TestUnseenAtZero: while the signal that is read without pods is away, a service that has replicas keeps them. One at
// zero is woken by its forecast alone, which grows less sure without samples.
func TestUnseenAtZero(t *testing.T) {
	for name, from := range map[string]int{"at zero": 25, "before the night": 21} {
		t.Run(name, func(t *testing.T) {
			w := newOffice(0, false)
			w.dark = [2]time.Time{time.Date(2026, 3, 16, from, 30, 0, 0, time.UTC), time.Date(2026, 3, 17, 8, 0, 0, 0, time.UTC)}
			w.run(t)
			if n, _ := w.at(2, 0); (n == 0) != (from == 25) {
				t.Errorf("%d replicas at 2:00, with its signal away since %d:30", n, from%24)
			}
			if n, ready := w.at(7, 0); ready < 1 {
				t.Errorf("%d of %d replicas are ready as the office opens", ready, n)
			}
		})
	}
}
