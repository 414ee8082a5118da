package protocol

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// charges are what one stage of a plan takes from the pods of one pool. They are written once and before the first act, into the pool's status,
// so that every actor and every leader sees one count.
type charges struct {
	pool fleet.PoolID
	at   time.Time
	// spending is what the stage takes from the budget, nil where it takes nothing; recalls is what is counted on the line of the recalls.
	spending *fleet.Spending
	recalls  int
	// base is the ledger that they were judged by, version the pool's.
	base    fleet.Ledger
	version string
	// returns are charges on the line of the recalls of which nothing came.
	returns int
}

// spends reports whether the charges depend on the budget. Recalls alone wait for none.
func (c *charges) spends() bool { return c.spending != nil && len(c.spending.Spent) > 0 }

// on is a ledger with the charges counted.
func (c *charges) on(l fleet.Ledger) fleet.Ledger {
	if c.spending != nil {
		for _, owner := range slices.Sorted(maps.Keys(c.spending.Spent)) {
			l = l.Charge(c.at, owner, c.spending.Spent[owner])
		}
	}
	if c.recalls > 0 {
		l = l.ChargeRecalls(c.at, c.recalls)
	}
	if c.returns > 0 {
		l = l.ReturnRecalls(c.at, c.returns)
	}
	return l
}

// stageCharges adds up the charges of a stage.
type stageCharges struct {
	s     *Session
	pods  func() map[fleet.PoolID]int
	pools map[fleet.PoolID]*charges
	order []fleet.PoolID
	tasks map[fleet.PoolID]*Task
}

// chargeStage counts what the actions of a stage take, each action once and only when it passes the door. An action
// beyond the budget is refused: the planner spent it already, from older facts, and another actor was faster.
func (s *Session) chargeStage(tasks []*Task) []*Task {
	c := &stageCharges{s: s, pods: once(s.door.fresh.PodsByPool), pools: map[fleet.PoolID]*charges{}, tasks: map[fleet.PoolID]*Task{}}
	for _, t := range tasks {
		if err := c.count(t); err != nil {
			s.refused[planner.KeyOf(t.Action)] = refusal{Failed, err} // a spent budget is no fact that moved on
		}
	}
	out := make([]*Task, 0, len(c.order))
	for _, id := range c.order {
		out = append(out, c.tasks[id])
	}
	return out
}

// goes reports whether an action passes the door.
func (c *stageCharges) goes(a planner.Action) bool { return c.s.Check(a) == nil }

// count adds what one action takes.
func (c *stageCharges) count(t *Task) error {
	facts := c.s.door.fresh
	switch a := t.Action.(type) {
	case *planner.Eviction:
		if !c.goes(a) || c.s.waits(a) {
			return nil // it is not done, so nothing is charged
		}
		id := c.poolOf(a)
		if a.Loan != "" {
			return c.take(t, []planner.Charge{{Pool: id, Pods: 1, Due: true}}, nil)
		}
		owner, pods := "pod "+a.Pod.Name.String(), 1
		if a.Job != "" {
			owner, pods = a.Job.Owner(), facts.PodsOf(a.Job)
		}
		return c.take(t, []planner.Charge{{Pool: id, Pods: 1}}, func(s *fleet.Spending, n int) string { return s.Take(owner, pods, n) })
	case *planner.Scale:
		if len(a.Charges) == 0 || !c.goes(a) {
			return nil
		}
		svc := facts.Service(a.Service)
		return c.take(t, a.Charges, func(s *fleet.Spending, n int) string { return s.Take(svc.Owner(), svc.Standing(), n) })
	case *planner.JobScale:
		if len(a.Charges) == 0 || !c.goes(a) {
			return nil
		}
		return c.take(t, a.Charges, func(s *fleet.Spending, n int) string { return s.Take(a.Job.Owner(), facts.PodsOf(a.Job), n) })
	case *planner.Resize:
		if len(a.Charges) == 0 || !c.goes(a) {
			return nil
		}
		owner := facts.Service(a.Service).Owner()
		return c.take(t, a.Charges, func(s *fleet.Spending, n int) string { return s.Roll(owner, n) })
	}
	return nil
}

