package act

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/eviction"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop/protocol"
)

// refusedEviction remembers why a pod was not evicted, or was not killed, and says what that means for the plan.
func (c *Actuator) refusedEviction(ctx context.Context, n fleet.Name, uid types.UID, err error) error {
	a := eviction.Classify(n.Namespace, err)
	if a.Cause == fleet.RefusedByBudgets { // the answer does not name them
		if p, readErr := c.Core.CoreV1().Pods(n.Namespace).Get(ctx, n.Name, metav1.GetOptions{}); readErr == nil {
			a.By = c.BudgetsOf(n.Namespace, p.Labels)
		}
	}
	refusal := c.Evictions.Note(uid, n.Namespace, a, c.Options.Clock.Now())
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
