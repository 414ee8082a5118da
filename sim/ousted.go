package sim

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// leadership is what one leader sees of the fleet and does to it.
type leadership struct {
	*controller
	// lost is what it does once it lost its lease without knowing it; nil while it leads.
	lost *lastPlan
}

// lastPlan is a plan that its leader was still carrying out when another took over, with what that leader had seen of the fleet.
type lastPlan struct {
	plan  *planner.Plan
	facts *fleet.Snapshot
	// wrote and ledgers are the shares of machines and the ledgers of pools as the plan itself left them, drained the loans whose drain went through.
	wrote   map[string]fleet.Share
	ledgers map[fleet.PoolID]fleet.Ledger
	drained map[fleet.LoanID]bool
	// The first of its requests arrive before its successor plans, the others after.
	requests []loop.Step
	first    int
}

// errUnanswered is what a leader hears of requests that outlive it.
var errUnanswered = errors.New("the API server did not answer")

// Snapshot implements loop.Observer.
func (l *leadership) Snapshot(ctx context.Context) (*fleet.Snapshot, error) {
	s, err := l.controller.Snapshot(ctx)
	if err != nil || l.lost == nil {
		return s, err
	}
	seen := *s
	l.lost.facts = detached(&seen)
	return l.lost.facts, nil
}

// Apply implements loop.Actuator.
func (l *leadership) Apply(ctx context.Context, p *planner.Plan) (loop.Receipt, error) {
	if l.lost == nil {
		return l.controller.Apply(ctx, p)
	}
	l.lost.plan = p
	return loop.Receipt{Revision: p.Revision}, errUnanswered
}

// linger turns the loop of a leader that lost its lease once more: it holds what it knows to be so, and writes while its successor begins.
func (c *controller) linger(ctx context.Context, l *loop.Loop, of *leadership, f *fault) error {
	read := slices.Clone(c.read)
	of.lost = &lastPlan{}
	_, err := l.Cycle(ctx)
	c.read = read // each leader asks history on its own account
	if errors.Is(err, errUnanswered) {
		c.last, err = newLastPlan(of.lost.plan, of.lost.facts), nil
		c.last.first = f.rand.IntN(len(c.last.requests) + 1)
	}
	return err
}

func newLastPlan(p *planner.Plan, facts *fleet.Snapshot) *lastPlan {
	return &lastPlan{plan: p, facts: facts, wrote: map[string]fleet.Share{}, ledgers: map[fleet.PoolID]fleet.Ledger{}, drained: map[fleet.LoanID]bool{},
		requests: slices.Collect(loop.NewDoor(facts).Steps(p))}
}

// arrive carries out requests of a plan whose leader was succeeded: some at the first tick, which its successor sees, the others at the next, when that
// one has planned. The door knows the facts of then, so only what the API server refuses by the versions and UIDs in the requests stays undone. What
// two leaders raise at once may take a tenant beyond its quota together, for which no request has a version: neither's plan is judged by the other's.
func (c *controller) arrive() {
	l := c.last
	if l == nil {
		return
	}
	c.judge.beyond, c.late = c.beyond(), l
	defer func() { c.late = nil }()
	for _, st := range l.requests[:l.first] {
		err := st.Check()
		if err == nil {
			err = c.refuses(l, st.Act)
		}
		if c.tell(st.Did(err)); err != nil {
			continue
		}
		c.do(st.Act, false)
		c.own(l, st.Act)
	}
	if l.requests, l.first = l.requests[l.first:], len(l.requests)-l.first; len(l.requests) == 0 {
		c.last = nil
	}
}

// own notes what a request changed that the plan's own later ones rest on.
func (c *controller) own(l *lastPlan, act any) {
	var charges []planner.Charge
	switch a := act.(type) {
	case *planner.Move:
		l.drained[a.After.ID] = a.Kind == planner.MoveDrain
		if n, ok := c.machineOf(a.Node); ok {
			l.wrote[a.Node] = sharedNow(&c.w.facts[n])
		}
	case *planner.Scale:
		charges = a.Charges
	case *planner.JobScale:
		charges = a.Charges
	}
	for _, x := range charges {
		if p := c.pool(x.Pool); p != nil {
			l.ledgers[x.Pool] = p.Ledger
		}
	}
}

// tell logs what became of a request of a leader that was succeeded.
func (c *controller) tell(r loop.Result) {
	if c.w.log != nil {
		slog.New(c.w.log).Info("request of the leader before", "action", r.Action, "subject", r.Subject, "outcome", r.Outcome, "message", r.Message)
	}
}

var errChanged = errors.New("the object has been modified")

// refuses is the answer of the API server to a request of a leader that was succeeded, or of the actuator that asks it once more right before.
func (c *controller) refuses(l *lastPlan, act any) error {
	w := c.w
	stale := func(yes bool) error {
		if yes {
			return errChanged
		}
		return nil
	}
	switch a := act.(type) {
	case *planner.Scale:
		return stale(w.services[c.index[a.Service]].desired != a.From || c.charged(l, a.Charges))
	case *planner.Move:
		at, known := c.loanAt(a.After.ID)
		if a.Kind == planner.MoveBegin {
			return stale(known || !c.sameShare(l, a.Node))
		}
		return stale(!known || !reflect.DeepEqual(c.loans[at], a.Before) || !c.sameShare(l, a.Node))
	case *planner.Eviction:
		if !w.takes(a) {
			return errChanged
		}
		// One that follows the drain of its loan in this plan waits for it.
		id, _ := w.find(a.Pod.ID)
		x, p := l.facts.Loan(a.Loan), &w.pods[id]
		return stale(x != nil && x.Phase == fleet.Noticed && !l.drained[a.Loan] && (p.noticeEpoch == 0 || p.ackEpoch != p.noticeEpoch))
	case *planner.JobScale:
		return stale(!w.takes(a) || c.charged(l, a.Charges))
	case *planner.Notice, *planner.Kill, *planner.Filler:
		return stale(!w.takes(a))
	case *planner.Mark:
		n := l.facts.Node(a.ID).Marks
		opens := a.Want.OfflineLabel || n.HolderTaint && !a.Want.HolderTaint || a.Want.Fence == fleet.FenceExecute
		return stale(c.marked[a.Node] > l.plan.LeaderEpoch || opens && !c.sameShare(l, a.Node))
	}
	return nil
}

// charged reports whether another actor charged a ledger of some charges since a plan was made. What is due to others waits for no budget.
func (c *controller) charged(l *lastPlan, charges []planner.Charge) bool {
	return slices.ContainsFunc(charges, func(x planner.Charge) bool {
		known, own := l.ledgers[x.Pool]
		if p := l.facts.Pool(x.Pool); !own && p != nil {
			known = p.Ledger
		}
		now := c.pool(x.Pool)
		return !x.Due && now != nil && !reflect.DeepEqual(known, now.Ledger)
	})
}

// sameShare reports whether the share of a machine is what a plan saw, or wrote itself.
func (c *controller) sameShare(l *lastPlan, node string) bool {
	n, ok := c.machineOf(node)
	if !ok {
		return true
	}
	known, own := l.wrote[node]
	if i := slices.IndexFunc(l.facts.Nodes, func(x fleet.Node) bool { return x.Name == node }); !own && i >= 0 {
		known = l.facts.Nodes[i].Share
	}
	return reflect.DeepEqual(known, c.w.facts[n].Share)
}

// sharedNow is the share of a machine as it is, whatever becomes of it.
func sharedNow(n *fleet.Node) fleet.Share {
	s := n.Share
	s.Parcels = slices.Clone(s.Parcels)
	return s
}
