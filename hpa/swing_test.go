package hpa

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

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
			t.Errorf("%s, %s: %d replicas, want %d: %s", c.name, order, got.Replicas, c.want, got.Why())
		}
		slices.Reverse(w.o.History)
	}
}

// A change of size a short time ago holds no scale-in: neither the step that the load took back before, nor a single replica after a scale-out, nor, after a crowd,
// the way down from five times as much.
func TestAChangeOfSizeHoldsNoScaleIn(t *testing.T) {
	for _, c := range []scaleIn{
		{"the same step", []int32{10, 9, 10, 10, 10, 10}, 9, 9},
		{"twice as deep", []int32{10, 9, 10, 10, 10, 10}, 8, 8},
		{"in two steps", []int32{10, 8, 7, 8, 9, 10, 10, 10, 10}, 7, 7},
		{"a single replica after a scale-out", []int32{9, 10, 10}, 9, 9},
		{"a single replica after another", []int32{11, 11, 10}, 9, 9},
		{"a single replica of forty", []int32{39, 40, 40}, 39, 39},
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
		if slices.Contains(got.Missing, Missing{MissingLatency, ""}) != c.missing || got.DataFresh == c.missing {
			t.Errorf("%v requests a second: missing %v, fresh %v", c.load, got.Missing, got.DataFresh)
		}
	}
}
