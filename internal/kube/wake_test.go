package kube

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
)

// calm empties the channel: what was read at the start wakes as well.
func (w *world) calm(t *testing.T) {
	t.Helper()
	for {
		select {
		case <-w.Wake():
		case <-time.After(100 * time.Millisecond):
			return
		}
	}
}

func TestWake(t *testing.T) {
	noticed := kubetest.Pod("train", "bert-0", "n1", "", "")
	noticed.Annotations = map[string]string{v1alpha1.AnnotationNotice: `{"loan":"l","epoch":3,"deadline":"2026-06-01T12:01:00Z"}`}
	w := newWorld(t, noticed, kubetest.NamespaceOf(kubetest.Namespace, nil), kubetest.NamespaceOf("other", nil),
		kubetest.NodeShare("n1", "l", "batch", "web", 3, false, 0))
	annotate := func(p *corev1.Pod, key, value string) {
		t.Helper()
		p.Annotations[key] = value
		if err := w.core.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), p.DeepCopy(), p.Namespace); err != nil {
			t.Fatal(err)
		}
	}
	freeze := func(namespace, why string) {
		t.Helper()
		n := kubetest.NamespaceOf(namespace, nil)
		n.Annotations = map[string]string{v1alpha1.AnnotationFreeze: why}
		// The controller itself has no right to change namespaces; an operator does.
		if err := w.core.Tracker().Update(corev1.SchemeGroupVersion.WithResource("namespaces"), n, ""); err != nil {
			t.Fatal(err)
		}
	}
	report := func(clean bool) {
		t.Helper()
		s := kubetest.NodeShare("n1", "l", "batch", "web", 3, clean, 0)
		u, err := object.Encode(object.GVRShares, s)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.dyn.Tracker().Update(object.GVRShares, u, ""); err != nil {
			t.Fatal(err)
		}
	}
	unplaced := func(name string, since bool) {
		t.Helper()
		p := kubetest.Pod("shop", name, "", "", "")
		if err := w.core.Tracker().Add(p); err != nil {
			t.Fatal(err)
		}
		if since {
			w.Waited.Store(nil)
		}
		p = p.DeepCopy()
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		if err := w.core.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), p, p.Namespace); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		do    func()
		wakes bool
	}{
		{"an acknowledgement", func() { annotate(noticed, v1alpha1.AnnotationAck, "3") }, true},
		{"some other annotation", func() { annotate(noticed, "x", "y") }, false},
		{"a report of clean", func() { report(true) }, true},
		{"the same report again", func() { report(true) }, false},
		{"the freeze", func() { freeze(kubetest.Namespace, "network change") }, true},
		{"a pod that begins to wait while a parcel is away", func() { unplaced("cart-9", true) }, true},
		{"another one at once", func() { unplaced("cart-10", false) }, false},
		{"a freeze of somebody else's namespace", func() { freeze("other", "x") }, false},
	} {
		w.calm(t)
		c.do()
		// The test waits long for an event that must wake. One that must not wake arrives well within a tenth of a
		// second.
		patience, woken := 100*time.Millisecond, false
		if c.wakes {
			patience = 30 * time.Second
		}
		select {
		case <-w.Wake():
			woken = true
		case <-time.After(patience):
		}
		if woken != c.wakes {
			t.Errorf("%s: woken %v, want %v", c.name, woken, c.wakes)
		}
	}
}
