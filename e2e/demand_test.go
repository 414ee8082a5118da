package e2e

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/world"
)

// TestDemandIsNoticed: forecasts recall before pods wait, so another scaler enlarges services, one after the other, while parcels are away. The scheduler
// evicts nothing: it says that the pods wait, and the controller recalls for them. The report counts that, from the one to the other.
func TestDemandIsNoticed(t *testing.T) {
	const enough, rounds, patience = 10, 4, 10 * time.Minute
	grown := map[string]bool{}
	claimant := ""
	var scaled time.Time
	noticed := func(s *watcher) bool {
		for _, l := range s.loans {
			if l.Status.FirstNotice != nil && l.Status.Claimant == claimant {
				return true
			}
		}
		return false
	}
	w, s := play(t, world.Options{Nodes: 50, Services: 10, Begin: 90 * time.Minute, Length: 4 * time.Hour}, func(w *world.World, s *watcher) bool {
		switch {
		case claimant == "" && s.in("Lent") < enough, claimant != "" && !noticed(s) && w.Now().Sub(scaled) < patience:
			return false
		case len(grown) == rounds, claimant != "" && !noticed(s):
			return true
		}
		var largest v1alpha1.ElasticService
		for _, x := range s.services() {
			if !grown[x.Name] && x.Status.Replicas > largest.Status.Replicas {
				largest = x
			}
		}
		scaled, claimant, grown[largest.Name] = w.Now(), largest.Namespace+"/"+largest.Name, true
		s.outgrow(t, &largest)
		return false
	})
	report := w.Report()
	t.Log("\n" + report.Text(100))
	if claimant == "" {
		t.Fatalf("fewer than %d loans were lent at a time: %s", enough, s.summary())
	}
	if len(grown) < rounds || !noticed(s) {
		t.Errorf("no parcel was recalled for %s, whose pods wait: %s", claimant, s.summary())
	}
	if report.Demands.Count == 0 || report.Demands.P99Seconds == nil || report.Demands.P99WallSeconds == nil {
		t.Errorf("the report says of demands: %+v", report.Demands)
	}
}

// outgrow has another scaler take a service over, and ask for more than the pool has at home.
func (s *watcher) outgrow(t *testing.T, service *v1alpha1.ElasticService) {
	t.Helper()
	ctx := context.Background()
	observe := []byte(`{"spec":{"mode":"Observe"}}`)
	if _, err := s.dyn.Resource(v1alpha1.GroupVersion.WithResource("elasticservices")).Namespace(service.Namespace).
		Patch(ctx, service.Name, types.MergePatchType, observe, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	deployments := s.core.AppsV1().Deployments(service.Namespace)
	scale, err := deployments.GetScale(ctx, service.Spec.TargetRef.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s has %d replicas, and is to have 60 more", service.Name, scale.Spec.Replicas)
	scale.Spec.Replicas += 60
	if _, err := deployments.UpdateScale(ctx, scale.Name, scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
