package validate

import (
	"fmt"
	"time"
	_ "time/tzdata" // zones are judged by the same data on every machine

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/store/promql"
)

// DefaultNamespaceLabel names the namespace in series, unless the source says otherwise.
const DefaultNamespaceLabel = "namespace"

// ElasticService judges the service level, the windows, the queries and the calendar of one service. Whether its target
// can be scaled only the cluster knows. namespaceLabel is the label that names the namespace in the metrics source.
func ElasticService(s *v1alpha1.ElasticService, namespaceLabel string) []Problem {
	var out []Problem
	for i, m := range s.Spec.Metrics {
		if m.Query == "" {
			continue
		}
		if _, err := promql.Confine(m.Query, namespaceLabel, s.Namespace); err != nil {
			out = append(out, Problem{fmt.Sprintf("spec.metrics[%d].query", i), err.Error()})
		}
	}
	_, wrong := SLO(&s.Spec.SLO)
	out = append(out, wrong...)
	out = append(out, rest(&s.Spec)...)
	fields, texts := queries(&s.Spec.SLO)
	for i, query := range texts {
		if _, err := promql.ConfineLevel(query, namespaceLabel, s.Namespace); err != nil {
			out = append(out, Problem{fields[i], err.Error()})
		}
	}
	for i, w := range s.Spec.Windows {
		out = append(out, window(fmt.Sprintf("spec.windows[%d]", i), w.Start, w.Duration, w.TimeZone)...)
	}
	out = append(out, contradictions(s.Spec.Windows)...)
	if c := s.Spec.Calendar; c != nil {
		if _, err := Zone(c.TimeZone); err != nil {
			out = append(out, Problem{"spec.calendar.timeZone", err.Error()})
		}
		for i, d := range c.Days {
			if _, _, _, err := Date(d.Date); err != nil {
				out = append(out, Problem{fmt.Sprintf("spec.calendar.days[%d].date", i), err.Error()})
			}
		}
	}
	return out
}

// Date reads the date of a calendar's own day; year is 0 where it comes every year.
func Date(text string) (year int, month time.Month, day int, err error) {
	full := text
	yearly := len(text) == len("01-02")
	if yearly {
		full = "2000-" + text // a leap year, so that 29 February is a date
	}
	at, err := time.Parse(time.DateOnly, full)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("date %q is no day of the calendar: write one such as 2026-08-08, or 08-08 for every year", text)
	}
	if !yearly {
		year = at.Year()
	}
	return year, at.Month(), at.Day(), nil
}

// CapacityPool judges the node selector and the windows of change of one pool.
func CapacityPool(p *v1alpha1.CapacityPool) []Problem {
	out := selector("spec.nodeSelector", &p.Spec.NodeSelector)
	for i := range p.Spec.ChangeWindows {
		out = append(out, changeWindow(fmt.Sprintf("spec.changeWindows[%d]", i), &p.Spec.ChangeWindows[i])...)
	}
	return out
}

// CapacityQuota judges the namespace selector and the slices of one tenant.
func CapacityQuota(q *v1alpha1.CapacityQuota) []Problem {
	out := selector("spec.namespaceSelector", &q.Spec.NamespaceSelector)
	for i, s := range q.Spec.Slices {
		out = append(out, window(fmt.Sprintf("spec.slices[%d]", i), s.Start, s.Duration, s.TimeZone)...)
	}
	return out
}

// ElasticJob judges the members that hold their job together. The workloads themselves (a failure policy, say) are judged by who can
// read them.
func ElasticJob(j *v1alpha1.ElasticJob) []Problem {
	var out []Problem
	for i := range j.Spec.Members {
		m := &j.Spec.Members[i]
		switch field := fmt.Sprintf("spec.members[%d]", i); {
		case !m.HoldsTogether():
		case !m.Stable:
			out = append(out, Problem{field + ".stable", fmt.Sprintf("the %s holds the job together and never runs on lent capacity: set stable: true, and min and max to its size", m.PartName())})
		case m.Min != m.Max:
			out = append(out, Problem{field + ".max", fmt.Sprintf("the %s keeps its size while the job runs: set min and max to the same", m.PartName())})
		}
	}
	return out
}

func window(field, start string, length v1alpha1.Duration, zone string) []Problem {
	var out []Problem
	if _, err := length.Parse(); err != nil {
		out = append(out, Problem{field + ".duration", err.Error()})
	}
	if _, err := hpa.ParseSchedule(start); err != nil {
		out = append(out, Problem{field + ".start", err.Error()})
	}
	if _, err := Zone(zone); err != nil {
		out = append(out, Problem{field + ".timeZone", err.Error()})
	}
	return out
}

// Zone finds an IANA zone. "Local" is refused: it would mean another zone on each machine.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("zone %q is not an IANA zone: write one such as Asia/Shanghai, or UTC", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone %q is not an IANA zone: write one such as Asia/Shanghai, or UTC", name)
	}
	return loc, nil
}
