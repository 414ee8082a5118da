package watch

import (
	"slices"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/object"
)

// budgetFacts is a PodDisruptionBudget.
type budgetFacts struct {
	object.Header
	selector labels.Selector
	text     string // of the selector
	allowed  int32
}

func newBudgetFacts(b *policyv1.PodDisruptionBudget) *budgetFacts {
	s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		s = labels.Nothing() // the API server lets such a budget select no pod
	}
	return &budgetFacts{Header: object.HeaderOf(b), selector: s, text: s.String(), allowed: b.Status.DisruptionsAllowed}
}

// budgetChanged makes another try due for pods that a budget refused, as soon as it may let one go, or may select
// others.
func (c *Watcher) budgetChanged(before, after *budgetFacts) {
	changed := after
	if after == nil {
		changed = before
	}
	selects := before == nil || after == nil || before.text != after.text
	if selects || after.allowed > 0 && before.allowed <= 0 || after.Generation != before.Generation {
		c.Evictions.BudgetChanged(changed.Namespace, selects, c.Options.Clock.Now())
	}
}

// podChanged makes another try due for a pod that other budgets may select now, or that a budget judges otherwise.
func (c *Watcher) podChanged(before, after *PodFacts) {
	if before != nil && after != nil && (before.labels != after.labels || before.Pod.Ready != after.Pod.Ready) {
		c.Evictions.PodChanged(after.UID, c.Options.Clock.Now())
	}
}

// BudgetsOf names the disruption budgets that select a pod.
func (c *Watcher) BudgetsOf(namespace string, of labels.Set) string {
	var out []string
	for _, b := range c.budgets.All() {
		if b.Namespace == namespace && b.selector.Matches(of) {
			out = append(out, b.Namespace+"/"+b.Name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " and ")
}

// DisruptionsOf is how many more pods of a workload may become unready by the disruption budgets that select them;
// unknown where none does.
func (c *Watcher) DisruptionsOf(w *WorkloadFacts, now time.Time) (out fleet.Known[int32]) {
	for _, b := range c.budgets.All() {
		if b.Namespace == w.Namespace && b.selector.Matches(w.labels) && (!out.OK || b.allowed < out.Value) {
			out = fleet.KnownAt(b.allowed, now)
		}
	}
	return out
}
