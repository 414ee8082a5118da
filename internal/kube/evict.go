package kube

import (
	"context"
	"errors"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/eviction"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop/protocol"
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

// budgetChanged makes another try due for pods that a budget refused, as soon as it may let one go, or may select others.
func (c *watcher) budgetChanged(before, after *budgetFacts) {
	changed := after
	if after == nil {
		changed = before
	}
	selects := before == nil || after == nil || before.text != after.text
	if selects || after.allowed > 0 && before.allowed <= 0 || after.Generation != before.Generation {
		c.evictions.BudgetChanged(changed.Namespace, selects, c.o.Clock.Now())
	}
}

// podChanged makes another try due for a pod that other budgets may select now, or that a budget judges otherwise.
func (c *watcher) podChanged(before, after *podFacts) {
	if before != nil && after != nil && (before.labels != after.labels || before.pod.Ready != after.pod.Ready) {
		c.evictions.PodChanged(after.UID, c.o.Clock.Now())
	}
}

// budgetsOf names the disruption budgets that select a pod.
func (c *watcher) budgetsOf(namespace string, of labels.Set) string {
	var out []string
	for _, b := range c.budgets.All() {
		if b.Namespace == namespace && b.selector.Matches(of) {
			out = append(out, b.Namespace+"/"+b.Name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " and ")
}

// refusedEviction remembers why a pod was not evicted, or was not killed, and says what that means for the plan.
func (c *actuator) refusedEviction(ctx context.Context, n fleet.Name, uid types.UID, err error) error {
	a := eviction.Classify(n.Namespace, err)
	if a.Cause == fleet.RefusedByBudgets { // the answer does not name them
		if p, readErr := c.core.CoreV1().Pods(n.Namespace).Get(ctx, n.Name, metav1.GetOptions{}); readErr == nil {
			a.By = c.budgetsOf(n.Namespace, p.Labels)
		}
	}
	refusal := c.evictions.Note(uid, n.Namespace, a, c.o.Clock.Now())
	if a.Done() {
		return object.StaleOf(err)
	}
	return &evictionError{refusal: refusal, definite: a.Definite(), err: err}
}

// evictionError is an eviction that was refused, or that got no answer.
type evictionError struct {
	refusal  fleet.Refusal
	definite bool
	err      error
}

func (e *evictionError) Error() string {
	text := e.refusal.Who() + ": " + e.err.Error()
	if fix := e.refusal.Fix(); fix != "" {
		text += "; to fix: " + fix
	}
	return text
}

func (e *evictionError) Unwrap() error { return e.err }

// howEvicted distinguishes an eviction that the API server refused, by which no pod ends, from one without a known
// answer.
func howEvicted(e *evictionError) protocol.Answered {
	if e.definite {
		return protocol.Denied
	}
	return protocol.Refused
}

// denied is how an error of a write is answered where it is one of an eviction.
func denied(err error) (protocol.Answered, bool) {
	var e *evictionError
	if errors.As(err, &e) {
		return howEvicted(e), true
	}
	return "", false
}
