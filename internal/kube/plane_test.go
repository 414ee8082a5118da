//go:build plane

package kube

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/crd"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// These tests run against a real API server, controller-manager and scheduler: `make plane` starts one and ends it. While they are written,
// one that stays saves its start:
//
//	SPRINGTIDE_TEST_KUBECONFIG=FILE go test -tags plane -run TestPlane ./internal/kube
//
// FILE is the kubeconfig of a cluster that may be filled with rubbish, as `springtide-lab up` prints one: each test makes objects under names
// of its own, and leaves them.

// wallClock is the clock of a user's cluster.
type wallClock struct{}

func (wallClock) Now() time.Time                              { return time.Now() }
func (wallClock) At(t time.Time) time.Time                    { return t }
func (wallClock) Park(context.Context, time.Time, bool) error { return nil }

// plane is a Cluster with the rights of deploy/base/rbac.yaml and no more. core and dyn are the test's own clients, with all rights.
type plane struct {
	*Cluster
	rooms
	core kubernetes.Interface
	dyn  dynamic.Interface
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("SPRINGTIDE_TEST_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{core: kubernetes.NewForConfigOrDie(cfg), dyn: dynamic.NewForConfigOrDie(cfg)}
	asController := rest.CopyConfig(cfg)
	asController.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + kubetest.Namespace +
		":springtide-controller",
		Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	c, err := New(asController, watch.Options{Namespace: kubetest.Namespace, Identity: "test-" + rand.String(6),
		Clock: wallClock{}, Log: slog.Default()})
	if err != nil {
		t.Fatal(err)
	}
	p.Cluster, p.rooms = c, c.in
	p.install(t)
	// The watches run under the context of their start, so it is the start alone that is bounded.
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	limit := time.AfterFunc(30*time.Second, cancel)
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	limit.Stop()
	return p
}

func (p *plane) install(t *testing.T) {
	t.Helper()
	p.tolerate(t, func() error {
		_, err := p.core.CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kubetest.Namespace}}, metav1.CreateOptions{})
		return err
	})
	files, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := fs.ReadFile(crd.Files, f)
		if err != nil {
			t.Fatal(err)
		}
		p.applyAll(t, text)
	}
	for _, f := range []string{"rbac.yaml", "priorityclass.yaml", "fields.yaml", "epochs.yaml"} {
		text, err := os.ReadFile("../../deploy/base/" + f)
		if err != nil {
			t.Fatal(err)
		}
		p.applyAll(t, text)
	}
	until(t, "the CRDs to be served", func() bool {
		_, err := p.Discover(t.Context())
		return err == nil
	})
}

// applyAll makes what a manifest holds; what is there already stays.
func (p *plane) applyAll(t *testing.T, manifest []byte) {
	t.Helper()
	resources := map[string]string{"CustomResourceDefinition": "customresourcedefinitions", "ServiceAccount": "serviceaccounts", "ClusterRole": "clusterroles",
		"ClusterRoleBinding": "clusterrolebindings", "Role": "roles", "RoleBinding": "rolebindings", "PriorityClass": "priorityclasses",
		"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
		"MutatingAdmissionPolicy": "mutatingadmissionpolicies", "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings"}
	for _, part := range strings.Split(string(manifest), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &u.Object); err != nil {
			t.Fatal(err)
		}
		gvr := u.GroupVersionKind().GroupVersion().WithResource(resources[u.GetKind()])
		p.tolerate(t, func() error {
			_, err := p.dyn.Resource(gvr).Namespace(u.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{})
			return err
		})
	}
}

// PutStatus writes a status in another client's name.
func (p *plane) putStatus(t *testing.T, gvr schema.GroupVersionResource, next metav1.Object) error {
	t.Helper()
	u, err := object.Encode(gvr, next)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.dyn.Resource(gvr).Namespace(next.GetNamespace()).UpdateStatus(t.Context(), u, metav1.UpdateOptions{})
	return err
}

func (p *plane) tolerate(t *testing.T, f func() error) {
	t.Helper()
	if err := f(); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("waited in vain for %s", what)
}

