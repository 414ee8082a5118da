package hpa

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

func TestProofsOfScaleIn(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*world)
		held   reason.Code
	}{
		{"forecast by fall-back", func(w *world) { w.t.Trusted = false }, HeldForecast},
		{"forecast made long ago", func(w *world) { w.t.Made = noon.Add(-16 * time.Minute) }, HeldForecast},
		{"no forecast", func(w *world) { w.t.Paths = nil }, HeldForecast},
		{"tide in another signal", func(w *world) { w.t.Signal = portrait.CPU }, HeldForecast},
		{"capacity unknown", func(w *world) { w.p.CPUPerLoad.OK = false }, HeldForecast},
		{"load stale", func(w *world) { w.live.Load.At = noon.Add(-3 * time.Minute) }, HeldStale},
		{"load NaN", func(w *world) { w.load(math.NaN()) }, HeldStale},
		{"load infinite", func(w *world) { w.load(math.Inf(1)) }, HeldStale},
		{"load negative", func(w *world) { w.load(-1) }, HeldStale},
		{"load in another signal than the portrait", func(w *world) { w.live.LoadSignal = portrait.CPU }, HeldStale},
		{"load from the future", func(w *world) { w.live.Load.At = noon.Add(time.Hour) }, HeldStale},
		{"no CPU", func(w *world) { w.live.CPU = nil }, HeldStale},
		{"CPU of too few pods", func(w *world) { delete(w.live.CPU, w.svc.Pods[0].Name) }, HeldStale},
		{"CPU negative", func(w *world) { w.cpu(-1) }, HeldStale},
		{"latency stale", func(w *world) { w.live.Latency.At = noon.Add(-3 * time.Minute) }, HeldStale},
		{"latency negative", func(w *world) { w.latency(-1) }, HeldStale},
		{"just started", func(w *world) { w.watched(4 * time.Minute) }, HeldJustStarted},
		{"never watched", func(w *world) { w.o.WatchedSince = time.Time{} }, HeldJustStarted},
		{"a longer window asked for", func(w *world) { w.o.Window = 2 * time.Hour }, HeldJustStarted},
		{"a fall unknown to history", func(w *world) { w.recent(steady(400, 16)...) }, HeldFall},
		{"rollout", func(w *world) {
			p := w.pod("cart-old", time.Hour)
			p.CurrentRevision = false
			w.svc.Pods = append(w.svc.Pods, p)
		}, HeldRollout},
		{"8 was wanted four minutes ago", func(w *world) { w.o.History[6].Replicas = 8 }, HeldStabilisation},
		{"no history", func(w *world) { w.o.History = nil }, HeldStabilisation},
		{"history of two minutes", func(w *world) { w.o.History = w.o.History[8:] }, HeldStabilisation},
		{"history of three minutes", func(w *world) { w.o.History = w.o.History[7:] }, HeldStabilisation},
		{"a longer stabilisation", func(w *world) {
			w.svc.Behavior.Down.Stabilization, w.o.Window = fleet.Says(30*time.Minute), time.Minute
		}, HeldStabilisation},
	} {
		w := falling(8, 4)
		c.change(w)
		tg := w.size()
		if tg.Replicas != 8 || tg.Held != c.held {
			t.Errorf("%s: replicas %d held %q, want 8 %q: %s", c.name, tg.Replicas, tg.Held, c.held, tg.Why())
		}
		if proven := c.held == HeldStabilisation || c.held == HeldJustStarted; proven != (tg.Decision.Replicas == 4) {
			t.Errorf("%s: remembered %d; a missing proof must start the window anew, a proven ask must count towards it", c.name, tg.Decision.Replicas)
		}
		if fresh := c.held != HeldForecast && c.held != HeldStale; tg.DataFresh != fresh || (len(tg.Missing) == 0) != fresh {
			t.Errorf("%s: fresh %v, missing %v", c.name, tg.DataFresh, tg.Missing)
		}
	}
}

func TestHistoryMayLackOneCycle(t *testing.T) {
	w := falling(8, 4)
	w.o.History = w.o.History[6:] // four minutes of five, a decision a minute
	if tg := w.size(); tg.Replicas != 4 {
		t.Errorf("replicas %d: %s", tg.Replicas, tg.Why())
	}
}

func TestStabilisationEases(t *testing.T) {
	w := falling(8, 4)
	w.o.History[8].Replicas = 6 // two minutes ago
	w.o.History[3].Replicas = 8 // seven minutes ago: forgotten
	tg := w.size()
	if tg.Replicas != 6 || tg.Held != "" || !strings.Contains(tg.Why().Text(),
		"eased by stabilisation: 6 was wanted 2m ago") {
		t.Errorf("replicas %d held %q: %s", tg.Replicas, tg.Held, tg.Why())
	}
}

func steady(v float64, n int) []float64 { return slices.Repeat([]float64{v}, n) }

