package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/springtide/springtide/internal/cli/cell"
)

// checkBudgets names evictions that can never succeed: pods under more than one disruption budget, and budgets that never let a pod go. Recalls, preemption
// and the node agents' evictions wait for them in vain.
func checkBudgets(ctx context.Context, d *doctor) error {
	budgets, err := d.Clients.Core.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the disruption budgets: %w", err)
	}
	byNamespace := map[string][]*policyv1.PodDisruptionBudget{}
	for i := range budgets.Items {
		b := &budgets.Items[i]
		byNamespace[b.Namespace] = append(byNamespace[b.Namespace], b)
	}
	var twice, never []string
	for _, namespace := range sortedNames(byNamespace) {
		pods, err := d.Clients.Core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("read the pods of namespace %s: %w", namespace, err)
		}
		t, n := judgeBudgets(byNamespace[namespace], pods.Items)
		twice, never = append(twice, t...), append(never, n...)
	}
	if len(twice) > 0 {
		d.Advise("let one budget alone select each pod: the Eviction API refuses every eviction of a pod under two", "%s under more than one disruption budget: %s", isAre(len(twice), "pod"), cell.First(twice, cell.FewNames))
	}
	if len(never) > 0 {
		d.Advise("let the budget give up a pod, or delete it: until then recalls of what it selects end by a fence", "%s never met, so no pod of theirs is ever evicted: %s", isAre(len(never), "disruption budget"), cell.First(never, cell.FewNames))
	}
	if len(twice)+len(never) == 0 {
		if n := len(budgets.Items); n > 0 {
			d.OK("each of %s lets a pod go at some time", cell.Count(n, "disruption budget"))
		} else {
			d.OK("there is no disruption budget")
		}
	}
	return nil
}

// isAre counts things in front of what they are.
func isAre(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return fmt.Sprintf("%d %ss are", n, thing)
}

func sortedNames[T any](m map[string]T) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// judgeBudgets looks at the budgets of one namespace and its pods: which pods are under several, and which budgets can never be met.
func judgeBudgets(budgets []*policyv1.PodDisruptionBudget, pods []corev1.Pod) (twice, never []string) {
	under := make([][]string, len(pods))
	for _, b := range budgets {
		s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			s = labels.Nothing()
		}
		var selected []*corev1.Pod
		for i := range pods {
			p := &pods[i]
			if s.Matches(labels.Set(p.Labels)) && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
				under[i] = append(under[i], b.Name)
				selected = append(selected, p)
			}
		}
		if why := neverMet(b, selected); why != "" {
			never = append(never, fmt.Sprintf("%s/%s (%s)", b.Namespace, b.Name, why))
		}
	}
	for i, names := range under {
		if len(names) > 1 {
			slices.Sort(names)
			twice = append(twice, fmt.Sprintf("%s/%s (%s)", pods[i].Namespace, pods[i].Name, strings.Join(names, ", ")))
		}
	}
	return twice, never
}

// neverMet says why a budget lets none of the pods go that it selects; empty where it may, or selects none.
func neverMet(b *policyv1.PodDisruptionBudget, pods []*corev1.Pod) string {
	if len(pods) == 0 {
		return ""
	}
	bare := 0
	for _, p := range pods {
		if metav1.GetControllerOf(p) == nil {
			bare++
		}
	}
	most, least := b.Spec.MaxUnavailable, b.Spec.MinAvailable
	byShare := most != nil || least != nil && least.Type == intstr.String
	failed := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	switch {
	case most != nil && isZero(most):
		return "maxUnavailable " + most.String()
	case least != nil && least.Type == intstr.String && least.StrVal == "100%":
		return "minAvailable 100%"
	case byShare && bare > 0:
		return fmt.Sprintf("it selects %s without a controller, so a share of them is not known", cell.Count(bare, "pod"))
	case least != nil && least.Type == intstr.Int && int(least.IntVal) >= len(pods):
		return fmt.Sprintf("minAvailable %d of %s", least.IntVal, cell.Count(len(pods), "pod"))
	case failed != nil && failed.Status == metav1.ConditionFalse && failed.Reason == policyv1.SyncFailedReason:
		return "the disruption controller cannot judge it: " + failed.Message
	}
	return ""
}

func isZero(n *intstr.IntOrString) bool {
	if n.Type == intstr.Int {
		return n.IntVal == 0
	}
	return strings.TrimLeft(strings.TrimSuffix(n.StrVal, "%"), "0") == ""
}
