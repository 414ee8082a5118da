package main

import (
	"context"
	"fmt"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

func explainJob(ctx context.Context, o *cliOptions, c *clients, arg string) (*explanation, error) {
	name, err := o.nameOf(c, arg)
	if err != nil {
		return nil, err
	}
	j, err := get[v1alpha1.ElasticJob](ctx, c, jobs, name)
	if err != nil {
		return nil, err
	}
	p := &page{title: fmt.Sprintf("Job %s (priority %s)", name, orNone(j.Spec.Priority))}
	st := &j.Status
	p.add("Members", "%s", told(st.ObservedGeneration, fmt.Sprintf("%d asked for, %d active", st.Desired, st.Active)))
	p.add("Gang", "%s", gangText(st.Gang))
	p.add("Begins", "%s", etaText(st.ETA))
	p.add("Why", "%s", orNone(st.Reason))
	p.add("Last recall", "%s", stamp(st.LastRecallTime))
	rows := make([][]string, len(j.Spec.Members))
	for i := range j.Spec.Members {
		m := &j.Spec.Members[i]
		desired, active := none, none
		for _, s := range st.Members {
			if s.Role == m.Role {
				desired, active = number(int64(s.Desired)), number(int64(s.Active))
			}
		}
		rows[i] = []string{m.Role, m.WorkloadRef.Kind + " " + m.WorkloadRef.Name, number(int64(m.Min)), number(int64(m.Max)), desired, active, placeText(m)}
	}
	p.table("Roles", "", []string{"ROLE", "WORKLOAD", "MIN", "MAX", "DESIRED", "ACTIVE", "MAY RUN"}, rows)
	p.conditions(st.Conditions)
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
	text := fmt.Sprintf("%s since %s", g.Phase, stamp(&g.Since))
	if g.Tries > 0 {
		text += fmt.Sprintf(", given up %d times in a row", g.Tries)
	}
	if fleet.GangPhase(g.Phase) == fleet.GangBackedOff {
		text += ", tried again at " + stamp(g.RetryTime)
	}
	return text
}

// etaText tells the band. Times that are unset lie beyond what was looked at.
func etaText(e *v1alpha1.ETAStatus) string {
	if e == nil {
		return "it does not wait, or the days ahead are not computed yet"
	}
	if e.Expected == nil {
		text := fmt.Sprintf("not expected (%s): %s", e.Reason, e.Why)
		if e.Earliest != nil {
			text = fmt.Sprintf("at %s at the earliest; ", stamp(e.Earliest)) + text
		}
		return text
	}
	latest := "after more than a week at the latest"
	if e.Latest != nil {
		latest = fmt.Sprintf("%s at the latest (a band of %s)", stamp(e.Latest), e.Latest.Sub(e.Earliest.Time).Round(time.Minute))
	}
	return fmt.Sprintf("%s expected, %s at the earliest, %s, with %d members; %s", stamp(e.Expected), stamp(e.Earliest), latest, e.Members, e.Why)
}
