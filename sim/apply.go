package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/sim/scenario"
)

// remember keeps what statuses do: since when a tenant is told to give back, when its last burst began, and how the gang of a job stands.
// Snapshots that were made keep their own. So is what borrowers are told of how long a parcel is theirs.
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

// Apply implements loop.Actuator: each action passes the same door as on a cluster, and is done at once.
func (c *controller) Apply(_ context.Context, p *planner.Plan) (loop.Receipt, error) {
	r := loop.Receipt{Revision: p.Revision}
	c.remember(p)
	if loop.Actions(p) == 0 {
		return r, nil
	}
	// Nothing happened since the cycle began, so its snapshot is fresh, unless it was of before.
	if c.fresh == nil {
		c.fresh = c.snapshot()
	}
	facts := *c.fresh
	facts.LeaderEpoch = c.epoch // the cycle wrote its own into it
	d := loop.NewDoor(&facts)
	left := c.actionsLeft(loop.Actions(p))
	c.judge.beyond = c.beyond()
	var raised raises
	spend := spender(&facts)
	for st := range d.Steps(p) {
		if len(c.others) > 0 && (st.Action == "JobScale" || st.Action == "Mark") {
			continue // another lender's offline work is not ours to size
		}
		check := st.Check()
		if check == nil {
			check = spend(st.Act)
		}
		if left--; left < 0 {
			continue // the process is dead
		}
		if check == nil && c.conflicts() {
			r.Results = append(r.Results, loop.Result{Action: st.Action, Subject: st.Subject, Outcome: loop.Failed, Message: "the object has been modified"})
			continue
		}
		if check == nil {
			c.do(st.Act, left == 0 && c.crashing())
			c.repeats(st.Act)
			raised.add(st.Act)
		}
		r.Results = append(r.Results, st.Did(check))
	}
	c.checkQuota(p, raised)
	c.checkSold(raised)
	if c.crashing() {
		c.cancel() // and another leader comes
	}
	return r, nil
}

