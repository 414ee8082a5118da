package sim

import (
	"context"
	"errors"
	"math"
	"slices"
	"sort"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/sim/scenario"
)

// remember keeps what statuses do: since when a tenant must give back, when its last burst began, and how the gang of a
// job stands. Snapshots that were made keep their own. So does the estimate of how long a parcel is its borrower's.
func (c *controller) remember(p *planner.Plan) {
	for _, x := range p.Survivals {
		if i, ok := c.loanAt(x.Loan); ok && c.loans[i].Phase == fleet.Lent {
			c.loans[i].ExpectedUntil, c.loans[i].Due = x.Until, x.Due
		}
	}
	c.tenants = slices.Clone(c.tenants)
	for i := range c.tenants {
		if x := p.Division.Share(c.tenants[i].ID); x != nil {
			c.tenants[i].OverSince, c.tenants[i].BurstSince, c.tenants[i].Notices = x.OverSince, x.BurstSince, x.Notices
			c.limits[x.Tenant] = x.Limit.CPU
		}
	}
	for i := range p.Gangs {
		for k := range c.w.jobs {
			if j := &c.w.jobs[k]; j.id() == p.Gangs[i].Job {
				j.gang = p.Gangs[i].Gang
			}
		}
	}
}

// errAnotherLender is why work of another lender is not sized or marked.
var errAnotherLender = errors.New("another lender's offline work is not ours to size")

// errModified is the API's answer where a conflict is drawn, errDead where the process is.
var errModified, errDead = errors.New("the object has been modified"), errors.New("the controller died")

// Apply implements loop.Actuator: the session of the plan runs on the world's API.
func (c *controller) Apply(_ context.Context, p *planner.Plan) (loop.Receipt, error) {
	r := loop.Receipt{Revision: p.Revision}
	c.remember(p)
	if p.CountActions() == 0 {
		return r, nil
	}
	// Nothing happened since the cycle began, so its snapshot is fresh, unless it was of before.
	if c.fresh == nil {
		c.fresh = c.snapshot()
	}
	facts := *c.fresh
	facts.LeaderEpoch = c.epoch // the cycle wrote its own into it
	s := protocol.New(p, &facts)
	if len(c.others) > 0 {
		for a := range p.Actions() {
			if kind := a.ActionKind(); kind == planner.ActionJobScale || kind == planner.ActionMark {
				s.Refuse(a, errAnotherLender)
			}
		}
	}
	left := c.actionsLeft(p.CountActions())
	c.judge.beyond = c.beyond()
	for stage := range s.Stages {
		if left <= 0 {
			break // the process is dead
		}
		for _, t := range stage.Ledgers {
			c.api.Carry(s, t, c.Now(), c.writes(false))
		}
		c.shuffle(stage.Groups)
		for _, g := range stage.Groups {
			for _, t := range g {
				if left--; left >= 0 {
					c.api.Carry(s, t, c.Now(), c.writes(left == 0 && c.crashing()))
				}
			}
		}
		for _, t := range stage.Tasks {
			if t.Over() {
				r.Results = append(r.Results, t.Result())
			}
		}
	}
	c.checkDone(p, &r)
	if c.crashing() {
		c.cancel() // and another leader comes
	}
	return r, nil
}

// checkDone judges what a plan did, as a whole.
func (c *controller) checkDone(p *planner.Plan, r *loop.Receipt) {
	done := map[planner.Key]bool{}
	for i := range r.Results {
		if x := &r.Results[i]; x.Outcome == loop.Done {
			done[planner.Key{Kind: x.Action, Subject: x.Subject}] = true
		}
	}
	var raised raises
	for a := range p.Actions() {
		if done[planner.KeyOf(a)] {
			raised.add(a)
		}
	}
	c.checkQuota(p, raised)
	c.checkSold(raised)
}

// writes stands between one task and the API, and draws what goes wrong there: the first write may meet a conflict, each one that was taken may be
// delivered again, and a controller that dies with the task dies after its first write.
func (c *controller) writes(dies bool) func(*protocol.Write) protocol.Answer {
	first := true
	return func(w *protocol.Write) protocol.Answer {
		if first && c.conflicts() {
			return protocol.Answer{How: protocol.Refused, Err: errModified}
		}
		if !first && dies {
			return protocol.Answer{How: protocol.Refused, Err: errDead}
		}
		first = false
		w = c.sent(w)
		a := c.api.Do(w)
		if a.How == protocol.Taken {
			c.repeats(w)
		}
		return a
	}
}

// shuffle draws the order in which groups are carried out, where anything may go wrong: they may go side by side.
func (c *controller) shuffle(groups [][]*protocol.Task) {
	if len(c.w.faults) > 0 {
		c.order.Shuffle(len(groups), func(i, k int) { groups[i], groups[k] = groups[k], groups[i] })
	}
}

// crashing reports whether this cycle's controller dies while it writes.
func (c *controller) crashing() bool { return c.w.on(scenario.Crash) != nil }

// actionsLeft is how many of its actions are written before the controller dies; all of them where it lives.
func (c *controller) actionsLeft(all int) int {
	if f := c.w.on(scenario.Crash); f != nil {
		return f.rand.IntN(all + 1)
	}
	return math.MaxInt
}

// conflicts draws whether an action fails.
func (c *controller) conflicts() bool {
	f := c.w.on(scenario.APIConflicts)
	return f != nil && f.rand.Float64() < f.Share
}

// pool finds a pool by its id, or nil.
func (c *controller) pool(id fleet.PoolID) *fleet.Pool {
	for i := range c.pools {
		if c.pools[i].ID == id {
			return &c.pools[i]
		}
	}
	return nil
}

// machineOf is the index of a machine by its name.
func (c *controller) machineOf(name string) (int32, bool) {
	facts := c.w.facts
	i := sort.Search(len(facts), func(i int) bool { return facts[i].Name >= name })
	return int32(i), i < len(facts) && facts[i].Name == name
}

func (c *controller) loanAt(id fleet.LoanID) (int, bool) {
	i := sort.Search(len(c.loans), func(i int) bool { return c.loans[i].ID >= id })
	return i, i < len(c.loans) && c.loans[i].ID == id
}

func coresRequest(cores int) fleet.Resources { return scenario.CoresOf(cores) }
