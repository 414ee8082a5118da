package sim

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/fleetapi"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/sim/scenario"
)

// Look implements fleetapi.World.
func (c *controller) Look(o protocol.Object) protocol.Fact {
	w := c.w
	switch o.Kind {
	case protocol.ObjectLoan:
		if l := c.Loan(fleet.LoanID(o.Name)); l != nil {
			return protocol.Fact{Exists: true, UID: l.UID, Version: l.Version, LeaderEpoch: l.LeaderEpoch}
		}
	case protocol.ObjectShare:
		if s := c.Share(o.Name); s != nil {
			return protocol.Fact{Exists: true, Version: s.Version, LeaderEpoch: c.stamped[o]}
		}
	case protocol.ObjectPool:
		if p := c.pool(fleet.PoolID(o.Name)); p != nil {
			return protocol.Fact{Exists: true, Version: p.Version, Ledger: p.Ledger, LeaderEpoch: c.stamped[o]}
		}
	case protocol.ObjectNode:
		if n, ok := c.machineOf(o.Name); ok && !w.machines[n].gone {
			at := c.marked[o.Name]
			return protocol.Fact{Exists: true, UID: fleet.UID(w.facts[n].ID), Version: cmp.Or(at.version, "0"), LeaderEpoch: at.leader}
		}
	case protocol.ObjectPod, protocol.ObjectFiller:
		if id, ok := c.podOf(o); ok {
			return protocol.Fact{Exists: true, UID: w.pods[id].uid}
		}
	case protocol.ObjectService:
		if i, ok := c.index[fleet.ServiceID(o.Name)]; ok {
			return protocol.Fact{Exists: true, Size: fleet.KnownAt(w.services[i].desired, w.now), LeaderEpoch: c.stamped[o]}
		}
	case protocol.ObjectJobMember:
		if j := c.jobOf(o); j != nil {
			return protocol.Fact{Exists: true, Size: fleet.KnownAt(j.desired, w.now)}
		}
	}
	return protocol.Fact{}
}

// Loan implements fleetapi.World.
func (c *controller) Loan(id fleet.LoanID) *fleet.Loan {
	if at, ok := c.loanAt(id); ok {
		return &c.loans[at]
	}
	return nil
}

// Share implements fleetapi.World.
func (c *controller) Share(node string) *fleet.Share {
	if n, ok := c.machineOf(node); ok && !c.w.machines[n].gone && c.w.facts[n].Share.Exists {
		return &c.w.facts[n].Share
	}
	return nil
}

// podOf is the slot of a pod by its name.
func (c *controller) podOf(o protocol.Object) (int32, bool) {
	name := fleet.Name{Namespace: fillersIn, Name: o.Name}
	if o.Kind == protocol.ObjectPod {
		name = fleet.ParseName(o.Name)
	}
	at, ok := c.w.named(name)
	if !ok {
		return 0, false
	}
	return c.w.byName[at], true
}

// jobOf is the job of a member; nil once it is done.
func (c *controller) jobOf(o protocol.Object) *job {
	id := fleet.JobID(strings.TrimSuffix(o.Name, "/"+role))
	for i := range c.w.jobs {
		if j := &c.w.jobs[i]; j.id() == id && !j.done {
			return j
		}
	}
	return nil
}

// errBudget is the answer of a disruption budget.
var errBudget = errors.New("a disruption budget refuses it")

// Refuse implements fleetapi.World: a disruption budget may refuse an eviction. That it was asked for too early is judged all the same.
func (c *controller) Refuse(x *protocol.Write) error {
	if _, ok := x.Change.(protocol.EvictPod); !ok {
		return nil
	}
	id, _ := c.podOf(x.Object)
	if c.w.pods[id].leaving || !c.w.refuses(id) {
		return nil
	}
	c.checkEviction(x.Action.(*planner.Eviction), &c.w.pods[id])
	return errBudget
}

// Commit implements fleetapi.World: an object changes, and the fleet with it. The invariants of a write are judged
// right before.
func (c *controller) Commit(x *protocol.Write, version string) {
	c.checkStamp(x)
	c.checkFrozen(x)
	w := c.w
	switch d := x.Change.(type) {
	case protocol.CreateLoan:
		c.createLoan(x, d.Loan, version)
	case protocol.SetLoan:
		c.setLoan(x, d.Loan, version)
	case protocol.DeleteLoan:
		at, _ := c.loanAt(fleet.LoanID(x.Object.Name))
		c.loans = slices.Delete(c.loans, at, at+1)
	case protocol.SetShare:
		n, _ := c.machineOf(x.Object.Name)
		if w.facts[n].ID != d.Node {
			return // an earlier machine's
		}
		w.facts[n].Share = fleet.Share{Exists: true, Version: version, Parcels: slices.Clone(d.Parcels), Rest: d.Rest}
		if m, ok := x.Action.(*planner.Move); ok && m.Kind == planner.MoveBegin {
			w.acc.move(w)
		}
		w.handCells(n)
	case protocol.SetLedger:
		p := c.pool(fleet.PoolID(x.Object.Name))
		c.judge.of(p.ID, c.chargedAt(p.ID)) // its windows begin as the ledger's do
		p.Ledger, p.Version = d.Ledger, version
		c.checkBudgets()
	case protocol.SetSize:
		c.setSize(x.Action.(*planner.Scale))
	case protocol.SetParallelism:
		c.jobOf(x.Object).desired = d.To
		c.checkBudgets()
	case protocol.SetMarks:
		n, _ := c.machineOf(x.Object.Name)
		c.setMarks(n, d.Want)
		c.marked[x.Object.Name] = marking{version, x.If.LeaderEpoch}
	case protocol.CreateFiller:
		c.createFiller(d.Filler)
	default:
		id, _ := c.podOf(x.Object)
		c.commitPod(id, x)
	}
}

