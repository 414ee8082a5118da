package eviction

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/fleet"
)

func status(code int32, message string, change ...func(*metav1.Status)) error {
	s := metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message, Details: &metav1.StatusDetails{}}
	for _, f := range change {
		f(&s)
	}
	return &apierrors.StatusError{ErrStatus: s}
}

func cause(kind metav1.CauseType, message string) func(*metav1.Status) {
	return func(s *metav1.Status) {
		s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{Type: kind, Message: message})
	}
}

func kind(kind, name string) func(*metav1.Status) {
	return func(s *metav1.Status) { s.Details.Kind, s.Details.Name = kind, name }
}

func retryAfter(seconds int32) func(*metav1.Status) {
	return func(s *metav1.Status) {
		s.Details.RetryAfterSeconds, s.Reason = seconds, metav1.StatusReasonTooManyRequests
	}
}

// The messages are those of Kubernetes 1.36; plane tests of the callers ask a real API server for them.
func TestClassify(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	needs := cause(policyv1.DisruptionBudgetCause, "The disruption budget keep needs 2 healthy pods and has 2 currently")
	for _, x := range []struct {
		name string
		err  error
		want Answer
	}{
		{"accepted", nil, Answer{Verdict: Accepted}},
		{"a budget", status(429, "Cannot evict pod as it would violate the pod's disruption budget.", needs), Answer{Later, fleet.RefusedByBudget, "ns/keep", 0}},
		{"a budget with Retry-After", status(429, "Cannot evict pod as it would violate the pod's disruption budget.", retryAfter(10),
			cause(policyv1.DisruptionBudgetCause, "The disruption budget keep is still being processed by the server.")), Answer{Later, fleet.RefusedByBudget, "ns/keep", 10 * time.Second}},
		{"a budget of an old server", status(429, "Cannot evict pod as it would violate the pod's disruption budget."), Answer{Later, fleet.RefusedByBudget, "", 0}},
		{"flow control", status(429, "too many requests, please try again later", retryAfter(1)), Answer{Later, fleet.RefusedByServer, "", time.Second}},
		{"two budgets", status(500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."), Answer{Never, fleet.RefusedByBudgets, "", 0}},
		{"no right", status(403, `pods "p" is forbidden: User "system:serviceaccount:s:c" cannot create resource "pods/eviction" in API group "" in the namespace "ns"`, kind("pods", "p")),
			Answer{Never, fleet.RefusedByRights, "system:serviceaccount:s:c", 0}},
		{"a namespace that is being deleted", status(403, `pods "p" is forbidden: unable to create new content in namespace ns because it is being terminated`, kind("pods", "p"),
			cause(corev1.NamespaceTerminatingCause, "namespace ns is being terminated")), Answer{Later, fleet.RefusedByNamespace, "ns", 0}},
		{"a budget whose status is no number", status(403, `poddisruptionbudget.policy "keep" is forbidden: pdb disruptions allowed is negative`, kind("poddisruptionbudget", "keep")),
			Answer{Later, fleet.RefusedByBudget, "ns/keep", 0}},
		{"another plugin", status(403, `pods "p" is forbidden: not today`, kind("pods", "p")), Answer{Never, fleet.RefusedByRequest, "", 0}},
		{"a webhook, 403", status(403, `admission webhook "guard.example.com" denied the request: keep it`), Answer{Never, fleet.RefusedByWebhook, "guard.example.com", 0}},
		{"a webhook, 400", status(400, `admission webhook "guard.example.com" denied the request without explanation`), Answer{Never, fleet.RefusedByWebhook, "guard.example.com", 0}},
		{"a webhook, 500", status(500, `admission webhook "guard.example.com" denied the request: boom`), Answer{Never, fleet.RefusedByWebhook, "guard.example.com", 0}},
		{"a webhook that speaks of a budget", status(429, `admission webhook "guard.example.com" denied the request: disruption budget`), Answer{Later, fleet.RefusedByWebhook, "guard.example.com", 0}},
		{"a webhook that says that the pod is gone", status(404, `admission webhook "guard.example.com" denied the request: not found`, kind("pods", "p")), Answer{Never, fleet.RefusedByWebhook, "guard.example.com", 0}},
		{"a webhook that conflicts", status(409, `admission webhook "guard.example.com" denied the request: UID in Precondition`), Answer{Never, fleet.RefusedByWebhook, "guard.example.com", 0}},
		{"a webhook that does not answer", status(500, `Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://x": context deadline exceeded`),
			Answer{Later, fleet.RefusedByWebhook, "guard.example.com", 0}},
		{"a policy, 422", status(422, `pods "p" is forbidden: ValidatingAdmissionPolicy 'no-evictions' with binding 'all' denied request: keep it`), Answer{Never, fleet.RefusedByPolicy, "no-evictions", 0}},
		{"a policy, 403", status(403, `pods "p" is forbidden: ValidatingAdmissionPolicy 'no-evictions' denied request: keep it`, kind("pods", "p")), Answer{Never, fleet.RefusedByPolicy, "no-evictions", 0}},
		{"gone", apierrors.NewNotFound(pods, "p"), Answer{Verdict: Gone}},
		{"its namespace is gone", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"), Answer{Verdict: Gone}},
		{"the budget went", apierrors.NewNotFound(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, "keep"), Answer{Later, fleet.RefusedByBudget, "ns/keep", 0}},
		{"no such path", status(404, "the server could not find the requested resource"), Answer{Never, fleet.RefusedByRequest, "", 0}},
		{"another pod of the name", apierrors.NewConflict(pods, "p", errors.New("the UID in the precondition (a) does not match the UID in record (b). The object might have been deleted and then recreated")),
			Answer{Verdict: Gone}},
		{"another pod of the name, by the store", status(409, "Precondition failed: UID in precondition: a, UID in object meta: b", kind("pods", "p")), Answer{Verdict: Gone}},
		{"a budget that others write", apierrors.NewConflict(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, "keep", errors.New("the object has been modified")),
			Answer{Later, fleet.RefusedByBudget, "ns/keep", 0}},
		{"a pod that changed", apierrors.NewConflict(pods, "p", errors.New("the object has been modified")), Answer{Later, fleet.RefusedByServer, "", 0}},
		{"not valid", status(422, "Eviction.policy is invalid"), Answer{Never, fleet.RefusedByRequest, "", 0}},
		{"not logged in", status(401, "Unauthorized"), Answer{Later, fleet.RefusedByServer, "", 0}},
		{"an error of the store", status(500, "etcdserver: request timed out"), Answer{Unknown, fleet.RefusedByServer, "", 0}},
		{"the API server gave up", status(504, "Timeout: request did not complete within the allotted timeout"), Answer{Unknown, fleet.RefusedByServer, "", 0}},
		{"not ready", status(http.StatusServiceUnavailable, "apiserver is shutting down"), Answer{Unknown, fleet.RefusedByServer, "", 0}},
		{"no answer", context.DeadlineExceeded, Answer{Unknown, fleet.RefusedByServer, "", 0}},
	} {
		if got := Classify("ns", x.err); got != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
	}
}

// Tries in ten minutes of a caller that asks whenever it may, once a second: 600 without a memory.
func TestPausesGrowToABound(t *testing.T) {
	for _, x := range []struct {
		name string
		a    Answer
		most int
	}{
		{"a budget", Answer{Verdict: Later, Cause: fleet.RefusedByBudget}, 8},
		{"two budgets", Answer{Verdict: Never, Cause: fleet.RefusedByBudgets}, 4},
		{"no answer", Answer{Verdict: Unknown, Cause: fleet.RefusedByServer}, 8},
	} {
		m, now, tries := NewMemory(), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), 0
		for range 600 {
			if r := m.Refused("p", now); !r.Holds(now) {
				tries++
				m.Note("p", "ns", x.a, now)
			}
			now = now.Add(time.Second)
		}
		if tries != x.most {
			t.Errorf("%s: %d tries in ten minutes, want %d", x.name, tries, x.most)
		}
		last := time.Duration(0)
		for range 50 { // the bound holds after any number of tries
			r := m.Note("p", "ns", x.a, now)
			last = r.Until.Sub(now)
		}
		if bound := map[bool]time.Duration{true: NeverMost, false: LaterMost}[x.a.Verdict == Never]; last != bound {
			t.Errorf("%s: the pause grows to %s, want %s", x.name, last, bound)
		}
	}
}

// The refusing side may change: then the next try is due at once, but no two tries follow each other within five
// seconds.
func TestEventsEndAPause(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	m := NewMemory()
	holds := func(uid string, at time.Duration) bool {
		r := m.All(now)["budget"]
		if uid == "two" {
			r = m.All(now)["two"]
		}
		return r.Holds(now.Add(at))
	}
	m.Note("budget", "ns", Answer{Verdict: Later, Cause: fleet.RefusedByBudget}, now)
	m.Note("two", "ns", Answer{Verdict: Never, Cause: fleet.RefusedByBudgets}, now)
	if m.BudgetChanged("other", true, now.Add(time.Second)) || !holds("budget", 6*time.Second) {
		t.Error("the budget of another namespace ended a pause")
	}
	if !m.BudgetChanged("ns", false, now.Add(time.Second)) || !holds("budget", 4*time.Second) || holds("budget", 5*time.Second) {
		t.Error("a budget with room ends the pause five seconds after the last try")
	}
	if !holds("two", 30*time.Second) {
		t.Error("room of a budget ends no refusal by two")
	}
	if !m.BudgetChanged("ns", true, now.Add(20*time.Second)) || holds("two", 20*time.Second) {
		t.Error("a budget that selects other pods ends it at once")
	}
	m.Note("budget", "ns", Answer{Verdict: Later, Cause: fleet.RefusedByServer}, now)
	if !m.PodChanged("budget", now.Add(8*time.Second)) || holds("budget", 8*time.Second) {
		t.Error("a pod that changed is asked again")
	}
	m.Note("budget", "ns", Answer{Verdict: Gone}, now)
	if r := m.Refused("budget", now); r.Any() {
		t.Error("a pod that is gone is remembered")
	}
	m.Note("other", "ns", Answer{Verdict: Never, Cause: fleet.RefusedByRights}, now.Add(time.Hour))
	if r := m.Refused("two", now); r.Any() {
		t.Error("a refusal of an hour ago is remembered")
	}
}

// Causes that take turns, as a budget and flow control, are asked as seldom as one: eight times in ten minutes. So are answers of which one says never and the next one
// later, as of a webhook that answers now and then.
func TestCausesThatTakeTurnsArePaused(t *testing.T) {
	later := func(c fleet.RefusalCause) Answer { return Answer{Verdict: Later, Cause: c} }
	never := func(c fleet.RefusalCause) Answer { return Answer{Verdict: Never, Cause: c} }
	for _, turns := range [][]Answer{
		{later(fleet.RefusedByBudget), later(fleet.RefusedByServer)},
		{later(fleet.RefusedByBudget), later(fleet.RefusedByWebhook), later(fleet.RefusedByServer)},
		{later(fleet.RefusedByNamespace), later(fleet.RefusedByServer)},
		{never(fleet.RefusedByWebhook), later(fleet.RefusedByWebhook)},
		{later(fleet.RefusedByServer), never(fleet.RefusedByBudgets)},
		{never(fleet.RefusedByBudgets), never(fleet.RefusedByWebhook), later(fleet.RefusedByBudget)},
	} {
		m, now, tries := NewMemory(), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), 0
		for range 600 {
			if r := m.Refused("p", now); !r.Holds(now) {
				m.Note("p", "ns", turns[tries%len(turns)], now)
				tries++
			}
			now = now.Add(time.Second)
		}
		if tries > 8 {
			t.Errorf("%v in turns: %d tries in ten minutes, want 8 at most", turns, tries)
		}
	}
}
