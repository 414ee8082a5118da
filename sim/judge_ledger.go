package sim

import (
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// takings are the pods taken in the running minute and span of a pool, as its ledger should have them.
type takings struct {
	minute, span time.Time
	pods, all    int // in the minute, and in the span
	owners       map[string]int
}

// take counts what a scale-in is about to take off machines that are being emptied, and judges it: the pods that really
// go were charged, and are within each bound of its pool's budget. Shares are of the pods when the span began. Pods
// that are due to others are bound by none. A write that comes again was judged when it came first: the API server
// carries it out where the size is the same again, and no plan knows of it that could charge it.
func (c *controller) take(a *planner.Scale) {
	if c.redelivering || slices.ContainsFunc(a.Charges, func(x planner.Charge) bool { return x.Due }) {
		return
	}
	w := c.w
	i := c.index[a.Service]
	s := &w.services[i]
	had := sync.OnceValue(c.podsByBudget)
	before := map[fleet.PoolID]takings{}
	// Pods of a size that was written before, which have not gone yet, were judged then. Pods that this one was steered
	// to go first.
	further := min(len(s.pods), int(a.From)) - int(a.To)
	for _, id := range w.victims(s, len(s.pods)-int(a.To))[:max(further, 0)] {
		p := &w.pods[id]
		pool, empties := c.emptying(p.node)
		if !c.seenReady(i, p) || !empties || c.judge.seen[p.uid] {
			continue
		}
		c.judge.seen[p.uid] = true
		t, owner := c.judge.of(pool, c.chargedAt(pool)), c.services[i].Owner()
		if _, begun := before[pool]; !begun {
			before[pool] = takings{pods: len(s.pods) + t.owners[owner], all: had()[pool] + t.all}
		}
		t.pods, t.all = t.pods+1, t.all+1
		t.owners[owner]++
		c.checkLedger(pool, t, owner, before[pool])
	}
}

// chargedAt is the time by which a pool's ledger counts what is written now: that of the plan. A request that was on its way when its leader was succeeded was
// counted by its own plan, and begins no window before the one that runs.
func (c *controller) chargedAt(pool fleet.PoolID) time.Time {
	at := c.requested()
	if t := c.judge.taken[pool]; c.late != nil && t != nil && at.Before(t.span) {
		return t.span
	}
	return at
}

// checkLedger judges one pod that is taken: of an owner who had so many pods, and off machines on which there were so many.
func (c *controller) checkLedger(pool fleet.PoolID, t *takings, owner string, had takings) {
	p := c.pool(pool)
	part := func(share float64, of int) int { return int(math.Ceil(share*float64(of) - 1e-9)) }
	switch {
	case t.pods > p.Ledger.Evictions:
		c.breaks("%d pods were taken off machines of pool %s in a minute, its ledger counts %d", t.pods, pool, p.Ledger.Evictions)
	case t.pods > p.Budget.EvictionsPerMinute:
		c.breaks("%d pods were taken off machines of pool %s in a minute of at most %d", t.pods, pool, p.Budget.EvictionsPerMinute)
	case t.owners[owner] > part(p.Budget.ServiceShare, had.pods):
		c.breaks("%d pods of %s, which had %d, were taken off machines of pool %s in %s", t.owners[owner], owner, had.pods, pool, fleet.LedgerSpan)
	case t.all > part(p.Budget.FleetShare, had.all):
		c.breaks("%d pods of %d were taken off machines of pool %s in %s", t.all, had.all, pool, fleet.LedgerSpan)
	}
}

// checkBudgets: no ledger counts more in its minute than its pool's budget allows. Pods that are due to others stand on
// a line of their own there.
func (c *controller) checkBudgets() {
	for i := range c.pools {
		if p := &c.pools[i]; p.Ledger.Evictions > p.Budget.EvictionsPerMinute {
			c.breaks("the ledger of pool %s counts %d pods in a minute of at most %d", p.ID, p.Ledger.Evictions, p.Budget.EvictionsPerMinute)
		}
	}
}

// podsByBudget counts the pods on the machines of each pool: those on machines that online borrows, as far as the plan could see, are online's.
func (c *controller) podsByBudget() map[fleet.PoolID]int {
	w, out := c.w, map[fleet.PoolID]int{}
	borrowed := map[fleet.NodeID]bool{}
	for _, l := range c.seenLoans() {
		if l.From == offlinePool && l.Phase.Away() {
			borrowed[l.Node] = true
		}
	}
	for i := range w.pods {
		if p := &w.pods[i]; p.used && p.node != none && p.kind != filler {
			pool := w.machines[p.node].home
			if borrowed[w.facts[p.node].ID] {
				pool = onlinePool
			}
			out[pool]++
		}
	}
	return out
}

// seen is what the plan could see that is carried out, where that is not the fleet as it is: an earlier leader's facts, or those of a stale cache.
func (c *controller) seen() *fleet.Snapshot {
	if c.late != nil {
		return c.late.facts
	}
	return c.stale
}

// seenLoans are the loans that the plan could see.
func (c *controller) seenLoans() []fleet.Loan {
	if s := c.seen(); s != nil {
		return s.Loans
	}
	return c.loans
}

// seenReady reports whether a pod of a service was ready as far as the plan could see. One that was not is given up first and charged to no ledger.
func (c *controller) seenReady(service int, p *pod) bool {
	s := c.seen()
	if s == nil {
		return p.serves()
	}
	pods := s.Services[service].Pods
	k := slices.IndexFunc(pods, func(x fleet.Pod) bool { return x.ID == p.uid })
	return k >= 0 && pods[k].Ready
}

// emptying reports whether a machine is being emptied of online pods, as far as the plan could see, and the pool that is charged for it.
func (c *controller) emptying(n int32) (fleet.PoolID, bool) {
	if n == none {
		return "", false
	}
	f, loans := &c.w.facts[n], c.seenLoans()
	// Loans are sorted by names that begin with the machine's.
	for i := sort.Search(len(loans), func(i int) bool { return loans[i].NodeName >= f.Name }); i < len(loans) && loans[i].NodeName == f.Name; i++ {
		switch l := &loans[i]; {
		case l.Node != f.ID:
		case l.From == onlinePool && l.Phase == fleet.Emptying:
			return onlinePool, true
		case l.From == offlinePool && (l.Phase == fleet.Noticed || l.Phase == fleet.Draining):
			return l.To, true
		}
	}
	return "", false
}

// of are the takings of a pool, without the minute and the span that are over.
func (j *judge) of(pool fleet.PoolID, now time.Time) *takings {
	t := j.taken[pool]
	if t == nil {
		t = &takings{}
		j.taken[pool] = t
	}
	if d := now.Sub(t.minute); d < 0 || d >= fleet.LedgerMinute {
		t.minute, t.pods = now, 0
	}
	if d := now.Sub(t.span); d < 0 || d >= fleet.LedgerSpan {
		t.span, t.all, t.owners = now, 0, map[string]int{}
	}
	return t
}
