package watch

import (
	"math"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/internal/kube/kubetest"
)

// An agent lives for the duration of its Lease after a renewal was seen, whatever its clock says; without one that was
// ever renewed there is none.
func TestAnAgentLivesByRenewals(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		lease *coordinationv1.Lease
		after time.Duration
		want  bool
	}{
		"just seen":              {kubetest.AgentOf(now, 10), 9 * time.Second, true},
		"says 68 years":          {kubetest.AgentOf(now, math.MaxInt32), 4 * time.Minute, true},
		"said 68 years":          {kubetest.AgentOf(now, math.MaxInt32), 6 * time.Minute, false},
		"says less than nothing": {kubetest.AgentOf(now, math.MinInt32), time.Second, false},
		"not seen for longer":    {kubetest.AgentOf(now, 10), 12 * time.Second, false},
		"its clock is behind":    {kubetest.AgentOf(now.Add(-time.Hour), 10), 9 * time.Second, true},
		"its clock is ahead":     {kubetest.AgentOf(now.Add(time.Hour), 10), 12 * time.Second, false},
		"never renewed":          {&coordinationv1.Lease{}, 0, false},
		"the default, within": {&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: kubetest.Ptr(
			metav1.NewMicroTime(now))}}, 39 * time.Second, true},
		"the default, and too late": {&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: kubetest.Ptr(
			metav1.NewMicroTime(now))}}, 42 * time.Second, false},
	} {
		if got := newAgents().See(c.lease).Alive(time.Now().Add(c.after)); got != c.want {
			t.Errorf("%s: alive %v", name, got)
		}
	}
}

// A list that is read again brings the Lease of a dead agent again: that is no sign of life.
func TestAListIsNoSignOfLife(t *testing.T) {
	agents, renewed := newAgents(), time.Now()
	first := agents.See(kubetest.AgentOf(renewed, 10))
	time.Sleep(time.Millisecond)
	if again := agents.See(kubetest.AgentOf(renewed, 10)); !again.Seen.Equal(first.Seen) {
		t.Errorf("seen at %v, and the same renewal again at %v", first.Seen, again.Seen)
	}
	if next := agents.See(kubetest.AgentOf(renewed.Add(time.Second), 10)); !next.Seen.After(first.Seen) {
		t.Error("a renewal is no sign of life")
	}
	agents.forget(first)
	if len(agents.last) != 0 {
		t.Errorf("%d agents are remembered whose Leases are gone", len(agents.last))
	}
}

// Of the conditions by which an administrator takes a machine away, what is under way is named before what is planned,
// and one that is not true is none.
func TestLifecycleConditions(t *testing.T) {
	yes := func(ts ...corev1.NodeConditionType) []corev1.NodeCondition {
		out := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			{Type: corev1.NodeDrained, Status: corev1.ConditionFalse},
			{Type: corev1.NodeDrainInProgress, Status: corev1.ConditionUnknown}}
		for _, t := range ts {
			out = append(out, corev1.NodeCondition{Type: t, Status: corev1.ConditionTrue})
		}
		return out
	}
	for want, conditions := range map[string][]corev1.NodeCondition{
		"":                                    yes(),
		"the condition MaintenancePlanned":    yes(corev1.NodeMaintenancePlanned),
		"the condition MaintenanceInProgress": yes(corev1.NodeMaintenancePlanned, corev1.NodeMaintenanceInProgress),
		"the condition GracefulNodeShutdownInProgress": yes(corev1.NodeMaintenanceInProgress,
			corev1.NodeGracefulNodeShutdownInProgress),
	} {
		n := &corev1.Node{Status: corev1.NodeStatus{Conditions: conditions}}
		if got := NewNodeFacts(n).Node; got.Leaving != want || !got.Ready {
			t.Errorf("condition %q, ready %v; want %q of a machine that is ready", got.Leaving, got.Ready, want)
		}
	}
}

func TestTopologyWithoutSocketsIsUnknown(t *testing.T) {
	u := kubetest.Topology("n1")
	zones, _, _ := unstructured.NestedSlice(u.Object, "zones")
	delete(zones[3].(map[string]any), "parent")
	if err := unstructured.SetNestedSlice(u.Object, zones, "zones"); err != nil {
		t.Fatal(err)
	}
	if f := newTopologyFacts(u); len(f.Cells) != 0 {
		t.Errorf("cells = %+v: a machine with a cell of unknown socket must be lent whole", f.Cells)
	}
	zones[3].(map[string]any)["attributes"] = []any{map[string]any{"name": "socket", "value": "0"}}
	if err := unstructured.SetNestedSlice(u.Object, zones, "zones"); err != nil {
		t.Fatal(err)
	}
	if f := newTopologyFacts(u); len(f.Cells) != 4 {
		t.Errorf("cells = %+v: the attribute names the socket", f.Cells)
	}
}
