package sim

import (
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/sim/scenario"
)

// echo is a write that was delivered, and is delivered once more at a tick.
type echo struct {
	at  int32
	act any
}

// echoWithin is how much later a write comes again at the most: requests that hang in a proxy outlive the plan that made them. Most come soon.
const echoWithin = 5 * time.Minute

// repeats draws whether what was just written comes again, and when.
func (c *controller) repeats(act any) {
	if f := c.w.on(scenario.DeliveredTwice); f != nil && f.rand.Float64() < f.Share {
		later := math.Pow(float64(ticks(echoWithin)), f.rand.Float64())
		c.echoes = append(c.echoes, echo{c.w.tick + int32(later), act})
	}
}

// hear delivers what is due to come again. Nobody checks it but the API server, by what the writes of internal/kube carry.
func (c *controller) hear() {
	var later []echo
	for _, e := range c.echoes {
		if e.at > c.w.tick {
			later = append(later, e)
			continue
		}
		c.again(e.act)
	}
	c.echoes = later
}

// again is a write that the API server takes, or refuses, on its own. Scales, marks and the steps of a loan carry the version that they read, which
// their own first delivery has changed: they are refused, always.
func (c *controller) again(act any) {
	w := c.w
	switch a := act.(type) {
	case *planner.Move:
		if _, known := c.loanAt(a.After.ID); !known && a.Kind == planner.MoveBegin {
			c.beginAgain(&a.After)
		}
	case *planner.Notice:
		if w.takes(a) {
			c.notice(a)
		}
	case *planner.Eviction:
		if w.takes(a) {
			c.evict(a)
		}
	case *planner.Kill:
		if w.takes(a) {
			c.kill(a)
		}
	case *planner.JobScale:
		if w.takes(a) {
			c.scaleJob(a)
		}
	case *planner.Filler:
		if w.takes(a) {
			c.fill(a)
		}
	}
}

// takes reports whether the API server takes a write that carries no version, whenever it comes.
func (w *World) takes(act any) bool {
	switch a := act.(type) {
	case *planner.Notice: // a patch of the pod's annotations, with its UID
		id, ok := w.find(a.Pod.ID)
		return ok && !w.pods[id].leaving
	case *planner.Eviction: // with the pod's UID; who ends already goes on ending
		id, ok := w.find(a.Pod.ID)
		return ok && !w.pods[id].leaving
	case *planner.Kill:
		id, ok := w.find(a.Pod.ID)
		return ok && !w.pods[id].killed
	case *planner.JobScale: // the patch tests the size that the decision started from
		return slices.ContainsFunc(w.jobs, func(j job) bool { return j.id() == a.Job && j.desired == a.From })
	case *planner.Filler: // a deletion has the UID, a creation the name
		_, taken := w.named(fleet.Name{Namespace: fillersIn, Name: a.Name})
		return a.Delete || !taken
	}
	return false
}

// beginAgain creates a loan that was there before, and is over, once more: its object alone, without a status and without a share.
func (c *controller) beginAgain(l *fleet.Loan) {
	at, _ := c.loanAt(l.ID)
	made := fleet.Loan{ID: l.ID, UID: fleet.UID("uid-" + string(l.ID)), Kind: l.Kind, Node: l.Node, NodeName: l.NodeName, Cells: l.Cells, From: l.From, To: l.To,
		Capacity: l.Capacity, Created: l.Created, Phase: fleet.Emptying, Epoch: 1}
	c.loans = slices.Insert(c.loans, at, made)
}

// unanswer takes the answer to a notice off a member, as each notice does that is not the last one told again.
func (w *World) unanswer(id int32) {
	if p := &w.pods[id]; p.ackEpoch != 0 {
		p.ackEpoch = 0
		w.jobs[p.owner].busy++
	}
}
