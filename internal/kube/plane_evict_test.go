//go:build plane

package kube

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// counted counts the requests for evictions by pod. It says Retry-After in each refusal, as the API server does with 10 seconds while it still
// processes the budget; when that is over depends on the disruption controller.
type counted struct {
	base http.RoundTripper
	mu   sync.Mutex
	by   map[string]int
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/eviction") {
		c.mu.Lock()
		c.by[r.URL.Path]++
		c.mu.Unlock()
	}
	resp, err := c.base.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusTooManyRequests {
		resp.Header.Set("Retry-After", "1")
	}
	return resp, err
}

// TestPlaneRefusedEvictions: a disruption budget that lets no pod go holds up no service. Each eviction is asked once in a plan, the scale of the
// same plan lands, and the next snapshot names the budget.
func TestPlaneRefusedEvictions(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	const many = 20 // more than there are slots
	// The bound on an action is no part of this test: it must leave time for an eviction to be asked again.
	p.Options.ActionWithin, p.Options.ApplyWithin = 25*time.Second, time.Hour
	id := rand.String(5)
	svc := p.app(t, "app-"+id, 2, "Scale")
	m := p.machineOf(t, id, "web")
	l := p.begin(t, fleet.Loan{ID: fleet.LoanID("loan-" + id), Node: m.ID, NodeName: m.Name, Kind: fleet.KindNode, Cells: []int{0}, Capacity: m.Allocatable,
		From: fleet.PoolID("web-" + id), To: fleet.PoolID("batch-" + id)}.Begin(time.Now(), reason.Said("ebb")), fleet.NodeMarks{HolderTaint: true, KeepNode: true})
	p.reportClean(t, m.Name, 1)
	p.step(t, planner.MoveLend, l.ID, func(l fleet.Loan, e *fleet.ShareParcel) (fleet.Loan, error) { return l.Lend(time.Now(), e) })
	p.guard(t, id)
	var plan planner.Plan
	for i := range many {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("offline-%s-%02d", id, i), Labels: map[string]string{"run": id}},
			Spec: corev1.PodSpec{NodeName: m.Name, Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
		pod.Spec.Tolerations = kubetest.Template("1").Spec.Tolerations
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "springtide.dev/holder", Operator: corev1.TolerationOpExists})
		pod, err := p.core.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{kubetest.Ready(
			metav1.Now())}}
		if _, err := p.core.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		plan.Evictions = append(plan.Evictions, planner.Eviction{Loan: l.ID,
			Pod: planner.PodRef{Name: fleet.Name{Namespace: "default", Name: pod.Name}, ID: fleet.UID(pod.UID)}})
	}
	until(t, "the offline pods", func() bool { x := find(p.snapshot(t), plan.Evictions[many-1].Pod.ID); return x != nil && x.Ready })
	p.step(t, planner.MoveRecall, l.ID, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) {
		return l.Recall(time.Now(), time.Now().Add(16*time.Second), time.Now().Add(time.Hour), reason.Said("flood"))
	})
	until(t, "the deadline", func() bool { return !p.snapshot(t).At.Before(p.snapshot(t).Loan(l.ID).Deadline) })
	p.step(t, planner.MoveDrain, l.ID, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) { return l.Drain(time.Now(), false) })

	c := p.count(t)
	s := p.snapshot(t).Service(svc)
	plan.Raises = []planner.Scale{{Service: svc, Target: s.Target, Kind: s.TargetKind, By: s.Actuation, From: 2, To: 3, Version: s.Version}}
	r := p.apply(t, plan)
	if r.Count(loop.Failed) != many || r.Count(loop.Done) != 1 {
		t.Fatalf("%d refused, %d done, want %d evictions refused and the scale done: %+v", r.Count(loop.Failed), r.Count(loop.Done), many, r.Results)
	}
	if got := p.snapshot(t).Service(svc).Desired.Value; got != 3 {
		t.Errorf("the service has %d replicas while evictions are refused, want 3", got)
	}
	if len(c.by) != many {
		t.Errorf("%d pods were asked for, want %d", len(c.by), many)
	}
	for path, n := range c.by {
		if n != 1 {
			t.Errorf("%s was asked %d times in one plan", path, n)
		}
	}
	if by := find(p.snapshot(t), plan.Evictions[0].Pod.ID).Refused.By; by != "default/pdb-"+id {
		t.Errorf("the pod is refused by %q", by)
	}
}

