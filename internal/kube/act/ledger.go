package act

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop/protocol"
)

// setLedger writes the disruption ledger into the status of a pool, with the resourceVersion that it depends on, so
// that every actor and every leader sees one count.
func (a *applier) setLedger(ctx context.Context, w *protocol.Write, c *protocol.SetLedger) (written, error) {
	name := w.Object.Name
	a.mu.Lock()
	read := a.pools[name]
	a.mu.Unlock()
	if read == nil {
		o, ok := a.c.Pools.Get("", name)
		if !ok {
			return written{}, object.Stale("pool %s is gone", name)
		}
		read = o.API
	}
	if read.ResourceVersion != w.If.Version {
		return written{}, object.Stale("pool %s changed since it was checked", name)
	}
	next := *read
	next.Status.Disruptions = facts.LedgerStatus(&c.Ledger)
	next.Status.LeaderEpoch, next.Status.LeaderNamespace = a.plan.LeaderEpoch, a.c.Options.Namespace
	got, err := object.PutStatus(ctx, a.c.Dyn, object.GVRPools, &next)
	if err != nil {
		return written{}, err
	}
	next.ResourceVersion = got.GetResourceVersion()
	a.keepPool(&next)
	return written{got.GetUID(), got.GetResourceVersion(), a.c.Pools.Sees("", name, got.GetUID(),
		got.GetResourceVersion()),
		facts.Ledger(&next.Status.Disruptions)}, nil
}

// readPool reads a pool again, for a charge that met a conflict: another status of the pool was written meanwhile.
func (a *applier) readPool(ctx context.Context, name string) (protocol.Fact, error) {
	u, err := a.c.Dyn.Resource(object.GVRPools).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return protocol.Fact{}, err
	}
	now, err := object.Decode[v1alpha1.CapacityPool](u)
	if err != nil {
		return protocol.Fact{}, fmt.Errorf("read pool %s: %w", name, err)
	}
	a.keepPool(now)
	return protocol.Fact{Exists: true, UID: fleet.UID(now.UID), Version: now.ResourceVersion, LeaderEpoch: now.Status.LeaderEpoch,
		Ledger: facts.Ledger(&now.Status.Disruptions)}, nil
}

// keepPool remembers a pool as this plan read or wrote it.
func (a *applier) keepPool(p *v1alpha1.CapacityPool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pools[p.Name] = p
}
