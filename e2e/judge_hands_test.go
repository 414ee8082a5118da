package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/world"
)

// TestJudgedHands lets a user with every right write and delete what only Springtide should: the numbers of the epochs,
// loans, shares, marks and nodes.
func TestJudgedHands(t *testing.T) {
	var forged, dropped, returned string
	playActs(t, small(10*time.Hour), []fault{
		{name: "a loan is deleted while it is lent", ready: lent(4), do: func(_ *world.World, s *watcher) {
			l := s.someLoan(t, "Lent")
			dropped = l.Spec.NodeName
			s.plants("phase", l.Name, "it was deleted by hand")
			s.remove("loans", l.Name)
		}, then: 20 * time.Minute},
		{name: "a loan is written from Lent to Returned", ready: lent(3), do: func(w *world.World, s *watcher) {
			l := s.someLoan(t, "Lent", dropped)
			returned = l.Spec.NodeName
			s.plants("phase", l.Name, "it was written by hand")
			s.patchStatus(t, "loans", "", l.Name, map[string]any{"phase": "Returned", "since": metav1.NewTime(w.Now())})
		}, then: 20 * time.Minute},
		{name: "a NodeShare is deleted", ready: lent(2), do: func(_ *world.World, s *watcher) {
			s.remove("nodeshares", s.someLoan(t, "Lent", dropped, returned).Spec.NodeName)
		}, then: 20 * time.Minute},
		{name: "a lent machine loses its taint", ready: lent(2), do: func(_ *world.World, s *watcher) {
			node := s.someLoan(t, "Lent").Spec.NodeName
			s.editNode(t, node, func(n *corev1.Node) {
				n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == v1alpha1.TaintHolder })
			})
		}, then: 10 * time.Minute},
		{name: "a machine at home gets Springtide's taint and label", do: func(_ *world.World, s *watcher) {
			s.editNode(t, s.someHome(t), func(n *corev1.Node) {
				n.Labels[v1alpha1.LabelOffline] = "true"
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: v1alpha1.TaintHolder, Value: v1alpha1.TaintHolderOffline, Effect: corev1.TaintEffectNoSchedule})
			})
		}, then: 10 * time.Minute},
		{name: "a lent machine is deleted and is back under its name", ready: lent(2), do: func(_ *world.World, s *watcher) {
			node := s.someLoan(t, "Lent").Spec.NodeName
			s.remakeNode(t, node)
		}, then: 20 * time.Minute},
		{name: "a service's status carries the greatest epoch", do: func(_ *world.World, s *watcher) {
			v := s.services()[0]
			forged = v.Name
			s.patchStatus(t, "elasticservices", v.Namespace, v.Name, map[string]any{"leaderEpoch": int64(1<<63 - 1)})
		}, then: 10 * time.Minute},
		{name: "a target is copied from another cluster, with the stamp of a later leader", do: func(_ *world.World, s *watcher) {
			v := s.services()[0]
			s.stamp(t, v.Namespace, v.Spec.TargetRef.Name, "999/lease-of-another-cluster/deployment-of-another-cluster")
		}, then: 10 * time.Minute},
		{name: "two thirds of the machines get another's taint", do: func(_ *world.World, s *watcher) {
			s.taintMachines(t, true)
		}, then: 15 * time.Minute},
		{name: "the taints go", do: func(_ *world.World, s *watcher) { s.taintMachines(t, false) }, then: 10 * time.Minute},
		{name: "two budgets refuse, and a loan is recalled", ready: lent(1), do: func(w *world.World, s *watcher) {
			s.twoBudgets(t)
			s.recall(t)
		}, then: 20 * time.Minute},
		{name: "the budgets go", do: func(_ *world.World, s *watcher) { s.noBudgets(t) }, then: 5 * time.Minute},
		{name: "all services want all they may", do: func(w *world.World, s *watcher) {
			s.apply("festivalplans", festival("flood", w.Now(), time.Hour, s.services(), 1))
		}, then: 40 * time.Minute},
	})
	t.Logf("forged: %s; dropped: %s; returned: %s", forged, dropped, returned)
}

