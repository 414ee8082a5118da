package explain

import (
	"context"
	"fmt"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
)

func explainJob(ctx context.Context, o *cluster.Options, c *cluster.Clients, arg string) (*explanation, error) {
	name, err := o.NameOf(c, arg)
	if err != nil {
		return nil, err
	}
	j, err := cluster.Get[v1alpha1.ElasticJob](ctx, c, cluster.Jobs, name)
	if err != nil {
		return nil, err
	}
	p := &screen.Page{Title: fmt.Sprintf("Job %s (priority %s)", name, cell.OrNone(j.Spec.Priority))}
	st := &j.Status
	p.Add("Members", "%s", cell.Written(st.ObservedGeneration, fmt.Sprintf("%d asked for, %d active", st.Desired, st.Active)))
	if st.Pause != nil {
		p.Add("Paused", "%s", cell.PauseText(st.Pause))
	}
	p.Add("Gang", "%s", gangText(st.Gang))
	p.Add("Begins", "%s", etaText(st.ETA))
	p.Add("Why", "%s", cell.OrNone(st.Reason))
	p.Add("Last recall", "%s", cell.Stamp(st.LastRecallTime))
	rows := make([][]string, len(j.Spec.Members))
	for i := range j.Spec.Members {
		m := &j.Spec.Members[i]
		desired, active := cell.None, cell.None
		for _, s := range st.Members {
			if s.Role == m.Role {
				desired, active = cell.Number(int64(s.Desired)), cell.Number(int64(s.Active))
			}
		}
		rows[i] = []string{m.Role, m.WorkloadRef.Kind + " " + m.WorkloadRef.Name, cell.Number(int64(m.Min)), cell.Number(int64(m.Max)), desired, active, placeText(m)}
	}
	p.Table("Roles", "", []string{"ROLE", "WORKLOAD", "MIN", "MAX", "DESIRED", "ACTIVE", "MAY RUN"}, rows)
	p.Conditions(st.Conditions)
	e := &explanation{page: p, Object: j}
	return e, e.ground(ctx, o, c, "ElasticJob", name)
}

// placeText says where members of a role may run.
func placeText(m *v1alpha1.JobMember) string {
	switch {
	case m.Stable:
		return fmt.Sprintf("at home alone, by the node selector %s: %s", v1alpha1.LabelHome, v1alpha1.HomeOffline)
	case m.Divisible:
		return "anywhere, in what others leave"
	case m.Min > 0:
		return "at home and on loans, as the scheduler chooses; its minimum counts at home first"
	}
	return "at home and on loans, as the scheduler chooses"
}

func gangText(g *v1alpha1.GangStatus) string {
	if g == nil {
		return "none: each member works without the others"
	}
	text := fmt.Sprintf("%s since %s", g.Phase, cell.Stamp(&g.Since))
	if g.Tries > 0 {
		text += fmt.Sprintf(", given up %d times in a row", g.Tries)
	}
	if fleet.GangPhase(g.Phase) == fleet.GangBackedOff {
		text += ", tried again at " + cell.Stamp(g.RetryTime)
	}
	return text
}

// etaText formats the band. Times that are unset lie beyond what was looked at.
func etaText(e *v1alpha1.ETAStatus) string {
	if e == nil {
		return "it does not wait, or the days ahead are not computed yet"
	}
	if e.Expected == nil {
		text := fmt.Sprintf("not expected (%s): %s", e.Reason, e.Why)
		if e.Earliest != nil {
			text = fmt.Sprintf("at %s at the earliest; ", cell.Stamp(e.Earliest)) + text
		}
		return text
	}
	latest := "after more than a week at the latest"
	if e.Latest != nil {
		latest = fmt.Sprintf("%s at the latest (a band of %s)", cell.Stamp(e.Latest), e.Latest.Sub(e.Earliest.Time).Round(time.Minute))
	}
	return fmt.Sprintf("%s expected, %s at the earliest, %s, with %d members; %s", cell.Stamp(e.Expected), cell.Stamp(e.Earliest), latest, e.Members, e.Why)
}
