package loop

import (
	"time"

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

// waitReasons are all that jobs may wait for, so that what none waits for is shown as zero.
var waitReasons = [...]string{planner.WaitsForTide, planner.WaitsForHome, planner.WaitsForQuota, planner.WaitsForQuotaRoom, planner.WaitsForSize,
	planner.WaitsForRoom, planner.WaitsForOutlook, planner.WaitsForRetry}

// jobs puts up how many minima stand how, what jobs wait for, and for how long yet.
func (m *Metrics) jobs(p *page, plan *planner.Plan) {
	m.waits(p, plan)
	count := map[fleet.GangPhase]int{}
	for i := range plan.Gangs {
		count[plan.Gangs[i].Phase]++
	}
	for _, phase := range []fleet.GangPhase{fleet.GangWaiting, fleet.GangForming, fleet.GangWhole, fleet.GangBackedOff} {
		p.set(m.gangs, float64(count[phase]), string(phase))
	}
}

func (m *Metrics) waits(p *page, plan *planner.Plan) {
	count := map[string]int{}
	for i := range plan.ETAs {
		e := &plan.ETAs[i]
		count[e.Kind]++
		n := fleet.ParseName(string(e.Job))
		for _, b := range [...]struct {
			name string
			at   time.Time
		}{{"earliest", e.Earliest}, {"expected", e.Expected}, {"latest", e.Latest}} {
			if !b.at.IsZero() { // beyond the outlook: unknown, which is no number
				p.set(m.eta, max(b.at.Sub(plan.At).Seconds(), 0), n.Namespace, n.Name, b.name)
			}
		}
	}
	for _, reason := range waitReasons {
		p.set(m.waiting, float64(count[reason]), reason)
	}
}
