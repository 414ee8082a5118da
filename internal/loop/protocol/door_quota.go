package protocol

import (
	"fmt"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/quota"
)

// Raises returns [Door.CheckScale] for the raises of a plan, which lets no two plans fill one room: where another
// service of the tenant holds more than the plan knew (a plan before it raised that one, and the facts had not shown it
// yet), the tenant's services must still fit its limit. A service's minimum is never refused. Tenants are looked at
// once, when the first raise asks.
func (d *Door) Raises(p *planner.Plan) func(*planner.Scale) error {
	tenancy := quota.TenancyOf(d.fresh.Tenants)
	outgrown := once(func() map[fleet.TenantID]error { return d.outgrown(p, tenancy) })
	return func(a *planner.Scale) error {
		if err := d.CheckScale(a); err != nil {
			return err
		}
		if a.To <= d.fresh.Service(a.Service).Min {
			return nil
		}
		return outgrown()[tenancy.Of(a.Target.Namespace)]
	}
}

// outgrown finds each tenant whose services hold more than a plan knew, and would be beyond its limit with what the
// plan asks for.
func (d *Door) outgrown(p *planner.Plan, tenancy quota.Tenancy) map[fleet.TenantID]error {
	grown := map[fleet.TenantID]*fleet.Service{}
	asked := map[fleet.TenantID]fleet.Resources{}
	for i := range p.Targets {
		t := &p.Targets[i]
		s := d.fresh.Service(t.Service)
		if s == nil {
			continue
		}
		id, n := tenancy.Of(s.Target.Namespace), max(t.Current, t.Replicas)
		if id == "" {
			continue
		}
		if s.Desired.OK && s.Desired.Value > n {
			n, grown[id] = s.Desired.Value, s
		}
		asked[id] = asked[id].Add(s.Replica().Times(int64(n)))
	}
	if len(grown) == 0 {
		return nil // the plan itself divided for all that there is
	}
	for i := range d.fresh.Pods {
		if x := &d.fresh.Pods[i]; quota.BesideServices(x) {
			id := tenancy.Of(x.Name.Namespace)
			asked[id] = asked[id].Add(x.Requests)
		}
	}
	out := map[fleet.TenantID]error{}
	for id, s := range grown {
		if share := p.Division.Share(id); share != nil && !quota.Fits(asked[id], share.Limit) {
			out[id] = fmt.Errorf("service %s has %d replicas, more than the plan knew, and quota %s lets its tenant request %s, not %s",
				s.ID, s.Desired.Value, id, share.Limit, asked[id])
		}
	}
	return out
}
