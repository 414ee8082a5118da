package uninstall

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/clitest"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/scripttest"
)

// TestUninstallSaysWhatIsLost: without --prepare nothing is written, and recalls that do not end leave everything as it is.
func TestUninstallSaysWhatIsLost(t *testing.T) {
	w := newWorld(t)
	got := w.Run("uninstall")
	if strings.Contains(got, "wrote:") {
		t.Errorf("something was written:\n%s", got)
	}
	got += w.Run("uninstall", "--prepare", "--timeout", "0s")
	scripttest.Golden(t, filepath.Join("testdata", "cluster", "uninstall.txt"), got)
}

// TestUninstallRefusesGates: nothing is written while new pods need the controller to become ready.
func TestUninstallRefusesGates(t *testing.T) {
	w := newWorld(t)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gated"}}
	d.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1alpha1.PodInService}}
	if err := w.Core.Tracker().Add(d); err != nil {
		t.Fatal(err)
	}
	got := w.Run("uninstall", "--prepare", "--timeout", "0s")
	if want := "1 Deployment with the readiness gate springtide.dev/in-service (shop/gated)"; !strings.Contains(got,
		want) ||
		strings.Contains(got, "wrote:") {
		t.Errorf("want %q and no write:\n%s", want, got)
	}
}

// TestUninstallLeavesNothing: when everything came home, no mark of ours is left on machines, pods and workloads, and what others wrote stays.
func TestUninstallLeavesNothing(t *testing.T) {
	w := newWorld(t)
	ours := map[string]string{v1alpha1.AnnotationLeaderEpoch: "4"}
	marked := []runtime.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lent", Labels: map[string]string{v1alpha1.LabelOffline: "true", v1alpha1.LabelHome: "offline", v1alpha1.LabelNetworkPod: "a",
			v1alpha1.LabelRuntimeHooks: "true"},
			Annotations: map[string]string{v1alpha1.AnnotationDue: "x", v1alpha1.AnnotationExpectedUntil: "x", v1alpha1.AnnotationLeaderEpoch: "4",
				v1alpha1.AnnotationKept: "karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-disrupt": "true", "owner": "me"}},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: v1alpha1.TaintHolder, Value: "offline", Effect: "NoSchedule"}, {Key: v1alpha1.TaintFenced, Effect: "NoExecute"},
				{Key: "gpu", Effect: "NoSchedule"}}},
			Status: corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), v1alpha1.ResourceReclaimedCPU: resource.MustParse("4000")},
				Allocatable: corev1.ResourceList{v1alpha1.ResourceReclaimedCPU: resource.MustParse("4000")}}},
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: agents, Name: agents}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "leaver",
			Annotations: map[string]string{v1alpha1.AnnotationLeavesAt: "3", corev1.PodDeletionCost: "-1000", v1alpha1.AnnotationNotice: "{}", "owner": "me"}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "costly", Annotations: map[string]string{corev1.PodDeletionCost: "5"}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.ControllerNamespace, Name: "filler", Labels: map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentFiller}}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", Annotations: ours}},
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Annotations: ours}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.ControllerNamespace, Name: v1alpha1.AgentLeasePrefix + "lent"}},
	}
	for _, o := range marked {
		if err := w.Core.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	// The controller brings everything home as soon as the pools ask for it.
	recalled, away, observed := false, loanNames(t, w), map[string]bool{}
	w.Dyn.PrependReactor("patch", cluster.Pools, func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := string(a.(clienttesting.PatchAction).GetPatch())
		observed[a.(clienttesting.PatchAction).GetName()] = strings.Contains(patch, `"mode":"Observe"`)
		if strings.Contains(patch, `"highWatermarkPercent":100`) && !recalled {
			if !observed["offline"] {
				t.Errorf("online may borrow from the offline pool for the headroom that brings everything home: %v were patched", observed)
			}
			recalled = true
			for _, name := range away {
				if err := w.Dyn.Tracker().Delete(v1alpha1.GroupVersion.WithResource(cluster.Loans), "", name); err != nil {
					t.Error(err)
				}
			}
		}
		return false, nil, nil
	})
	got := w.Run("uninstall", "--prepare")
	if !strings.Contains(got, "give back shop/cart") || strings.Contains(got, "dry run") {
		t.Errorf("an adopted HorizontalPodAutoscaler was not given back:\n%s", got)
	}
	if !strings.Contains(got, "The cluster is ready") || !recalled {
		t.Fatalf("not ready:\n%s", got)
	}
	n, err := w.Core.CoreV1().Nodes().Get(t.Context(), "lent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(n.Labels) != "map[springtide.dev/network-pod:a]" || fmt.Sprint(n.Annotations) != "map[owner:me]" || len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "gpu" {
		t.Errorf("the node has labels %v, annotations %v and taints %v", n.Labels, n.Annotations, n.Spec.Taints)
	}
	if _, left := n.Status.Allocatable[v1alpha1.ResourceReclaimedCPU]; left || len(n.Status.Capacity) != 1 {
		t.Errorf("the node offers %v of %v", n.Status.Allocatable, n.Status.Capacity)
	}
	if _, err := w.Core.AppsV1().DaemonSets(agents).Get(t.Context(), agents, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the node agents run on: %v", err)
	}
	leaving, err := w.Core.CoreV1().Pods("shop").Get(t.Context(), "leaver", metav1.GetOptions{})
	if err != nil || fmt.Sprint(leaving.Annotations) != "map[owner:me]" {
		t.Errorf("the leaver has %v (%v)", leaving.Annotations, err)
	}
	costly, err := w.Core.CoreV1().Pods("shop").Get(t.Context(), "costly", metav1.GetOptions{})
	if err != nil || costly.Annotations[corev1.PodDeletionCost] != "5" {
		t.Errorf("another's deletion cost became %v (%v)", costly.Annotations, err)
	}
	pods, err := w.Core.CoreV1().Pods(cluster.ControllerNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("fillers are left: %v (%v)", pods.Items, err)
	}
	d, err := w.Core.AppsV1().Deployments("shop").Get(t.Context(), "cart", metav1.GetOptions{})
	if err != nil || len(d.Annotations) > 0 {
		t.Errorf("the Deployment has %v (%v)", d.Annotations, err)
	}
	s, err := w.Core.AppsV1().StatefulSets("shop").Get(t.Context(), "db", metav1.GetOptions{})
	if err != nil || len(s.Annotations) > 0 {
		t.Errorf("the StatefulSet has %v (%v)", s.Annotations, err)
	}
	leases, err := w.Core.CoordinationV1().Leases(cluster.ControllerNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(leases.Items) > 0 {
		t.Errorf("Leases are left: %v (%v)", leases.Items, err)
	}
	c := &cluster.Clients{Core: w.Core, Dyn: w.Dyn}
	left, err := readHoldings(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(left.loans)+len(left.shares) > 0 {
		t.Errorf("%d loans and %d shares are left", len(left.loans), len(left.shares))
	}
	for _, p := range left.pools {
		if p.Spec.Mode != "Observe" || p.Annotations[annotationWatermarks] != "" || deref(p.Spec.HighWatermarkPercent, 3) == 100 {
			t.Errorf("pool %s is left as %+v", p.Name, p.Spec)
		}
	}
	if i := slices.IndexFunc(left.services, func(s v1alpha1.ElasticService) bool { return s.Spec.Mode != "Observe" }); i >= 0 {
		t.Errorf("service %s is left in mode %s", left.services[i].Name, left.services[i].Spec.Mode)
	}
	// A second run finds nothing to do.
	if again := w.Run("uninstall", "--prepare"); strings.Contains(again, "lost") && strings.Contains(again, "marks\n") {
		t.Errorf("the second run:\n%s", again)
	}
}

// TestUninstallByMarks: with our definitions gone, or with the services gone, everything that carries a mark of ours is found by it and given back.
func TestUninstallByMarks(t *testing.T) {
	for name, gone := range map[string][]string{
		"all definitions":        {cluster.Services, cluster.Pools, cluster.Loans, cluster.Shares},
		"that of services":       {cluster.Services},
		"that of the NodeShares": {cluster.Shares},
	} {
		w := newWorld(t)
		lent := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lent", Labels: map[string]string{v1alpha1.LabelOffline: "true"}},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: v1alpha1.TaintHolder, Value: "offline", Effect: "NoSchedule"}}}}
		if err := w.Core.Tracker().Add(lent); err != nil {
			t.Fatal(err)
		}
		for _, kind := range gone {
			w.Dyn.PrependReactor("list", kind, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, clitest.ErrNoDefinition })
		}
		got := w.Run("uninstall", "--prepare", "--abandon-loans")
		for _, want := range []string{"The definitions of " + gone[0], "minReplicas 46 -> 4, given back", "ScaledObject shop/mailer goes on", "machines lost their marks", "The cluster is ready"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s gone: no %q in\n%s", name, want, got)
			}
		}
		n, err := w.Core.CoreV1().Nodes().Get(t.Context(), "lent", metav1.GetOptions{})
		if err != nil || len(n.Labels)+len(n.Spec.Taints) > 0 {
			t.Errorf("%s gone: the node has labels %v and taints %v (%v)", name, n.Labels, n.Spec.Taints, err)
		}
	}
}

