//go:build plane

package kube

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/planner"
)

// TestPlaneZero scales a Deployment, and the floor of a HorizontalPodAutoscaler, to zero and back.
func TestPlaneZero(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	id := "zero-" + rand.String(5)
	toZero := func(_ *appsv1.Deployment, s *v1alpha1.ElasticService) { s.Spec.Replicas.Min = 0 }
	svc := p.app(t, id, 1, "Scale", toZero)
	s := p.snapshot(t).Service(svc)
	if s.Min != 0 {
		t.Fatalf("the minimum is %d", s.Min)
	}
	last := planner.PodRef{Name: s.Pods[0].Name, ID: s.Pods[0].ID}
	p.must(t, planner.Plan{Lowers: []planner.Scale{{Service: svc, Target: s.Target, Kind: s.TargetKind, By: s.Actuation,
		From: 1, To: 0, Version: s.Version, Victims: []planner.PodRef{last}}}})
	staying := func() (n int) {
		for _, pod := range p.snapshot(t).Service(svc).Pods {
			if !pod.Deleting {
				n++
			}
		}
		return n
	}
	until(t, "no pods that stay", func() bool { return staying() == 0 })
	s = p.snapshot(t).Service(svc)
	if s.Desired != fleet.KnownAt[int32](0, s.Desired.At) || s.SetToZero != "" {
		t.Fatalf("%+v replicas, set to zero by %q: our own zero is taken for another one's", s.Desired, s.SetToZero)
	}
	p.must(t, planner.Plan{Raises: []planner.Scale{{Service: svc, Target: s.Target, Kind: s.TargetKind, By: s.Actuation,
		From: 0, To: 2, Version: s.Version}}})
	until(t, "pods again", func() bool { return staying() == 2 })

	// An autoscaler whose owner wants 0, and one whose owner wants 2.
	for least, low := range map[int32]int32{0: 0, 2: 2} {
		name := id + "-" + rand.String(3)
		h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		h.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 9, MinReplicas: kubetest.Ptr(least),
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType,
				External: &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "queue"},
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType,
						AverageValue: kubetest.Ptr(resource.MustParse("30"))}}}}}
		if _, err := p.core.AutoscalingV2().HorizontalPodAutoscalers("default").Create(t.Context(), h,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		svc := p.app(t, name, 2, "HPAFloor", toZero)
		floor := func(from, to int32) planner.Plan {
			s := p.snapshot(t).Service(svc)
			a := planner.Scale{Service: svc, Target: s.Target, Kind: "HorizontalPodAutoscaler", By: s.Actuation, From: from,
				To: to, Version: s.HPA.Version}
			if to > from {
				return planner.Plan{Raises: []planner.Scale{a}}
			}
			return planner.Plan{Lowers: []planner.Scale{a}}
		}
		p.must(t, floor(least, 3))
		if f := p.snapshot(t).Service(svc).HPA; f.Min != 3 || f.Own != least {
			t.Errorf("after the first floor minReplicas are %d and the owner's %d, want 3 and %d", f.Min, f.Own, least)
		}
		p.must(t, floor(3, 0))
		if f := p.snapshot(t).Service(svc).HPA; f.Min != low {
			t.Errorf("the floor went to %d, want %d", f.Min, low)
		}
	}
}
