package hpa

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait/capacity"
	"github.com/springtide/springtide/reason"
)

// quietShare is the part of the coming day's peak up to which hours are quiet: a step that turns out wrong then costs
// few requests, and the replicas for the peak are not what is tried.
const quietShare = 0.5

// quietFor is for how long it must stay quiet beyond the lead, so that a replica that is missed is there again first.
const quietFor = time.Hour

// exploring is the sizer while the service may approach its knee (slo.explore: Slow): replicas carry one step more than
// is known, by the load that is expected. It is the sizer itself at all other times. Sizes of hours to
// come are found by the sizer itself: they are no hours to try something.
func (z *sizer) exploring() *sizer {
	if !z.svc.SLO.Explore || !z.capacityKnown || !z.quiet() {
		return z
	}
	q := capacity.Quiet{Now: z.now, Slow: true, Hours: true, Budget: z.live.Budget.Value}
	load := exploredOf(z.svc, z.p.Capacity, q, z.capacity)
	if most, ok := ruleFor(z.svc, z.p, z.o.Defaults.mostUtilisation(z.svc, z.p)); ok {
		load = min(load, most)
	}
	if !(load > z.capacity) {
		return z
	}
	x := *z
	x.util, x.capacity = min(z.util*load/z.capacity, 1), load
	x.quantile = min(z.quantile, 0.5)
	x.missing, x.notes = nil, nil
	if !z.svc.Desired.OK {
		x.miss(MissingReplicas, "")
	}
	x.note(reason.Exploring, z.amount(load), z.amount(z.capacity))
	return &x
}

// exploredOf is the smallest load that the levels of a service are to see; 0 where none was ever measured. A level that
// is not learned begins where the service is sized today.
func exploredOf(svc *fleet.Service, levels capacity.Set, q capacity.Quiet, today float64) float64 {
	least := 0.0
	for i := range levels {
		l := &levels[i]
		if svc.SLO.Level(l.Name) == nil || l.NotByLoad() {
			continue
		}
		if load := l.Explore(q, today); least == 0 || load < least {
			least = load
		}
	}
	return least
}

// quiet reports whether these are quiet hours: the tide can be used, is far below the coming day's peak and stays there
// until more replicas could be ready, no plan of an operator's is near, and what is left of the budget is known.
func (z *sizer) quiet() bool {
	if !z.tideUsable() || z.t.SkillLost || z.hasPlan() || !z.live.Budget.OK {
		return false
	}
	peak := z.t.Max(z.now, z.now.Add(z.o.Defaults.AheadFor), 0.5)
	soon := z.t.Max(z.now, z.now.Add(z.lead+quietFor), z.quantile)
	return peak > 0 && soon <= quietShare*peak
}
