package world

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
)

// Leases live on wall time. Each of the node side's is good for ten minutes and renewed after a quarter of that: two hundred machines at
// the kubelet's pace would be dozens of writes a second, taken from the replay.
const (
	agentLease = 10 * time.Minute
	agentRenew = agentLease / 4
)

// buildAgents makes the leases by which the node side of each machine shows life.
func (w *World) buildAgents(ctx context.Context) error {
	if w.options.NoAgents {
		return nil
	}
	seconds := int32(agentLease / time.Second)
	var writes []write
	for i := range w.machines {
		if w.machines[i].real {
			continue
		}
		name, now := w.machines[i].name, metav1.NowMicro()
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.AgentLeasePrefix + name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}
		writes = append(writes, func(ctx context.Context) error {
			if _, err := w.api.core.CoordinationV1().Leases(systemNamespace).Create(ctx, lease, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("make lease %s: %w", lease.Name, err)
			}
			return nil
		})
	}
	return apply(ctx, writes)
}

// renewAgents renews the leases until ctx ends.
func (w *World) renewAgents(ctx context.Context) {
	tick := time.NewTicker(agentRenew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		patch := mustJSON(map[string]any{"spec": map[string]any{"renewTime": metav1.NowMicro()}})
		var writes []write
		for i := range w.machines {
			if w.machines[i].real {
				continue
			}
			name := v1alpha1.AgentLeasePrefix + w.machines[i].name
			writes = append(writes, func(ctx context.Context) error {
				_, err := w.api.core.CoordinationV1().Leases(systemNamespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
				return err
			})
		}
		if err := apply(ctx, writes); err != nil && ctx.Err() == nil {
			w.log.Debug("renew the agents' leases", "err", err) // the API server is down: the next renewal is in time
		}
	}
}