// create makes an object of ours.
func (p *plane) create(t *testing.T, gvr schema.GroupVersionResource, obj metav1.Object) {
	t.Helper()
	obj.SetResourceVersion("")
	obj.SetUID("")
	obj.SetCreationTimestamp(metav1.Time{})
	u, err := object.Encode(gvr, obj)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.dyn.Resource(gvr).Namespace(obj.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (p *plane) snapshot(t *testing.T) *fleet.Snapshot {
	t.Helper()
	s, err := p.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lostRace is what the API server says to a write from a version that is no more.
const lostRace = "the object has been modified"

// must applies a plan of which everything must be done. A single action that lost a race with the API server's own
// controllers, twice within the blink between its read and its write, is decided again as the next cycle would.
func (p *plane) must(t *testing.T, plan planner.Plan) {
	t.Helper()
	r := p.apply(t, plan)
	for again := 0; again < 5 && len(r.Results) == 1 && r.Results[0].Outcome == loop.Stale && strings.Contains(r.Results[0].Message, lostRace); again++ {
		r = p.apply(t, plan)
	}
	for _, r := range r.Results {
		if r.Outcome != loop.Done {
			t.Fatalf("%s %s: %s: %s", r.Action, r.Subject, r.Outcome, r.Message)
		}
	}
}

func (p *plane) apply(t *testing.T, plan planner.Plan) *loop.Receipt {
	t.Helper()
	plan.At, plan.LeaderEpoch = time.Now(), p.Leads().Epoch
	r, err := p.Apply(t.Context(), &plan)
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// TestPlaneLoan leads a machine through a whole loan, and a service through a scale-in with chosen victims.
func TestPlaneLoan(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	ctx, id := t.Context(), rand.String(5)
	machine := p.machineOf(t, id, "web")

	// Begin, and mark.
	begun := fleet.Loan{ID: fleet.LoanID("loan-" + id), Node: machine.ID, NodeName: machine.Name, Kind: fleet.KindNode, Cells: []int{0},
		Capacity: machine.Allocatable, From: fleet.PoolID("web-" + id), To: fleet.PoolID("batch-" + id)}.Begin(time.Now(), reason.Said("ebb"))
	p.must(t, planner.Plan{
		Moves: []planner.Move{{Kind: planner.MoveBegin, Before: begun, After: begun, Node: machine.Name}},
		Marks: []planner.Mark{{Node: machine.Name, ID: machine.ID, Want: fleet.NodeMarks{HolderTaint: true, KeepNode: true}}},
	})
	s := p.snapshot(t)
	l := s.Loan(begun.ID)
	if l == nil || l.Phase != fleet.Emptying || l.LeaderEpoch != p.Leads().Epoch {
		t.Fatalf("what was just written must be in the next snapshot: %+v", l)
	}
	if m := s.Node(machine.ID).Marks; m != (fleet.NodeMarks{HolderTaint: true, KeepNode: true}) {
		t.Fatalf("marks = %+v", m)
	}

	// A second plan for the same cells is stale, and leaves no loan behind.
	other := begun
	other.ID += "-b"
	if r := p.apply(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveBegin, Before: other, After: other, Node: machine.Name}}}); r.Count(loop.Stale) != 1 {
		t.Fatalf("a loan of the same cells: %+v", r.Results)
	}

	// Lend only after the node side says clean.
	ahead, _ := l.Lend(time.Now(), &fleet.ShareParcel{Clean: true, CleanEpoch: l.Epoch})
	if r := p.apply(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveLend, Before: *l, After: ahead}}}); r.Count(loop.Stale) != 1 {
		t.Fatalf("lent without a clean report: %+v", r.Results)
	}
	p.reportClean(t, machine.Name, 1)
	l = p.step(t, planner.MoveLend, l.ID, func(l fleet.Loan, e *fleet.ShareParcel) (fleet.Loan, error) { return l.Lend(time.Now(), e) })
	if e := p.snapshot(t).Node(machine.ID).Share.Find(l.ID); e.Holder != begun.To || e.Next != "" {
		t.Fatalf("after lending the share says %+v", e)
	}

	// Recall, notify, acknowledge, drain, evict.
	offline := p.offlinePod(t, id, machine.Name)
	deadline := time.Now().Add(time.Minute)
	l = p.step(t, planner.MoveRecall, l.ID, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) {
		return l.Recall(time.Now(), deadline, deadline.Add(time.Minute), reason.Said("flood"))
	})
	ref := planner.PodRef{Name: fleet.Name{Namespace: "default", Name: offline.Name}, ID: fleet.UID(offline.UID)}
	p.must(t, planner.Plan{Notices: []planner.Notice{{Pod: ref, Loan: l.ID, Epoch: l.Epoch, Deadline: l.Deadline}}})
	early := planner.Plan{Evictions: []planner.Eviction{{Pod: ref, Loan: l.ID}}}
	if r := p.apply(t, early); r.Count(loop.Stale) != 1 {
		t.Fatalf("evicted before the deadline: %+v", r.Results)
	}
	if r := p.apply(t, planner.Plan{Moves: []planner.Move{{Kind: planner.MoveDrain, Before: *l, After: *l}}}); r.Count(loop.Stale) != 1 {
		t.Fatalf("drained before the deadline: %+v", r.Results)
	}
	p.ack(t, offline.Name, l.Epoch)
	until(t, "the acknowledgement", func() bool {
		pod := find(p.snapshot(t), ref.ID)
		return pod != nil && pod.AckEpoch == l.Epoch && pod.NoticeLoan == l.ID
	})
	l = p.step(t, planner.MoveDrain, l.ID, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) { return l.Drain(time.Now(), true) })
	p.guard(t, id)
	if r := p.apply(t, early); r.Count(loop.Failed) != 1 || !strings.Contains(r.Results[0].Message, "disruption budget") {
		t.Fatalf("a disruption budget must be obeyed: %+v", r.Results)
	}
	if err := p.core.PolicyV1().PodDisruptionBudgets("default").Delete(ctx, "pdb-"+id, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the eviction", func() bool { return p.apply(t, early).Count(loop.Done) == 1 })
	if pod := find(p.snapshot(t), ref.ID); pod != nil && !pod.Deleting {
		t.Fatal("the evicted pod is in the next snapshot")
	}
	if ledger := p.snapshot(t).Pool(begun.From).Ledger; ledger.Recalls == 0 || ledger.Evictions != 0 {
		t.Fatalf("ledger = %+v: a recall is charged to its own line", ledger)
	}

	// Return and forget, once the pod is gone.
	p.gone(t, offline.Name, ref.ID)
	p.reportClean(t, machine.Name, l.Epoch)
	l = p.step(t, planner.MoveReturn, l.ID, func(l fleet.Loan, e *fleet.ShareParcel) (fleet.Loan, error) { return l.Return(time.Now(), e) })
	p.history(t, string(l.ID), "Emptying", "Lent", "Noticed", "Draining", "Returned")
	p.must(t, planner.Plan{
		Moves: []planner.Move{{Kind: planner.MoveForget, Before: *l, After: *l}},
	})
	p.must(t, planner.Plan{Marks: []planner.Mark{{Node: machine.Name, ID: machine.ID}}})
	s = p.snapshot(t)
	if s.Loan(l.ID) != nil || len(s.Node(machine.ID).Share.Parcels) != 0 || s.Node(machine.ID).Marks != (fleet.NodeMarks{}) {
		t.Fatalf("after forgetting: loan %v, share %+v, marks %+v", s.Loan(l.ID), s.Node(machine.ID).Share, s.Node(machine.ID).Marks)
	}
	live, err := p.core.CoreV1().Nodes().Get(ctx, machine.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for key := range live.Annotations {
		if key == watch.AnnotationKept || key == watch.AnnotationDoNotDisrupt {
			t.Errorf("annotation %s is left on the node", key)
		}
	}
}

func lead(t *testing.T, p *plane) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	leading, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- p.Lead(ctx, func(ctx context.Context, epoch int64) error {
			close(leading)
			<-ctx.Done()
			return nil
		})
	}()
	select {
	case <-leading:
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(30 * time.Second):
		t.Fatal("nobody leads")
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the end of the leadership: %v", err)
		}
	})
}

