package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestDoctorJudgesBudgets(t *testing.T) {
	budget := func(name, app string, change func(*policyv1.PodDisruptionBudgetSpec)) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		change(&b.Spec)
		return b
	}
	most := func(n intstr.IntOrString) func(*policyv1.PodDisruptionBudgetSpec) {
		return func(s *policyv1.PodDisruptionBudgetSpec) { s.MaxUnavailable = &n }
	}
	least := func(n intstr.IntOrString) func(*policyv1.PodDisruptionBudgetSpec) {
		return func(s *policyv1.PodDisruptionBudgetSpec) { s.MinAvailable = &n }
	}
	yes := true
	pod := func(name, app string, owned bool) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": app}}}
		if owned {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app, Controller: &yes}}
		}
		return p
	}
	pods := []corev1.Pod{pod("web-1", "web", true), pod("web-2", "web", true), pod("bare", "bare", false), pod("over", "over", true)}
	pods[3].Status.Phase = corev1.PodSucceeded
	for _, x := range []struct {
		name         string
		budgets      []*policyv1.PodDisruptionBudget
		twice, never []string
	}{
		{"one may go", []*policyv1.PodDisruptionBudget{budget("a", "web", most(intstr.FromInt32(1)))}, nil, nil},
		{"half may go", []*policyv1.PodDisruptionBudget{budget("a", "web", least(intstr.FromString("50%")))}, nil, nil},
		{"two budgets", []*policyv1.PodDisruptionBudget{budget("b", "web", most(intstr.FromInt32(1))), budget("a", "web", least(intstr.FromInt32(1)))},
			[]string{"shop/web-1 (a, b)", "shop/web-2 (a, b)"}, nil},
		{"none may go", []*policyv1.PodDisruptionBudget{budget("a", "web", most(intstr.FromInt32(0)))}, nil, []string{"shop/a (maxUnavailable 0)"}},
		{"none in a hundred", []*policyv1.PodDisruptionBudget{budget("a", "web", most(intstr.FromString("0%")))}, nil, []string{"shop/a (maxUnavailable 0%)"}},
		{"all must stay", []*policyv1.PodDisruptionBudget{budget("a", "web", least(intstr.FromString("100%")))}, nil, []string{"shop/a (minAvailable 100%)"}},
		{"as many as there are", []*policyv1.PodDisruptionBudget{budget("a", "web", least(intstr.FromInt32(2)))}, nil, []string{"shop/a (minAvailable 2 of 2 pods)"}},
		{"a share of pods without a controller", []*policyv1.PodDisruptionBudget{budget("a", "bare", most(intstr.FromInt32(1)))}, nil,
			[]string{"shop/a (it selects 1 pod without a controller, so a share of them is not known)"}},
		{"a number of pods without a controller", []*policyv1.PodDisruptionBudget{budget("a", "bare", least(intstr.FromInt32(0)))}, nil, nil},
		{"it selects none", []*policyv1.PodDisruptionBudget{budget("a", "other", most(intstr.FromInt32(0)))}, nil, nil},
		{"its pods are over", []*policyv1.PodDisruptionBudget{budget("a", "over", most(intstr.FromInt32(0))), budget("b", "over", most(intstr.FromInt32(0)))}, nil, nil},
	} {
		twice, never := judgeBudgets(x.budgets, pods)
		if diff := cmp.Diff([][]string{x.twice, x.never}, [][]string{twice, never}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", x.name, diff)
		}
	}
}
