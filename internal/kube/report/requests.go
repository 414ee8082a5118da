package report

import (
	"fmt"
	"math"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
)

// recommendation is what one replica should request; nil where nothing is known, or the mode is Off.
func (v *serviceView) recommendation(was *v1alpha1.RecommendationStatus) *v1alpha1.RecommendationStatus {
	p, ok := v.r.Portraits[v.svc.ID]
	if !ok || v.svc.RequestsMode == fleet.RequestsOff {
		return nil
	}
	s := &v1alpha1.RecommendationStatus{HistoryHours: int32(24 * p.Advice.Days)}
	if was != nil {
		s.AppliedTime = was.AppliedTime
	}
	if v.resized.Outcome == loop.Done {
		s.AppliedTime = convert.Stamp(v.w.now)
	}
	fit := planner.FitOf(v.svc, &p)
	s.CPUMillicores = requestBounds(fit.CPU, int64(v.svc.Request.CPU))
	s.MemoryBytes = requestBounds(fit.Memory, int64(v.svc.Request.Memory))
	if s.CPUMillicores == nil && s.MemoryBytes == nil && s.AppliedTime == nil {
		return nil
	}
	s.Note = v1alpha1.Clip(v.requestsNote(&fit), v1alpha1.MaxNoteLength)
	return s
}

func requestBounds(b fleet.Known[portrait.Bounds], current int64) *v1alpha1.RequestBounds {
	if !b.OK {
		return nil
	}
	whole := func(v float64) int64 { return int64(min(math.Ceil(v), 1<<60)) }
	return &v1alpha1.RequestBounds{Current: current, Lower: whole(b.Value.Lower), Target: whole(b.Value.Target), Upper: whole(b.Value.Upper)}
}

// requestsNote says what is applied, or what stands in the way.
func (v *serviceView) requestsNote(fit *planner.Fit) string {
	var text string
	switch {
	case v.svc.VPA != "":
		return "VerticalPodAutoscaler " + v.svc.VPA + " targets the workload: requests are left to it"
	case v.resized.Outcome == loop.Failed:
		text = "the change failed: " + v.resized.Message
	case v.unresized != "":
		text = "a change waits: " + v.unresized
	case v.svc.RequestsMode == fleet.RequestsRecommend:
		return "recommended only: set spec.requestsMode to Recreate or InPlace to have it applied"
	}
	if fit.AppliesCPU || !fit.CPU.OK {
		return text
	}
	const alone = "memory alone is applied: replicas follow the load, so the CPU request says how much one carries"
	if text == "" {
		return alone
	}
	return text + "; " + alone
}

// withheldResizes says by what the change of each service's requests was held back.
func withheldResizes(p *planner.Plan) map[fleet.ServiceID]string {
	return withheldBy(p, planner.SubjectRequests)
}

func (c *Reporter) reportResizes(r *loop.Report, done map[planner.Key]loop.Result) {
	for i := range r.Plan.Resizes {
		z := &r.Plan.Resizes[i]
		ref := c.serviceReference(z.Service)
		if ref == nil {
			continue
		}
		what := fmt.Sprintf("%s %s", z.Kind, z.Target)
		if z.By == fleet.RequestsInPlace {
			what = fmt.Sprintf("%d pods of %s in place", len(z.Pods), z.Target)
		}
		switch o := done[planner.KeyOf(z)]; o.Outcome {
		case loop.Done:
			c.Record(ref, catalog.EventResized, what, z.From, z.To, z.Why.Text())
		case loop.Failed:
			c.Record(ref, catalog.EventResizeFailed, what, z.From, z.To, o.Message)
		}
	}
}