// step takes a loan one step further by the phase machine.
func (p *plane) step(t *testing.T, kind planner.MoveKind, id fleet.LoanID, next func(fleet.Loan, *fleet.ShareParcel) (fleet.Loan, error)) *fleet.Loan {
	t.Helper()
	// A step from what a cache does not show yet is stale, and is made again as the next cycle does.
	var after fleet.Loan
	until(t, string(kind), func() bool {
		s := p.snapshot(t)
		before := s.Loan(id)
		var err error
		if after, err = next(*before, s.Node(before.Node).Share.Find(id)); err != nil {
			t.Fatal(err)
		}
		plan := planner.Plan{Moves: []planner.Move{{Kind: kind, Before: *before, After: after, Node: before.NodeName}}}
		r := p.apply(t, plan).Results
		if len(r) != 1 || r[0].Outcome != loop.Done && r[0].Outcome != loop.Stale {
			t.Fatalf("%s: %+v", kind, r)
		}
		return r[0].Outcome == loop.Done
	})
	got := p.snapshot(t).Loan(id)
	if got.Phase != after.Phase || got.Epoch != after.Epoch {
		t.Fatalf("after %s the loan is %s at epoch %d", kind, got.Phase, got.Epoch)
	}
	return got
}

// reportClean plays the node side.
func (p *plane) reportClean(t *testing.T, node string, epoch int64) {
	t.Helper()
	// As a node side does: the leader may write the share between the read and the report.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		u, err := p.dyn.Resource(object.GVRShares).Get(t.Context(), node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s, err := object.Decode[v1alpha1.NodeShare](u)
		if err != nil {
			return err
		}
		now := metav1.Now()
		s.Status.Parcels = []v1alpha1.ParcelReport{{LoanUID: s.Spec.Parcels[0].LoanUID, Epoch: epoch, Clean: true, Time: &now}}
		return p.putStatus(t, object.GVRShares, s)
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the report to wake the loop", func() bool {
		for _, n := range p.snapshot(t).Nodes {
			if n.Name == node && n.Share.Parcels[0].IsClean(epoch) {
				<-p.Wake()
				return true
			}
		}
		return false
	})
}

