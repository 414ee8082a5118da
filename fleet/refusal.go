package fleet

import (
	"fmt"
	"strings"
	"time"
)

// RefusalCause is what kind of guard refused to evict a pod.
type RefusalCause string

// The causes of a refusal.
const (
	RefusedByBudget    RefusalCause = "Budget"     // a disruption budget has no room
	RefusedByBudgets   RefusalCause = "TwoBudgets" // more than one budget selects the pod: the Eviction API serves none of these
	RefusedByWebhook   RefusalCause = "Webhook"    // an admission webhook denies it, or does not answer
	RefusedByPolicy    RefusalCause = "Policy"     // a ValidatingAdmissionPolicy denies it
	RefusedByRights    RefusalCause = "Rights"     // the caller lacks the right to evict
	RefusedByNamespace RefusalCause = "Namespace"  // the namespace is being deleted, and its pods go with it
	RefusedByRequest   RefusalCause = "Request"    // the API server does not accept the request
	RefusedByServer    RefusalCause = "Server"     // the API server has no time for it, or gave no answer
)

// Refusal is why a pod was not evicted when that was asked last; the zero value where nothing was refused.
type Refusal struct {
	Cause RefusalCause
	// By names the guard: budgets as namespace/name, a webhook, a policy, or the account that lacks the right.
	By string
	// Never says that no try succeeds before an operator changes something.
	Never bool
	// Until is when another try is due. An event that may end the refusal moves it to now.
	Until time.Time
}

// Any reports whether the pod's eviction was refused.
func (r *Refusal) Any() bool { return r.Cause != "" }

// Holds reports whether no other try is due yet.
func (r *Refusal) Holds(now time.Time) bool { return r.Any() && now.Before(r.Until) }

// Who: the name of the guard in a message, as in "disruption budget batch/workers".
func (r *Refusal) Who() string {
	switch r.Cause {
	case RefusedByBudget:
		return named("a disruption budget", "disruption budget", r.By)
	case RefusedByBudgets:
		return named("more than one disruption budget", "disruption budgets", r.By)
	case RefusedByWebhook:
		return named("an admission webhook", "admission webhook", r.By)
	case RefusedByPolicy:
		return named("an admission policy", "ValidatingAdmissionPolicy", r.By)
	case RefusedByRights:
		return named("a missing right", "the missing right to create pods/eviction of", r.By)
	case RefusedByNamespace:
		return named("the deletion of the namespace", "the deletion of namespace", r.By)
	}
	return "the API server"
}

// Fix says what ends a refusal that does not end by itself; empty where it does.
func (r *Refusal) Fix() string {
	switch {
	case r.Cause == RefusedByBudgets:
		return "let one budget alone select the pod"
	case r.Cause == RefusedByRights:
		return "grant create on pods/eviction (springtide doctor)"
	case !r.Never:
		return ""
	case r.Cause == RefusedByWebhook, r.Cause == RefusedByPolicy:
		return "let it accept evictions by Springtide"
	}
	return "see the event EvictionRefused of the pod"
}

func named(one, kind, by string) string {
	if by == "" {
		return one
	}
	return fmt.Sprintf("%s %s", kind, by)
}

// Guards names those who refuse some pods, each once, in the order of the pods.
func Guards(pods []*Pod) string {
	var out []string
	seen := map[string]bool{}
	for _, p := range pods {
		if p.Refused.Any() && !seen[p.Refused.Who()] {
			seen[p.Refused.Who()] = true
			out = append(out, p.Refused.Who())
		}
	}
	const shown = 3
	if len(out) > shown {
		out = append(out[:shown], fmt.Sprintf("%d more", len(out)-shown))
	}
	return strings.Join(out, ", ")
}

// Problem is why an object is not accepted: a reason for machines, and a sentence with the fix. The zero Problem stands for none.
type Problem struct{ Reason, Message string }

// Any reports whether there is a problem.
func (p Problem) Any() bool { return p.Reason != "" }

// String is reason and sentence.
func (p Problem) String() string {
	if !p.Any() {
		return ""
	}
	return p.Reason + ": " + p.Message
}
