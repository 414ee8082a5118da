package sim

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/protocol"
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
	plan    *planner.Plan
	facts   *fleet.Snapshot
	session *protocol.Session
	// next yields the tasks of the session, in order; left are the actions among them that were not carried out yet.
	next func() (*protocol.Task, bool)
	stop func()
	left int
	// The first of its requests arrive before its successor plans, the others after.
	first int
	// sent is the tick at which it was made: its requests are under way since then.
	sent int32
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
		c.last.first, c.last.sent = f.rand.IntN(c.last.left+1), c.w.tick
	}
	return err
}

func newLastPlan(p *planner.Plan, facts *fleet.Snapshot) *lastPlan {
	l := &lastPlan{plan: p, facts: facts, session: protocol.New(p, facts), left: p.CountActions()}
	l.next, l.stop = iter.Pull(func(yield func(*protocol.Task) bool) {
		for stage := range l.session.Stages {
			for _, t := range append(slices.Clone(stage.Ledgers), stage.Tasks...) {
				if !yield(t) {
					return
				}
			}
		}
	})
	return l
}

// arrive carries out requests of a plan whose leader was succeeded: some at the first tick, which its successor sees,
// the others at the next, when that one has planned. The session knows the facts of then, so only what the API refuses
// by the preconditions of the writes stays undone. Raises of two leaders at once may take a tenant beyond its quota
// together, for which no request has a version: neither's plan is judged by the other's.
func (c *controller) arrive() {
	l := c.last
	if l == nil {
		return
	}
	c.judge.beyond, c.late = c.beyond(), l
	defer func() { c.late = nil }()
	for l.first > 0 {
		t, more := l.next()
		if !more {
			break
		}
		c.api.Carry(l.session, t, l.facts.At, nil)
		if t.Action != nil {
			c.logRequest(t.Result())
			l.first, l.left = l.first-1, l.left-1
		}
	}
	if l.first = l.left; l.left == 0 {
		l.stop()
		c.last = nil
	}
}

// logRequest logs what became of a request of a leader that was succeeded.
func (c *controller) logRequest(r loop.Result) {
	if c.w.log != nil {
		slog.New(c.w.log).Info("request of the leader before", "action", r.Action, "subject", r.Subject, "outcome", r.Outcome, "message", r.Message)
	}
}

// sharedNow is the share of a machine as it is, whatever becomes of it.
func sharedNow(n *fleet.Node) fleet.Share {
	s := n.Share
	s.Parcels = slices.Clone(s.Parcels)
	return s
}
