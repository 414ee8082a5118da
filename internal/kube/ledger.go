package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// ledgerWindow is the running window that a ledger counts.
const ledgerWindow = time.Minute

// ledgers charge a plan's evictions to the pools they disrupt, each pool once and before its first eviction. The count lives in the
// pool's status and is written with its resourceVersion, so that every actor and every leader sees one count.
type ledgers struct {
	a *applier
	// recalls and others are the evictions to charge, refused those that a spent budget holds back.
	recalls, others map[fleet.PoolID]int32
	refused         map[fleet.UID]error

	mu      sync.Mutex // guards results
	results map[fleet.PoolID]error
}

func newLedgers(a *applier) *ledgers {
	return &ledgers{a: a, recalls: map[fleet.PoolID]int32{}, others: map[fleet.PoolID]int32{}, refused: map[fleet.UID]error{},
		results: map[fleet.PoolID]error{}}
}

// poolOf is the pool that an eviction is charged to: the lender's for a recall, else the home of the pod's machine.
func (l *ledgers) poolOf(e *planner.Eviction) fleet.PoolID {
	facts := l.a.door.Facts()
	if loan := facts.Loan(e.Loan); loan != nil {
		return loan.From
	}
	if p := l.a.door.Pod(e.Pod.ID); p != nil {
		if n := facts.Node(p.Node); n != nil {
			return n.Pool
		}
	}
	return ""
}

// count adds one eviction that passes the door. Recalls are charged to a line of their own, shown and never blocked; anything else waits
// for the next minute when the budget is spent.
func (l *ledgers) count(e *planner.Eviction) {
	if l.a.door.CheckEviction(e) != nil {
		return
	}
	id := l.poolOf(e)
	if e.Loan != "" {
		l.recalls[id]++
		return
	}
	pool := l.a.door.Facts().Pool(id)
	if pool == nil {
		l.refused[e.Pod.ID] = fmt.Errorf("no pool has a disruption budget for the pod's machine")
		return
	}
	spent := 0
	if l.a.plan.At.Sub(pool.Ledger.WindowStart) < ledgerWindow {
		spent = pool.Ledger.Evictions
	}
	if spent+int(l.others[id]) >= pool.Budget.EvictionsPerMinute {
		l.refused[e.Pod.ID] = fmt.Errorf("the disruption ledger of pool %s is full: %d evictions a minute", id, pool.Budget.EvictionsPerMinute)
		return
	}
	l.others[id]++
}

// charge writes the pool's ledger unless it was written already, and says whether the eviction may go on.
func (l *ledgers) charge(ctx context.Context, e *planner.Eviction) error {
	if err := l.refused[e.Pod.ID]; err != nil {
		return err
	}
	id := l.poolOf(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	err, written := l.results[id]
	if !written {
		err = l.write(ctx, id)
		l.results[id] = err
	}
	return err
}

func (l *ledgers) write(ctx context.Context, id fleet.PoolID) error {
	c := l.a.c
	pool, ok := c.pools.get("", string(id))
	if !ok {
		return stale("pool %s is gone", id)
	}
	next := l.charged(pool.api)
	got, err := c.putStatus(ctx, gvrPools, next)
	if apierrors.IsConflict(err) {
		// Another status of this pool was written meanwhile; the ledger starts from it.
		u, get := c.dyn.Resource(gvrPools).Get(ctx, string(id), metav1.GetOptions{})
		if get != nil {
			return fmt.Errorf("read pool %s again: %w", id, get)
		}
		now, bad := decode[v1alpha1.CapacityPool](u)
		if bad != nil {
			return bad
		}
		got, err = c.putStatus(ctx, gvrPools, l.charged(now))
	}
	if err != nil {
		return fmt.Errorf("write the disruption ledger before evicting: %w", err)
	}
	l.a.see(c.pools.sees("", string(id), got.GetUID(), got.GetResourceVersion()))
	return nil
}

// charged is the pool with this plan's evictions counted.
func (l *ledgers) charged(read *v1alpha1.CapacityPool) *v1alpha1.CapacityPool {
	next := *read
	id := fleet.PoolID(read.Name)
	d := read.Status.Disruptions
	if l.a.plan.At.Sub(d.WindowStart.Time) >= ledgerWindow {
		d = v1alpha1.DisruptionLedger{WindowStart: *stamp(l.a.plan.At)}
	}
	d.Recalls += l.recalls[id]
	d.Evictions += l.others[id]
	next.Status.Disruptions = d
	next.Status.LeaderEpoch = l.a.plan.LeaderEpoch
	return &next
}