// spender holds back what another actor left no budget for since the plan was made, as the actuator of a cluster does. What is due to others waits
// for no budget.
func spender(facts *fleet.Snapshot) func(act any) error {
	pods := sync.OnceValue(facts.PodsByPool)
	budgets := map[fleet.PoolID]*fleet.Spending{}
	take := func(owner string, ownerPods int, charges []planner.Charge) error {
		for _, x := range charges {
			if x.Due {
				continue
			}
			if budgets[x.Pool] == nil {
				budgets[x.Pool] = facts.Pool(x.Pool).Spend(facts.At, pods()[x.Pool])
			}
			if by := budgets[x.Pool].Take(owner, ownerPods, x.Pods); by != "" {
				return fmt.Errorf("held back by the %s", by)
			}
		}
		return nil
	}
	return func(act any) error {
		switch a := act.(type) {
		case *planner.Scale:
			s := facts.Service(a.Service)
			return take(s.Owner(), s.Standing(), a.Charges)
		case *planner.JobScale:
			if len(a.Charges) == 0 {
				break
			}
			return take(a.Job.Owner(), facts.PodsOf(a.Job), a.Charges)
		}
		return nil
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

// do does one action at once. dies tells that the controller dies with it.
func (c *controller) do(act any, dies bool) {
	switch a := act.(type) {
	case *planner.Scale:
		c.scale(a)
	case *planner.Move:
		c.move(a, dies)
	case *planner.Notice:
		c.notice(a)
	case *planner.Eviction:
		c.evict(a)
	case *planner.Kill:
		c.kill(a)
	case *planner.JobScale:
		// The ledger is written by itself, before the size: of what comes a second time it is no part.
		c.charge(a.Job.Owner(), a.Charges)
		c.scaleJob(a)
		c.checkBudgets()
	case *planner.Filler:
		c.fill(a)
	case *planner.Mark:
		c.mark(a)
	}
}

// scale charges the ledgers, marks who leaves, and writes the replicas. Who was marked for a scale-in that never came about is not any more.
func (c *controller) scale(a *planner.Scale) {
	c.charge((&fleet.Service{ID: a.Service}).Owner(), a.Charges)
	if a.To < a.From {
		for _, id := range c.w.services[c.index[a.Service]].pods {
			c.w.pods[id].cost = 0
		}
	}
	for _, l := range a.Leavers {
		if id, ok := c.w.find(l.ID); ok {
			c.w.pods[id].cost = -1
		}
	}
	c.take(a)
	c.w.services[c.index[a.Service]].desired = a.To
	c.checkScale(a)
}

func (c *controller) charge(owner string, charges []planner.Charge) {
	for _, x := range charges {
		c.judge.of(x.Pool, c.Now()) // its windows begin as the ledger's do
		if p := c.pool(x.Pool); p != nil {
			p.Ledger = x.On(p.Ledger, c.Now(), owner)
		}
	}
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

// move writes the share and then the loan. A controller that dies between the two writes the share alone.
func (c *controller) move(m *planner.Move, dies bool) {
	n, onFleet := c.machineOf(m.Node)
	at, known := c.loanAt(m.Before.ID)
	after := m.After
	switch {
	case m.Kind == planner.MoveForget:
		c.loans = slices.Delete(c.loans, at, at+1)
		if onFleet {
			share := &c.w.facts[n].Share
			share.Parcels = slices.DeleteFunc(share.Parcels, func(e fleet.ShareParcel) bool { return e.Loan == m.Before.ID })
			share.Rest = m.Rest
			c.w.handCells(n)
		}
		return
	case m.Kind == planner.MoveBegin:
		c.checkClaims(m)
		// The loan is made before the first effect of its move.
		after.UID = fleet.UID("uid-" + string(after.ID))
		c.loans = slices.Insert(c.loans, at, after)
		if dies {
			return
		}
		share := &c.w.facts[n].Share
		share.Exists = true
		share.Parcels = append(slices.Clone(share.Parcels), fleet.ShareParcel{Cells: after.Cells, Loan: after.ID})
		c.w.acc.move(c.w)
	case known && !dies:
		c.count(m)
		c.loans[at] = after
	}
	if onFleet && c.w.facts[n].ID == after.Node {
		share := &c.w.facts[n].Share
		if m.Kind == planner.MoveRepair && share.Find(after.ID) == nil && share.Over(after.Cells) == nil {
			share.Exists = true
			share.Parcels = append(slices.Clone(share.Parcels), fleet.ShareParcel{Cells: after.Cells, Loan: after.ID})
		}
		if e := share.Find(after.ID); e != nil {
			e.Holder, e.Next, e.Epoch = after.Holder(), after.Next(), after.Epoch
		}
		c.w.handCells(n)
	}
}

// count keeps the account of a loan's step, and takes notices back when it turns.
func (c *controller) count(m *planner.Move) {
	w := c.w
	if m.After.From == offlinePool {
		return // what online borrows is not lent, and comes home when online can do without it
	}
	if m.After.Phase.Away() && !m.Before.Phase.Away() {
		w.borrowed++
	}
	if !m.After.Phase.Away() && m.Before.Phase.Away() {
		w.borrowed--
	}
	if m.Kind == planner.MoveReturn && m.After.Late(w.now) && w.tick >= w.scored {
		w.acc.late++
	}
	if m.Before.Phase == fleet.Lent && m.After.Phase != fleet.Lent && c.Now().Before(m.Before.ExpectedUntil) && w.tick >= w.scored {
		w.acc.short++
	}
	if m.Kind != planner.MoveTurnBack {
		return
	}
	if n, ok := c.machineOf(m.Node); ok {
		for _, id := range w.machines[n].pods {
			if p := &w.pods[id]; p.kind == offline && p.noticeLoan == m.Before.ID {
				w.resume(id)
			}
		}
	}
}

func (c *controller) notice(n *planner.Notice) {
	switch id, ok := c.w.find(n.Pod.ID); {
	case !ok:
	case n.Again: // the time alone, which members do not read; but one that comes late tells of a loan and an epoch that are over
		if p := &c.w.pods[id]; p.noticeLoan != n.Loan || p.noticeEpoch != n.Epoch {
			c.w.tell(id, n.Loan, n.Epoch)
		}
	case n.TakenBack:
		c.w.resume(id)
	default:
		c.w.unanswer(id)
		c.w.tell(id, n.Loan, n.Epoch)
	}
}

func (c *controller) evict(e *planner.Eviction) {
	id, ok := c.w.find(e.Pod.ID)
	if !ok {
		return
	}
	c.checkEviction(e, &c.w.pods[id])
	j := &c.w.jobs[c.w.pods[id].owner]
	j.recalled = fleet.KnownAt(c.Now(), c.Now())
	c.w.endMember(id)
}

// kill ends a pod at once, unless ends are stuck: then no deletion ends it before its time.
func (c *controller) kill(k *planner.Kill) {
	w := c.w
	id, ok := w.find(k.Pod.ID)
	if !ok {
		return
	}
	c.checkKill(k, &w.pods[id])
	j := &w.jobs[w.pods[id].owner]
	j.recalled = fleet.KnownAt(w.now, w.now)
	if _, stuck := w.hit(scenario.StuckPods, int(id)); stuck {
		w.endMember(id)
		w.pods[id].killed = true
		return
	}
	w.vanish(id)
}

func (c *controller) scaleJob(a *planner.JobScale) {
	for i := range c.w.jobs {
		if j := &c.w.jobs[i]; j.id() == a.Job && !j.done {
			j.desired = a.To
		}
	}
}

// fillersIn is the namespace of fillers.
const fillersIn = "springtide-system"

// fill makes a filler on its machine, or deletes one. What does not fit is planned again.
func (c *controller) fill(f *planner.Filler) {
	w := c.w
	if f.Delete {
		if id, ok := w.find(f.ID); ok {
			w.drop(id)
		}
		return
	}
	n, ok := c.machineOf(f.Node)
	cores := int32(f.Room.CPU / 1000)
	if !ok || w.machines[n].free < cores {
		return
	}
	id := w.newPod(pod{name: fleet.Name{Namespace: fillersIn, Name: f.Name}, kind: filler, cores: cores})
	w.pods[id].holdsOn, w.pods[id].ready = n, true
	w.bindOn(id, n)
	w.pods[id].bound = w.tick
}

func (c *controller) mark(m *planner.Mark) {
	n, ok := c.machineOf(m.Node)
	if !ok || c.w.facts[n].ID != m.ID {
		return
	}
	c.w.facts[n].Marks, c.marked[m.Node] = m.Want, c.epoch
	x := &c.w.machines[n]
	x.toOnline, x.toOffline = !m.Want.HolderTaint, m.Want.OfflineLabel
	c.w.open(n)
}

func coresRequest(cores int) fleet.Resources { return scenario.CoresOf(cores) }
