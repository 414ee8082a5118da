package kube

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fleetOf is a fleet of services of ten pods each, spread over machines with four cells and a share each.
func fleetOf(nodes, services int) []metav1.Object {
	objects := []metav1.Object{pool("web", "Online", inWeb), pool("batch", "Offline", inBatch)}
	for i := range nodes {
		name := fmt.Sprintf("n%05d", i)
		objects = append(objects, node(name, inWeb), topology(name), nodeShare(name, "l-"+name, "web", "batch", 1, false, 0, 1))
	}
	for i := range services {
		name := fmt.Sprintf("svc%04d", i)
		objects = append(objects, deployment(name, 10), replicaSet(name, 1), replicaSet(name, 2), service(name))
		for k := range 10 {
			objects = append(objects, pod("shop", fmt.Sprintf("%s-%d", name, k), fmt.Sprintf("n%05d", (i*10+k)%nodes), "ReplicaSet", name+"-2"))
		}
	}
	return objects
}

// BenchmarkSnapshot is the goal of the design: 2,000 pods on 200 machines in under 10 ms.
func BenchmarkSnapshot(b *testing.B) {
	w := newWorld(b, fleetOf(200, 200)...)
	b.ReportAllocs()
	for b.Loop() {
		s, err := w.Snapshot(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if len(s.Pods) != 2000 || len(s.Services[7].Pods) != 10 {
			b.Fatal("the fleet is not whole")
		}
	}
}

// BenchmarkPodFacts is the cost of one pod event.
func BenchmarkPodFacts(b *testing.B) {
	p := pod("shop", "cart-a", "n1", "ReplicaSet", "cart-1")
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Resources: p.Spec.Containers[0].Resources})
	b.ReportAllocs()
	for b.Loop() {
		newPodFacts(p)
	}
}
