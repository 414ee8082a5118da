package hpa

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

// TestBoundsFollowTheWindow: live rates over a longer window come from samples further apart, so that older ones are fresh, replicas are asked
// for earlier, and pods ready for less than the window are young.
func TestBoundsFollowTheWindow(t *testing.T) {
	for _, c := range []struct {
		window, age time.Duration
		fresh       bool
	}{
		{0, 150 * time.Second, true}, {0, 151 * time.Second, false}, {time.Minute, 151 * time.Second, false},
		{4 * time.Minute, 151 * time.Second, true}, {4 * time.Minute, 4*time.Minute + 31*time.Second, false},
	} {
		w := calm(4)
		w.live.Window = c.window
		w.live.Load.At = noon.Add(-c.age)
		if got := w.size(); got.DataFresh != c.fresh {
			t.Errorf("window %v: a load of %v ago is fresh: %v (missing %v), want %v", c.window, c.age, got.DataFresh, got.Missing, c.fresh)
		}
	}
	w := calm(4)
	short := newSizer(&w.svc, &w.p, &w.t, &w.live, w.now, w.o)
	w.live.Window = 4 * time.Minute
	long := newSizer(&w.svc, &w.p, &w.t, &w.live, w.now, w.o)
	if more := long.lead - short.lead; more != 135*time.Second {
		t.Errorf("the lead is %v longer: want 90 s of the window and 45 s of the interval", more)
	}
	if long.o.Defaults.LastGood < long.o.MaxAge || long.o.Defaults.FallReach <= short.o.Defaults.FallReach || long.o.Defaults.CPUWindow != 4*time.Minute {
		t.Errorf("last good %v, fall reach %v, CPU window %v", long.o.Defaults.LastGood, long.o.Defaults.FallReach, long.o.Defaults.CPUWindow)
	}
}

// TestLatencyWithoutASource: a latency level of which nothing exports requests is sized by CPU, is fresh, and says so. One that exported them
// before lacks a signal.
func TestLatencyWithoutASource(t *testing.T) {
	w := calm(4)
	w.live.Latency = fleet.Known[time.Duration]{}
	w.live.Load, w.live.LoadSignal = fleet.KnownAt(2.0, noon), portrait.CPU
	if got := w.size(); got.Unmeasured || got.DataFresh {
		t.Errorf("a portrait of requests whose requests are gone: unmeasured %v, missing %v; want stale data", got.Unmeasured, got.Missing)
	}
	w.p.Signal, w.t.Signal = portrait.CPU, portrait.CPU
	w.tide(1) // of the CPU
	w.cpu(200)
	w.remember(2)
	got := w.size()
	if !got.Unmeasured || !got.DataFresh {
		t.Errorf("unmeasured %v, missing %v: want fresh without a latency", got.Unmeasured, got.Missing)
	}
	if !slices.ContainsFunc(got.Parts, func(p Part) bool { return p.String() == "reactive:cpu" && p.Replicas.OK }) {
		t.Errorf("%+v: want CPU to size it", got.Parts)
	}
	if got.Replicas >= 4 {
		t.Errorf("%d replicas, %s: want a scale-in", got.Replicas, got.Why())
	}
}
