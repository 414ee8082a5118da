package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

// TestNothingIsClaimedWhereNothingIsKnown: figures that no cycle has written, that a refusal emptied, or that mean nothing for a kind are not shown as 0.
func TestNothingIsClaimedWhereNothingIsKnown(t *testing.T) {
	service := func(replicas, ready, desired int32, model string) *v1alpha1.ElasticService {
		s := &v1alpha1.ElasticService{}
		s.Spec.Replicas = v1alpha1.ReplicaBounds{Min: 2, Max: 9}
		s.Status = v1alpha1.ElasticServiceStatus{ObservedGeneration: 1, Replicas: replicas, ReadyReplicas: ready, DesiredReplicas: desired, FloorReplicas: 5,
			Tide: &v1alpha1.TideStatus{Model: model, PeakReplicas: 5}}
		return s
	}
	refusedOne := service(3, 3, 4, "seasonal")
	refusedOne.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: "Conflicted"}}
	cpu := func(n string) v1alpha1.ResourceAmounts { return v1alpha1.ResourceAmounts{CPU: resource.MustParse(n)} }
	pool := func(class, requested string) string {
		p := &v1alpha1.CapacityPool{}
		p.Spec.Class, p.Status.Capacity, p.Status.Requested = class, cpu("64"), cpu(requested)
		return requestedByOnline(p)
	}
	amount := func(n string) string { a := cpu(n); return amountText(&a) }
	for _, c := range []struct{ name, got, want string }{
		{"wanted by no cycle", desiredText(service(3, 3, 0, "none")), none},
		{"wanted of a refused service", desiredText(refusedOne), none},
		{"wanted", desiredText(service(3, 3, 4, "seasonal")), "4"},
		{"ready", readyPods(&service(40, 38, 0, "").Status), "40, 38 of them ready"},
		{"more ready than there are to be", readyPods(&service(32, 38, 0, "").Status), "32, and 38 ready until the others have left"},
		{"a tide without a model", tideText(&service(3, 3, 0, "none").Status, 95), "none yet: no model has seen enough of this service"},
		{"a tide of an unnamed model", tideText(&service(3, 3, 0, "").Status, 95), "none yet: no model has seen enough of this service"},
		{"the peak without a model", peakText(service(3, 3, 0, "none").Status.Tide), none},
		{"offline pool", pool("Offline", "0"), none},
		{"offline pool with online pods", pool("Offline", "32"), "32 (50%)"},
		{"idle online pool", pool("Online", "0"), "0 (0%)"},
		{"no amount", amount("0"), "nothing"},
		{"an amount", amount("40"), "40 cpu"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
	if compareCells(none, "3") <= 0 || compareCells("3", none) >= 0 || compareCells("48", "3") >= 0 {
		t.Error("what is not known does not come last")
	}
}
