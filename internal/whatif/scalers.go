package whatif

import (
	"fmt"
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
)

// Fixed is a number of replicas that never changes.
type Fixed int32

// Replicas implements [Scaler].
func (f Fixed) Replicas(*World) int32 { return int32(f) }

// Springtide is the real sizing of a service, as it is under Auto with a pool that is never full.
type Springtide struct {
	// Service is what is sized; its facts of the moment are set here.
	Service fleet.Service
	history []hpa.Decision
	recent  []float64
}

// Replicas implements [Scaler].
func (s *Springtide) Replicas(w *World) int32 {
	svc := &s.Service
	svc.Pods, svc.Desired, svc.TargetFound, svc.Mode = w.Pods, fleet.KnownAt(w.Desired, w.Now), true, fleet.Auto
	svc.Actuation, svc.Pause, svc.Blocked = fleet.ByScale, fleet.PauseNone, fleet.Problem{}
	demand := hpa.Ask(svc, w.now.portrait, w.now.tide, s.live(w), w.Now,
		hpa.Options{History: s.history, WatchedSince: w.know.From.Add(-day)})
	t := demand.Within(hpa.Bounds{})
	s.remember(t.Decision, w.Now)
	return t.Replicas
}

// rememberFor is how far back decisions are looked at: the longest stabilization that an operator may state.
const rememberFor = time.Hour

func (s *Springtide) remember(d hpa.Decision, now time.Time) {
	first := 0
	for first < len(s.history) && now.Sub(s.history[first].At) > rememberFor {
		first++
	}
	s.history = append(s.history[first:], d)
}

// steadyOver is how many sizings the steady load is the mean of.
const steadyOver = 5

// live is what would be measured: the load as it was, and the CPU and the latency that it makes of the replicas.
func (s *Springtide) live(w *World) hpa.Live {
	p := &w.now.portrait
	out := hpa.Live{LoadSignal: p.Signal, Window: time.Minute, Signals: map[string]fleet.Known[float64]{}}
	if !known(w.Load) {
		return out
	}
	if s.recent = append(s.recent, w.Load); len(s.recent) > steadyOver {
		s.recent = s.recent[1:]
	}
	out.Load, out.Steady = fleet.KnownAt(w.Load, w.Now), fleet.KnownAt(mean(s.recent), w.Now)
	for _, m := range s.Service.Metrics {
		if m.Type == fleet.MetricRequests && p.Signal == portrait.Requests {
			out.Signals[m.Name] = out.Load
		}
	}
	if w.Ready == 0 {
		return out
	}
	if limit := s.Service.SLO.LatencyLimit(); limit > 0 {
		out.Latency = fleet.KnownAt(latencyAt(limit, w.Load/float64(w.Ready)/w.know.Limit), w.Now)
	}
	util := portrait.UtilisationAt(p, s.Service.Request, w.Load/float64(w.Ready))
	if !util.OK {
		return out
	}
	cpu := fleet.FromCores(util.Value * s.Service.Request.CPU.Cores())
	out.CPU = make(map[fleet.Name]fleet.Known[fleet.MilliCPU], w.Ready)
	for i := range w.Pods {
		if w.Pods[i].Ready {
			out.CPU[w.Pods[i].Name] = fleet.KnownAt(cpu, w.Now)
		}
	}
	return out
}

// latencyAt is a latency below its limit at a load below what is carried, and above it beyond: all that is known of it.
func latencyAt(limit time.Duration, load float64) time.Duration {
	if load <= 1 {
		return limit / 2
	}
	return time.Duration(float64(limit) * min(load*load, 4))
}

func mean(of []float64) float64 {
	sum := 0.0
	for _, v := range of {
		sum += v
	}
	return sum / float64(len(of))
}

// Autoscaler is what sizes a service today: a HorizontalPodAutoscaler, a ScaledObject that KEDA hands to one, or cron
// jobs that set floors. Its arithmetic is upstream's, with upstream's defaults.
type Autoscaler struct {
	Request  fleet.Resources
	Min, Max int32
	// Metrics are the CPU utilization and the requests a replica that it holds. Others are not played.
	Metrics []fleet.Metric
	// Windows raise the minimum while they are open.
	Windows []fleet.Window
	// Stabilization is how long a scale-in waits; five minutes where it is 0.
	Stabilization time.Duration

	past []recommendation
}

