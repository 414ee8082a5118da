package report

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/recorder"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// pauseVerdicts are what the condition says on one kind of object.
type pauseVerdicts struct{ paused, unreadable, ended *catalog.Verdict }

var (
	servicePause = pauseVerdicts{catalog.ServicePaused, catalog.ServicePauseUnreadable, catalog.ServicePauseEnded}
	poolPause    = pauseVerdicts{catalog.PoolPaused, catalog.PoolPauseUnreadable, catalog.PoolPauseEnded}
	jobPause     = pauseVerdicts{catalog.JobPaused, catalog.JobPauseUnreadable, catalog.JobPauseEnded}
)

// pause says whether the object is paused, and until when; of a pause that is over and still stands, that it is.
func (c *conditions) pause(v pauseVerdicts, all fleet.Pause, h, ended *fleet.Hold) {
	switch {
	case h.Unreadable != "":
		c.set(v.unreadable, planner.PausedBy(all, h).Text())
	case h.Any():
		c.set(v.paused, planner.PausedBy(all, h).Text())
	case ended.Any():
		c.set(v.ended, ended.Source, ended.Until.UTC().Format("2006-01-02 15:04 MST"))
	default:
		c.drop(catalog.ConditionPaused)
	}
}

// pauseGist is what of a pause is worth a write of its own.
func pauseGist(p *v1alpha1.PauseStatus) string {
	if p == nil {
		return ""
	}
	at := int64(-1)
	if p.At != nil {
		at = int64(*p.At)
	}
	return fmt.Sprintln(p.Scope, p.Source, p.By, p.Reason, at, convert.TimeOf(p.Until))
}

// reportPauses says at both ends of a pause that it began or is over. The last report stands in the status, so that a
// new leader does not say it again.
func (c *Reporter) reportPauses(r *loop.Report) {
	for i := range r.Snapshot.Services {
		s := &r.Snapshot.Services[i]
		n := fleet.ParseName(string(s.ID))
		if o, ok := c.Services.Get(n.Namespace, n.Name); ok {
			c.reportPause(recorder.Reference("ElasticService", &o.Header), o.API.Status.Pause, s.Pause, &s.Hold)
		}
	}
	for i := range r.Snapshot.Pools {
		p := &r.Snapshot.Pools[i]
		if o, ok := c.Pools.Get("", string(p.ID)); ok {
			c.reportPause(recorder.Reference("CapacityPool", &o.Header), o.API.Status.Pause, p.Hold.Pause, &p.Hold)
		}
	}
	for i := range r.Snapshot.Jobs {
		j := &r.Snapshot.Jobs[i]
		n := fleet.ParseName(string(j.ID))
		if o, ok := c.Jobs.Get(n.Namespace, n.Name); ok {
			c.reportPause(recorder.Reference("ElasticJob", &o.Header), o.API.Status.Pause, j.Hold.Pause, &j.Hold)
		}
	}
}

func (c *Reporter) reportPause(ref *corev1.ObjectReference, was *v1alpha1.PauseStatus, all fleet.Pause, h *fleet.Hold) {
	is := convert.PauseStatus(h, all)
	switch {
	case pauseGist(was) == pauseGist(is):
	case is == nil:
		c.Record(ref, catalog.EventPauseEnded, was.Source)
	case h.Unreadable != "":
		c.Record(ref, catalog.EventPauseUnreadable, planner.PausedBy(all, h).Text())
	default:
		c.Record(ref, catalog.EventPaused, planner.PausedBy(all, h).Text())
	}
}
