package kube

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/internal/kube/kubetest"
)

// fleetOf is a fleet of services of ten pods each, spread over machines with four cells and a share each.
func fleetOf(nodes, services int) []metav1.Object {
	objects := []metav1.Object{kubetest.Pool("web", "Online", kubetest.InWeb),
		kubetest.Pool("batch", "Offline", kubetest.InBatch)}
	for i := range nodes {
		name := fmt.Sprintf("n%05d", i)
		objects = append(objects, kubetest.Node(name, kubetest.InWeb), kubetest.Topology(name),
			kubetest.NodeShare(name, "l-"+name, "web", "batch", 1, false, 0, 1))
	}
	for i := range services {
		name := fmt.Sprintf("svc%04d", i)
		objects = append(objects, kubetest.Deployment(name, 10), kubetest.ReplicaSet(name, 1),
			kubetest.ReplicaSet(name, 2), kubetest.Service(name))
		for k := range 10 {
			objects = append(objects, kubetest.Pod("shop", fmt.Sprintf("%s-%d", name, k),
				fmt.Sprintf("n%05d", (i*10+k)%nodes), "ReplicaSet", name+"-2"))
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
