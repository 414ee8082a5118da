package facts

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
)

// A machine leaves by its deletion, by the taint of a node autoscaler or a cloud, or by a lifecycle condition; other taints, and candidates of the
// cluster-autoscaler, stay.
func TestLeaving(t *testing.T) {
	taint := func(key, value string, effect corev1.TaintEffect) *corev1.Node {
		return &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{HolderTaint(), {Key: key, Value: value, Effect: effect}}}}
	}
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: kind, Status: status}}}}
	}
	now := metav1.NewTime(time.Unix(1, 0))
	for _, c := range []struct {
		name string
		node *corev1.Node
		want string
	}{
		{"Karpenter", taint("karpenter.sh/disrupted", "", corev1.TaintEffectNoSchedule), "the taint karpenter.sh/disrupted:NoSchedule"},
		{"Karpenter before v1", taint("karpenter.sh/disruption", "disrupting", corev1.TaintEffectNoSchedule), "the taint karpenter.sh/disruption=disrupting:NoSchedule"},
		{"cluster-autoscaler", taint("ToBeDeletedByClusterAutoscaler", "1717", corev1.TaintEffectNoSchedule), "the taint ToBeDeletedByClusterAutoscaler=1717:NoSchedule"},
		{"a candidate of it", taint("DeletionCandidateOfClusterAutoscaler", "1717", corev1.TaintEffectPreferNoSchedule), ""},
		{"the cloud switched it off", taint("node.cloudprovider.kubernetes.io/shutdown", "", corev1.TaintEffectNoSchedule), "the taint node.cloudprovider.kubernetes.io/shutdown:NoSchedule"},
		{"out of service", taint(corev1.TaintNodeOutOfService, "nodeshutdown", corev1.TaintEffectNoExecute), "the taint node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"},
		{"a spot machine is taken back", taint("aws-node-termination-handler/spot-itn", "e", corev1.TaintEffectPreferNoSchedule), "the taint aws-node-termination-handler/spot-itn=e:PreferNoSchedule"},
		{"GKE", taint("cloud.google.com/impending-node-termination", "", corev1.TaintEffectNoSchedule), "the taint cloud.google.com/impending-node-termination:NoSchedule"},
		{"a taint of a team", taint("dedicated", "db", corev1.TaintEffectNoSchedule), ""},
		{"pressure", taint(corev1.TaintNodeMemoryPressure, "", corev1.TaintEffectNoSchedule), ""},
		{"a machine that arrives", taint("karpenter.sh/unregistered", "", corev1.TaintEffectNoExecute), ""},
		{"maintenance", condition(corev1.NodeMaintenancePlanned, corev1.ConditionTrue), "the condition MaintenancePlanned"},
		{"none", condition(corev1.NodeMaintenancePlanned, corev1.ConditionFalse), ""},
		{"deleted", &corev1.Node{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}, "the deletion of the Node"},
	} {
		if got := Leaving(c.node); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestShut(t *testing.T) {
	ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, c := range []struct {
		node corev1.Node
		want fleet.ShutBy
	}{
		{corev1.Node{Status: corev1.NodeStatus{Conditions: ready}}, ""},
		{corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}, Status: corev1.NodeStatus{Conditions: ready}}, fleet.ShutByCordon},
		{corev1.Node{}, fleet.ShutByKubelet},
	} {
		if got := Shut(&c.node).By; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