func (c *controller) commitPod(id int32, x *protocol.Write) {
	w := c.w
	p := &w.pods[id]
	switch d := x.Change.(type) {
	case protocol.Steer:
		p.cost = -1
	case protocol.Unsteer:
		p.cost = 0
	case protocol.SetInService:
		w.setInService(id, d.In)
	case protocol.NoteCPU, protocol.LowerCPU, protocol.RestoreCPU: // a pod keeps its room
	case protocol.SetNotice:
		c.notice(id, &d)
	case protocol.DropNotice:
		w.resume(id)
	case protocol.EvictPod:
		if !p.leaving { // who ends already goes on ending
			c.evict(id, x.Action.(*planner.Eviction))
		}
	case protocol.KillPod:
		if !p.killed {
			c.kill(id, x.Action.(*planner.Kill))
		}
	case protocol.DeleteFiller:
		w.drop(id)
	default:
		panic("a change that no plan of a simulated fleet makes")
	}
}

// createLoan makes the object of a loan alone, without a status and without a share.
func (c *controller) createLoan(x *protocol.Write, l *fleet.Loan, version string) {
	if m, ok := x.Action.(*planner.Move); ok && !c.redelivering {
		c.checkClaims(m)
	}
	at, _ := c.loanAt(l.ID)
	made := fleet.Loan{ID: l.ID, UID: fleetapi.UIDOf(l.ID), Parcel: l.Parcel, Kind: l.Kind, Node: l.Node, NodeName: l.NodeName, Cells: l.Cells, From: l.From,
		To: l.To, Capacity: l.Capacity, Created: l.Created, Phase: fleet.Emptying, Epoch: 1, Version: version}
	c.loans = slices.Insert(c.loans, at, made)
}

func (c *controller) setLoan(x *protocol.Write, l *fleet.Loan, version string) {
	c.count(x.Action.(*planner.Move))
	now := c.Loan(l.ID)
	uid := now.UID
	*now = *l
	now.UID, now.Version = uid, version
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
	if m.After.Phase == fleet.Returned && m.Before.Phase != fleet.Returned && m.After.Late(w.now) && w.tick >= w.scored { // by a repair, too
		w.acc.late++
	}
	if n, ok := c.machineOf(m.Node); ok && m.After.Phase == fleet.Returned && m.Before.Phase != fleet.Returned {
		w.cameHome(&m.After, n)
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

// setSize writes the replicas. Marks for a scale-in that never happened are removed.
func (c *controller) setSize(a *planner.Scale) {
	s := &c.w.services[c.index[a.Service]]
	if a.To < a.From {
		for _, id := range s.pods {
			if p := &c.w.pods[id]; p.cost != 0 && !slices.ContainsFunc(a.Victims, func(l planner.PodRef) bool { return l.ID == p.uid }) {
				p.cost = 0
			}
		}
	}
	c.take(a)
	s.desired = a.To
	c.checkScale(a)
}

// notice writes a loan's notice to a member. A repeated deadline changes only the time, which members do not read; but
// a late one names a loan and an epoch that are over.
func (c *controller) notice(id int32, n *protocol.SetNotice) {
	p := &c.w.pods[id]
	if p.leaving {
		return
	}
	p.deadline = n.Deadline
	c.judge.noteNotice(p.uid, n, c.sentAt())
	switch {
	case !n.Again:
		c.w.unanswer(id)
		c.w.notify(id, n.Loan, n.Epoch)
	case p.noticeLoan != n.Loan || p.noticeEpoch != n.Epoch:
		c.w.notify(id, n.Loan, n.Epoch)
	}
}

func (c *controller) evict(id int32, e *planner.Eviction) {
	c.checkEviction(e, &c.w.pods[id])
	j := &c.w.jobs[c.w.pods[id].owner]
	j.recalled = fleet.KnownAt(c.Now(), c.Now())
	c.w.endMember(id)
}

// kill ends a pod at once, unless ends are stuck: then no deletion ends it before its time.
func (c *controller) kill(id int32, k *planner.Kill) {
	w := c.w
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

// fillersIn is the namespace of fillers.
const fillersIn = "springtide-system"

// createFiller makes a filler on its machine. A failed action is planned again.
func (c *controller) createFiller(f *planner.Filler) {
	w := c.w
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

func (c *controller) setMarks(n int32, want fleet.NodeMarks) {
	c.w.facts[n].Marks = want
	c.checkFence(n, want.Fence)
	x := &c.w.machines[n]
	x.toOnline, x.toOffline = !want.HolderTaint, want.OfflineLabel
	c.w.open(n)
}
