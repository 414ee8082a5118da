package report

import (
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/portrait/capacity"
)

func TestPercentText(t *testing.T) {
	for share, want := range map[float64]string{1: "100%", 0.999: "99.9%", 0.9995: "99.95%", 0.99999999: "99.999%",
		0.5: "50%", 0: "0%", 0.995: "99.5%"} {
		if got := percentText(share); got != want {
			t.Errorf("%v: %s, want %s", share, got, want)
		}
	}
}

// A level that held at loads up to 36 and broke above has a curve that falls, of a few points, and a capacity between.
func TestCurve(t *testing.T) {
	set, l := capacity.Set(nil).With("latency-p99")
	for i := range 6000 {
		load := 4 + float64(i%50)
		value := 0.1
		if load > 36 {
			value = 0.5
		}
		l.Observe(capacity.Minute{At: kubetest.Now.Add(time.Duration(i-6000) * time.Minute), Load: load, Value: value,
			CPU: math.NaN()}, capacity.Terms{Limit: 0.25, Objective: 0.99, Rule: 20})
	}
	svc := &fleet.Service{ID: "shop/cart"}
	v := &serviceView{svc: svc, r: &loop.Report{Portraits: map[fleet.ServiceID]portrait.Portrait{svc.ID: {Capacity: set,
		Signal: portrait.Requests}}}}
	got := v1alpha1.SLOLevelStatus{Name: "latency-p99"}
	v.curve(&got)
	if n := len(got.Curve); n < 2 || n > curvePoints {
		t.Fatalf("%d points: %+v", n, got.Curve)
	}
	first, last := got.Curve[0], got.Curve[len(got.Curve)-1]
	if first.Held != "100%" || last.Held == "100%" || first.Load != "4 requests/s" {
		t.Errorf("from %+v to %+v", first, last)
	}
	before := 1.0
	for _, p := range got.Curve {
		share, err := p.Held.Share()
		if err != nil || share > before {
			t.Errorf("%+v after %v (%v)", p, before, err)
		}
		before = share
	}
	if got.CapacityPerReplica == "" {
		t.Error("no capacity")
	}
	other := v1alpha1.SLOLevelStatus{Name: "errors"}
	if v.curve(&other); other.Curve != nil || other.CapacityPerReplica != "" {
		t.Errorf("a level that was never measured: %+v", other)
	}
}
