package act

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// Marks that a newer leader wrote are not written over by the one before it. Only the stamp of a leader of the same
// Lease, on this very machine, with a number that leaders can have reached, is that of a newer leader.
func TestMarksOfANewerLeaderStand(t *testing.T) {
	ours := protocol.Precondition{LeaderEpoch: 7}
	a := &applier{leads: leadership.Held{Epoch: 7, Lease: kubetest.Lease}}
	for text, stands := range map[string]bool{"": false, "6/lease-uid/n": false, "7/lease-uid/n": false,
		"8/lease-uid/n": true, "x": false, "8": false, "8/lease-uid": false,
		"8/lease-uid/": false, "8/another/n": false, "8//n": false, "8/lease-uid/copied": false, "x/lease-uid/n": false,
		"-1/lease-uid/n": false, "0/lease-uid/n": false,
		"1000007/lease-uid/n": true, "1000008/lease-uid/n": false, "4611686018427387904/lease-uid/n": false,
		"9223372036854775807/lease-uid/n": false,
		"9223372036854775808/lease-uid/n": false, "8/lease-uid/n/n": false} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n",
			Annotations: map[string]string{v1alpha1.AnnotationLeaderEpoch: text}}}
		now := a.nodeFact(watch.NewNodeFacts(n))
		if err := ours.Holds(&now); (err != nil) != stands {
			t.Errorf("marked by %q: %v", text, err)
		}
	}
}

func TestMarkPatch(t *testing.T) {
	taint := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute} }
	a := &applier{plan: &planner.Plan{LeaderEpoch: 7}, leads: leadership.Held{Epoch: 7, Lease: kubetest.Lease}}
	for _, c := range []struct {
		name string
		node func(*corev1.Node)
		want fleet.NodeMarks
		body string
	}{
		{"lend: other taints stay", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{taint("maintenance")} },
			fleet.NodeMarks{HolderTaint: true, KeepNode: true},
			`{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true","karpenter.sh/do-not-disrupt":"true","springtide.dev/keep-node":"cluster-autoscaler.kubernetes.io/scale-down-disabled,karpenter.sh/do-not-disrupt","springtide.dev/leader-epoch":"7/lease-uid/Node-n1-uid"},"labels":{"springtide.dev/home":null,"springtide.dev/offline":null},"resourceVersion":"100"},"spec":{"taints":[{"key":"maintenance","effect":"NoExecute"},{"key":"springtide.dev/holder","value":"offline","effect":"NoSchedule"}]}}`},
		{"home: only what we added goes", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{facts.HolderTaint()}
			n.Annotations = map[string]string{watch.AnnotationScaleDownDisabled: "true",
				watch.AnnotationDoNotDisrupt: "true", watch.AnnotationKept: watch.AnnotationDoNotDisrupt}
		}, fleet.NodeMarks{},
			`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":null,"springtide.dev/keep-node":null,"springtide.dev/leader-epoch":"7/lease-uid/Node-n1-uid"},"labels":{"springtide.dev/home":null,"springtide.dev/offline":null},"resourceVersion":"100"},"spec":{"taints":[]}}`},
		{"open to offline: taints are left alone", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{facts.HolderTaint(), taint("x")}
			n.Annotations = map[string]string{watch.AnnotationScaleDownDisabled: "true",
				watch.AnnotationDoNotDisrupt: "true", watch.AnnotationKept: ""}
		}, fleet.NodeMarks{HolderTaint: true, OfflineLabel: true, KeepNode: true},
			`{"metadata":{"annotations":{"springtide.dev/keep-node":"","springtide.dev/leader-epoch":"7/lease-uid/Node-n1-uid"},"labels":{"springtide.dev/home":null,"springtide.dev/offline":"true"},"resourceVersion":"100"}}`},
		{"at home in an offline pool", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{facts.HolderTaint()} },
			fleet.NodeMarks{HolderTaint: true, OfflineLabel: true, HomeLabel: true},
			`{"metadata":{"annotations":{"springtide.dev/leader-epoch":"7/lease-uid/Node-n1-uid"},"labels":{"springtide.dev/home":"offline","springtide.dev/offline":"true"},"resourceVersion":"100"}}`},
		{"at home there, and lent to online", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{facts.HolderTaint()}
		}, fleet.NodeMarks{HomeLabel: true},
			`{"metadata":{"annotations":{"springtide.dev/leader-epoch":"7/lease-uid/Node-n1-uid"},"labels":{"springtide.dev/home":"offline","springtide.dev/offline":null},"resourceVersion":"100"},"spec":{"taints":[]}}`},
		{"noticed by an older version until when", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{facts.HolderTaint()}
			n.Annotations = map[string]string{v1alpha1.AnnotationExpectedUntil: "2026-06-01T15:00:00Z",
				v1alpha1.AnnotationDue: "2026-06-01T15:02:00Z"}
		}, fleet.NodeMarks{HolderTaint: true},
			`{"metadata":{"annotations":{"springtide.dev/due":null,"springtide.dev/expected-until":null,"springtide.dev/leader-epoch":"7/lease-uid/Node-n1-uid"},"labels":{"springtide.dev/home":null,"springtide.dev/offline":null},"resourceVersion":"100"}}`},
		{"cut off", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{facts.HolderTaint(), taint("x")} },
			fleet.NodeMarks{HolderTaint: true, Fence: fleet.FenceExecute},
			`{"metadata":{"annotations":{"springtide.dev/leader-epoch":"7/lease-uid/Node-n1-uid"},"labels":{"springtide.dev/home":null,"springtide.dev/offline":null},"resourceVersion":"100"},"spec":{"taints":[{"key":"x","effect":"NoExecute"},{"key":"springtide.dev/holder","value":"offline","effect":"NoSchedule"},{"key":"springtide.dev/fenced","effect":"NoExecute"}]}}`},
		{"cut off less, next to online", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{facts.HolderTaint(), taint("springtide.dev/fenced")}
		}, fleet.NodeMarks{HolderTaint: true, Fence: fleet.FenceSchedule},
			`{"metadata":{"annotations":{"springtide.dev/leader-epoch":"7/lease-uid/Node-n1-uid"},"labels":{"springtide.dev/home":null,"springtide.dev/offline":null},"resourceVersion":"100"},"spec":{"taints":[{"key":"springtide.dev/holder","value":"offline","effect":"NoSchedule"},{"key":"springtide.dev/fenced","effect":"NoSchedule"}]}}`},
	} {
		n := kubetest.Node("n1", nil)
		c.node(n)
		if diff := cmp.Diff(c.body, string(a.markPatch(watch.NewNodeFacts(n), c.want))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
