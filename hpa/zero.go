package hpa

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/signal"
)

// idleShare is the part of what one replica carries below which a forecast, or a CPU, says nothing of work: an idle
// process uses some CPU, and a high quantile of a quiet night is seldom nothing. Real arrivals are measured without
// pods, and each of them keeps a replica or wakes one.
const idleShare = 0.1

// requestsAtZero names the requests that an ingress counts, whether pods answer them or not.
const requestsAtZero = "requests"

// partArrivals is the part of a service that scales to zero which keeps a replica while anything arrives.
const partArrivals = "arrivals"

// ReadAtZero names the signals of a service that are read while it has no pods: its queries, work that arrives or
// waits, and requests that an ingress counts. They alone can wake it.
func ReadAtZero(svc *fleet.Service) []string {
	var out []string
	for i := range svc.Metrics {
		if m := &svc.Metrics[i]; m.Type == fleet.MetricQuery && m.Target > 0 {
			out = append(out, m.Name)
		}
	}
	atIngress := false
	for i := range svc.SLO.Levels {
		l := &svc.SLO.Levels[i]
		atIngress = atIngress || l.Source.AtIngress()
		if (l.Kind == fleet.LevelThroughput || l.Kind == fleet.LevelBacklog) && l.Source.Query != "" {
			out = append(out, l.Name)
		}
	}
	if atIngress {
		out = append(out, requestsAtZero)
	}
	return out
}

// Zero says whether a service scales to zero.
type Zero string

// Whether a service whose minimum is 0 scales to it. Unless it does, one replica stays.
const (
	ZeroNotAsked  Zero = ""           // its minimum is above 0
	ZeroAllowed   Zero = "Allowed"    // a signal that needs no pod wakes it
	ZeroUnread    Zero = "Unread"     // no signal is read while it has no pods
	ZeroNotServed Zero = "Autoscaler" // its HorizontalPodAutoscaler has minReplicas above 0
)

// ZeroOf says whether a service scales to zero.
func ZeroOf(svc *fleet.Service) Zero {
	switch {
	case svc.Min > 0:
		return ZeroNotAsked
	case own(svc) > 0:
		return ZeroNotServed
	case svc.Actuation != fleet.ByHPAFloor && len(ReadAtZero(svc)) == 0:
		return ZeroUnread // under a HorizontalPodAutoscaler that one's own metric wakes the target
	}
	return ZeroAllowed
}

// own is the minReplicas that the owner of the HorizontalPodAutoscaler under a service wants; 0 where there is none.
func own(svc *fleet.Service) int32 {
	if svc.Actuation != fleet.ByHPAFloor || svc.HPA == nil {
		return 0
	}
	return svc.HPA.Own
}

// least is the operator's minimum, no less than the owner of a HorizontalPodAutoscaler wants, and one replica for a
// service that could not be woken without.
func (z *sizer) least() int32 {
	least := max(z.svc.Min, own(z.svc), 0)
	if z.zero == ZeroUnread {
		least = max(least, 1)
	}
	return least
}

// whyLeast is whose the minimum is.
func (z *sizer) whyLeast() reason.Reason {
	switch {
	case own(z.svc) > z.svc.Min:
		return reason.Of(reason.HPAMinimum, z.svc.HPA.Name)
	case z.zero == ZeroUnread:
		return reason.Of(reason.OneStays)
	}
	return reason.Of(reason.OwnMinimum)
}

// rests reports whether the service stands at zero and is seen all the same: then what its pods would measure is
// nothing, and not missing.
func (z *sizer) rests() bool {
	return z.zero == ZeroAllowed && z.svc.Desired.OK && z.svc.Desired.Value == 0 && z.pods.alive == 0 && z.seen()
}

// seen reports whether every signal that is read without pods is fresh.
func (z *sizer) seen() bool {
	for _, name := range ReadAtZero(z.svc) {
		if z.number(z.withoutPods(name)) != signal.Fresh {
			return false
		}
	}
	return true
}

// withoutPods is the value of a signal that is read without pods.
func (z *sizer) withoutPods(name string) fleet.Known[float64] {
	if v, ok := z.live.Signals[name]; ok {
		return v
	}
	if v, ok := z.live.Levels[name]; ok {
		return v
	}
	if name == requestsAtZero && z.live.Whole && z.live.LoadSignal == portrait.Requests {
		return z.live.Load
	}
	return fleet.Known[float64]{}
}

// idle reports whether a load says nothing of work.
func (z *sizer) idle(load float64) bool {
	return z.zero == ZeroAllowed && z.capacityKnown && load < idleShare*z.capacity
}

// busy reports whether CPU in percent of the requests says that pods work, as on the last job of an empty queue.
func (z *sizer) busy(percent, target int64) bool {
	return float64(percent) >= idleShare*float64(target)
}

// wakePart asks for one replica while anything arrives or waits, however little, and while the last pods still work.
// At the ingress it asks for the replicas that the requests need, since CPU shows them once there are pods alone.
// False for a service that does not scale to zero, or of which no such signal is fresh.
func (z *sizer) wakePart() (Part, bool) {
	if z.zero != ZeroAllowed {
		return Part{}, false
	}
	part := Part{Kind: PartReactive, Name: partArrivals}
	target := percentOf(z.reactiveUtil())
	if u, ok := cpuReplicas(z.pods, z.current, target, z.tolerance); ok && z.busy(u.percent, target) {
		part.Replicas, part.Why = fleet.KnownAt[int32](1, z.now), reason.Of(reason.CPUAt, u.percent,
			len(z.pods.measured), target)
	}
	for _, name := range ReadAtZero(z.svc) {
		k := z.withoutPods(name)
		if z.number(k) != signal.Fresh {
			continue
		}
		n := int32(0)
		if k.Value > 0 {
			n = 1
		}
		if name == requestsAtZero && z.capacityKnown && z.p.Signal == portrait.Requests {
			n = max(n, ceil(k.Value/z.capacity-1e-9))
		}
		if !part.Replicas.OK || n > part.Replicas.Value {
			part.Replicas, part.Why = fleet.KnownAt(n, z.now), reason.Of(reason.ArrivesAtZero, name, number(k.Value))
		}
	}
	return part, part.Replicas.OK
}
