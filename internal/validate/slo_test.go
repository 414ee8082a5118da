package validate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

func TestSLOBecomesLevels(t *testing.T) {
	each := resource.MustParse("12500m")
	api := &v1alpha1.SLO{
		Latency: []v1alpha1.LatencyLevel{
			{Percentile: "99", Under: "250ms"},
			{Percentile: "99.9", Under: "2s", Source: &v1alpha1.LatencySource{Preset: "istio"}},
			{Percentile: "50", Under: "20ms", Source: &v1alpha1.LatencySource{Query: "max(p50)"}},
			{Percentile: "90", Under: "50ms", Source: &v1alpha1.LatencySource{Histogram: &v1alpha1.Histogram{Name: "lat",
				Unit:     "ms",
				Matchers: []string{"route='/cart'", `code!~"5.."`}}}},
		},
		Errors:      &v1alpha1.ErrorLevel{AtMost: "0.1%", Source: &v1alpha1.ErrorSource{Bad: "sum(bad)", Total: "sum(all)"}},
		Throughput:  &v1alpha1.ThroughputLevel{Query: "sum(orders)", PerReplica: &each},
		Backlog:     &v1alpha1.BacklogLevel{Query: "sum(queue)", DrainWithin: "5m"},
		Utilization: &v1alpha1.UtilizationLevels{CPU: "70%", Memory: "85.5%", GPU: "100%"},
		Objective:   &v1alpha1.Objective{GoodMinutes: "99.95%", Over: "7d"},
	}
	want := fleet.SLO{
		Levels: []fleet.Level{
			{Kind: fleet.LevelLatency, Name: "latency-p99", Quantile: 0.99, Limit: 0.25, Source: fleet.Source{Preset: "otel"}},
			{Kind: fleet.LevelLatency, Name: "latency-p99.9", Quantile: 0.999, Limit: 2, Source: fleet.Source{Preset: "istio"}},
			{Kind: fleet.LevelLatency, Name: "latency-p50", Quantile: 0.5, Limit: 0.02, Source: fleet.Source{Query: "max(p50)"}},
			{Kind: fleet.LevelLatency, Name: "latency-p90", Quantile: 0.9, Limit: 0.05,
				Source: fleet.Source{Histogram: fleet.Histogram{Name: "lat", Unit: "ms", Matchers: `route="/cart",code!~"5.."`}}},
			{Kind: fleet.LevelErrors, Name: "errors", Limit: 0.001, Source: fleet.Source{Bad: "sum(bad)", Total: "sum(all)"}},
			{Kind: fleet.LevelThroughput, Name: "throughput", PerReplica: 12.5, Source: fleet.Source{Query: "sum(orders)"}},
			{Kind: fleet.LevelBacklog, Name: "backlog", DrainWithin: 5 * time.Minute, Source: fleet.Source{Query: "sum(queue)"}},
			{Kind: fleet.LevelUtilization, Name: "cpu", Limit: 0.7},
			{Kind: fleet.LevelUtilization, Name: "memory", Limit: 0.855},
			{Kind: fleet.LevelUtilization, Name: "gpu", Limit: 1},
		},
		Objective: fleet.Objective{GoodMinutes: 0.9995, Over: 7 * 24 * time.Hour},
	}
	got, problems := SLO(api)
	if d := cmp.Diff(want, got); d != "" || len(problems) > 0 {
		t.Errorf("%s\nproblems: %v", d, problems)
	}
}

func TestDefaultObjective(t *testing.T) {
	for name, v := range map[string]struct {
		stated *v1alpha1.Objective
		want   fleet.Objective
	}{
		"none":       {nil, fleet.Objective{GoodMinutes: 0.995, Over: 28 * 24 * time.Hour, Default: true}},
		"the window": {&v1alpha1.Objective{Over: "7d"}, fleet.Objective{GoodMinutes: 0.995, Over: 7 * 24 * time.Hour}},
		"the share": {&v1alpha1.Objective{GoodMinutes: "99%"}, fleet.Objective{GoodMinutes: 0.99,
			Over: 28 * 24 * time.Hour}},
	} {
		got, problems := SLO(&v1alpha1.SLO{Objective: v.stated})
		if got.Objective != v.want || len(problems) > 0 {
			t.Errorf("%s stated: %+v, %v", name, got.Objective, problems)
		}
	}
}

// Texts that an API server with other definitions let pass are problems of their fields.
func TestTextsOfAnSLO(t *testing.T) {
	s := &v1alpha1.ElasticService{}
	s.Namespace = "shop"
	s.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "cart"}
	s.Spec.SLO = v1alpha1.SLO{
		Latency: []v1alpha1.LatencyLevel{{Percentile: "p99", Under: "fast", Source: &v1alpha1.LatencySource{
			Histogram: &v1alpha1.Histogram{Name: "lat", Matchers: []string{"route"}}}}},
		Errors:      &v1alpha1.ErrorLevel{AtMost: "few", Source: &v1alpha1.ErrorSource{Bad: "sum(", Total: "up"}},
		Throughput:  &v1alpha1.ThroughputLevel{Query: `sum(orders{namespace="bank"})`},
		Backlog:     &v1alpha1.BacklogLevel{Query: "queue[5m]", DrainWithin: "soon"},
		Utilization: &v1alpha1.UtilizationLevels{CPU: "70"},
		Objective:   &v1alpha1.Objective{GoodMinutes: "all", Over: "always"},
	}
	s.Spec.Forecast, s.Spec.Startup = &v1alpha1.Forecast{Quantile: "95"}, "90"
	s.Spec.Metrics = []v1alpha1.Metric{{Name: "cpu", Type: "CPU", TargetUtilization: "60"},
		{Name: "rps", Type: "Requests", TargetPerReplica: &resource.Quantity{}}}
	var got []string
	for _, p := range ElasticService(s, DefaultNamespaceLabel) {
		got = append(got, p.Field)
	}
	want := []string{"spec.slo.latency[0].percentile", "spec.slo.latency[0].under",
		"spec.slo.latency[0].source.histogram.matchers", "spec.slo.errors.atMost",
		"spec.slo.backlog.drainWithin", "spec.slo.utilization.cpu", "spec.slo.objective.goodMinutes",
		"spec.slo.objective.over", "spec.forecast.quantile",
		"spec.startup", "spec.metrics[0].targetUtilization", "spec.metrics[1].targetPerReplica",
		"spec.slo.errors.source.bad", "spec.slo.throughput.query",
		"spec.slo.backlog.query"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBehavior(t *testing.T) {
	window, tolerance := int32(0), resource.MustParse("0.05")
	got := Behavior(&v1alpha1.Behavior{
		ScaleUp: &v1alpha1.ScalingRules{SelectPolicy: "Min", Policies: []v1alpha1.ScalingPolicy{
			{Type: "Pods", Value: 4, PeriodSeconds: 15}, {Type: "Percent", Value: 100, PeriodSeconds: 60}}},
		ScaleDown: &v1alpha1.ScalingRules{StabilizationWindowSeconds: &window, Tolerance: &tolerance},
	})
	want := fleet.Behavior{
		Up: fleet.ScalingRules{Select: fleet.SelectMin, Policies: []fleet.ScalingPolicy{{Pods: 4, Period: 15 * time.Second},
			{Percent: 100, Period: time.Minute}}},
		Down: fleet.ScalingRules{Stabilization: fleet.Says(time.Duration(0)), Tolerance: fleet.Says(0.05)},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := Behavior(nil); got.Up.Bound() || got.Down.Bound() || got.Down.Stabilization.OK {
		t.Errorf("nothing is stated, but %+v", got)
	}
}
