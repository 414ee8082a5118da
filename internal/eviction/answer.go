package eviction

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
)

// Verdict is what an answer of the Eviction API means for the caller.
type Verdict string

// The verdicts.
const (
	// Accepted: the pod ends. Gone: the pod that was meant is not there any more.
	Accepted Verdict = "Accepted"
	Gone     Verdict = "Gone"
	// Later: the API server said no, and a later try may succeed. Never: it said no, and says so until an operator changes something.
	Later Verdict = "Later"
	Never Verdict = "Never"
	// Unknown: there is no answer, or it does not say whether the pod ends.
	Unknown Verdict = "Unknown"
)

// Answer is the meaning of one answer of the Eviction API.
type Answer struct {
	Verdict Verdict
	// Cause and By name the guard that refused, as [fleet.Refusal] does. The budgets of a pod under two are not in the answer.
	Cause fleet.RefusalCause
	By    string
	// After is how long the API server asks to wait; 0 where it says nothing.
	After time.Duration
}

// Done reports whether nothing is left to ask for.
func (a Answer) Done() bool { return a.Verdict == Accepted || a.Verdict == Gone }

// Definite reports whether the API server said no: no pod ends by this request. Without an answer, one may.
func (a Answer) Definite() bool { return a.Verdict == Later || a.Verdict == Never }

// Parts of admission's messages of refusal: no field of an answer names the guard.
var (
	webhookDenied = regexp.MustCompile(`^admission webhook "([^"]+)" `)
	webhookFailed = regexp.MustCompile(`failed calling webhook "([^"]+)"`)
	policyDenied  = regexp.MustCompile(`: ValidatingAdmissionPolicy '([^']+)'`)
	noRight       = regexp.MustCompile(`User "([^"]+)" cannot create resource "pods/eviction"`)
	budgetNamed   = regexp.MustCompile(`^The disruption budget (\S+) `)
	twoBudgets    = "more than one PodDisruptionBudget"
)

// Classify says what an answer to the eviction of a pod means. It is the only place that reads these answers: the status code alone says little, since a
// budget, flow control and a webhook may all answer 429, and two budgets answer 500.
func Classify(namespace string, err error) Answer {
	if err == nil {
		return Answer{Verdict: Accepted}
	}
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return Answer{Verdict: Unknown, Cause: fleet.RefusedByServer}
	}
	s := api.Status()
	a := classify(namespace, &s, err)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		a.After = time.Duration(seconds) * time.Second
	}
	return a
}

func classify(namespace string, s *metav1.Status, err error) Answer {
	// The component that denies writes the rest of the message, so the words at its beginning count first.
	if by := match(webhookDenied, s.Message); by != "" {
		verdict := Never
		if s.Code == http.StatusTooManyRequests || s.Code == http.StatusServiceUnavailable {
			verdict = Later
		}
		return Answer{Verdict: verdict, Cause: fleet.RefusedByWebhook, By: by}
	}
	if by := match(policyDenied, s.Message); by != "" {
		return Answer{Verdict: Never, Cause: fleet.RefusedByPolicy, By: by}
	}
	if c, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok {
		return Answer{Verdict: Later, Cause: fleet.RefusedByBudget, By: full(namespace, match(budgetNamed, c.Message))}
	}
	switch s.Code {
	case http.StatusNotFound:
		return missing(namespace, s)
	case http.StatusConflict:
		return conflict(namespace, s)
	case http.StatusForbidden:
		return forbidden(namespace, s, err)
	case http.StatusTooManyRequests:
		if strings.Contains(s.Message, "disruption budget") {
			return Answer{Verdict: Later, Cause: fleet.RefusedByBudget}
		}
		return Answer{Verdict: Later, Cause: fleet.RefusedByServer}
	case http.StatusUnauthorized:
		return Answer{Verdict: Later, Cause: fleet.RefusedByServer}
	case http.StatusInternalServerError:
		if strings.Contains(s.Message, twoBudgets) {
			return Answer{Verdict: Never, Cause: fleet.RefusedByBudgets}
		}
		if by := match(webhookFailed, s.Message); by != "" {
			return Answer{Verdict: Later, Cause: fleet.RefusedByWebhook, By: by}
		}
	}
	if s.Code >= http.StatusBadRequest && s.Code < http.StatusInternalServerError && s.Code != http.StatusRequestTimeout {
		return Answer{Verdict: Never, Cause: fleet.RefusedByRequest}
	}
	return Answer{Verdict: Unknown, Cause: fleet.RefusedByServer}
}

// missing distinguishes a pod that is gone from a budget that went while it was asked, and from an API server that does
// not know the path.
func missing(namespace string, s *metav1.Status) Answer {
	switch kind := kindOf(s); {
	case strings.HasPrefix(kind, "poddisruptionbudget"):
		return Answer{Verdict: Later, Cause: fleet.RefusedByBudget, By: full(namespace, s.Details.Name)}
	case kind == "pods", kind == "namespaces":
		return Answer{Verdict: Gone}
	}
	return Answer{Verdict: Never, Cause: fleet.RefusedByRequest}
}

// conflict tells another pod of the name from a budget that others write, and from a pod that changed while it was asked.
func conflict(namespace string, s *metav1.Status) Answer {
	switch {
	case strings.Contains(s.Message, "UID in") && strings.Contains(s.Message, "recondition"):
		return Answer{Verdict: Gone}
	case strings.HasPrefix(kindOf(s), "poddisruptionbudget"):
		return Answer{Verdict: Later, Cause: fleet.RefusedByBudget, By: full(namespace, s.Details.Name)}
	}
	return Answer{Verdict: Later, Cause: fleet.RefusedByServer}
}

func forbidden(namespace string, s *metav1.Status, err error) Answer {
	if _, ok := apierrors.StatusCause(err, corev1.NamespaceTerminatingCause); ok {
		return Answer{Verdict: Later, Cause: fleet.RefusedByNamespace, By: namespace}
	}
	if by := match(noRight, s.Message); by != "" {
		return Answer{Verdict: Never, Cause: fleet.RefusedByRights, By: by}
	}
	if strings.HasPrefix(kindOf(s), "poddisruptionbudget") { // its status is not to be believed yet
		return Answer{Verdict: Later, Cause: fleet.RefusedByBudget, By: full(namespace, s.Details.Name)}
	}
	return Answer{Verdict: Never, Cause: fleet.RefusedByRequest}
}

func kindOf(s *metav1.Status) string {
	if s.Details == nil {
		return ""
	}
	return strings.ToLower(s.Details.Kind)
}

func match(r *regexp.Regexp, text string) string {
	if m := r.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

func full(namespace, name string) string {
	if name == "" {
		return ""
	}
	return namespace + "/" + name
}
