package loop

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// leastPause is the shortest time from one cycle to the next that a deadline asks for: what is due and still cannot be done must not turn the loop
// without a rest. It is the resolution of metrics and of the simulated clock.
const leastPause = 15 * time.Second

// Pending is what may make a cycle due before its tick.
type Pending struct {
	// Last is when the last cycle began, Tick when the next one is due in any case.
	Last, Now, Tick time.Time
	// Changed says that a fact changed which a plan waits for: an answer to a notice, a report of Clean, a freeze, a spec.
	Changed bool
	// Short says that the reactive part asks for more replicas than there are, Waiting that pods wait for room while machines are away.
	Short, Waiting bool
	// Deadline is the first announced deadline; zero where there is none. See [Deadline].
	Deadline time.Time
}

// Due is when the next cycle is due. The controller and the simulators ask it.
func Due(p Pending) time.Time {
	at := p.Tick
	if !p.Deadline.IsZero() {
		if d := later(p.Deadline, p.Last.Add(leastPause)); d.Before(at) {
			at = d
		}
	}
	if (p.Changed || p.Short || p.Waiting) && p.Now.Before(at) {
		at = p.Now
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Deadline is the first deadline at which a loan can take a step by the clock alone: a recall of online's machines that was announced, and a machine
// of offline's that was asked to empty. Zero where there is none.
func Deadline(loans []fleet.Loan, pools []fleet.Pool) time.Time {
	var first time.Time
	for i := range loans {
		l := &loans[i]
		invited := l.Phase == fleet.Emptying && !l.Deadline.IsZero()
		if !invited && !(l.Phase == fleet.Noticed && classOf(pools, l.From) == fleet.Online) {
			continue
		}
		if first.IsZero() || l.Deadline.Before(first) {
			first = l.Deadline
		}
	}
	return first
}

func classOf(pools []fleet.Pool, id fleet.PoolID) fleet.Class {
	for i := range pools {
		if pools[i].ID == id {
			return pools[i].Class
		}
	}
	return ""
}

// standing are the loans as they are once the plan is carried out.
func standing(s *fleet.Snapshot, plan *planner.Plan) []fleet.Loan {
	out := append([]fleet.Loan(nil), s.Loans...)
	for i := range plan.Moves {
		after := plan.Moves[i].After
		if k := slices.IndexFunc(out, func(l fleet.Loan) bool { return l.ID == after.ID }); k >= 0 {
			out[k] = after
		} else {
			out = append(out, after)
		}
	}
	return out
}
