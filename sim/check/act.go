package check

import (
	"fmt"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/fleetapi"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// breaks notes a property that a transition broke; the first one counts.
func (x *model) breaks(format string, args ...any) {
	if x.broken == "" {
		x.broken = fmt.Sprintf(format, args...)
	}
}

func (x *model) eyes(ci int) eyes { return eyes{fast: x.Skew && ci == 1} }

// planKey and doorKey of a controller that carries a plan out.
func (x *model) planKey(s *state, ci int) planKey {
	e := x.eyes(ci)
	e.watched, e.thaw = s.c[ci].watched, s.c[ci].thaw
	return planKey{s.c[ci].plan, e}
}

func (x *model) doorKey(s *state, ci int) doorKey {
	return doorKey{x.planKey(s, ci), x.plainOf(s.c[ci].door), x.eyes(ci).fast}
}

// take is the API server's side of one write: it reports whether the write was taken. It has one case for each type of change.
func (x *model) take(s *state, c *controller, a *act, w *protocol.Write) bool {
	switch d := w.Change.(type) {
	case protocol.CreateLoan:
		return x.createLoan(s, c, a)
	case protocol.SetLoan:
		return x.setLoan(s, c, a, w)
	case protocol.DeleteLoan:
		return x.deleteLoan(s, c, a, w)
	case protocol.SetShare:
		return x.setShare(s, c, a, w, &d)
	case protocol.SetLedger:
		return x.setLedger(s, c, a, w)
	case protocol.SetSize:
		return x.setSize(s, c, a, w, &d)
	case protocol.SetNotice:
		if p := x.podOf(s, c, a.pods[0], w); p != nil {
			p.loan, p.epoch = loanOf(d.Loan), int8(d.Epoch)
			if !d.Again {
				p.ack = 0
			}
		}
	case protocol.DropNotice:
		if p := x.podOf(s, c, a.pods[0], w); p != nil {
			p.loan, p.epoch, p.ack = 0, 0, 0
		}
	case protocol.EvictPod:
		return x.evict(s, c, x.podOf(s, c, a.pods[0], w), a, w)
	case protocol.KillPod:
		x.kill(s, c, x.podOf(s, c, a.pods[0], w), loanOf(a.action.(*planner.Kill).Loan))
	case protocol.SetParallelism:
		for j := range jobPods {
			if jobID(j) == a.action.(*planner.JobScale).Job && (!w.If.Size.OK || int32(s.f.members[j]) == d.From) {
				s.f.members[j] = int8(d.To)
			}
		}
	case protocol.CreateFiller:
		if p := &s.f.p[fillerSlot]; p.state == absent {
			*p = pod{uid: fresh, state: waiting}
		}
	case protocol.DeleteFiller:
		if p := x.podOf(s, c, a.pods[0], w); p != nil {
			*p = pod{}
		}
	case protocol.SetMarks:
		return x.setMarks(s, c, a, w)
	default:
		panic(fmt.Sprintf("a change that the model does not know: %T", w.Change))
	}
	return true
}

// podOf is the pod that a write is for. Without a UID that is whichever pod has the name by now: names of jobs' members and of fillers come back.
func (x *model) podOf(s *state, c *controller, uid int8, w *protocol.Write) *pod {
	if w.If.UID != "" {
		return s.f.pod(uid)
	}
	seen := &x.all[c.door]
	i := slices.IndexFunc(seen.p[:], func(p pod) bool { return p.state != absent && p.uid == uid })
	if i < 0 || s.f.p[i].state == absent {
		return nil
	}
	return &s.f.p[i]
}

func (f *facts) pod(uid int8) *pod {
	for i := range f.p {
		if f.p[i].state != absent && f.p[i].uid == uid {
			return &f.p[i]
		}
	}
	return nil
}

func (f *facts) drop(uid int8) {
	i := slices.IndexFunc(f.l[:], func(l loan) bool { return l.uid == uid })
	copy(f.l[i:], f.l[i+1:])
	f.l[loanSlots-1] = loan{}
}

// createLoan makes the object of a loan. Beyond the bounds there is none.
func (x *model) createLoan(s *state, c *controller, a *act) bool {
	m := a.move
	if a.reads && !x.orphaned(s, c, m.machine, m.cells) {
		return false
	}
	i := slices.IndexFunc(s.f.l[:], func(l loan) bool { return l.uid == 0 })
	if i < 0 {
		return false
	}
	s.f.l[i] = loan{uid: fresh, ver: fresh, machine: m.machine, node: m.node, cells: m.cells, epoch: 1}
	c.held, c.loan = fresh, fresh
	return true
}

// orphaned is what a loan that is made again, or an entry that is cleared, reads of the API before its first write: the share is as it was judged, and the loans
// of which it has cells are gone.
func (x *model) orphaned(s *state, c *controller, machine, cells int8) bool {
	if !x.current(s, c, machine) {
		return false
	}
	for _, e := range s.f.m[machine].share.e {
		if e.loan > 0 && e.cells&cells != 0 && x.all[c.door].loan(e.loan) == nil && s.f.loan(e.loan) != nil && !x.Mutant.Unread {
			return false
		}
	}
	return true
}

// undo deletes a loan that could not take its share, unless another leader took it over meanwhile.
func (x *model) undo(s *state, c *controller) {
	if l := s.f.loan(c.loan); l != nil && l.ver == c.held {
		x.checkForget(s, l)
		s.f.drop(c.loan)
	}
}

// loanAt is the loan that a write depends on, at the version that the write names: nil where the API holds another one.
func (x *model) loanAt(s *state, c *controller, a *act, w *protocol.Write) *loan {
	if c.loan == 0 {
		seen := x.all[c.door].loan(a.move.loan)
		if seen == nil {
			return nil
		}
		c.loan, c.held = a.move.loan, seen.ver
	}
	l := s.f.loan(c.loan)
	if l == nil || w.If.Version != "" && l.ver != c.held {
		return nil
	}
	return l
}

// deleteLoan deletes an ended loan.
func (x *model) deleteLoan(s *state, c *controller, a *act, w *protocol.Write) bool {
	l := x.loanAt(s, c, a, w)
	if l == nil {
		return false
	}
	x.checkForget(s, l)
	s.f.drop(l.uid)
	return true
}

// current reports whether the API still holds the share of a machine as a controller knows it: by its own write, or by the facts that its actions
// were checked against.
func (x *model) current(s *state, c *controller, machine int8) bool {
	now := s.f.m[machine].share.ver
	if v := c.wrote[machine]; v > 0 {
		return v == now
	}
	return x.all[c.door].m[machine].share.ver == now
}

// setShare brings a share to what the write says. The version and the rules of the kind decide.
func (x *model) setShare(s *state, c *controller, a *act, w *protocol.Write, d *protocol.SetShare) bool {
	machine := a.move.machine
	old := &s.f.m[machine].share
	if c.loan == 0 && a.move.loan > 0 { // what follows depends on the loan as it was seen now
		if seen := x.all[c.door].loan(a.move.loan); seen != nil {
			c.loan, c.held = a.move.loan, seen.ver
		}
	}
	if a.reads && c.loan != fresh && !x.orphaned(s, c, machine, a.move.cells) {
		return false
	}
	versioned := w.If.Version != "" || w.If.Absent
	if versioned && !x.current(s, c, machine) || (w.If.LeaderEpoch > 0 && c.leader < old.leader && !x.Mutant.AnyLeader) {
		return false
	}
	if len(d.Parcels) > units {
		return false // a cell would be in two parcels
	}
	next := share{node: nodeOf(d.Node)}
	for i := range d.Parcels {
		p := &d.Parcels[i]
		e := entry{loan: c.loan, cells: setOf(p.Cells), holder: poolOf(p.Holder), next: poolOf(p.Next), epoch: int8(p.Epoch)}
		if p.LoanUID != created {
			e.loan = uidOf(p.LoanUID)
		}
		if p.Clean {
			e.clean = int8(p.CleanEpoch)
		}
		next.e[i] = e
	}
	if next.e[0].cells&next.e[1].cells != 0 && !x.Mutant.Overlap {
		return false
	}
	for _, o := range old.e {
		for _, n := range next.e {
			if o.loan > 0 && n.loan == o.loan && (n.epoch < o.epoch || next.node != old.node) {
				return false
			}
		}
	}
	slices.SortFunc(next.e[:], func(a, b entry) int { return int(a.loan) - int(b.loan) })
	x.checkShare(s, machine, old, &next)
	next.leader, next.ver = c.leader, fresh
	s.i.knows[machine] = false
	*old = next
	c.wrote[machine] = fresh
	return true
}

// setLoan is the API server's side of a loan's status.
func (x *model) setLoan(s *state, c *controller, a *act, w *protocol.Write) bool {
	m := a.move
	l := x.loanAt(s, c, a, w)
	if l == nil || (w.If.LeaderEpoch > 0 && c.leader < l.leader && !x.Mutant.AnyLeader) || m.epoch < l.epoch {
		return false
	}
	from, to := fleet.Phases()[l.phase], fleet.Phases()[m.phase]
	if !fleetapi.Follows(from, to) {
		return false
	}
	if m.dueLater && l.recalled && m.recalled {
		x.breaks("the due time of loan %d was moved later", l.uid)
	}
	if m.deadline != leaves {
		l.sleptWait, l.waitOver = false, false
	}
	if m.kill != leaves {
		l.sleptKill, l.killOver = false, false
	}
	switch m.deadline {
	case clears:
		l.wait, l.announced = unset, 0
	case sets:
		l.wait, l.announced = ahead, 0
	case later:
		l.wait, l.announced = ahead, extended
	case sooner:
		l.wait, l.announced = ahead, shortened
	}
	switch m.kill {
	case clears:
		l.kill = unset
	case sets, later:
		l.kill = ahead
	}
	l.recalled = m.recalled
	l.old = l.old && !m.enters
	if to == fleet.Returned && from != to {
		for i := range s.f.p[:onlinePods] {
			if p := &s.f.p[i]; p.state != waiting && p.machine == l.machine {
				p.late = false // it was there before
			}
		}
	}
	if to.Ended() {
		l.wait, l.announced, l.kill = unset, 0, unset // history
	}
	l.phase, l.epoch = m.phase, m.epoch
	l.leader, l.ver = c.leader, fresh
	return true
}

// setLedger charges the ledger. A conflict is looked at once: what was allowed stands as long as the ledger is the same.
func (x *model) setLedger(s *state, c *controller, a *act, w *protocol.Write) bool {
	base := x.all[c.door].spent
	if w.If.Version != "" && s.f.spent != base || w.If.LeaderEpoch > 0 && c.leader < s.f.leader && !x.Mutant.AnyLeader {
		return false
	}
	s.f.spent = base + a.charges
	s.f.ver, s.f.leader = fresh, c.leader
	c.charged = true
	return true
}

// setSize marks the victims and writes the replicas.
func (x *model) setSize(s *state, c *controller, a *act, w *protocol.Write, d *protocol.SetSize) bool {
	if w.If.Size.OK && (1+int32(x.sees(s, c).desired) != d.From || 1+int32(s.f.desired) != d.From) {
		return false
	}
	for i := range s.f.p[:onlinePods] {
		p := &s.f.p[i]
		p.cost = p.state != absent && slices.Contains(a.pods, p.uid)
	}
	s.f.desired = int8(d.To) - 1
	for _, ch := range a.action.(*planner.Scale).Charges {
		s.f.taken += int8(ch.Pods)
	}
	return true
}

// evict asks the Eviction API. A loan that drains never turns back. One that was Noticed may have turned, or got
// another deadline, unless this plan drained it: an eviction that depends on the drain follows that write.
func (x *model) evict(s *state, c *controller, p *pod, a *act, w *protocol.Write) bool {
	l := loanOf(a.action.(*planner.Eviction).Loan)
	if p == nil || p.state == ending {
		return false
	}
	if w.Drained != "" {
		if now := s.f.loan(l); now == nil || phaseOf(now) == fleet.Noticed || !phaseOf(now).Away() {
			return false
		}
	}
	x.checkEviction(s, c, p, l)
	leave(p)
	return true
}

func (x *model) kill(s *state, c *controller, p *pod, l int8) {
	if p == nil {
		return
	}
	if p.state != ending {
		x.checkEviction(s, c, p, l)
		leave(p)
	}
	x.checkKill(s, l)
	p.killed = p.state == ending
}

// leave deletes a pod; one that was never bound is gone.
func leave(p *pod) {
	if p.state == bound {
		p.state = ending
	} else if p.state == waiting {
		*p = pod{}
	}
}

// setMarks writes a node's marks, which no newer leader has written. They are a level: that the node changed otherwise is no conflict. Marks that
// open the node follow a read of the share.
func (x *model) setMarks(s *state, c *controller, a *act, w *protocol.Write) bool {
	d := a.action.(*planner.Mark)
	i := int8(d.Node[1] - '0')
	seen := x.sees(s, c)
	m := &s.f.m[i]
	if seen.m[i].uid == 0 || nodeUID(seen.m[i].uid) != d.ID || m.uid == 0 || w.If.UID != "" && m.uid != seen.m[i].uid || w.If.LeaderEpoch > 0 && m.leader > c.leader && !x.Mutant.AnyLeader {
		return false
	}
	opens := d.Want.OfflineLabel && !m.label || m.taint && !d.Want.HolderTaint || d.Want.Fence == fleet.FenceExecute && m.fence != fenceExecute
	if !x.Mutant.Unread && (a.reads && !x.current(s, c, i) || opens && !a.reads) {
		return false // the share changed, or the node lost marks for which the share went unread: a conflict
	}
	m.taint, m.label, m.keep = d.Want.HolderTaint, d.Want.OfflineLabel, d.Want.KeepNode
	m.fence = int8(slices.Index(fences[:], d.Want.Fence))
	m.leader = c.leader
	if m.fence != fenceExecute {
		return true
	}
	// Whatever does not tolerate the fence is ended.
	for k := range s.f.p[:fillerSlot] {
		if p := &s.f.p[k]; p.state == bound && p.machine == i {
			x.checkEviction(s, c, p, x.lostLoan(&s.f, i))
			leave(p)
		}
	}
	return true
}

// lostLoan is the loan for which a machine is cut off.
func (x *model) lostLoan(f *facts, machine int8) int8 {
	for i := range f.l {
		if l := &f.l[i]; l.uid > 0 && l.machine == machine && phaseOf(l).Lost() {
			return l.uid
		}
	}
	return 0
}
