package loop

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// lookEvery is how often the week ahead is computed for jobs that wait: the length of its first steps.
const lookEvery = 15 * time.Minute

// jobWaits is what was said to jobs that wait.
type jobWaits struct {
	outlook *planner.Outlook
	// said is what was said last, first what was said when the wait began: that is what is judged, since it is what people plan by.
	said, first map[fleet.JobID]planner.ETA
}

func newWaits() jobWaits {
	return jobWaits{said: map[fleet.JobID]planner.ETA{}, first: map[fleet.JobID]planner.ETA{}}
}

// ahead gives a plan what its ETAs depend on. The week ahead is computed only while a job waits.
func (w *jobWaits) ahead(in *planner.Input) {
	switch {
	case len(w.said) == 0:
		w.outlook = nil
	case w.outlook == nil || in.Snapshot.At.Sub(w.outlook.At) >= lookEvery:
		w.outlook = planner.Look(in)
	}
	in.ETAs, in.Outlook = w.said, w.outlook
}

// judge remembers what a plan says, and judges what was said first of the jobs that have begun.
func (w *jobWaits) judge(plan *planner.Plan, m *Metrics) {
	w.said = make(map[fleet.JobID]planner.ETA, len(plan.ETAs))
	for _, e := range plan.ETAs {
		w.said[e.Job] = e
		if _, known := w.first[e.Job]; !known && e.Kind != planner.WaitsForOutlook {
			w.first[e.Job] = e
		}
	}
	here := make(map[fleet.JobID]bool, len(plan.Gangs))
	for i := range plan.Gangs {
		g := &plan.Gangs[i]
		here[g.Job] = true
		if e, waited := w.first[g.Job]; waited && g.Phase == fleet.GangWhole {
			if m != nil {
				m.etas.WithLabelValues(string(e.Judge(plan.At))).Inc()
			}
			delete(w.first, g.Job)
		}
	}
	for id := range w.first {
		if _, waits := w.said[id]; !waits && !here[id] {
			delete(w.first, id) // it is gone, or begins without a gang
		}
	}
}