// TestPlaneRefusalsAreNamed: what a real API server says of evictions that cannot succeed is understood at the first refusal, and nothing is charged for it.
func TestPlaneRefusalsAreNamed(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	id := rand.String(5)
	m := p.machineOf(t, id, "web")
	l := p.begin(t, fleet.Loan{ID: fleet.LoanID("loan-" + id), Node: m.ID, NodeName: m.Name, Kind: fleet.KindNode, Cells: []int{0}, Capacity: m.Allocatable,
		From: fleet.PoolID("web-" + id), To: fleet.PoolID("batch-" + id)}.Begin(time.Now(), reason.Said("ebb")), fleet.NodeMarks{HolderTaint: true, KeepNode: true})
	p.reportClean(t, m.Name, 1)
	p.step(t, planner.MoveLend, l.ID, func(l fleet.Loan, e *fleet.ShareParcel) (fleet.Loan, error) { return l.Lend(time.Now(), e) })
	none := intstr.FromInt32(0)
	for _, name := range []string{"a", "b"} {
		if _, err := p.core.PolicyV1().PodDisruptionBudgets("default").Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + id},
			Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"two": id}}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p.guard(t, id)
	// A policy that forbids the eviction of one pod.
	kept := "by-policy-" + id
	if _, err := p.core.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: kept},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}}}}}},
			Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("request.name != %q", kept), Message: "it is kept"}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.core.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: kept},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: kept, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the policy", func() bool {
		err := p.core.PolicyV1().Evictions("default").Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: kept},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
		return err != nil && !apierrors.IsNotFound(err)
	})
	var plan planner.Plan
	refs := map[string]planner.PodRef{}
	for _, x := range []struct {
		name   string
		labels map[string]string
	}{{"by-budget-" + id, map[string]string{"run": id}}, {"by-two-" + id, map[string]string{"two": id}}, {kept, nil}, {"by-rights-" + id, nil}} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: x.name, Labels: x.labels},
			Spec: corev1.PodSpec{NodeName: m.Name, Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "springtide.dev/holder", Operator: corev1.TolerationOpExists}}
		pod, err := p.core.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{kubetest.Ready(
			metav1.Now())}}
		if _, err := p.core.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		refs[x.name] = planner.PodRef{Name: fleet.Name{Namespace: "default", Name: x.name}, ID: fleet.UID(pod.UID)}
		plan.Evictions = append(plan.Evictions, planner.Eviction{Loan: l.ID, Pod: refs[x.name]})
	}
	until(t, "the offline pods", func() bool { x := find(p.snapshot(t), refs["by-rights-"+id].ID); return x != nil && x.Ready })
	p.step(t, planner.MoveRecall, l.ID, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) {
		return l.Recall(time.Now(), time.Now().Add(16*time.Second), time.Now().Add(time.Hour), reason.Said("flood"))
	})
	until(t, "the deadline", func() bool { return !p.snapshot(t).At.Before(p.snapshot(t).Loan(l.ID).Deadline) })
	p.step(t, planner.MoveDrain, l.ID, func(l fleet.Loan, _ *fleet.ShareParcel) (fleet.Loan, error) { return l.Drain(time.Now(), false) })
	// One pod is asked for by an account without the right.
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("SPRINGTIDE_TEST_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	poor := rest.CopyConfig(cfg)
	poor.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:default:poor"}
	other, err := New(poor, p.Options)
	if err != nil {
		t.Fatal(err)
	}
	rich := p.rooms.Evict
	p.rooms.Evict = func(ctx context.Context, e *policyv1.Eviction) error {
		if e.Name == "by-rights-"+id {
			return other.in.Evict(ctx, e)
		}
		return rich(ctx, e)
	}
	r := p.apply(t, plan)
	if r.Count(loop.Failed) != len(plan.Evictions) {
		t.Fatalf("%+v, want all refused", r.Results)
	}
	s := p.snapshot(t)
	for name, want := range map[string]fleet.Refusal{
		"by-budget-" + id: {Cause: fleet.RefusedByBudget, By: "default/pdb-" + id},
		"by-two-" + id:    {Cause: fleet.RefusedByBudgets, By: "default/a-" + id + " and default/b-" + id, Never: true},
		kept:              {Cause: fleet.RefusedByPolicy, By: kept, Never: true},
		"by-rights-" + id: {Cause: fleet.RefusedByRights, By: "system:serviceaccount:default:poor", Never: true},
	} {
		got := find(s, refs[name].ID).Refused
		if got.Until = (time.Time{}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if n := s.Pool(fleet.PoolID("web-" + id)).Ledger.Recalls; n != 0 {
		t.Errorf("the ledger counts %d recalls, and no pod left", n)
	}
}

// count gives the plane clients whose evictions are counted.
func (p *plane) count(t *testing.T) *counted {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("SPRINGTIDE_TEST_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	c := &counted{by: map[string]int{}}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(base http.RoundTripper) http.RoundTripper { c.base = base; return c })
	other, err := New(cfg, p.Options)
	if err != nil {
		t.Fatal(err)
	}
	p.rooms.Evict = other.in.Evict
	return c
}
