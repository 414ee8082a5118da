package validate

import (
	"fmt"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/store/promql"
)

// judge collects what is wrong with the texts of one object.
type judge struct{ problems []Problem }

// read is the value of a text, or a problem at its field.
func read[T any](j *judge, field string, parse func() (T, error)) T {
	v, err := parse()
	if err != nil {
		j.problems = append(j.problems, Problem{field, err.Error()})
	}
	return v
}

// SLO reads a service level, with its defaults, and judges its texts. Its queries are judged by [ElasticService]: they
// depend on the namespace.
func SLO(s *v1alpha1.SLO) (fleet.SLO, []Problem) {
	var j judge
	out := fleet.SLO{Explore: s.Explore == v1alpha1.ExploreSlow}
	for i := range s.Latency {
		out.Levels = append(out.Levels, j.latency(fmt.Sprintf("spec.slo.latency[%d]", i), &s.Latency[i]))
	}
	if e := s.Errors; e != nil {
		l := fleet.Level{Kind: fleet.LevelErrors, Name: fleet.LevelNameErrors,
			Source: fleet.Source{Preset: v1alpha1.DefaultPreset}}
		l.Limit = read(&j, "spec.slo.errors.atMost", e.AtMost.Share)
		if src := e.Source; src != nil {
			l.Source = fleet.Source{Preset: src.Preset, Bad: src.Bad, Total: src.Total}
		}
		out.Levels = append(out.Levels, l)
	}
	if t := s.Throughput; t != nil {
		l := fleet.Level{Kind: fleet.LevelThroughput, Name: fleet.LevelNameThroughput, Source: fleet.Source{Query: t.Query}}
		if t.PerReplica != nil {
			l.PerReplica = t.PerReplica.AsApproximateFloat64()
		}
		out.Levels = append(out.Levels, l)
	}
	if b := s.Backlog; b != nil {
		out.Levels = append(out.Levels, fleet.Level{Kind: fleet.LevelBacklog, Name: fleet.LevelNameBacklog,
			Source:      fleet.Source{Query: b.Query},
			DrainWithin: read(&j, "spec.slo.backlog.drainWithin", b.DrainWithin.Parse)})
	}
	if u := s.Utilization; u != nil {
		for _, x := range [...]struct {
			name  string
			limit v1alpha1.Percent
		}{{fleet.LevelNameCPU, u.CPU}, {fleet.LevelNameMemory, u.Memory}, {fleet.LevelNameGPU, u.GPU}} {
			if x.limit != "" {
				out.Levels = append(out.Levels, fleet.Level{Kind: fleet.LevelUtilization, Name: x.name,
					Limit: read(&j, "spec.slo.utilization."+x.name, x.limit.Share)})
			}
		}
	}
	out.Objective = j.objective(s.Objective)
	return out, j.problems
}

func (j *judge) latency(field string, l *v1alpha1.LatencyLevel) fleet.Level {
	out := fleet.Latency(read(j, field+".percentile", l.Percentile.Quantile), read(j, field+".under", l.Under.Parse))
	src := l.Source
	if src == nil {
		return out
	}
	out.Source = fleet.Source{Preset: src.Preset, Query: src.Query}
	if h := src.Histogram; h != nil {
		unit := h.Unit
		if unit == "" {
			unit = v1alpha1.DefaultHistogramUnit
		}
		out.Source.Histogram = fleet.Histogram{Name: h.Name, Unit: unit,
			Matchers: read(j, field+".source.histogram.matchers", func() (string, error) { return promql.Matchers(h.Matchers) })}
	}
	return out
}

// objective reads an objective; where none is stated the default says so.
func (j *judge) objective(o *v1alpha1.Objective) fleet.Objective {
	goodMinutes, over := v1alpha1.DefaultGoodMinutes, v1alpha1.DefaultOver
	if o != nil && o.GoodMinutes != "" {
		goodMinutes = o.GoodMinutes
	}
	if o != nil && o.Over != "" {
		over = o.Over
	}
	return fleet.Objective{Default: o == nil, GoodMinutes: read(j, "spec.slo.objective.goodMinutes", goodMinutes.Share),
		Over: read(j, "spec.slo.objective.over", over.Parse)}
}

// queries are the tenant's queries of a service level, by field.
func queries(s *v1alpha1.SLO) (fields, texts []string) {
	add := func(field, query string) {
		if query != "" {
			fields, texts = append(fields, field), append(texts, query)
		}
	}
	for i := range s.Latency {
		if src := s.Latency[i].Source; src != nil {
			add(fmt.Sprintf("spec.slo.latency[%d].source.query", i), src.Query)
		}
	}
	if e := s.Errors; e != nil && e.Source != nil {
		add("spec.slo.errors.source.bad", e.Source.Bad)
		add("spec.slo.errors.source.total", e.Source.Total)
	}
	if t := s.Throughput; t != nil {
		add("spec.slo.throughput.query", t.Query)
	}
	if b := s.Backlog; b != nil {
		add("spec.slo.backlog.query", b.Query)
	}
	return fields, texts
}

// Behavior reads the rules of both directions.
func Behavior(b *v1alpha1.Behavior) fleet.Behavior {
	if b == nil {
		return fleet.Behavior{}
	}
	return fleet.Behavior{Up: rulesOf(b.ScaleUp), Down: rulesOf(b.ScaleDown)}
}

func rulesOf(r *v1alpha1.ScalingRules) fleet.ScalingRules {
	if r == nil {
		return fleet.ScalingRules{}
	}
	out := fleet.ScalingRules{Select: fleet.PolicySelect(r.SelectPolicy)}
	if s := r.StabilizationWindowSeconds; s != nil {
		out.Stabilization = fleet.Says(time.Duration(*s) * time.Second)
	}
	if t := r.Tolerance; t != nil {
		out.Tolerance = fleet.Says(t.AsApproximateFloat64())
	}
	for _, p := range r.Policies {
		policy := fleet.ScalingPolicy{Pods: p.Value, Period: time.Duration(p.PeriodSeconds) * time.Second}
		if p.Type == "Percent" {
			policy.Pods, policy.Percent = 0, p.Value
		}
		out.Policies = append(out.Policies, policy)
	}
	return out
}

// rest judges the texts of a service that stand outside of its SLO and windows.
func rest(s *v1alpha1.ElasticServiceSpec) []Problem {
	var j judge
	if s.Forecast != nil && s.Forecast.Quantile != "" {
		read(&j, "spec.forecast.quantile", s.Forecast.Quantile.Number)
	}
	if s.Startup != "" {
		read(&j, "spec.startup", s.Startup.Parse)
	}
	if s.ScaleIn != nil {
		read(&j, "spec.scaleIn.standby", s.ScaleIn.Standby.Parse)
	}
	for i := range s.Metrics {
		m := &s.Metrics[i]
		field := fmt.Sprintf("spec.metrics[%d].", i)
		switch {
		case m.TargetUtilization != "":
			read(&j, field+"targetUtilization", m.TargetUtilization.Share)
		case m.TargetPerReplica != nil && m.TargetPerReplica.Sign() <= 0:
			j.problems = append(j.problems, Problem{field + "targetPerReplica", "it must be a positive amount"})
		}
	}
	return j.problems
}
