package hpa

import (
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/signal"
)

// Basis is what the capacity of a replica is based on.
type Basis struct {
	// Level is the level whose learned capacity is the smallest; empty where none is known and the rule sizes: a CPU
	// utilization, and no more than the operator's own figure.
	Level string
	// Unknown says of each level that states a limit and whose capacity is not known why not.
	Unknown []reason.Reason
	// NotByLoad names the levels that break at low loads too, so that more replicas do not help.
	NotByLoad []string
}

// carried is what one replica carries.
type carried struct {
	// load is in the portrait's signal; util is the CPU utilization, a share of the request, at that load.
	load, util float64
	known      bool
	basis      Basis
}

// capacityOf is what one replica carries: the one place that everything which sizes asks. It is the smallest capacity
// that was learned under the service's levels, else what the rule says.
//
// A learned capacity is used up to the CPU request alone: what a replica takes beyond it is its machine's to give. The
// operator's figures bound it too: a CPU level that is not learned itself, and a Requests metric.
func (d *Defaults) capacityOf(svc *fleet.Service, p *portrait.Portrait) carried {
	c := carried{util: d.utilisation(svc)}
	least := c.basis.learn(svc, p)
	if least == 0 {
		c.load, c.known = ruleFor(svc, p, c.util)
		return c
	}
	most, ok := ruleFor(svc, p, d.mostUtilisation(svc, p))
	if c.load = least; ok {
		c.load = min(least, most)
	}
	if u := portrait.UtilisationAt(p, svc.Request, c.load); u.OK {
		c.util = min(u.Value, 1) * d.UtilisationMargin
	}
	c.known = signal.Sound(c.load) && c.load > 0
	return c
}

// learn finds the smallest capacity of the levels that the service states, 0 where none is known.
func (b *Basis) learn(svc *fleet.Service, p *portrait.Portrait) (least float64) {
	for i := range p.Capacity {
		l := &p.Capacity[i]
		if svc.SLO.Level(l.Name) == nil {
			continue
		}
		if l.NotByLoad() {
			b.NotByLoad = append(b.NotByLoad, l.Name)
		}
		e := l.Capacity(l.Objective)
		switch {
		case e.Load == 0:
			b.Unknown = append(b.Unknown, e.Why)
		case least == 0 || e.Load < least:
			least, b.Level = e.Load, l.Name
		}
	}
	return least
}

// notByLoad reports whether a level breaks at low loads too.
func (b *Basis) notByLoad(l *fleet.Level) bool {
	return l != nil && slices.Contains(b.NotByLoad, l.Name)
}

// mostUtilisation is the CPU utilization up to which a learned capacity is used.
func (d *Defaults) mostUtilisation(svc *fleet.Service, p *portrait.Portrait) float64 {
	cpu := p.Capacity.Of(fleet.LevelNameCPU)
	if limit := svc.SLO.CPULimit(); limit > 0 && (cpu == nil || cpu.InForce == 0) {
		return min(1, limit*d.UtilisationMargin)
	}
	return 1
}

// ruleFor is the load that one replica carries at a CPU utilisation, in the portrait's signal, and no more than the
// operator's own figure, where a Requests metric states one.
func ruleFor(svc *fleet.Service, p *portrait.Portrait, util float64) (float64, bool) {
	learned := portrait.CapacityPerReplica(*p, svc.Request, util)
	out, ok := learned.Value, learned.OK
	for i := range svc.Metrics {
		m := &svc.Metrics[i]
		if p.Signal == portrait.Requests && m.Type == fleet.MetricRequests && m.Target > 0 && (!ok || m.Target < out) {
			out, ok = m.Target, true
		}
	}
	if work := svc.SLO.Level(fleet.LevelNameThroughput); work != nil && work.PerReplica > 0 &&
		p.Signal == portrait.Requests && (!ok || work.PerReplica < out) {
		out, ok = work.PerReplica, true
	}
	return out, ok && signal.Sound(out) && out > 0
}

// Rule is the load that one replica is sized for while no capacity is learned, in the portrait's signal; 0 where it is
// not known. It is [portrait.Levels].Rule.
func Rule(svc *fleet.Service, p *portrait.Portrait) float64 {
	if load, ok := ruleFor(svc, p, UtilisationTarget(svc)); ok {
		return load
	}
	return 0
}
