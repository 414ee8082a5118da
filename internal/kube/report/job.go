package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/recorder"
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
	return &v1alpha1.GangStatus{Phase: string(g.Phase), Since: *convert.Stamp(g.Since),
		RetryTime: convert.Stamp(g.RetryAt), Tries: int32(g.Tries), Ran: g.Ran}
}

// etaStatus is when a job that waits begins; nil where it does not wait, or nothing is known of the days ahead yet.
func etaStatus(p *planner.Plan, id fleet.JobID) *v1alpha1.ETAStatus {
	i, ok := slices.BinarySearchFunc(p.ETAs, id, func(e planner.ETA, id fleet.JobID) int { return cmp.Compare(e.Job, id) })
	if !ok || p.ETAs[i].Kind == planner.WaitsForOutlook {
		return nil
	}
	e := &p.ETAs[i]
	return &v1alpha1.ETAStatus{Earliest: convert.Stamp(e.Earliest), Expected: convert.Stamp(e.Expected),
		Latest: convert.StampUp(e.Latest), Members: int32(e.Members), Reason: e.Kind,
		Why: v1alpha1.Clip(e.Why.Text(), v1alpha1.MaxNoteLength)}
}

// etaGist is what of an ETA is worth a write of its own.
type etaGist struct {
	earliest, expected, latest time.Time
	reason                     string
}

func gistOfETA(e *v1alpha1.ETAStatus) etaGist {
	if e == nil {
		return etaGist{}
	}
	return etaGist{convert.TimeOf(e.Earliest), convert.TimeOf(e.Expected), convert.TimeOf(e.Latest), e.Reason}
}

func gangCondition(c *conditions, g *planner.GangView) {
	switch {
	case g == nil:
		c.drop(catalog.ConditionGangWhole)
	case g.Phase == fleet.GangWhole:
		c.set(catalog.JobGangWhole)
	default:
		c.set(catalog.JobGang(g.Phase), g.Note.Text())
	}
}

// reportGangs says once when a gang is given up: it holds nothing from then on, and its owner may have to fix it.
func (c *Reporter) reportGangs(r *loop.Report) {
	for i := range r.Plan.Gangs {
		g := &r.Plan.Gangs[i]
		n := fleet.ParseName(string(g.Job))
		o, ok := c.Jobs.Get(n.Namespace, n.Name)
		if !ok {
			continue
		}
		gaveUp := ""
		if g.Phase == fleet.GangBackedOff && g.Since.Equal(r.Plan.At) {
			gaveUp = g.Note.Text()
		}
		if c.News("gang "+string(g.Job), gaveUp) {
			c.Record(recorder.Reference("ElasticJob", &o.Header), catalog.EventGangRolledBack, gaveUp)
		}
	}
}
