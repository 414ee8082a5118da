package kube

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// ledgers charge one stage of a plan to the pools that it disrupts, each pool once and before the first act. The count lives in the pool's
// status and is written with its resourceVersion, so that every actor and every leader sees one count.
type ledgers struct {
	a *applier
	// pods counts the pods of each pool, spending what the stage takes from each pool's budget, recalls what is charged beside it.
	pods     map[fleet.PoolID]int
	spending map[fleet.PoolID]*fleet.Spending
	recalls  map[fleet.PoolID]int
	// owed are the pools to write before an action, by its subject; refused the actions that a spent budget holds back.
	owed    map[string][]fleet.PoolID
	refused map[string]error

	mu      sync.Mutex // guards results
	results map[fleet.PoolID]error
}

func newLedgers(a *applier) *ledgers {
	return &ledgers{a: a, pods: a.door.Facts().PodsByPool(), spending: map[fleet.PoolID]*fleet.Spending{}, recalls: map[fleet.PoolID]int{},
		owed: map[string][]fleet.PoolID{}, refused: map[string]error{}, results: map[fleet.PoolID]error{}}
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

// eviction counts one eviction that passes the door. Recalls are charged to a line of their own, shown and never blocked; anything else
// waits when a bound of the budget is reached.
func (l *ledgers) eviction(e *planner.Eviction) {
	if l.a.door.CheckEviction(e) != nil {
		return
	}
	id := l.poolOf(e)
	if e.Loan != "" {
		l.recalls[id]++
		l.owed[e.Pod.Name.String()] = []fleet.PoolID{id}
		return
	}
	owner, pods := "pod "+e.Pod.Name.String(), 1
	if e.Job != "" {
		owner, pods = e.Job.Owner(), l.a.door.Facts().PodsOf(e.Job)
	}
	l.take(e.Pod.Name.String(), owner, pods, []planner.Charge{{Pool: id, Pods: 1}})
}

// scale counts the pods that a scale-in takes off machines that are to be emptied, or gives back to whom they were lent by.
func (l *ledgers) scale(s *planner.Scale) {
	if len(s.Charges) == 0 || l.a.door.CheckScale(s) != nil {
		return
	}
	svc := l.a.door.Facts().Service(s.Service)
	l.take(string(s.Service), svc.Owner(), svc.Standing(), s.Charges)
}

// job counts the members that a smaller size takes for others.
func (l *ledgers) job(j *planner.JobScale) {
	if len(j.Charges) > 0 && l.a.door.CheckJobScale(j) == nil {
		l.take(memberOf(j), j.Job.Owner(), l.a.door.Facts().PodsOf(j.Job), j.Charges)
	}
}

// resize counts the pods that roll over as their template changes.
func (l *ledgers) resize(r *planner.Resize) {
	if len(r.Charges) == 0 || l.a.door.CheckResize(r) != nil {
		return
	}
	owner := l.a.door.Facts().Service(r.Service).Owner()
	l.spend(string(r.Service), r.Charges, func(s *fleet.Spending, pods int) string { return s.Roll(owner, pods) })
}

// take spends what an action takes of an owner's pods.
func (l *ledgers) take(subject, owner string, ownerPods int, charges []planner.Charge) {
	l.spend(subject, charges, func(s *fleet.Spending, pods int) string { return s.Take(owner, ownerPods, pods) })
}

// spend spends what an action takes. The planner spent it already, from older facts: here it is refused when another actor was faster. What is
// due to others is counted beside it, whatever the budget says.
func (l *ledgers) spend(subject string, charges []planner.Charge, take func(s *fleet.Spending, pods int) (refusedBy string)) {
	for _, c := range charges {
		if c.Due {
			l.recalls[c.Pool] += c.Pods
			l.owed[subject] = append(l.owed[subject], c.Pool)
			continue
		}
		pool := l.pool(c.Pool)
		if pool == nil {
			l.refused[subject] = fmt.Errorf("no pool has a disruption budget for the pod's machine")
			return
		}
		if l.spending[c.Pool] == nil {
			l.spending[c.Pool] = pool.Spend(l.a.plan.At, l.pods[c.Pool])
		}
		if by := take(l.spending[c.Pool], c.Pods); by != "" {
			l.refused[subject] = fmt.Errorf("held back by the %s", by)
			return
		}
		l.owed[subject] = append(l.owed[subject], c.Pool)
	}
}

// pool is a pool as the door saw it, with the ledger that this plan wrote since; nil where there is none.
func (l *ledgers) pool(id fleet.PoolID) *fleet.Pool {
	seen := l.a.door.Facts().Pool(id)
	if seen == nil {
		return nil
	}
	p := *seen
	if w := l.a.wrotePool(id); w != nil {
		p.Ledger = newLedgerFacts(&w.Status.Disruptions)
	}
	return &p
}

func (a *applier) wrotePool(id fleet.PoolID) *v1alpha1.CapacityPool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pools[id]
}

// charge writes the ledgers of the pools that an action disrupts, unless they were written already, and says whether it may go on.
func (l *ledgers) charge(ctx context.Context, subject string) error {
	if err := l.refused[subject]; err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.owed[subject] {
		err, written := l.results[id]
		if !written {
			err = l.write(ctx, id)
			l.results[id] = err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *ledgers) write(ctx context.Context, id fleet.PoolID) error {
	c := l.a.c
	pool, ok := c.pools.get("", string(id))
	if !ok && l.spending[id] == nil {
		return nil // a recall waits for no budget, and its line went with the pool
	}
	if !ok {
		return stale("pool %s is gone", id)
	}
	base := l.a.wrotePool(id)
	if base == nil {
		base = pool.api
	}
	next := l.charged(base)
	got, err := c.putStatus(ctx, gvrPools, next)
	if apierrors.IsConflict(err) {
		// Another status of this pool was written meanwhile. What was allowed stands as long as its ledger is the same; recalls always do.
		u, get := c.dyn.Resource(gvrPools).Get(ctx, string(id), metav1.GetOptions{})
		if get != nil {
			return fmt.Errorf("read pool %s again: %w", id, get)
		}
		now, bad := decode[v1alpha1.CapacityPool](u)
		if bad != nil {
			return bad
		}
		if l.spending[id] != nil && !reflect.DeepEqual(newLedgerFacts(&now.Status.Disruptions), newLedgerFacts(&base.Status.Disruptions)) {
			return stale("another actor charged the disruption ledger of pool %s", id)
		}
		next = l.charged(now)
		got, err = c.putStatus(ctx, gvrPools, next)
	}
	if err != nil {
		return fmt.Errorf("write the disruption ledger first: %w", err)
	}
	next.ResourceVersion = got.GetResourceVersion()
	l.a.mu.Lock()
	l.a.pools[id] = next
	l.a.mu.Unlock()
	l.a.see(c.pools.sees("", string(id), got.GetUID(), got.GetResourceVersion()))
	return nil
}

// charged is the pool with this stage's disruptions counted.
func (l *ledgers) charged(read *v1alpha1.CapacityPool) *v1alpha1.CapacityPool {
	next := *read
	id, at := fleet.PoolID(read.Name), l.a.plan.At
	ledger := newLedgerFacts(&read.Status.Disruptions)
	if s := l.spending[id]; s != nil {
		for _, owner := range slices.Sorted(maps.Keys(s.Spent)) {
			ledger = ledger.Charge(at, owner, s.Spent[owner])
		}
	}
	ledger = ledger.ChargeRecalls(at, l.recalls[id])
	next.Status.Disruptions = ledgerStatus(&ledger)
	next.Status.LeaderEpoch = l.a.plan.LeaderEpoch
	return &next
}