func (p *plane) offlinePod(t *testing.T, id, node string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "offline-" + id,
		Labels: map[string]string{"run": id}}, Spec: kubetest.Template("2").Spec}
	pod.Spec.NodeName = node
	pod.Spec.Containers[0].Image = "none"
	pod.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpExists}}
	pod, err := p.core.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{kubetest.Ready(
		metav1.Now())}}
	if _, err := p.core.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the offline pod", func() bool {
		x := find(p.snapshot(t), fleet.UID(pod.UID))
		return x != nil && x.Class == fleet.PodOffline && x.Ready
	})
	return pod
}

func (p *plane) ack(t *testing.T, pod string, epoch int64) {
	t.Helper()
	x, err := p.core.CoreV1().Pods("default").Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x.Annotations[v1alpha1.AnnotationAck] = fmt.Sprint(epoch)
	if _, err := p.core.CoreV1().Pods("default").Update(t.Context(), x, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// guard puts a disruption budget around the pod that allows nothing.
func (p *plane) guard(t *testing.T, id string) {
	t.Helper()
	none := intstr.FromInt32(0)
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pdb-" + id},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"run": id}}}}
	if _, err := p.core.PolicyV1().PodDisruptionBudgets("default").Create(t.Context(), pdb, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (p *plane) history(t *testing.T, loan string, want ...string) {
	t.Helper()
	u, err := p.dyn.Resource(object.GVRLoans).Get(t.Context(), loan, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := object.Decode[v1alpha1.Loan](u)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range l.Status.History {
		got = append(got, h.Phase)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("history = %v, want %v", got, want)
	}
}

func find(s *fleet.Snapshot, id fleet.UID) *fleet.Pod {
	for i := range s.Pods {
		if s.Pods[i].ID == id {
			return &s.Pods[i]
		}
	}
	return nil
}
