package loop

import (
	"fmt"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/quota"
)

// CheckRaise is [Door.CheckScale] for a raise, and lets no two plans fill one room: where another service of the tenant holds more than the
// plan knew (a plan before it raised that one, and the facts had not shown it yet), the raise must still fit the tenant's limit. What a
// service needs to run at all, its minimum, is never refused.
func (d *Door) CheckRaise(p *planner.Plan, a *planner.Scale) error {
	if err := d.CheckScale(a); err != nil {
		return err
	}
	if s := d.fresh.Service(a.Service); a.To <= s.Min {
		return nil
	}
	tenancy := quota.TenancyOf(d.fresh.Tenants)
	id := tenancy.Of(a.Target.Namespace)
	share := p.Division.Share(id)
	if id == "" || share == nil {
		return nil
	}
	var asked fleet.Resources
	var grown *fleet.Service
	for i := range p.Targets {
		t := &p.Targets[i]
		s := d.fresh.Service(t.Service)
		if s == nil || tenancy.Of(s.Target.Namespace) != id {
			continue
		}
		n := max(t.Current, t.Replicas)
		if s.Desired.OK && s.Desired.Value > n {
			n, grown = s.Desired.Value, s
		}
		asked = asked.Add(s.Request.Times(int64(n)))
	}
	if grown == nil {
		return nil // the plan itself divided for all that there is
	}
	for i := range d.fresh.Pods {
		if x := &d.fresh.Pods[i]; quota.BesideServices(x) && tenancy.Of(x.Name.Namespace) == id {
			asked = asked.Add(x.Requests)
		}
	}
	if quota.Fits(asked, share.Limit) {
		return nil
	}
	return fmt.Errorf("service %s has %d replicas, more than the plan knew, and quota %s lets its tenant request %s, not %s",
		grown.ID, grown.Desired.Value, id, share.Limit, asked)
}
