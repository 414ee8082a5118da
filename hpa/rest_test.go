package hpa

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

// TestAtRest: the load of a service at zero is nothing while a fresh signal says so, whatever its forecast asks for.
func TestAtRest(t *testing.T) {
	for name, c := range map[string]struct {
		queue float64
		age   time.Duration
		tide  float64
		want  bool
	}{
		"nothing waits":                    {want: true},
		"nothing waits, and a tide comes":  {tide: 100, want: true},
		"work waits for the first pod":     {queue: 1},
		"the queue was last seen long ago": {age: time.Hour},
	} {
		w := falling(8, 0)
		w.svc.Min, w.svc.Pods, w.svc.Desired = 0, nil, fleet.KnownAt[int32](0, w.now)
		w.svc.Metrics = []fleet.Metric{{Name: "queue", Type: fleet.MetricQuery, Target: 30}}
		w.live = Live{LoadSignal: portrait.CPU, Signals: map[string]fleet.Known[float64]{
			"queue": fleet.KnownAt(c.queue, w.now.Add(-c.age))}}
		w.tide(c.tide)
		if got := w.size().AtRest; got != c.want {
			t.Errorf("%s: at rest %v, want %v", name, got, c.want)
		}
	}
}
