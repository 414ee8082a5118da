package loop

import (
	"fmt"
	"maps"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/signal"
)

// observe brings raw samples to what is known of each service: this is where totals are made, whatever the source.
// It takes out loads that the replicas could not have served before anything is done or learned by them, and names why
// live data of services is missing.
func (l *Loop) observe(
	s *fleet.Snapshot, x *signal.Samples,
) (live map[fleet.ServiceID]hpa.Live, problems map[fleet.ServiceID]DataProblem) {
	live, problems = make(map[fleet.ServiceID]hpa.Live, len(s.Services)), map[fleet.ServiceID]DataProblem{}
	for i := range s.Services {
		svc := &s.Services[i]
		if _, asked := x.Services[svc.ID]; !asked {
			continue
		}
		now := hpa.Observe(svc, x, &l.progressOf(svc.ID).looks, s.At)
		now.Budget = l.promises.left(svc)
		if signal.Missing(svc, now.Load, now.Window, s.At) {
			problems[svc.ID] = missingLoad(svc, x, now.Load)
		}
		p := l.portraits[svc.ID]
		live[svc.ID] = hpa.Believe(svc, &p, now, s.At, hpa.CoresMost(svc, s.Node))
	}
	return live, problems
}

// missingLoad is why the load of a service is missing.
func missingLoad(s *fleet.Service, x *signal.Samples, load fleet.Known[float64]) DataProblem {
	for i := range s.Pods {
		if v, ok := x.Unsound[s.Pods[i].Name]; ok {
			return DataProblem{Cause: CauseNotFinite, Message: fmt.Sprintf("the rate of pod %s is %v, which no load is; "+
				"to fix: correct the exporter, or drop its series", s.Pods[i].Name.Name, v)}
		}
	}
	if load.OK {
		return DataProblem{Cause: CauseSamplesTooOld, Message: "the newest samples of its pods are of " +
			load.At.UTC().Format("15:04:05 UTC") + "; to fix: look whether the kubelets of their machines, " +
			"and the pods, are still scraped"}
	}
	return DataProblem{Cause: CauseNoSeries, Message: "the source has no series of CPU or requests of most of its pods; " +
		"to fix: springtide doctor --prometheus URL says what the source lacks"}
}

// queryProblems adds what the source itself says to what its samples lack. A source that cannot answer for a
// namespace has no samples of it either, and says why.
func (l *Loop) queryProblems(lacking map[fleet.ServiceID]DataProblem) map[fleet.ServiceID]DataProblem {
	d, ok := l.p.History.(Doubtful)
	if !ok {
		return lacking
	}
	out := maps.Clone(lacking)
	for id, said := range d.QueryProblems() {
		if lacks, ok := lacking[id]; ok && said.Cause != CauseNamespaceRefused {
			said = DataProblem{Cause: lacks.Cause, Message: lacks.Message + "; " + said.Message}
		}
		out[id] = said
	}
	return out
}

// levelProblems are the levels that the source does not measure.
func (l *Loop) levelProblems() map[fleet.ServiceID][]LevelProblem {
	if x, ok := l.p.History.(Levelled); ok {
		return x.LevelProblems()
	}
	return nil
}
