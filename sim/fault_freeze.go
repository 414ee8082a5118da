package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/sim/scenario"
)

const (
	// frozenOdds is the share of the seeds that draw a freeze.
	frozenOdds = 0.25
	// leastFrozen and mostFrozen bound how long it holds. A notice of a few minutes runs out under most of them.
	leastFrozen, mostFrozen = 2 * time.Minute, 40 * time.Minute
)

// drawFreeze draws a freeze as `springtide freeze` makes one: of the whole cluster. It has a stream of its own, so the other faults of a seed stay.
func drawFreeze(b *scenario.Built, last time.Duration) []scenario.Fault {
	r := rand.New(rand.NewPCG(b.Seed, 5))
	if b.Faults.Random == 0 || len(b.Faults.Kinds) > 0 || r.Float64() >= frozenOdds || last < leastFrozen {
		return nil
	}
	span := min(leastFrozen+time.Duration(r.Float64()*float64(mostFrozen-leastFrozen)), last).Truncate(tick)
	after := time.Duration(r.Float64() * float64(last-span)).Truncate(tick)
	return []scenario.Fault{{Kind: scenario.Freeze, After: config.Duration(after), For: config.Duration(span), Share: 1}}
}

// Report implements loop.Reporter: the status of the pools says whether the leader saw a freeze, which the next leader asks. A leader that lost its
// lease writes no status.
func (l *leadership) Report(ctx context.Context, r *loop.Report) error {
	for i := range l.pools {
		if l.lost == nil {
			l.pools[i].SeenFrozen = r.Snapshot.Frozen != ""
		}
	}
	if l.w.reporter == nil {
		return nil
	}
	return l.w.reporter.Report(ctx, r)
}

// checkFrozen: under a freeze no controller writes anything: no loan takes a step, and no size changes. A request that was sent before it may arrive
// late, or a second time.
func (c *controller) checkFrozen(x *protocol.Write) {
	if c.w.on(scenario.Freeze) != nil && !c.redelivering && c.late == nil {
		c.breaks("%s %s was written under a freeze", x.Object.Kind, x.Object.Name)
	}
}
