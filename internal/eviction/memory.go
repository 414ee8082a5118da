package eviction

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/fleet"
)

// The pauses between two tries for one pod: each is twice the last, up to a bound. Budgets come and go within minutes.
// A change by an operator takes longer, and no event says that it was changed.
const (
	LaterFirst, LaterMost = 10 * time.Second, 2 * time.Minute
	NeverFirst, NeverMost = time.Minute, 10 * time.Minute
	// Least is the pause that an event does not cut: the status of a budget changes with each pod of a roll-over.
	Least = 5 * time.Second
	// kept is how long a refusal is remembered after the next try was due. A pod that is not asked for any more is forgotten then.
	kept = 10 * time.Minute
)

// Memory remembers, per pod, why its eviction was refused and when another try is due. It is safe for concurrent use.
type Memory struct {
	mu   sync.Mutex
	pods map[types.UID]*refused
}

type refused struct {
	fleet.Refusal
	namespace string
	tries     int
	at        time.Time
}

// NewMemory makes an empty memory.
func NewMemory() *Memory { return &Memory{pods: map[types.UID]*refused{}} }

// Note takes an answer over and says what is remembered of it: nothing where the pod ends or is gone.
func (m *Memory) Note(uid types.UID, namespace string, a Answer, now time.Time) fleet.Refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.Done() {
		delete(m.pods, uid)
		return fleet.Refusal{}
	}
	for id, r := range m.pods {
		if now.Sub(r.Until) > kept {
			delete(m.pods, id)
		}
	}
	r := m.pods[uid]
	// Causes that take turns, as a budget and flow control, or a webhook that answers now and then, are one refusal: by each change they would begin with the shortest
	// pause again.
	if r == nil {
		r = &refused{namespace: namespace}
		m.pods[uid] = r
	}
	r.tries++
	r.at = now
	first, most := LaterFirst, LaterMost
	if a.Verdict == Never {
		first, most = NeverFirst, NeverMost
	}
	pause := first
	for range r.tries - 1 {
		if pause = 2 * pause; pause >= most {
			break
		}
	}
	r.Refusal = fleet.Refusal{Cause: a.Cause, By: a.By, Never: a.Verdict == Never, Until: now.Add(min(max(pause, a.After), most))}
	return r.Refusal
}

// Refused is why a pod was refused last; the zero value for none.
func (m *Memory) Refused(uid types.UID, now time.Time) fleet.Refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.pods[uid]; r != nil && now.Sub(r.Until) <= kept {
		return r.Refusal
	}
	return fleet.Refusal{}
}

// All is what is remembered of all pods.
func (m *Memory) All(now time.Time) map[types.UID]fleet.Refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[types.UID]fleet.Refusal, len(m.pods))
	for uid, r := range m.pods {
		if now.Sub(r.Until) <= kept {
			out[uid] = r.Refusal
		}
	}
	return out
}

// BudgetChanged makes another try due for the pods of a namespace that a budget refused, as it may have room now; and for those that more than one
// refused where it may select others now. It reports whether there is any.
func (m *Memory) BudgetChanged(namespace string, selects bool, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	woken := false
	for _, r := range m.pods {
		if r.namespace == namespace && (r.Cause == fleet.RefusedByBudget || selects && r.Cause == fleet.RefusedByBudgets) {
			woken = m.due(r, now) || woken
		}
	}
	return woken
}

// PodChanged makes another try due for a pod whose labels or readiness changed: other budgets may select it now. It reports whether that is sooner.
func (m *Memory) PodChanged(uid types.UID, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.pods[uid]
	return r != nil && m.due(r, now)
}

// due moves the next try of a pod to now, and no nearer to the last one than the least pause.
func (m *Memory) due(r *refused, now time.Time) bool {
	at := r.at.Add(Least)
	if now.After(at) {
		at = now
	}
	if !at.Before(r.Until) {
		return false
	}
	r.Until = at
	return true
}

// Forget drops a pod that is gone.
func (m *Memory) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, uid)
}
