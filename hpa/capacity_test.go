package hpa

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/portrait/capacity"
	"github.com/springtide/springtide/reason"
)

const p99 = "latency-p99"

// carries teaches a portrait that a level holds at a load of a replica, for days.
func carries(p *portrait.Portrait, name string, limit, load float64) {
	set, l := p.Capacity.With(name)
	p.Capacity = set
	for i := range 600 {
		at := noon.Add(time.Duration(i-600) * time.Minute)
		l.Observe(capacity.Minute{At: at, Load: load, Value: 0.9 * limit, CPU: math.NaN()},
			capacity.Terms{Limit: limit, Objective: 0.99})
	}
	l.InForce = l.Capacity(0.99).Low // as weeks of rising by a tenth a day would have it
}

// slow teaches that it breaks at all loads.
func slow(p *portrait.Portrait, name string, limit float64) {
	set, l := p.Capacity.With(name)
	p.Capacity = set
	for i := range 200 {
		load := 10.0
		if i >= 100 {
			load = 5
		}
		l.Observe(capacity.Minute{At: noon.Add(time.Duration(i-200) * time.Minute), Load: load, Value: 3 * limit,
			CPU: math.NaN()}, capacity.Terms{Limit: limit, Objective: 0.99})
	}
}

// By hand, with a cost of 0.02 cores and 0.1 idle: 60 % of a core carry 25 requests a second, all of it 45.
func TestCapacityOf(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(w *world)
		// load and util are what a replica carries, and at which share of its request; level is the basis.
		load, util float64
		level      string
		unknown    reason.Code
	}{
		{"the rule", func(*world) {}, 25, 0.6, "", ""},
		{"a level that carries more", func(w *world) { carries(&w.p, p99, 0.2, 36) }, 37.68, 0.768, p99, ""},
		{"the smallest of two", func(w *world) {
			errors := fleet.Level{Kind: fleet.LevelErrors, Name: "errors", Limit: 0.001}
			w.svc.SLO = fleet.Levels(append(w.svc.SLO.Levels, errors)...)
			carries(&w.p, p99, 0.2, 36)
			carries(&w.p, "errors", 0.001, 20)
		}, 19.79 * 1.05, 0.464, "errors", ""},
		{"no more than the CPU request", func(w *world) { carries(&w.p, p99, 0.2, 80) }, 45, 0.9, p99, ""},
		{"a CPU level that is not learned bounds it", func(w *world) {
			w.svc.SLO = fleet.Levels(append(w.svc.SLO.Levels, fleet.CPU(0.7))...)
			carries(&w.p, p99, 0.2, 36)
		}, 26.5, 0.567, p99, ""},
		{"the operator's figure bounds it", func(w *world) {
			w.svc.Metrics = []fleet.Metric{{Name: "rps", Type: fleet.MetricRequests, Target: 30}}
			carries(&w.p, p99, 0.2, 36)
		}, 30, 0.63, p99, ""},
		{"a level that is not stated", func(w *world) { carries(&w.p, "latency-p50", 0.2, 36) }, 25, 0.6, "", ""},
		{"too little is known", func(w *world) { w.p.Capacity, _ = w.p.Capacity.With(p99) }, 25, 0.6, "",
			reason.LevelNotMeasured},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := calm(8)
			w.p.CPUPerLoad, w.p.CPUIdle = fleet.KnownAt(0.02, noon), fleet.KnownAt(0.1, noon)
			tt.change(w)
			d := Standard()
			c := d.capacityOf(&w.svc, &w.p)
			if !c.known || math.Abs(c.load/tt.load-1) > 0.005 || math.Abs(c.util-tt.util) > 0.005 || c.basis.Level != tt.level {
				t.Errorf("%+v, want %v at %v under %q", c, tt.load, tt.util, tt.level)
			}
			if got := len(c.basis.Unknown); (got > 0) != (tt.unknown != "") || got > 0 && c.basis.Unknown[0].Code != tt.unknown {
				t.Errorf("not known: %v, want %q", c.basis.Unknown, tt.unknown)
			}
		})
	}
}

// The target is sized by the learned capacity, and says by which level.
func TestATargetSaysItsBasis(t *testing.T) {
	w := calm(8)
	before := w.size()
	carries(&w.p, p99, 0.2, before.CapacityPerReplica*1.5)
	tg := w.size()
	if tg.Basis.Level != p99 || !(tg.CapacityPerReplica > 1.4*before.CapacityPerReplica) || tg.Floor >= before.Floor {
		t.Errorf("floor %d by %v, before %d: %+v", tg.Floor, tg.CapacityPerReplica, before.Floor, tg.Basis)
	}
	if f := part(t, tg, "forecast"); !strings.Contains(f.Why.Text(), "a replica under latency-p99") {
		t.Error(f.Why)
	}
	was, is := part(t, before, "reactive:cpu"), part(t, tg, "reactive:cpu")
	if is.Replicas.Value >= was.Replicas.Value {
		t.Errorf("the default CPU part keeps the rule: %+v, it was %+v", is, was)
	}
}

// A latency that breaks at low loads too adds no replicas, and says so.
func TestALatencyThatIsNotByLoad(t *testing.T) {
	w := calm(8)
	w.live.Latency = fleet.KnownAt(600*time.Millisecond, noon)
	if l := part(t, w.size(), "reactive:latency"); l.Replicas.Value <= 8 {
		t.Fatalf("a broken latency asks for %+v", l)
	}
	slow(&w.p, p99, 0.2)
	tg := w.size()
	if l := part(t, tg, "reactive:latency"); l.Replicas.Value != 0 || !l.Replicas.OK {
		t.Errorf("it asks for %+v", l)
	}
	if !slices.Equal(tg.Basis.NotByLoad, []string{p99}) || !strings.Contains(tg.Why().Text(),
		"more replicas do not help") {
		t.Errorf("%+v: %s", tg.Basis, tg.Why())
	}
}

// A utilisation is that of the load which it carries.
func TestUtilisationAt(t *testing.T) {
	w := calm(8)
	for _, signal := range []portrait.Signal{portrait.Requests, portrait.CPU} {
		w.p.Signal = signal
		for _, util := range []float64{0.3, 0.6, 0.9} {
			load := portrait.CapacityPerReplica(w.p, w.svc.Request, util)
			if got := portrait.UtilisationAt(&w.p, w.svc.Request, load.Value); !got.OK || math.Abs(got.Value-util) > 1e-9 {
				t.Errorf("%s at %v: %+v", signal, util, got)
			}
		}
	}
}
