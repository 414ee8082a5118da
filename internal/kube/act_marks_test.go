package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop/protocol"
)

// Marks that a newer leader wrote are not written over by the one before it. Only the stamp of a leader of the same Lease, on this very machine, with a
// number that leaders can have reached, is that of a newer leader.
func TestMarksOfANewerLeaderStand(t *testing.T) {
	ours := protocol.Precondition{LeaderEpoch: 7}
	a := &applier{leads: leadership.Held{Epoch: 7, Lease: kubetest.Lease}}
	for text, stands := range map[string]bool{"": false, "6/lease-uid/n": false, "7/lease-uid/n": false, "8/lease-uid/n": true, "x": false, "8": false, "8/lease-uid": false,
		"8/lease-uid/": false, "8/another/n": false, "8//n": false, "8/lease-uid/copied": false, "x/lease-uid/n": false, "-1/lease-uid/n": false, "0/lease-uid/n": false,
		"1000007/lease-uid/n": true, "1000008/lease-uid/n": false, "4611686018427387904/lease-uid/n": false, "9223372036854775807/lease-uid/n": false,
		"9223372036854775808/lease-uid/n": false, "8/lease-uid/n/n": false} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n", Annotations: map[string]string{v1alpha1.AnnotationLeaderEpoch: text}}}
		now := a.nodeFact(watch.NewNodeFacts(n))
		if err := ours.Holds(&now); (err != nil) != stands {
			t.Errorf("marked by %q: %v", text, err)
		}
	}
}
