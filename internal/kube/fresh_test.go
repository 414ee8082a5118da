package kube

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/leadership"
)

// Before a plan is carried out facts are read once more. Where no watch brought anything since the snapshot they are those of the snapshot, under the
// leadership of now; one event of any kind has them read again.
func TestFreshFacts(t *testing.T) {
	w := newWorld(t, kubetest.Node("n1", kubetest.InWeb), kubetest.Pool("web", "Online", kubetest.InWeb))
	w.settled(t)
	s := w.snapshot(t)
	w.clock.Time = kubetest.Now.Add(time.Second)
	w.lead(leadership.Held{Epoch: 9, Lease: kubetest.Lease})
	same, err := w.Observer.Fresh()
	if err != nil {
		t.Fatal(err)
	}
	if &same.Nodes[0] != &s.Nodes[0] || same.LeaderEpoch != 9 || !same.At.Equal(w.clock.Time) {
		t.Errorf("nothing changed: the same nodes %v, leader epoch %d at %s", &same.Nodes[0] == &s.Nodes[0], same.LeaderEpoch, same.At)
	}
	n, err := w.core.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Labels[corev1.LabelTopologyZone], n.ResourceVersion = "elsewhere", "2000"
	if err := w.core.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""); err != nil {
		t.Fatal(err)
	}
	moved := func(s *fleet.Snapshot) bool { return s.Nodes[0].Zone == "elsewhere" }
	for limit := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		again, err := w.Observer.Fresh()
		if err != nil {
			t.Fatal(err)
		}
		if moved(again) {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("the node has another zone, and the facts do not say so")
		}
	}
	if moved(s) {
		t.Error("the snapshot changed")
	}
}

// settled waits until the events of the first lists have passed.
func (w *world) settled(t *testing.T) {
	t.Helper()
	for before := int64(-1); before != w.Changes.Load(); time.Sleep(20 * time.Millisecond) {
		before = w.Changes.Load()
	}
}