type recommendation struct {
	at       time.Time
	replicas int32
}

// The HorizontalPodAutoscaler's own figures.
const (
	tolerance     = 0.1
	stabilization = 5 * time.Minute
	// young is how long after its start a pod's CPU may be that of its start-up.
	young = 5 * time.Minute
	// sampled is what a sample of the CPU averages over.
	sampled = time.Minute
)

// Replicas implements [Scaler].
func (a *Autoscaler) Replicas(w *World) int32 {
	least := a.least(w.Now)
	want := int32(0)
	for i := range a.Metrics {
		want = max(want, a.ask(&a.Metrics[i], w))
	}
	want = min(max(want, least), a.Max)
	a.past = append(a.past, recommendation{w.Now, want})
	window := a.Stabilization
	if window == 0 {
		window = stabilization
	}
	for len(a.past) > 1 && w.Now.Sub(a.past[0].at) > window {
		a.past = a.past[1:]
	}
	if want >= w.Desired {
		return max(min(want, max(2*w.Desired, w.Desired+4)), least)
	}
	for _, r := range a.past {
		want = max(want, r.replicas)
	}
	return min(want, w.Desired)
}

// least is the minimum of now.
func (a *Autoscaler) least(now time.Time) int32 {
	least := a.Min
	for i := range a.Windows {
		if _, open := hpa.OpenUntil(&a.Windows[i], now); open {
			least = max(least, a.Windows[i].Min)
		}
	}
	return min(least, a.Max)
}

// ask is what one metric asks for; the current number where it cannot judge. The arithmetic is that of the reactive
// part of each service, which is upstream's.
func (a *Autoscaler) ask(m *fleet.Metric, w *World) int32 {
	if !known(w.Load) {
		return w.Desired
	}
	p := &w.now.portrait
	switch {
	case m.Type == fleet.MetricRequests && p.Signal == portrait.Requests && m.Target > 0:
		return hpa.ReactiveValue(w.Load, m.Target, w.Desired, tolerance)
	case m.Type != fleet.MetricCPU || w.Ready == 0 || !(m.Target > 0):
		return w.Desired
	}
	util := portrait.UtilisationAt(p, a.Request, w.Load/float64(w.Ready))
	if !util.OK {
		return w.Desired
	}
	old := w.settled()
	n, ok := hpa.Reactive(hpa.Alike{Request: a.Request.CPU, Measured: old, Unready: len(w.Pods) - old,
		Used: fleet.FromCores(util.Value * a.Request.CPU.Cores())}, w.Desired, m.Target, tolerance)
	if !ok {
		return w.Desired
	}
	return n
}

// settled is how many pods upstream takes for ready: one of the last five minutes needs a sample that began when it
// was.
func (w *World) settled() int {
	n := 0
	for i := range w.Pods {
		x := &w.Pods[i]
		if x.Ready && (w.Now.Sub(x.Created) > young || w.Now.Sub(x.ReadySince.Value) >= sampled) {
			n++
		}
	}
	return n
}

// Today is what sizes a service that Springtide does not: its HorizontalPodAutoscaler where it has one, with the
// service's own metrics, else a static count of last week's peak and a fifth.
func Today(svc *fleet.Service, k *Knowledge) (string, Scaler) {
	if h := svc.HPA; h != nil {
		return "HorizontalPodAutoscaler " + h.Name, &Autoscaler{Request: svc.Request, Min: h.Min, Max: h.Max,
			Metrics: svc.Metrics, Stabilization: svc.Behavior.Down.Stabilization.Value}
	}
	n := k.Static()
	return fmt.Sprintf("static, %d replicas (last week's peak and a fifth)", n), Fixed(n)
}

// staticMargin is what static provisioning keeps above the peak of the week before.
const staticMargin = 1.2

// Static is the count that an operator without an autoscaler would have provisioned when the play begins.
func (k *Knowledge) Static() int32 {
	return max(int32(math.Ceil(staticMargin*k.Peak(k.From.Add(-Learns), k.From)/k.Limit-1e-9)), 1)
}
