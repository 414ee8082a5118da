package hpa

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/signal"
)

// CoresMost is the CPU, in cores, that the running pods of a service can be given: each no more than its limit, and those of one machine no more than
// the machine has. It is 0 where that is not known.
func CoresMost(svc *fleet.Service, node func(fleet.NodeID) *fleet.Node) float64 {
	type share struct {
		most, limits fleet.MilliCPU
		open         bool // a pod without a limit is there
	}
	var order []fleet.NodeID
	on := map[fleet.NodeID]*share{}
	for i := range svc.Pods {
		p := &svc.Pods[i]
		if p.Node == "" || p.Phase != fleet.PodRunning {
			continue
		}
		s := on[p.Node]
		if s == nil {
			n := node(p.Node)
			if n == nil || n.Allocatable.CPU <= 0 {
				return 0
			}
			s = &share{most: n.Allocatable.CPU}
			on[p.Node], order = s, append(order, p.Node)
		}
		s.limits += p.CPULimit
		s.open = s.open || p.CPULimit <= 0
	}
	var sum fleet.MilliCPU
	for _, id := range order {
		s := on[id]
		if s.open || s.limits > s.most {
			sum += s.most
		} else {
			sum += s.limits
		}
	}
	return sum.Cores()
}

// Believe takes out of what was just measured of a service what its ready replicas could not have served, and says so in [Live].Unconfirmed. coresMost is
// the CPU that they can be given.
//
// CPU beyond that is no measurement at all. A rate of requests beyond what they could have served (see [portrait.Portrait.CouldServe]) may be a crowd,
// where what counts the requests stands before the pods: then the pods bear it out, by their CPU (see bears), by a latency above its limit or by a
// query above its target, and it is answered like any rise, at the rate of the reactive parts. While they do not, it is unknown like a value that is missing: nothing scales in, and the
// forecast and the other signals stand. Of a source whose CPU cannot be true, nothing else bears anything out.
func Believe(svc *fleet.Service, p *portrait.Portrait, live Live, now time.Time, coresMost float64) Live {
	ready := float64(svc.Ready())
	used := 0.0
	var f recent
	for i := range svc.Pods {
		k := live.CPU[svc.Pods[i].Name]
		if !k.OK || k.Value < 0 {
			continue
		}
		used += k.Value.Cores()
		if now.Sub(k.At) <= signal.FreshFor(live.Window) {
			f.used += k.Value.Cores()
			f.requested += svc.Pods[i].Requests.CPU.Cores()
			f.pods++
		}
	}
	could := func(load float64) bool {
		return !signal.Sound(load) || !(ready > 0) || p.CouldServe(load, ready, coresMost)
	}
	wrong := coresMost > 0 && used > portrait.BeyondCores*coresMost
	borne := !wrong && (f.bears(svc, p) || live.slow(svc, now) || live.queues(svc, now))
	var u []reason.Reason
	if wrong {
		u = append(u, reason.Of(reason.CPUBeyondMost, number(used), number(coresMost)))
		live.CPU = nil
	}
	ours := live.LoadSignal == "" || live.LoadSignal == p.Signal
	if load := live.Load; ours && load.OK && !could(load.Value) && (p.Signal == portrait.CPU || !borne) {
		if p.Signal == portrait.Requests {
			u = append(u, reason.Of(reason.LoadBeyondMost, number(load.Value), svc.Ready()))
		}
		live.Load = fleet.Known[float64]{}
	}
	var signals map[string]fleet.Known[float64]
	for i := range svc.Metrics {
		m := &svc.Metrics[i]
		k, ok := live.Signals[m.Name]
		// A query of the tenant's counts anything: it is believed as far as its source is.
		lies := m.Type == fleet.MetricRequests && p.Signal == portrait.Requests && !could(k.Value) && !borne || m.Type == fleet.MetricQuery && wrong
		if !ok || !lies {
			continue
		}
		if signals == nil {
			signals = make(map[string]fleet.Known[float64], len(live.Signals))
			for name, v := range live.Signals {
				signals[name] = v
			}
			live.Signals = signals
		}
		delete(signals, m.Name)
	}
	if wrong {
		live.Latency = fleet.Known[time.Duration]{}
	}
	live.Unconfirmed = u
	return live
}

// recent is the CPU of the pods that were measured of late. A sample of before a crowd contradicts nothing.
type recent struct{ used, requested, pods float64 }

// bears reports whether the CPU shows a crowd, or could not show one. Each replica of a true one carries more than ever, so it uses more than the largest
// rate that one carried costs, also where that is far below the target: a service may ask for more than it uses, wait for others, or have one thread. Where no
// CPU was measured, or it is not known what a request costs, CPU contradicts nothing.
func (f recent) bears(svc *fleet.Service, p *portrait.Portrait) bool {
	if f.pods == 0 || f.used > f.requested*UtilisationTarget(svc)*(1+svc.Tolerance) || p.Advice.CPU.OK && f.used > f.pods*p.Advice.CPU.Value.Target {
		return true
	}
	if p.Signal != portrait.Requests || !(p.Carried > 0) {
		return false
	}
	return !p.CPUPerLoad.OK || f.used > f.pods*(max(p.CPUIdle.Value, 0)+beyondCost*p.CPUPerLoad.Value*p.Carried)
}

// beyondCost distinguishes a replica that carries more than ever from one at its largest rate, whose CPU is uncertain.
const beyondCost = 1.25

// queues reports whether a fresh query of the service's, such as the length of a queue, lies above its target.
func (l *Live) queues(svc *fleet.Service, now time.Time) bool {
	return slices.ContainsFunc(svc.Metrics, func(m fleet.Metric) bool {
		k := l.Signals[m.Name]
		return m.Type == fleet.MetricQuery && m.Target > 0 && k.OK && signal.Sound(k.Value) && now.Sub(k.At) <= signal.FreshFor(l.Window) &&
			k.Value > m.Target*float64(max(svc.Ready(), 1))*(1+svc.Tolerance)
	})
}

// slow reports whether a fresh latency lies above its limit.
func (l *Live) slow(svc *fleet.Service, now time.Time) bool {
	k := l.Latency
	return svc.SLO.LatencyLimit() > 0 && k.OK && k.Value > svc.SLO.LatencyLimit() && now.Sub(k.At) <= Standard().LastGood
}
