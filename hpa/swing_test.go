package hpa

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// One low tide is no agreement: it asks for as much during the whole of its five minutes, and the next one may take it back.
func TestALowTideNeedsTheNext(t *testing.T) {
	for _, c := range []struct {
		name   string
		made   time.Duration // how old the tide is
		before int32         // what was asked for until it was made
		want   int32
	}{
		{"at the end of the first low tide", 4*time.Minute + 50*time.Second, 10, 10},
		{"at the end of the second", 4*time.Minute + 50*time.Second, 6, 6},
		{"at the begin of the second", 15 * time.Second, 6, 6},
		{"a low tide that the second confirms with a higher one", 15 * time.Second, 8, 8},
	} {
		w := falling(10, 6)
		w.t.Made, w.t.Step = w.now.Add(-c.made), 5*time.Minute
		w.o.History = nil
		for age := 20 * time.Minute; age > 0; age -= 15 * time.Second {
			d := Decision{At: w.now.Add(-age), Replicas: 6, From: 10}
			if d.At.Before(w.t.Made) {
				d.Replicas = c.before
			}
			w.o.History = append(w.o.History, d)
		}
		if got := w.size(); got.Replicas != c.want {
			t.Errorf("%s: %d replicas, want %d: %s", c.name, got.Replicas, c.want, got.Reason)
		}
	}
}

// ran fills the history: so many replicas for five minutes each, the last of them until now, and one ask all along.
func (w *world) ran(ask int32, counts ...int32) {
	w.o.History = nil
	for age := time.Duration(len(counts)) * 5 * time.Minute; age > 0; age -= time.Minute {
		w.o.History = append(w.o.History, Decision{At: w.now.Add(-age), Replicas: ask, From: counts[len(counts)-1-int((age-1)/(5*time.Minute))]})
	}
}

// scaleIn is a scale-in from what ran last to an ask that all signals agree to, and what comes of it.
type scaleIn struct {
	name     string
	ran      []int32
	to, want int32
}

func (c *scaleIn) check(t *testing.T) {
	t.Helper()
	w := falling(c.ran[len(c.ran)-1], c.to)
	w.svc.Max = 100
	w.cpu(100)
	w.ran(c.to, c.ran...)
	for _, order := range []string{"oldest first", "newest first"} {
		if got := w.size(); got.Replicas != c.want {
			t.Errorf("%s, %s: %d replicas, want %d: %s", c.name, order, got.Replicas, c.want, got.Reason)
		}
		slices.Reverse(w.o.History)
	}
}

// A service that scaled out does not give back a single replica within a quarter of an hour, nor one that scaled in another one; more than that goes as ever, and an
// ebb is followed.
func TestSmallStepsSettle(t *testing.T) {
	for _, c := range []scaleIn{
		{"an ebb", []int32{10, 10, 10}, 9, 9},
		{"one replica, after a scale-out", []int32{9, 10, 10}, 9, 10},
		{"one replica, after a while", []int32{9, 10, 10, 10}, 9, 9},
		{"two replicas of ten", []int32{9, 10, 10}, 8, 8},
		{"one replica of forty", []int32{39, 40, 40}, 39, 40},
		{"three replicas of forty", []int32{39, 40, 40}, 37, 37},
		{"one more, after a scale-in", []int32{11, 11, 10}, 9, 10}, // both go together
		{"two more, after a scale-in", []int32{11, 11, 10}, 8, 8},
		{"one more, a while after a scale-in", []int32{11, 10, 10, 10}, 9, 9},
	} {
		c.check(t)
	}
}

// A scale-out takes the replica that the tide is likely to ask for within minutes along, or a tenth, and never starts for it alone.
func TestAClimbTakesTheNextStep(t *testing.T) {
	for _, c := range []struct {
		name       string
		now, later float64 // the tide, in replicas
		runs, want int32
	}{
		{"a step ahead", 11, 12, 10, 12},
		{"a leap ahead", 11, 19, 10, 12},
		{"a tenth of many", 41, 60, 40, 45},
		{"nothing ahead", 11, 11, 10, 11},
		{"not for it alone", 10, 12, 10, 10},
	} {
		w := calm(c.runs)
		w.svc.Max = 100
		w.remember(c.runs)
		w.load(c.now * 25)
		w.tide(c.now * 25)
		w.cpu(fleet.MilliCPU(600))
		w.latency(50 * time.Millisecond)
		for i := range w.t.Paths[0] {
			if time.Duration(i)*w.t.Step >= 5*time.Minute {
				w.t.Paths[0][i], w.t.Paths[1][i] = c.later*25*0.9, c.later*25
			}
		}
		if got := w.size(); got.Replicas != c.want {
			t.Errorf("%s: %d replicas, want %d: %s", c.name, got.Replicas, c.want, got.Reason)
		}
	}
}

