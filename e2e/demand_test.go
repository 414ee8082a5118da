package e2e

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/world"
)

// TestDemandIsNoticed: forecasts recall before pods wait, so another scaler enlarges services, one after the other, while parcels are away. The scheduler
// evicts nothing: it says that the pods wait, and the controller recalls for them. The report counts that, from the one to the other.
func TestDemandIsNoticed(t *testing.T) {
	const enough, rounds, patience = 30, 2, 10 * time.Minute
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
		case claimant != "" && s.waiting(context.Background()) > 0 && w.Now().Sub(scaled) < time.Hour:
			return false // room that is home already, and not taken yet, is no demand of the next one
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
	if report.Returns.Count == 0 || report.Returns.P99Seconds == nil || report.Returns.P99WallSeconds == nil {
		t.Errorf("room came home for pods that waited, and the report says of returns: %+v", report.Returns)
	}
}

// waiting counts the pods of services that are not bound. The scheduler's back-off is by the wall, and the world's minutes are short.
func (s *watcher) waiting(ctx context.Context) (n int) {
	pods, err := s.core.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range pods.Items {
		if o := pods.Items[i].OwnerReferences; len(o) > 0 && o[0].Kind == "ReplicaSet" {
			n++
		}
	}
	return n
}

// outgrow has another scaler take a service over, and ask for more than the pool has at home.
func (s *watcher) outgrow(t *testing.T, service *v1alpha1.ElasticService) {
	t.Helper()
	const beyond = 256 // cores: some of it is answered by loans that are called off before the machine is lent
	ctx := context.Background()
	observe := []byte(`{"spec":{"mode":"Observe"}}`)
	if _, err := s.dyn.Resource(v1alpha1.GroupVersion.WithResource("elasticservices")).Namespace(service.Namespace).
		Patch(ctx, service.Name, types.MergePatchType, observe, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	deployments := s.core.AppsV1().Deployments(service.Namespace)
	d, err := deployments.Get(ctx, service.Spec.TargetRef.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	more := int32((s.freeAtHome(ctx) + beyond) / d.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().AsApproximateFloat64())
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error { // the controller may write once more before it sees that it observes
		scale, err := deployments.GetScale(ctx, d.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		t.Logf("%s has %d replicas, and is to have %d more", service.Name, scale.Spec.Replicas, more)
		scale.Spec.Replicas += more
		_, err = deployments.UpdateScale(ctx, scale.Name, scale, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// freeAtHome is the cores of the online machines that no pod asks for, bound or waiting. A parcel on its way home
// counts as home: a recall for large pods brings more sockets than their cores fill, and small ones use the rest.
func (s *watcher) freeAtHome(ctx context.Context) float64 {
	nodes, err := s.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	pods, err := s.core.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	free, online := 0.0, map[string]bool{}
	for i := range nodes.Items {
		if n := &nodes.Items[i]; n.Labels[v1alpha1.LabelHome] != v1alpha1.HomeOffline {
			online[n.Name] = true
			free += n.Status.Allocatable.Cpu().AsApproximateFloat64()
		}
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if (online[p.Spec.NodeName] || p.Spec.NodeName == "") && len(p.OwnerReferences) > 0 && p.OwnerReferences[0].Kind == "ReplicaSet" {
			free -= p.Spec.Containers[0].Resources.Requests.Cpu().AsApproximateFloat64()
		}
	}
	for _, l := range s.loans {
		if online[l.Spec.NodeName] && fleet.Phase(l.Status.Phase) == fleet.Lent {
			free -= l.Spec.Capacity.CPU.AsApproximateFloat64()
		}
	}
	return max(free, 0)
}