// someLoan is the first loan by name in a phase, of a whole machine of online, on none of some machines.
func (s *watcher) someLoan(t *testing.T, phase string, but ...string) v1alpha1.Loan {
	t.Helper()
	all := list[v1alpha1.Loan](s, "loans")
	slices.SortFunc(all, func(a, b v1alpha1.Loan) int {
		if a.Spec.Kind != b.Spec.Kind && a.Spec.Kind == "Node" {
			return -1
		}
		return 0
	})
	for _, l := range all {
		if l.Status.Phase == phase && l.Spec.From == "online" && !slices.Contains(but, l.Spec.NodeName) {
			return l
		}
	}
	t.Fatalf("no loan is %s outside of %v: %s", phase, but, s.summary())
	return v1alpha1.Loan{}
}

// someHome is a machine of online of which nothing is lent or moves.
func (s *watcher) someHome(t *testing.T) string {
	t.Helper()
	busy := map[string]bool{}
	for _, l := range list[v1alpha1.Loan](s, "loans") {
		busy[l.Spec.NodeName] = true
	}
	nodes, err := s.core.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		if n := &nodes.Items[i]; !busy[n.Name] && n.Labels[v1alpha1.LabelHome] == "" {
			return n.Name
		}
	}
	t.Fatal("no machine is wholly at home")
	return ""
}

func (s *watcher) remove(resource, name string) {
	s.t.Helper()
	if err := s.dyn.Resource(v1alpha1.GroupVersion.WithResource(resource)).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// patchStatus writes a status by hand. A refusal is what should happen, and ends the fault there.
func (s *watcher) patchStatus(t *testing.T, resource, namespace, name string, status map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.dyn.Resource(v1alpha1.GroupVersion.WithResource(resource)).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
		t.Logf("refused: %v", err)
	case err != nil:
		t.Fatal(err)
	}
}

func (s *watcher) editNode(t *testing.T, name string, edit func(*corev1.Node)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // the controller writes its marks meanwhile
		n, err := s.core.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		edit(n)
		_, err = s.core.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// stamp writes a leader's stamp on a target.
func (s *watcher) stamp(t *testing.T, namespace, name, text string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AnnotationLeaderEpoch: text}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.core.AppsV1().Deployments(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// taintMachines puts a taint of another component on two of three machines, or takes it off.
func (s *watcher) taintMachines(t *testing.T, on bool) {
	t.Helper()
	const key = "example.com/maintenance"
	nodes, err := s.core.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		if i%3 == 2 {
			continue
		}
		s.editNode(t, nodes.Items[i].Name, func(n *corev1.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == key })
			if on {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
			}
		})
	}
}

// remakeNode deletes a machine and makes it again, as a cloud does that repairs one: same name, labels and size, another UID, no marks of ours.
func (s *watcher) remakeNode(t *testing.T, name string) {
	t.Helper()
	nodes := s.core.CoreV1().Nodes()
	n, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := nodes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	again := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: n.Labels, Annotations: map[string]string{plane.NodeAnnotation: plane.NodeAnnotationValue}}, Status: n.Status}
	delete(again.Labels, v1alpha1.LabelOffline)
	if _, err := nodes.Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// noBudgets takes all budgets away.
func (s *watcher) noBudgets(t *testing.T) {
	t.Helper()
	all, err := s.core.PolicyV1().PodDisruptionBudgets("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		b := &all.Items[i]
		if err := s.core.PolicyV1().PodDisruptionBudgets(b.Namespace).Delete(t.Context(), b.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// twoBudgets puts each offline pod under two budgets that allow nothing: the API server answers evictions with 500.
func (s *watcher) twoBudgets(t *testing.T) {
	t.Helper()
	jobs, err := s.core.BatchV1().Jobs("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	namespaces := map[string]bool{}
	for i := range jobs.Items {
		namespaces[jobs.Items[i].Namespace] = true
	}
	none := intstr.FromInt32(0)
	for ns := range namespaces {
		for i := range 2 {
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("none-%d", i)},
				Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{}}}
			if _, err := s.core.PolicyV1().PodDisruptionBudgets(ns).Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
