package loop

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// links puts up who holds a link group back.
func (m *Metrics) links(p *page, plan *planner.Plan) {
	for i := range plan.Links {
		if id := plan.Links[i].Bottleneck; id != "" {
			n := fleet.ParseName(string(id))
			p.set(m.bottleneck, 1, n.Namespace, n.Name)
		}
	}
}

// jobs puts up how many minima stand how.
func (m *Metrics) jobs(p *page, plan *planner.Plan) {
	count := map[fleet.GangPhase]int{}
	for i := range plan.Gangs {
		count[plan.Gangs[i].Phase]++
	}
	for _, phase := range []fleet.GangPhase{fleet.GangWaiting, fleet.GangForming, fleet.GangWhole, fleet.GangBackedOff} {
		p.set(m.gangs, float64(count[phase]), string(phase))
	}
}
