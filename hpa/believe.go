package hpa

import (
	"maps"
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
		if p.Node == "" || p.Phase != fleet.PodRunning || p.Standby.OK {
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
		s.limits = fleet.SatAdd(s.limits, p.CPULimit)
		s.open = s.open || p.CPULimit <= 0
	}
	var sum fleet.MilliCPU
	for _, id := range order {
		s := on[id]
		if s.open || s.limits > s.most {
			sum = fleet.SatAdd(sum, s.most)
		} else {
			sum = fleet.SatAdd(sum, s.limits)
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
	b := newBelief(svc, p, &live, now, coresMost)
	var u []reason.Reason
	if b.refusesLoad() {
		if p.Signal == portrait.Requests {
			u = append(u, reason.Of(reason.LoadBeyondMost, number(live.Load.Value), svc.Ready()))
		}
		live.Load = fleet.Known[float64]{}
	}
	live.Signals = b.believed()
	if b.wrong {
		u = append([]reason.Reason{reason.Of(reason.CPUBeyondMost, number(b.used), number(coresMost))}, u...)
		live.CPU, live.Levels, live.Latency = nil, nil, fleet.Known[time.Duration]{}
	}
	live.Unconfirmed = u
	return live
}

// belief is one service when it is judged which of its samples can be true.
type belief struct {
	svc       *fleet.Service
	p         *portrait.Portrait
	live      *Live
	coresMost float64
	used      float64 // the cores of all samples
	// wrong says that the CPU cannot be true, borne that the pods bear out a crowd.
	wrong, borne bool
}

func newBelief(svc *fleet.Service, p *portrait.Portrait, live *Live, now time.Time, coresMost float64) *belief {
	b := &belief{svc: svc, p: p, live: live, coresMost: coresMost}
	var f recent
	for i := range svc.Pods {
		k := live.CPU[svc.Pods[i].Name]
		if !k.OK || k.Value < 0 || svc.Pods[i].Standby.OK { // a pod in standby bears nothing out
			continue
		}
		b.used += k.Value.Cores()
		if now.Sub(k.At) <= signal.FreshFor(live.Window) {
			f.used += k.Value.Cores()
			f.requested += svc.Pods[i].Requests.CPU.Cores()
			f.pods++
		}
	}
	b.wrong = coresMost > 0 && b.used > portrait.BeyondCores*coresMost
	if !b.wrong {
		b.borne = f.bears(svc, p) || live.slow(svc, now) || live.queues(svc, now)
	}
	return b
}

// couldServe reports whether the ready replicas could have served a load. A value that is no load says nothing against
// it, and neither do no replicas.
func (b *belief) couldServe(load float64) bool {
	ready := float64(b.svc.Ready())
	if !signal.Sound(load) || ready == 0 {
		return true
	}
	return b.p.CouldServe(load, ready, b.coresMost)
}

// refusesLoad reports whether the load is more than could have been served, and nothing bears it out. CPU is borne
// out by nothing.
func (b *belief) refusesLoad() bool {
	load := b.live.Load
	if !load.OK || b.couldServe(load.Value) {
		return false
	}
	switch b.live.LoadSignal {
	case "", b.p.Signal:
		return !b.borne || b.p.Signal == portrait.CPU
	}
	return false
}

// refuses reports whether a value of one of the service's metrics cannot be true. A query of the tenant's counts
// anything: it is believed as far as its
// source is.
func (b *belief) refuses(m *fleet.Metric, v float64) bool {
	switch m.Type {
	case fleet.MetricQuery:
		return b.wrong
	case fleet.MetricRequests:
		return b.p.Signal == portrait.Requests && !b.borne && !b.couldServe(v)
	}
	return false
}

// believed are the totals of the service's metrics without those that are refused.
func (b *belief) believed() map[string]fleet.Known[float64] {
	out := b.live.Signals
	for i := range b.svc.Metrics {
		m := &b.svc.Metrics[i]
		k, ok := b.live.Signals[m.Name]
		if !ok || !b.refuses(m, k.Value) {
			continue
		}
		if len(out) == len(b.live.Signals) {
			out = maps.Clone(out) // the map is the caller's
		}
		delete(out, m.Name)
	}
	return out
}

// recent is the CPU of the pods that were measured of late. A sample of before a crowd contradicts nothing.
type recent struct{ used, requested, pods float64 }

// bears reports whether the CPU shows a crowd, or could not show one. Each replica of a true one carries more than ever, so it uses more than the largest
// rate that one carried costs, also where that is far below the target: a service may ask for more than it uses, wait for others, or have one thread. Where no
// CPU was measured, or it is not known what a request costs, CPU contradicts nothing.
func (f recent) bears(svc *fleet.Service, p *portrait.Portrait) bool {
	advised := p.Advice.CPU
	switch {
	case f.pods == 0, f.used > f.requested*UtilisationTarget(svc)*(1+tolerancesOf(svc, Standard().Tolerance).up):
		return true
	case advised.OK && f.used > f.pods*advised.Value.Target:
		return true
	case p.Signal != portrait.Requests, !(p.Carried > 0):
		return false
	case !p.CPUPerLoad.OK:
		return true
	}
	return f.used > f.pods*(max(p.CPUIdle.Value, 0)+beyondCost*p.CPUPerLoad.Value*p.Carried)
}

// beyondCost distinguishes a replica that carries more than ever from one at its largest rate, whose CPU is uncertain.
const beyondCost = 1.25

// queues reports whether a fresh query of the service's, such as the length of a queue, lies above its target.
func (l *Live) queues(svc *fleet.Service, now time.Time) bool {
	ready := float64(max(svc.Ready(), 1))
	for i := range svc.Metrics {
		m := &svc.Metrics[i]
		if m.Type != fleet.MetricQuery || !(m.Target > 0) {
			continue
		}
		if k := l.Signals[m.Name]; l.fresh(k, now) && k.Value > m.Target*ready*(1+tolerancesOf(svc,
			Standard().Tolerance).up) {
			return true
		}
	}
	return false
}

func (l *Live) fresh(k fleet.Known[float64], now time.Time) bool {
	return k.OK && signal.Sound(k.Value) && now.Sub(k.At) <= signal.FreshFor(l.Window)
}

// slow reports whether a fresh latency lies above its limit.
func (l *Live) slow(svc *fleet.Service, now time.Time) bool {
	k, limit := l.Latency, svc.SLO.LatencyLimit()
	if limit <= 0 || !k.OK || now.Sub(k.At) > Standard().LastGood {
		return false
	}
	return k.Value > limit
}
