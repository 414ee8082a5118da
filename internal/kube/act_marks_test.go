package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/loop/protocol"
)

// Marks that a newer leader wrote are not written over by the one before it.
func TestMarksOfANewerLeaderStand(t *testing.T) {
	ours := protocol.Precondition{LeaderEpoch: 7}
	for epoch, stands := range map[string]bool{"": false, "6": false, "7": false, "8": true, "x": false} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{v1alpha1.AnnotationLeaderEpoch: epoch}}}
		now := nodeFact(newNodeFacts(n))
		if err := ours.Holds(&now); (err != nil) != stands {
			t.Errorf("marked by %q: %v", epoch, err)
		}
	}
}
