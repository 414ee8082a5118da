package loop_test

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/looptest"
)

// feast is an own day that came twice and comes again on the day after the loop begins.
func feast(start time.Time) (c fleet.Calendar, on func(time.Time) bool) {
	days := []time.Time{start.AddDate(0, 0, -62), start.AddDate(0, 0, -27), start.AddDate(0, 0, 1)}
	for _, d := range days {
		c.Days = append(c.Days, fleet.NamedDay{Name: "Feast", Year: d.Year(), Month: d.Month(), Day: d.Day(), Length: 1})
	}
	return c, func(at time.Time) bool {
		for _, d := range days {
			if !at.Before(d) && at.Before(d.AddDate(0, 0, 1)) {
				return true
			}
		}
		return false
	}
}

// festiveWorld is one of some services whose load doubles on the feast; the fifth is too young to have seen one, and the first names no
// calendar.
func festiveWorld(services int) *looptest.World {
	o := looptest.Default()
	o.Services, o.History = services, 100*24*time.Hour
	c, on := feast(o.Start)
	o.Twist = func(id fleet.ServiceID, at time.Time, load float64) float64 {
		if id == "shop/svc-004" && at.Before(o.Start.AddDate(0, 0, -20)) {
			return math.NaN()
		}
		if on(at) {
			return 2 * load
		}
		return load
	}
	w := looptest.New(o)
	w.Each = func(s *fleet.Snapshot) {
		for i := range s.Services {
			if s.Services[i].ID != "shop/svc-000" {
				s.Services[i].Calendar = c
			}
		}
	}
	return w
}

// calmly turns a new loop that learns by quarters of an hour and acts no more often, and returns its metrics.
func calmly(t *testing.T, w *looptest.World, epoch int64, d time.Duration) *prometheus.Registry {
	t.Helper()
	o, p, r := loop.DefaultOptions(), w.Ports(), prometheus.NewPedanticRegistry()
	o.Portrait.Step, o.Learn, o.React = 15*time.Minute, 15*time.Minute, 15*time.Minute
	p.Metrics = loop.NewMetrics(r)
	goOn(t, w, loop.New(p, o), epoch, d)
	return r
}

// The days of a calendar are learned from all the history there is, lent to kin, lifted onto the tide, named, and remembered.
func TestCalendarLiftsTides(t *testing.T) {
	long(t)
	t.Parallel()
	w := festiveWorld(5)
	check := func() {
		t.Helper()
		at := w.Now().Truncate(24 * time.Hour).Add(24*time.Hour + 10*time.Hour)
		for id, want := range map[fleet.ServiceID]float64{"shop/svc-000": 1, "shop/svc-001": 2, "shop/svc-004": 2} {
			tide := w.Tides[id]
			if got := tide.Lift(at); !(math.Abs(got/want-1) <= 0.15) {
				t.Errorf("%s is lifted by %.3f on the feast, want %v: %+v", id, got, want, tide.Days)
			}
			if got := tide.Lift(w.Now()); !(math.Abs(got-1) <= 0.1) {
				t.Errorf("%s is lifted by %.3f on an ordinary day", id, got)
			}
			if d := tide.Day(at, at.Add(1)); (d != nil) != (want > 1) || d != nil && (d.Name != "Feast" || d.Kin != (id == "shop/svc-004")) {
				t.Errorf("%s: day %+v", id, d)
			}
		}
	}
	calmly(t, w, 1, 20*time.Hour)
	check()
	// The next process knows them without reading a year again.
	w.Reads = nil
	calmly(t, w, 2, time.Hour)
	check()
	for _, r := range w.Reads {
		if w.Now().Sub(r.From) > 20*24*time.Hour {
			t.Errorf("after a restart %d services were read from %v on", r.Services, r.From)
		}
	}
	// On the feast itself it shows: for those who name a calendar.
	shown := gaugeBy(t, calmly(t, w, 3, 13*time.Hour), "springtide_calendar_lift_ratio", "service")
	if len(shown) != 4 || !(math.Abs(shown["svc-001"]/2-1) <= 0.15) {
		t.Errorf("the metric shows %v, want four services at 2", shown)
	}
}

// A feast does not become the portrait of an ordinary day: the day after it, the tide is as if it had not been.
func TestPortraitIsOfOrdinaryDays(t *testing.T) {
	long(t)
	t.Parallel()
	after := func(w *looptest.World) float64 {
		calmly(t, w, 1, 49*time.Hour)
		tide := w.Tides["shop/svc-001"]
		return tide.At(w.Now().Add(30*time.Minute), 0.5)
	}
	o := looptest.Default()
	o.Services, o.History = 2, 100*24*time.Hour
	got, want := after(festiveWorld(2)), after(looptest.New(o))
	if !(math.Abs(got/want-1) <= 0.1) {
		t.Errorf("after the feast the tide is %.1f, and %.1f where none was", got, want)
	}
}
