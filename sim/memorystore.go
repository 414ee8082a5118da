package sim

import (
	"context"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/sim/scenario"
)

// decisionsKept bounds the decisions of a service that are kept: two hours of them, four a minute.
const decisionsKept = 480

// stored is the answer of the store.
func (c *controller) stored() error {
	if c.w.on(scenario.StoreDown) != nil {
		return errDown
	}
	return nil
}

// Append implements loop.Journal.
func (c *controller) Append(_ context.Context, r *loop.Record) error {
	if c.w.journal != nil {
		c.w.journal(r)
	}
	if r.Plan != nil {
		c.checkPlan(r.Plan)
	}
	return c.stored()
}

// SaveDecisions implements loop.Memory. Decisions are kept only where leaders fall: no other run loads them.
func (c *controller) SaveDecisions(ctx context.Context, ds map[fleet.ServiceID][]hpa.Decision) error {
	if len(c.w.faults) == 0 {
		return nil
	}
	return c.Store.SaveDecisions(ctx, ds)
}