// A scale-in that the load took back holds none after it: neither the same step nor, after a crowd, the way down from five times as much.
func TestADipHoldsNoScaleIn(t *testing.T) {
	for _, c := range []scaleIn{
		{"the same step", []int32{10, 9, 10, 10, 10, 10}, 9, 9},
		{"twice as deep", []int32{10, 9, 10, 10, 10, 10}, 8, 8},
		{"in two steps", []int32{10, 8, 7, 8, 9, 10, 10, 10, 10}, 7, 7},
		{"after a crowd", []int32{10, 9, 10, 50, 50, 50, 50}, 10, 10},
		{"after a crowd of a small service", []int32{3, 2, 3, 6, 6, 6, 6}, 3, 3},
	} {
		c.check(t)
	}
}

// A service with hardly a request has no latency in one minute and some in the next. That is no reason to call the
// latency missing; a service with traffic lacks it.
func TestTooFewRequestsForALatency(t *testing.T) {
	for _, c := range []struct {
		load    float64
		missing bool
	}{{0, false}, {0.01, false}, {0.08, false}, {0.1, true}, {20, true}} {
		w := falling(4, 2)
		w.load(c.load)
		w.live.Latency = fleet.Known[time.Duration]{}
		got := w.size()
		if slices.Contains(got.Missing, "latency") != c.missing || got.DataFresh == c.missing {
			t.Errorf("%v requests a second: missing %v, fresh %v", c.load, got.Missing, got.DataFresh)
		}
	}
}

// Replicas that the tide is likely to ask for again within the hour stay; what comes later is a scale-out of its own, and an ebb is followed.
func TestAScaleInLooksAnHourAhead(t *testing.T) {
	for _, c := range []struct {
		name string
		from time.Duration // when the tide rises to so many replicas
		to   int32
		want int32
	}{
		{"a flat tide", 0, 6, 6},
		{"an ebb that goes on", 30 * time.Minute, 3, 6},
		{"a rise within the hour", 30 * time.Minute, 8, 8},
		{"a rise above what runs", 30 * time.Minute, 20, 10},
		{"a rise after the hour", 90 * time.Minute, 8, 6},
	} {
		w := falling(10, 6)
		for _, path := range w.t.Paths {
			for k := range path {
				if !w.t.Start.Add(time.Duration(k) * w.t.Step).Before(w.now.Add(c.from)) {
					path[k] *= float64(c.to) / 6
				}
			}
		}
		if got := w.size(); got.Replicas != c.want {
			t.Errorf("%s: %d replicas, want %d: %s", c.name, got.Replicas, c.want, got.Reason)
		}
	}
}

// Without the rules that scale a service less often each of them is off: this is what the simulator compares them with.
func TestEagerScalesAtOnce(t *testing.T) {
	later := func(w *world, from time.Duration, n float64) {
		for _, path := range w.t.Paths {
			for k := range path {
				if at := time.Duration(k) * w.t.Step; at >= from {
					path[k] = n * 25
				}
			}
		}
	}
	for _, c := range []struct {
		name           string
		world          func() *world
		standard, want int32
	}{
		{"a single replica after a scale-out", func() *world {
			w := falling(10, 9)
			w.cpu(100)
			w.ran(9, 9, 10, 10)
			return w
		}, 10, 9},
		{"a rise within the hour", func() *world {
			w := falling(10, 6)
			later(w, 30*time.Minute, 8)
			return w
		}, 8, 6},
		{"a rise in ten minutes", func() *world {
			w := calm(10)
			w.svc.Max = 100
			w.remember(10)
			w.load(11 * 25)
			w.tide(11 * 25)
			w.cpu(600)
			later(w, 5*time.Minute, 12)
			return w
		}, 12, 11},
		{"one low tide", func() *world {
			w := falling(10, 6)
			w.t.Made, w.t.Step = w.now.Add(-290*time.Second), 5*time.Minute
			w.o.History = nil
			for age := 20 * time.Minute; age > 0; age -= 15 * time.Second {
				d := Decision{At: w.now.Add(-age), Replicas: 6, From: 10}
				if age > 6*time.Minute {
					d.Replicas = 10
				}
				w.o.History = append(w.o.History, d)
			}
			return w
		}, 10, 6},
	} {
		w := c.world()
		if got := w.size(); got.Replicas != c.standard {
			t.Errorf("%s: %d replicas, want %d: %s", c.name, got.Replicas, c.standard, got.Reason)
		}
		w.o.Defaults = Eager()
		w.o.Defaults.ShrinkShare = 1
		if got := w.size(); got.Replicas != c.want {
			t.Errorf("%s, eager: %d replicas, want %d: %s", c.name, got.Replicas, c.want, got.Reason)
		}
	}
}
