package world

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/lab/model"
)

// returned is a parcel that came home while online pods waited for its room.
type returned struct {
	node          string
	virtual, wall time.Time
	waits         map[types.UID]bool // those of the pods that wait still
}

// seenReturned notes a parcel that came home, and which pods wait for it: those of its claimant where it has one, and those that fit it; the caller holds the lock.
func (t *table) seenReturned(before, now *v1alpha1.Loan) {
	if before == nil || fleet.Phase(before.Status.Phase) == fleet.Returned || fleet.Phase(now.Status.Phase) != fleet.Returned || t.homes[now.Spec.NodeName] == offlinePool {
		return
	}
	cpu, memory := facts.Sum(&now.Spec.Capacity.CPU, &now.Spec.Capacity.Memory)
	room := fleet.Resources{CPU: cpu, Memory: memory}
	r := &returned{node: now.Spec.NodeName, virtual: t.now(), wall: time.Now(), waits: map[types.UID]bool{}}
	for uid, p := range t.pods {
		asks := fleet.Resources{CPU: p.requests.CPU, Memory: p.requests.Memory}
		if !p.waits.wall.IsZero() && (now.Status.Claimant == "" || p.owner.String() == now.Status.Claimant) && asks.Fits(room) {
			r.waits[uid] = true
		}
	}
	if len(r.waits) > 0 {
		t.returns = append(t.returns, r)
	}
}

// seenServed notes that an online pod waits no more: it was bound to a node, or to none. A parcel that came home on
// that node is taken; one elsewhere counts no more once all who waited for it have found another place. The caller
// holds the lock.
func (t *table) seenServed(uid types.UID, node string) {
	open := t.returns[:0]
	for _, r := range t.returns {
		delete(r.waits, uid)
		switch {
		case r.node == node:
			t.taken = append(t.taken, model.ReturnFacts{Virtual: t.now().Sub(r.virtual), Wall: time.Since(r.wall)})
		case len(r.waits) > 0:
			open = append(open, r)
		}
	}
	t.returns = open
}

// takeReturns hands over what was taken since it was last asked, and what is not taken yet.
func (t *table) takeReturns() (taken, unbound []model.ReturnFacts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken, t.taken = t.taken, nil
	for _, r := range t.returns {
		unbound = append(unbound, model.ReturnFacts{Virtual: t.now().Sub(r.virtual), Wall: time.Since(r.wall)})
	}
	return taken, unbound
}