func loanNames(t *testing.T, w *clitest.World) []string {
	t.Helper()
	names, err := (&cluster.Clients{Dyn: w.Dyn}).Names(t.Context(), cluster.Loans, "")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestUninstallWaitsForAgents: while a node agent runs no mark is taken off a machine, also where an earlier run has deleted the DaemonSet.
func TestUninstallWaitsForAgents(t *testing.T) {
	for _, daemonSet := range []bool{true, false} {
		w := newWorld(t)
		for _, name := range loanNames(t, w) {
			if err := w.Dyn.Tracker().Delete(v1alpha1.GroupVersion.WithResource(cluster.Loans), "", name); err != nil {
				t.Fatal(err)
			}
		}
		there := []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lent", Labels: map[string]string{v1alpha1.LabelOffline: "true"}}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: agents, Name: "agent-x", Labels: map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentAgent}}}}
		if daemonSet {
			there = append(there, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: agents, Name: agents}})
		}
		for _, o := range there {
			if err := w.Core.Tracker().Add(o); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.Run("uninstall", "--prepare", "--timeout", "0s"); !strings.Contains(got, "pod agent-x of the "+v1alpha1.ComponentAgent+" has not ended") {
			t.Errorf("with a DaemonSet %v:\n%s", daemonSet, got)
		}
		if n, err := w.Core.CoreV1().Nodes().Get(t.Context(), "lent", metav1.GetOptions{}); err != nil || n.Labels[v1alpha1.LabelOffline] != "true" {
			t.Errorf("with a DaemonSet %v the node has labels %v (%v)", daemonSet, n.Labels, err)
		}
	}
}

// TestHoldingsAway: a loan that has ended is neither lent nor borrowed.
func TestHoldingsAway(t *testing.T) {
	h := &holdings{pools: make([]v1alpha1.CapacityPool, 2)}
	h.pools[0].Name, h.pools[0].Spec.Class = "web", "Online"
	h.pools[1].Name, h.pools[1].Spec.Class = "batch", "Offline"
	for _, l := range []struct{ name, from, phase string }{
		{"lent", "web", "Lent"}, {"home", "web", "Returned"}, {"borrowed", "batch", "Lent"}, {"given-back", "batch", "Returned"}, {"called-off", "batch", "Cancelled"},
	} {
		loan := v1alpha1.Loan{ObjectMeta: metav1.ObjectMeta{Name: l.name}}
		loan.Spec.From, loan.Status.Phase = l.from, l.phase
		h.loans = append(h.loans, loan)
	}
	lent, borrowed := h.away()
	if len(lent) != 1 || lent[0].Name != "lent" || len(borrowed) != 1 || borrowed[0].Name != "borrowed" {
		t.Errorf("lent %v, borrowed %v", lent, borrowed)
	}
}
