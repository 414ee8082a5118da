package report

import (
	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// staged says whether pods that a scale-in takes stand by first, where the operator asks for it.
func (v *serviceView) staged(c *conditions) {
	switch {
	case v.svc.Standby == 0 || v.svc.Blocked.Any():
		c.drop(catalog.ConditionStaged)
	case v.svc.Stages():
		c.set(catalog.ServiceStaged, v.svc.Standby)
	default:
		c.set(catalog.ServiceStagedGateMissing, v1alpha1.PodInService)
	}
}

// standby is what is out of traffic now, and when the first of it ends.
func (v *serviceView) standby() *v1alpha1.StandbyStatus {
	by := v.svc.StandingBy()
	if len(by) == 0 {
		return nil
	}
	first := by[0].Standby.Value
	for _, p := range by {
		if p.Standby.Value.Before(first) {
			first = p.Standby.Value
		}
	}
	return &v1alpha1.StandbyStatus{Replicas: int32(len(by)), EndTime: convert.Stamp(first.Add(v.svc.Standby))}
}

// scaledTo is what the plan set the replicas of the service to; those that were read where it set none.
func (v *serviceView) scaledTo() int32 {
	for _, list := range [][]planner.Scale{v.r.Plan.Lowers, v.r.Plan.Raises} {
		for i := range list {
			if list[i].Service == v.svc.ID {
				return list[i].To
			}
		}
	}
	return v.svc.Desired.Value
}

// reportStandbys records in one event for each service how many pods left traffic, or came back.
func (c *Reporter) reportStandbys(r *loop.Report, list []planner.Standby, done map[planner.Key]loop.Result) {
	moved := map[fleet.ServiceID]int{}
	var first []*planner.Standby
	for i := range list {
		a := &list[i]
		ref := c.serviceReference(a.Service)
		switch o := done[planner.KeyOf(a)]; {
		case ref == nil:
		case o.Outcome == loop.Failed:
			c.Record(ref, catalog.EventStandbyFailed, a.Pod.Name, o.Message)
		case o.Outcome == loop.Done:
			if moved[a.Service]++; moved[a.Service] == 1 {
				first = append(first, a)
			}
		}
	}
	for _, a := range first {
		ref, n := c.serviceReference(a.Service), moved[a.Service]
		switch svc := r.Snapshot.Service(a.Service); {
		case a.Back:
			c.Record(ref, catalog.EventReturned, n, a.Why.Text())
		case svc != nil:
			c.Record(ref, catalog.EventStandby, n, svc.Standby, a.Why.Text())
		}
	}
}