// Returns are the ledgers from which charges are taken back once all stages are carried out: those of evictions that the API server denied. The pods are
// still there, so nothing is lost by it. An eviction without an answer stays charged, since its pod may end; and so does a scale-in that passed a marked
// pod over, since another pod left in its place.
func (s *Session) Returns(tasks []*Task) []*Task {
	denied := map[fleet.PoolID]int{}
	charged := map[fleet.PoolID]*charges{}
	for _, t := range tasks {
		if _, evicts := t.Action.(*planner.Eviction); !evicts || !t.denied || len(t.owes) != 1 || !t.owes[0].Done() || t.owes[0].ledger.spends() {
			continue
		}
		c := t.owes[0].ledger
		denied[c.pool]++
		charged[c.pool] = c
	}
	var out []*Task
	for _, id := range slices.Sorted(maps.Keys(denied)) {
		x := &charges{pool: id, at: charged[id].at, returns: denied[id]}
		w := s.ledgers[id]
		x.base, x.version = w.ledger, w.version
		out = append(out, &Task{ledger: x})
	}
	return out
}

// poolOf is the pool that an eviction is charged to: the lender's for a recall, else the home of the pod's machine.
func (c *stageCharges) poolOf(e *planner.Eviction) fleet.PoolID {
	facts := c.s.door.fresh
	if l := facts.Loan(e.Loan); l != nil {
		return l.From
	}
	if p := c.s.door.Pod(e.Pod.ID); p != nil {
		if n := facts.Node(p.Node); n != nil {
			return n.Pool
		}
	}
	return ""
}

// take spends what an action takes. Pods that are due to others are counted on the line of the recalls, whatever the
// budget says.
func (c *stageCharges) take(t *Task, list []planner.Charge, take func(s *fleet.Spending, pods int) (refusedBy string)) error {
	for _, x := range list {
		of := c.of(x.Pool)
		switch {
		case of == nil && x.Due:
			continue // a recall waits for no budget, and its line went with the pool
		case of == nil:
			return fmt.Errorf("no pool has a disruption budget for the pod's machine")
		case x.Due:
			of.recalls += x.Pods
		default:
			if of.spending == nil {
				pool := *c.s.door.fresh.Pool(x.Pool)
				pool.Ledger = of.base
				of.spending = pool.Spend(c.s.plan.At, c.pods()[x.Pool])
			}
			if by := take(of.spending, x.Pods); by != "" {
				return fmt.Errorf("held back by the %s", by)
			}
		}
		if task := c.tasks[x.Pool]; !slices.Contains(t.owes, task) {
			t.owes = append(t.owes, task)
		}
	}
	return nil
}

// of are the charges of a pool, with its ledger as the facts have it or as an earlier stage of this plan wrote it; nil where there is no pool.
func (c *stageCharges) of(id fleet.PoolID) *charges {
	if x := c.pools[id]; x != nil {
		return x
	}
	pool := c.s.door.fresh.Pool(id)
	if pool == nil {
		return nil
	}
	x := &charges{pool: id, at: c.s.plan.At, base: pool.Ledger, version: pool.Version}
	if w, ok := c.s.ledgers[id]; ok {
		x.base, x.version = w.ledger, w.version
	}
	c.pools[id], c.order, c.tasks[id] = x, append(c.order, id), &Task{ledger: x}
	return x
}

// ledgerRequest writes the ledger of one pool. A conflict is looked at once: what was allowed stands as long as the ledger is the same; recalls
// always do.
func (s *Session) ledgerRequest(c *charges) request {
	return request{
		write: func() (*Write, error) {
			if !c.spends() && c.recalls == 0 && c.returns == 0 {
				return nil, nil // each action that would have been charged was refused
			}
			if c.returns > 0 && c.on(c.base).Equal(c.base) {
				return nil, nil // its minute is over
			}
			return &Write{Object: Object{ObjectPool, string(c.pool)}, If: Precondition{Version: c.version, LeaderEpoch: s.plan.LeaderEpoch},
				Change: SetLedger{Ledger: c.on(c.base)}, OnConflict: ConflictSameLedger, See: SeeVersion, ledger: c}, nil
		},
		then: func(w *Write, a Answer) {
			wrote := w.Change.(SetLedger).Ledger
			if a.Fact.Exists {
				wrote = a.Fact.Ledger
			}
			s.ledgers[c.pool] = wroteLedger{ledger: wrote, version: a.Version}
		},
	}
}
