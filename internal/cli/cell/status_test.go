package cell

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
)

// TestFiguresThatNoCycleWrote: figures that no cycle has written, or that a refusal emptied, are not shown as 0.
func TestFiguresThatNoCycleWrote(t *testing.T) {
	service := func(replicas, ready, desired int32) *v1alpha1.ElasticService {
		s := &v1alpha1.ElasticService{}
		s.Spec.Replicas = v1alpha1.ReplicaBounds{Min: 2, Max: 9}
		s.Status = v1alpha1.ElasticServiceStatus{ObservedGeneration: 1, Replicas: replicas, ReadyReplicas: ready, DesiredReplicas: desired, FloorReplicas: 5}
		return s
	}
	refusedOne := service(3, 3, 4)
	refusedOne.Status.Conditions = []metav1.Condition{{Type: catalog.ConditionAccepted, Status: metav1.ConditionFalse,
		Reason: "Conflicted"}}
	amount := func(n string) string {
		return Amount(&v1alpha1.ResourceAmounts{CPU: resource.MustParse(n)})
	}
	for _, c := range []struct{ name, got, want string }{
		{"wanted by no cycle", Desired(service(3, 3, 0)), None},
		{"wanted of a refused service", Desired(refusedOne), None},
		{"wanted", Desired(service(3, 3, 4)), "4"},
		{"ready", ReadyPods(&service(40, 38, 0).Status), "40, 38 of them ready"},
		{"more ready than there are to be", ReadyPods(&service(32, 38, 0).Status), "32, and 38 ready until the others have left"},
		{"no amount", amount("0"), "nothing"},
		{"an amount", amount("40"), "40 cpu"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}
