package report

import (
	"fmt"
	"slices"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// linkStatus says how a service follows its link group; nil where it has none.
func (v *serviceView) linkStatus() *v1alpha1.LinkStatus {
	if v.svc.LinkGroup == "" {
		return nil
	}
	l, known := v.r.Links[v.svc.ID]
	out := &v1alpha1.LinkStatus{Group: v.svc.LinkGroup, Source: "Learned"}
	switch {
	case v.svc.LinkRatio > 0:
		out.Source, out.Note = "Declared", fmt.Sprintf("%.4g replicas for one unit of the chain's work", v.svc.LinkRatio)
	case !known:
		out.Source, out.Note = "Refused", "it is the only member of its group"
	case l.Refused != "":
		out.Source, out.Note = "Refused", l.Refused
	case l.Hub == v.svc.ID:
		out.Note = "the other members are compared with it"
	default:
		out.Note = fmt.Sprintf("%.3g of its load for one of %s, which explains %.0f %% of it over %d hours", l.Ratio, l.Hub, 100*l.Fit, l.Hours)
	}
	return out
}

// bottleneckOf finds the link group that a service holds back; nil where it holds none.
func bottleneckOf(p *planner.Plan, id fleet.ServiceID) *planner.LinkView {
	i := slices.IndexFunc(p.Links, func(v planner.LinkView) bool { return v.Bottleneck == id })
	if i < 0 {
		return nil
	}
	return &p.Links[i]
}

func (v *serviceView) bottleneck(c *conditions) {
	if v.svc.LinkGroup == "" {
		c.drop(catalog.ConditionBottleneck)
		return
	}
	if l := bottleneckOf(v.r.Plan, v.svc.ID); l != nil {
		c.set(catalog.ServiceChainHeldBack, l.Group, l.Why)
		return
	}
	c.set(catalog.ServiceChainKeepsUp)
}

// reportBottlenecks says once when a service begins to hold its link group back.
func (c *Reporter) reportBottlenecks(r *loop.Report) {
	for i := range r.Plan.Links {
		l := &r.Plan.Links[i]
		if c.News("bottleneck "+l.Group, string(l.Bottleneck)) {
			if ref := c.serviceReference(l.Bottleneck); ref != nil {
				c.Record(ref, catalog.EventChainBottleneck, l.Group, l.Why)
			}
		}
	}
}
