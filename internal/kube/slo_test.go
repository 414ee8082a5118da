package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/validate"
)

func TestServiceFactsOfASpec(t *testing.T) {
	window, each := int32(60), resource.MustParse("12.5")
	s := kubetest.Service("cart")
	s.Spec.SLO.Latency = []v1alpha1.LatencyLevel{{Percentile: "99.9", Under: "250ms"}}
	s.Spec.Forecast, s.Spec.Startup = &v1alpha1.Forecast{Quantile: "0.99"}, "1m30s"
	s.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScalingRules{StabilizationWindowSeconds: &window}}
	s.Spec.Metrics = []v1alpha1.Metric{{Name: "cpu", Type: "CPU", TargetUtilization: "62.5%"},
		{Name: "rps", Type: "Requests", TargetPerReplica: &each}}
	s.Spec.Windows = []v1alpha1.Window{{Name: "feast", Start: "0 8 * * 1", Duration: "2d", TimeZone: "UTC"}}
	f := newServiceFacts(s, validate.DefaultNamespaceLabel)
	if f.problem.Any() {
		t.Fatal(f.problem)
	}
	svc := &f.service
	if svc.SLO.LatencyQuantile() != 0.999 || svc.SLO.LatencyLimit() != 250*time.Millisecond || svc.SLO.CPULimit() != 0.7 {
		t.Errorf("levels %+v", svc.SLO.Levels)
	}
	if svc.Quantile != 0.99 || svc.StartUp != 90*time.Second ||
		svc.Behavior.Down.Stabilization != fleet.Says(time.Minute) {
		t.Errorf("quantile %v, start-up %v, behavior %+v", svc.Quantile, svc.StartUp, svc.Behavior)
	}
	metrics := []fleet.Metric{{Name: "cpu", Type: fleet.MetricCPU, Target: 0.625},
		{Name: "rps", Type: fleet.MetricRequests, Target: 12.5}}
	if d := cmp.Diff(metrics, svc.Metrics); d != "" {
		t.Error(d)
	}
	if w := svc.Windows[0]; w.Duration != 48*time.Hour {
		t.Errorf("window %+v", w)
	}
}

// Fields that are left out have the API's defaults; without metrics CPU is held at the level of the SLO, or at 60 %.
func TestServiceFactsOfAShortSpec(t *testing.T) {
	f := newServiceFacts(kubetest.Service("cart"), validate.DefaultNamespaceLabel)
	if m := f.service.Metrics; len(m) != 1 || m[0].Target != 0.7 || f.service.Quantile != 0.95 ||
		f.service.StartUp != 0 || f.problem.Any() {
		t.Errorf("metrics %+v, quantile %v, start-up %v, problem %v", m, f.service.Quantile, f.service.StartUp, f.problem)
	}
	s := kubetest.Service("cart")
	s.Spec.SLO = v1alpha1.SLO{Latency: []v1alpha1.LatencyLevel{{Percentile: "99", Under: "1s"}}}
	if m := newServiceFacts(s, validate.DefaultNamespaceLabel).service.Metrics; len(m) != 1 || m[0].Target != 0.6 {
		t.Errorf("metrics %+v", m)
	}
	s.Spec.Startup = "90"
	if f := newServiceFacts(s, validate.DefaultNamespaceLabel); !f.problem.Any() {
		t.Error("a text that is no duration is no problem")
	}
}

// The objective in force is shown, and marked where it is the default.
func TestReportObjective(t *testing.T) {
	for name, v := range map[string]struct {
		stated *v1alpha1.Objective
		want   v1alpha1.ObjectiveStatus
	}{
		"none": {nil, v1alpha1.ObjectiveStatus{GoodMinutes: "99.5%", Over: "28d", Default: true}},
		"stated": {&v1alpha1.Objective{GoodMinutes: "99.95%", Over: "7d"}, v1alpha1.ObjectiveStatus{GoodMinutes: "99.95%",
			Over: "7d"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := kubetest.Shop()
			for _, o := range objects {
				if s, ok := o.(*v1alpha1.ElasticService); ok {
					s.Spec.SLO.Objective = v.stated
				}
			}
			r := newReported(t, objects...)
			r.cycle(t, nil)
			s := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status.SLO
			if s == nil || s.Objective != v.want {
				t.Errorf("%+v, want %+v", s, v.want)
			}
		})
	}
}
