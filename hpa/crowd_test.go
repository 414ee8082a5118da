package hpa

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// A true crowd need not drive the CPU above its target: a service may wait for others, or ask for more CPU than it
// uses. The use of its pods then shows that each carries more than ever, or nothing shows anything; either way the
// crowd is answered.
func TestACrowdBelowTheCPUTargetIsBelieved(t *testing.T) {
	node := func(fleet.NodeID) *fleet.Node { return &fleet.Node{Allocatable: fleet.Resources{CPU: 64000}} }
	for name, c := range map[string]struct {
		change func(w *world)
		refuse bool
	}{
		"each request costs as ever":            {change: func(w *world) { w.cpu(160) }},
		"it saturates at one thread":            {change: func(w *world) { w.cpu(140) }},
		"launched after a day of probes":        {change: func(w *world) { w.p.Carried, w.p.CPUPerLoad.Value, w.p.CPUIdle.Value = 0.1, 0.2, 0; w.cpu(160) }},
		"in its first hour, without a cost":     {change: func(w *world) { w.p.CPUPerLoad, w.p.CPUIdle = fleet.Known[float64]{}, fleet.Known[float64]{} }},
		"one replica":                           {change: func(w *world) { w.pods(1); w.cpu(160); w.load(60) }},
		"its CPU is that of before the crowd":   {change: func(w *world) { stamp(w, 4*time.Minute) }},
		"a queue grows":                         {change: func(w *world) { w.queue(1000) }},
		"requests alone, the CPU stays":         {change: func(*world) {}, refuse: true},
		"requests alone, a queue at its target": {change: func(w *world) { w.queue(80) }, refuse: true},
		"requests alone, a queue that was large, once": {change: func(w *world) {
			w.queue(1000)
			s := w.live.Signals["queue"]
			s.At = w.now.Add(-time.Hour)
			w.live.Signals["queue"] = s
		}, refuse: true},
	} {
		w := calm(8)
		w.svc.SLO = fleet.Levels(fleet.CPU(0.6))
		w.svc.Metrics = []fleet.Metric{{Name: "rps", Type: fleet.MetricRequests, Target: 25}}
		w.p.Carried, w.p.CPUPerLoad.Value, w.p.CPUIdle.Value = 26, 0.002, 0.05
		w.cpu(90)
		w.load(8 * 60)
		w.live.Latency = fleet.Known[time.Duration]{}
		for i := range w.svc.Pods {
			w.svc.Pods[i].Node = "n"
		}
		c.change(w)
		for i := range w.svc.Pods {
			w.svc.Pods[i].Node = "n"
		}
		got := Believe(&w.svc, &w.p, w.live, w.now, CoresMost(&w.svc, node))
		if refused := !got.Load.OK; refused != c.refuse {
			t.Errorf("%s: refused %v, want %v: %q", name, refused, c.refuse, got.Unconfirmed)
		}
	}
}

func stamp(w *world, age time.Duration) {
	for name, k := range w.live.CPU {
		k.At = w.now.Add(-age)
		w.live.CPU[name] = k
	}
}

func (w *world) queue(v float64) {
	w.svc.Metrics = append(w.svc.Metrics, fleet.Metric{Name: "queue", Type: fleet.MetricQuery, Target: 10})
	w.signal("queue", v)
}
