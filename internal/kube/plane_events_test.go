//go:build plane

package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
)

// TestPlaneEventsRepeat: an event that repeats is counted on the first one, which needs the right to patch events.
func TestPlaneEventsRepeat(t *testing.T) {
	p := newPlane(t)
	name := "pod-" + rand.String(5)
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: name, UID: types.UID(name)}
	for range 2 {
		p.rooms.Events.Event(about, corev1.EventTypeNormal, "Repeated", "the same words")
	}
	until(t, "one event with a count of two", func() bool {
		l, err := p.core.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Items) == 1 && l.Items[0].Count == 2
	})
}
