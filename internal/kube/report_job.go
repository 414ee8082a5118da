package kube

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// gangOf finds how the minimum of a job stands; nil where it has none that works as a whole.
func gangOf(p *planner.Plan, id fleet.JobID) *planner.GangView {
	i, ok := slices.BinarySearchFunc(p.Gangs, id, func(g planner.GangView, id fleet.JobID) int { return cmp.Compare(g.Job, id) })
	if !ok {
		return nil
	}
	return &p.Gangs[i]
}

func gangStatus(g *planner.GangView) *v1alpha1.GangStatus {
	if g == nil {
		return nil
	}
	return &v1alpha1.GangStatus{Phase: string(g.Phase), Since: *stamp(g.Since), RetryTime: stamp(g.RetryAt), Tries: int32(g.Tries)}
}

// gangFacts is what a status tells the next controller.
func gangFacts(g *v1alpha1.GangStatus) fleet.Gang {
	if g == nil {
		return fleet.Gang{}
	}
	return fleet.Gang{Phase: fleet.GangPhase(g.Phase), Since: timeOf(&g.Since), RetryAt: timeOf(g.RetryTime), Tries: int(g.Tries)}
}

func gangCondition(c *conditions, g *planner.GangView) {
	switch {
	case g == nil:
		c.drop(v1alpha1.ConditionGangWhole)
	case g.Phase == fleet.GangWhole:
		c.set(v1alpha1.ConditionGangWhole, metav1.ConditionTrue, string(g.Phase), "the minimum of every member runs")
	default:
		c.set(v1alpha1.ConditionGangWhole, metav1.ConditionFalse, string(g.Phase), g.Note)
	}
}

// tellGangs says once when a gang is given up: it holds nothing from then on, and its owner may have to mend it.
func (c *Cluster) tellGangs(r *loop.Report) {
	for i := range r.Plan.Gangs {
		g := &r.Plan.Gangs[i]
		n := fleet.ParseName(string(g.Job))
		o, ok := c.jobs.get(n.Namespace, n.Name)
		if !ok {
			continue
		}
		gaveUp := ""
		if g.Phase == fleet.GangBackedOff && g.Since.Equal(r.Plan.At) {
			gaveUp = g.Note
		}
		if c.reporter.news("gang "+string(g.Job), gaveUp) {
			c.events.Event(reference("ElasticJob", &o.header), corev1.EventTypeWarning, "GangRolledBack", gaveUp)
		}
	}
}
