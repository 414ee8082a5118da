package facts

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// leavingTaints are the keys by which other components say that a machine goes, or is switched off: whatever tolerates them, it has no more room. The
// cluster-autoscaler's DeletionCandidateOfClusterAutoscaler is not one: it falls on a machine that has been idle for some seconds, and a loan ends it.
var leavingTaints = []string{
	"karpenter.sh/disrupted",
	"karpenter.sh/disruption", // before v1
	"karpenter.sh/rebooting",
	"ToBeDeletedByClusterAutoscaler",
	"node.cloudprovider.kubernetes.io/shutdown",
	corev1.TaintNodeOutOfService,
	"cloud.google.com/impending-node-termination",
	"aws-node-termination-handler/spot-itn",
	"aws-node-termination-handler/scheduled-maintenance",
	"aws-node-termination-handler/asg-lifecycle-termination",
	"aws-node-termination-handler/rebalance-recommendation",
}

// IsLeavingTaint reports whether a taint says that its machine goes.
func IsLeavingTaint(t *corev1.Taint) bool { return slices.Contains(leavingTaints, t.Key) }

// lifecycleConditions are those that Kubernetes defines for administrators since 1.37. A maintenance under way comes
// before a planned one.
var lifecycleConditions = []corev1.NodeConditionType{corev1.NodeGracefulNodeShutdownInProgress, corev1.NodeDrained, corev1.NodeDrainInProgress,
	corev1.NodeMaintenanceInProgress, corev1.NodeMaintenancePlanned}

// Leaving says by what a machine is known to go, or to be maintained: its deletion, a taint of a node autoscaler or cloud, or a lifecycle condition.
func Leaving(n *corev1.Node) string {
	if n.DeletionTimestamp != nil {
		return "the deletion of the Node"
	}
	for i := range n.Spec.Taints {
		if t := &n.Spec.Taints[i]; IsLeavingTaint(t) {
			return "the taint " + t.ToString()
		}
	}
	for _, kind := range lifecycleConditions {
		if conditionTrue(n, kind) {
			return "the condition " + string(kind)
		}
	}
	return ""
}

// Shut says why a node takes no new pods of any kind, as far as it says so itself.
func Shut(n *corev1.Node) fleet.Shut {
	switch {
	case n.DeletionTimestamp != nil:
		return fleet.Shut{By: fleet.ShutByDeletion}
	case !KubeletReports(n):
		return fleet.Shut{By: fleet.ShutByKubelet}
	case n.Spec.Unschedulable:
		return fleet.Shut{By: fleet.ShutByCordon}
	}
	return fleet.Shut{}
}

// KubeletReports reports whether the kubelet of a node says that it is ready.
func KubeletReports(n *corev1.Node) bool { return conditionTrue(n, corev1.NodeReady) }

func conditionTrue(n *corev1.Node, kind corev1.NodeConditionType) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

// ForeignTaints are the taints of others that keep pods off. A preference keeps no pod off.
func ForeignTaints(ts []corev1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range ts {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && t.Key != v1alpha1.TaintFenced && !IsHolderTaint(t) {
			out = append(out, t)
		}
	}
	return out
}

// TaintText names taints in a message, sorted.
func TaintText(ts []corev1.Taint) string {
	names := make([]string, len(ts))
	for i := range ts {
		names[i] = ts[i].ToString()
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
