package cell

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
)

// Verdict is the status of one condition in a word: True, or the reason why it is not.
func Verdict(cs []metav1.Condition, kind string) string {
	for i := range cs {
		if cs[i].Type == kind && cs[i].Status != metav1.ConditionTrue && cs[i].Reason != "" {
			return cs[i].Reason
		}
	}
	return Condition(cs, kind)
}

// Refused is why an object is not accepted, in a word; empty when it is.
func Refused(cs []metav1.Condition) string {
	if c := meta.FindStatusCondition(cs, catalog.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		return cmp.Or(c.Reason, "InvalidSpec")
	}
	return ""
}

// Condition is the status of one condition, and its reason when it is not True.
func Condition(cs []metav1.Condition, kind string) string {
	for i := range cs {
		if cs[i].Type != kind {
			continue
		}
		if cs[i].Status != metav1.ConditionTrue && cs[i].Reason != "" {
			return fmt.Sprintf("%s (%s)", cs[i].Status, cs[i].Reason)
		}
		return string(cs[i].Status)
	}
	return "Unknown"
}

// ReadyPods says how many replicas there are and how many are ready. Pods that leave are ready beyond the number.
func ReadyPods(st *v1alpha1.ElasticServiceStatus) string {
	if st.ReadyReplicas > st.Replicas {
		return fmt.Sprintf("%d, and %d ready until the others have left", st.Replicas, st.ReadyReplicas)
	}
	return fmt.Sprintf("%d, %d of them ready", st.Replicas, st.ReadyReplicas)
}

// Desired is what Springtide wants of a service: nothing is wanted of one that is refused, or that no cycle has sized, and that is not 0.
func Desired(s *v1alpha1.ElasticService) string {
	if Refused(s.Status.Conditions) != "" || s.Status.DesiredReplicas == 0 && s.Spec.Replicas.Min > 0 {
		return None
	}
	return Number(s.Status.DesiredReplicas)
}

// Bound prints a bound of replicas; None where there is none.
func Bound(n *int32) string {
	if n == nil {
		return None
	}
	return Number(*n)
}

// Written is a figure of a status that was written; before that it is not known, which is not 0.
func Written(observedGeneration int64, text string) string {
	if observedGeneration == 0 {
		return None
	}
	return text
}

// Phase is the phase; a status that was never written is that of a loan just begun.
func Phase(s *v1alpha1.LoanStatus) string {
	if s.Phase == "" {
		return "Emptying"
	}
	return s.Phase
}

// Amount prints an amount of capacity.
func Amount(a *v1alpha1.ResourceAmounts) string {
	if a.CPU.IsZero() && a.Memory.IsZero() && a.GPU == 0 {
		return "nothing"
	}
	parts := []string{a.CPU.String() + " cpu"}
	if !a.Memory.IsZero() {
		parts = append(parts, a.Memory.String())
	}
	if a.GPU > 0 {
		parts = append(parts, fmt.Sprintf("%d gpu", a.GPU))
	}
	return strings.Join(parts, ", ")
}
