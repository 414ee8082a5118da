package hpa

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/signal"
)

// Observe is what the newest samples of a source say of a service. Package signal adds the totals up; looks is what
// it remembers of this service. A service whose requests are not known is seen by its CPU. Of a service that the
// source was not asked about nothing is known.
func Observe(s *fleet.Service, x *signal.Samples, looks *signal.Looks, now time.Time) Live {
	of, asked := x.Services[s.ID]
	if !asked {
		return Live{}
	}
	l := Live{CPU: cpuOf(s, x), Levels: of.Levels, Latency: latencyOf(s, of.Levels)}
	requests := looks.Requests(s, x, now)
	l.Load, l.LoadSignal, l.Window = requests, portrait.Requests, max(of.CPUWindow, of.RequestsWindow)
	l.Whole = of.Requests.OK
	if !requests.OK {
		l.Load, l.LoadSignal, l.Window = looks.CPU(s, x, now), portrait.CPU, of.CPUWindow
	}
	l.Signals = make(map[string]fleet.Known[float64], len(s.Metrics))
	for _, m := range s.Metrics {
		switch m.Type {
		case fleet.MetricRequests:
			l.Signals[m.Name] = requests
		case fleet.MetricQuery:
			if v, ok := of.Queries[m.Name]; ok {
				l.Signals[m.Name] = v
			}
		}
	}
	return l
}

// latencyOf is the value of the tightest latency.
func latencyOf(s *fleet.Service, levels map[string]fleet.Known[float64]) (out fleet.Known[time.Duration]) {
	l := s.SLO.TightestLatency()
	if l == nil {
		return out
	}
	if v := levels[l.Name]; v.OK {
		out = fleet.KnownAt(time.Duration(math.Round(v.Value*float64(time.Second))), v.At)
	}
	return out
}

// cpuOf is the CPU of a service's pods.
func cpuOf(s *fleet.Service, x *signal.Samples) map[fleet.Name]fleet.Known[fleet.MilliCPU] {
	out := make(map[fleet.Name]fleet.Known[fleet.MilliCPU], len(s.Pods))
	for i := range s.Pods {
		if v, ok := x.CPU[s.Pods[i].Name]; ok {
			out[s.Pods[i].Name] = fleet.KnownAt(fleet.FromCores(v.Value), v.At)
		}
	}
	return out
}