func TestFallFasterThanHistory(t *testing.T) {
	for _, c := range []struct {
		name   string
		recent []float64 // one a minute, load is now 100
		f      float64
		held   bool
	}{
		{"by half, as history knows", steady(200, 16), 0.5, false},
		{"by more than half, a minute ago", steady(210, 16), 0.5, true},
		{"by more than half, four minutes ago", append(steady(210, 12), 100, 100, 100, 100), 0.5, true},
		{"by three quarters over ten minutes, as two halvings", append(steady(400, 10), 200, 200, 200, 200, 200, 200), 0.5, false},
		{"by more than three quarters ten minutes ago", append(steady(500, 8), steady(100, 8)...), 0.5, true},
		{"a lone spike is no level", append(steady(100, 11), 900, 100, 100, 100, 100), 0.5, false},
		{"a level of which one step is known", []float64{math.NaN(), 300, 100, 100, 100, 100}, 0.5, true},
		{"gaps say nothing", steady(math.NaN(), 16), 0.5, false},
		{"little is no level", steady(110, 16), 0.01, false},
		{"what the tolerance ignores is no fault", steady(110, 16), 0, false},
		{"history without any fall", steady(120, 16), 0, true},
		{"long ago", append(steady(900, 3), steady(100, 18)...), 0.5, false},
	} {
		w := falling(8, 4)
		w.p.FastestFalls = portrait.Falls{c.f, 1 - (1-c.f)*(1-c.f), 1 - (1-c.f)*(1-c.f)*(1-c.f)}
		if c.name == "little is no level" {
			w.p.Level = 600
		}
		w.recent(c.recent...)
		if tg := w.size(); (tg.Held == HeldFall) != c.held {
			t.Errorf("%s: held %q: %s", c.name, tg.Held, tg.Why())
		}
	}
	// After a silence the last level before it is the measure, and what is usual at this time.
	for _, c := range []struct {
		yesterday float64
		held      bool
	}{{200, true}, {110, false}} {
		w := falling(8, 4)
		w.p.FastestFalls = portrait.Falls{0.2, 0.3, 0.3}
		values := slices.Repeat([]float64{c.yesterday}, 24*60+40)
		for i := range 40 {
			values[24*60+i] = 200 // up to half an hour ago
			if i >= 10 {
				values[24*60+i] = math.NaN()
			}
		}
		w.recent(values...)
		w.p.Quality.LastSample = w.now.Add(-30 * time.Minute)
		if tg := w.size(); (tg.Held == HeldFall) != c.held {
			t.Errorf("half of the load after a silence, yesterday %g: held %q: %s", c.yesterday, tg.Held, tg.Why())
		}
	}
	// The forecast stays the floor while a fault is held: it may ask for more.
	w := falling(8, 4)
	w.recent(steady(900, 16)...)
	w.tide(250)
	if tg := w.size(); tg.Replicas != 10 {
		t.Errorf("replicas %d, want the forecast's 10: %s", tg.Replicas, tg.Why())
	}
}

func TestFallBacksAskForMoreAndNeverForLess(t *testing.T) {
	// The last good value while it is young.
	w := calm(8)
	w.svc.Metrics = []fleet.Metric{{Name: "queue", Type: fleet.MetricQuery, Target: 10}}
	w.live.Signals["queue"] = fleet.KnownAt(150.0, noon.Add(-4*time.Minute))
	tg := w.size()
	if tg.Replicas != 15 || !slices.Contains(tg.Missing, Missing{MissingMetric, "queue"}) ||
		!strings.Contains(tg.Why().Text(), "last good value of 4m ago") {
		t.Errorf("replicas %d missing %v: %s", tg.Replicas, tg.Missing, tg.Why())
	}
	// Then the same time yesterday, for signals of load.
	w = calm(8)
	w.live.CPU = nil
	day := slices.Repeat([]float64{100}, 1440)
	day[0] = 300 // exactly a day ago: 300/25 = 12
	w.recent(day...)
	tg = w.size()
	if p := part(t, tg, "reactive:cpu"); p.Replicas.Value != 12 ||
		!strings.Contains(p.Why.Text(), "the same time yesterday stands in (300/s)") || tg.Replicas != 12 {
		t.Errorf("%+v: %s", p, tg.Why())
	}
	// Then nothing: hold.
	w.live.Load.At = noon.Add(-time.Hour)
	w.recent(100)
	w.remember(4)
	w.tide(100)
	tg = w.size()
	if tg.Replicas != 8 || part(t, tg, "reactive:cpu").Replicas.OK ||
		!slices.Equal(tg.Missing, []Missing{{MissingLoad, ""}, {MissingMetric, "cpu"}}) {
		t.Errorf("replicas %d missing %v: %s", tg.Replicas, tg.Missing, tg.Why())
	}
}

// A scale-in uses a fifth of what ran a minute ago, or by two pods, whatever is wanted; and the count of a minute ago,
// not of the last cycle, is what the fifth is of.
func TestRateOfScaleIn(t *testing.T) {
	for _, c := range []struct {
		name              string
		run, wanted, from int32
		want              int32
	}{
		{"a fifth of a large service", 100, 10, 100, 80},
		{"two pods of a small one", 5, 2, 5, 3},
		{"no further than wanted", 100, 85, 100, 85},
		{"what left within the minute counts", 85, 10, 100, 80},
		{"the minute's share is used up", 80, 10, 100, 80},
	} {
		w := falling(c.run, c.wanted)
		w.svc.Max = 200
		w.o.Defaults.ShrinkShare = 0
		w.o.History = append(w.o.History, Decision{At: w.now.Add(-30 * time.Second), Replicas: c.wanted, From: c.from})
		if tg := w.size(); tg.Replicas != c.want {
			t.Errorf("%s: %d, want %d: %s", c.name, tg.Replicas, c.want, tg.Why())
		}
	}
}

// A metric is a live signal whatever its name: one called forecast that is missing is not taken for a forecast that
// is not trusted.
func TestMetricCalledForecast(t *testing.T) {
	w := falling(8, 4)
	w.svc.Metrics = []fleet.Metric{{Name: "forecast", Type: fleet.MetricQuery, Target: 10}}
	tg := w.size()
	want := []Missing{{MissingMetric, "forecast"}}
	if tg.Held != HeldStale || !slices.Equal(tg.LiveMissing(), want) || !slices.Equal(tg.Missing, want) {
		t.Errorf("held by %q, missing %v, live %v: %s", tg.Held, tg.Missing, tg.LiveMissing(), tg.Why())
	}
}
