package convert

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
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
	f := NewServiceFacts(s, validate.DefaultNamespaceLabel)
	if f.Problem.Any() {
		t.Fatal(f.Problem)
	}
	svc := &f.Service
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

// Fields that are left out have the API's defaults, and the quantile is the record's to choose; without metrics CPU is
// held at the level of the SLO, or at 60 %.
func TestServiceFactsOfAShortSpec(t *testing.T) {
	f := NewServiceFacts(kubetest.Service("cart"), validate.DefaultNamespaceLabel)
	if m := f.Service.Metrics; len(m) != 1 || m[0].Target != 0.7 || f.Service.Quantile != 0 ||
		f.Service.StartUp != 0 || f.Problem.Any() {
		t.Errorf("metrics %+v, quantile %v, start-up %v, problem %v", m, f.Service.Quantile, f.Service.StartUp, f.Problem)
	}
	s := kubetest.Service("cart")
	s.Spec.SLO = v1alpha1.SLO{Latency: []v1alpha1.LatencyLevel{{Percentile: "99", Under: "1s"}}}
	if m := NewServiceFacts(s, validate.DefaultNamespaceLabel).Service.Metrics; len(m) != 1 || m[0].Target != 0.6 {
		t.Errorf("metrics %+v", m)
	}
	s.Spec.Startup = "90"
	if f := NewServiceFacts(s, validate.DefaultNamespaceLabel); !f.Problem.Any() {
		t.Error("a text that is no duration is no problem")
	}
}

// A ratio that is declared in the API is the one that chains are scaled by; what is no positive number is refused by
// name.
func TestLinkRatioOfSpec(t *testing.T) {
	for _, c := range []struct {
		spec string
		want float64
		bad  bool
	}{{"", 0, false}, {"3", 3, false}, {"0.4", 0.4, false}, {"0.0", 0, true}, {"-1", 0, true}, {"two", 0, true}} {
		s := kubetest.Service("cart")
		s.Spec.LinkGroup, s.Spec.LinkRatio = "checkout", c.spec
		f := NewServiceFacts(s, "namespace")
		if bad := strings.Contains(f.Problem.Message, "linkRatio"); bad != c.bad || !bad &&
			f.Service.LinkRatio != c.want || f.Service.LinkGroup != "checkout" {
			t.Errorf("%q: ratio %v of group %q, problem %q; want %v, refused %v", c.spec, f.Service.LinkRatio,
				f.Service.LinkGroup, f.Problem, c.want, c.bad)
		}
	}
}
