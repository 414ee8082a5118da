package hpa

import (
	"maps"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/signal"
)

// Requests are the load where they are known, CPU where they are not, each with its window; of a service that the
// source was not asked about nothing is known.
func TestObserve(t *testing.T) {
	now := noon
	name := fleet.Name{Namespace: "shop", Name: "a"}
	s := fleet.Service{ID: "shop/cart", SLO: fleet.Levels(fleet.Latency(0.5, time.Second), fleet.Latency(0.99,
		time.Second)),
		Pods: []fleet.Pod{{Name: name, Ready: true}}, Metrics: []fleet.Metric{
			{Name: "rps", Type: fleet.MetricRequests},
			{Name: "queue", Type: fleet.MetricQuery}, {Name: "silent", Type: fleet.MetricQuery},
		}}
	cpu := map[fleet.Name]fleet.Known[float64]{name: fleet.KnownAt(1.5, now)}
	of := signal.Service{RequestsWindow: 4 * time.Minute, CPUWindow: 2 * time.Minute,
		Levels: map[string]fleet.Known[float64]{"latency-p50": fleet.KnownAt(0.1, now), "latency-p99": fleet.KnownAt(1.0,
			now)},
		Queries: map[string]fleet.Known[float64]{"queue": fleet.KnownAt(7.0, now)}}
	asked := map[fleet.ServiceID]signal.Service{s.ID: of}
	requests := fleet.KnownAt(80.0, now)
	for what, c := range map[string]struct {
		x      signal.Samples
		load   fleet.Known[float64]
		signal portrait.Signal
		window time.Duration
		rps    fleet.Known[float64]
	}{
		"requests": {signal.Samples{CPU: cpu, Requests: map[fleet.Name]fleet.Known[float64]{name: requests}, Services: asked},
			requests, portrait.Requests, 4 * time.Minute, requests},
		"CPU alone": {signal.Samples{CPU: cpu, Services: asked},
			fleet.KnownAt(1.5, now), portrait.CPU, 2 * time.Minute, fleet.Known[float64]{}},
	} {
		l := Observe(&s, &c.x, &signal.Looks{}, now)
		if l.Load != c.load || l.LoadSignal != c.signal || l.Window != c.window || l.Signals["rps"] != c.rps {
			t.Errorf("%s: %+v", what, l)
		}
		if l.CPU[name] != fleet.KnownAt[fleet.MilliCPU](1500, now) || l.Latency != fleet.KnownAt(time.Second, now) ||
			!maps.Equal(l.Levels, of.Levels) {
			t.Errorf("%s: CPU %v, latency %v", what, l.CPU, l.Latency)
		}
		if want := map[string]fleet.Known[float64]{"rps": c.rps, "queue": of.Queries["queue"]}; !maps.Equal(l.Signals, want) {
			t.Errorf("%s: metrics %v, want %v", what, l.Signals, want)
		}
	}
	l := Observe(&s, &signal.Samples{CPU: cpu}, &signal.Looks{}, now)
	if l.Load.OK || len(l.CPU) > 0 || l.LoadSignal != "" {
		t.Errorf("not asked about: %+v", l)
	}
}
