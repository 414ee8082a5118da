package sim

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// The HorizontalPodAutoscaler's own figures.
const (
	tolerance = 0.1
	// stabilise is how many ticks back the largest recommendation holds a scale-in: 300 s.
	stabilise = int32(300 * time.Second / tick)
	// metricTicks is what a metric averages over: 30 s, as metrics-server's window.
	metricTicks = 2
	// youngTicks is how long after its start a pod's sample has to begin once it is ready, or the pod counts as not ready: 300 s.
	youngTicks = int32(300 * time.Second / tick)
)

// ask is what one voice asks for in replicas at a tick, given those that are there; it is 0 where it does not speak.
type ask func(w *World, i int, current int32) int32

// frame is the HorizontalPodAutoscaler around some metrics: the largest ask wins, scale-out is bounded to the larger of
// twice as many and four more each sync, scale-in waits until no metric has asked for more within the stabilisation
// window. Floors are minReplicas that another component moves: they hold at once.
type frame struct {
	metrics []ask
	floors  []ask
	// recommended are each service's recommendations of the last window, by tick.
	recommended [][]int32
}

func newFrame(w *World, metrics, floors []ask) *frame {
	f := &frame{metrics: metrics, floors: floors, recommended: make([][]int32, len(w.services))}
	for i := range f.recommended {
		f.recommended[i] = make([]int32, stabilise)
	}
	return f
}

// Decide implements Policy.
func (f *frame) Decide(w *World) {
	for i := range w.services {
		s := &w.services[i]
		want := int32(0)
		for _, m := range f.metrics {
			want = max(want, m(w, i, s.desired))
		}
		want = max(want, int32(s.Spec.Min))
		past := f.recommended[i]
		past[w.tick%stabilise] = want
		next := want
		if want > s.desired {
			next = min(want, max(2*s.desired, s.desired+4))
		} else {
			for _, r := range past {
				next = max(next, r)
			}
			next = min(next, s.desired)
		}
		for _, m := range f.floors {
			next = max(next, m(w, i, s.desired))
		}
		s.desired = min(next, w.mostReplicas(i))
	}
}

// mostReplicas is the maximum that everybody has: what the whole fleet could hold. A scaler that follows its own counts upwards ends there.
func (w *World) mostReplicas(i int) int32 {
	return int32(w.b.Online * w.b.PerMachine(&w.b.Services[i]))
}

// byCPU is the metric of CPU utilisation: the code of Springtide's reactive part.
func byCPU(target float64) ask {
	return func(w *World, i int, current int32) int32 {
		s := &w.services[i]
		each, _, ok := s.usedBy(w.tick, metricTicks, 0)
		if !ok {
			return current
		}
		young := w.young(s)
		n, ok := hpa.Reactive(hpa.Alike{Request: fleet.MilliCPU(1000 * s.Cores), Used: fleet.FromCores(each), Measured: s.ready - young,
			Unready: s.starting + s.waiting + young}, current, target, tolerance)
		if !ok {
			return current
		}
		return n
	}
}

// young are the ready pods that upstream takes for not ready: of the last 300 s, with a sample that began before they were ready. Without it
// each of them counts with what the others had to carry in its absence, and every scale-out is followed by another.
func (w *World) young(s *service) int {
	n := 0
	for _, id := range s.pods {
		if p := &w.pods[id]; p.ready && p.readyAt > w.tick-metricTicks && p.bound > w.tick-youngTicks {
			n++
		}
	}
	return n
}

// byValue is a metric of a total that is divided by the replicas.
func byValue(target float64) ask {
	return func(w *World, i int, current int32) int32 {
		s := &w.services[i]
		_, all, ok := s.usedBy(w.tick, metricTicks, 0)
		if !ok {
			return current
		}
		return hpa.ReactiveValue(all, target*float64(s.Cores), current, tolerance)
	}
}

// replicasAt are the replicas that carry some cores at a target.
func (s *service) replicasAt(cores, target float64) int32 {
	if math.IsNaN(cores) {
		return 0
	}
	return int32(math.Ceil(cores/(target*float64(s.Cores)) - 1e-9))
}
