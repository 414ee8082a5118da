package check

import (
	"fmt"
	"slices"

	"github.com/springtide/springtide/fleet"
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

// act does one write of an action and reports whether another one follows.
func (x *model) act(s *state, c *controller, a *act) bool {
	switch d := a.does.(type) {
	case *planner.Move:
		switch d.Kind {
		case planner.MoveBegin:
			return x.begin(s, c, a)
		case planner.MoveForget:
			return x.forget(s, c, a)
		}
		return x.move(s, c, a, d.Kind)
	case *planner.Scale:
		return x.scale(s, c, a, d)
	case *planner.Notice:
		if p := s.f.pod(a.pods[0]); p != nil {
			p.loan, p.epoch, p.ack = loanOf(d.Loan), int8(d.Epoch), 0
		}
	case *planner.Eviction:
		x.evict(s, c, a.pods[0], loanOf(d.Loan))
	case *planner.Kill:
		if p := s.f.pod(a.pods[0]); p != nil {
			if p.state != ending {
				x.checkEviction(s, c, p, loanOf(d.Loan))
				leave(p)
			}
			x.checkKill(s, loanOf(d.Loan))
			p.killed = p.state == ending
		}
	case *planner.JobScale:
		for j := range jobPods {
			if jobID(j) == d.Job && int32(s.f.members[j]) == d.From {
				s.f.members[j] = int8(d.To)
			}
		}
	case *planner.Filler:
		if p := &s.f.p[fillerSlot]; d.Delete && p.uid == a.pods[0] {
			*p = pod{}
		} else if !d.Delete && p.state == absent {
			*p = pod{uid: fresh, state: waiting}
		}
	case *planner.Mark:
		x.mark(s, c, d)
	}
	return false
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

// begin creates the loan, takes its cells in the share, and writes its status.
func (x *model) begin(s *state, c *controller, a *act) bool {
	m := a.move
	switch c.sub {
	case 0:
		i := slices.IndexFunc(s.f.l[:], func(l loan) bool { return l.uid == 0 })
		if i < 0 {
			return false // beyond the bounds
		}
		s.f.l[i] = loan{uid: fresh, ver: fresh, machine: m.machine, node: m.node, cells: m.cells, epoch: 1}
		c.held, c.loan, c.sub = fresh, fresh, 1
		return true
	case 1:
		m.loan = c.loan
		if wrote, ok := x.writeShare(s, c, m); !ok || !wrote {
			x.undo(s, c)
			return false
		}
		c.sub = 2
		return true
	}
	m.loan = c.loan
	x.writeLoan(s, c, m, planner.MoveBegin)
	return false
}

// undo deletes a loan that could not take its share, unless somebody took it over meanwhile.
func (x *model) undo(s *state, c *controller) {
	if l := s.f.loan(c.loan); l != nil && (l.ver == c.held || x.Mutant.AnyDelete) {
		x.checkForget(s, l)
		s.f.drop(c.loan)
	}
}

// move writes the share and then the loan. Both rest on the versions that the decision was checked against.
func (x *model) move(s *state, c *controller, a *act, kind planner.MoveKind) bool {
	m := a.move
	// A repair rests on the loan, so the loan's version is asked first: an old one must not undo what the share says.
	loanFirst := kind == planner.MoveRepair != x.Mutant.LoanFirst
	if c.sub == 0 {
		l := x.all[c.door].loan(m.loan)
		if l == nil {
			return false
		}
		c.loan, c.held = m.loan, l.ver
		if loanFirst {
			c.sub = 2
			return x.writeLoan(s, c, m, kind)
		}
		if kind != planner.MoveNodeGone {
			wrote, ok := x.writeShare(s, c, m)
			if !ok {
				return false
			}
			if wrote {
				c.sub = 2
				return true
			}
		}
		x.writeLoan(s, c, m, kind)
		return false
	}
	if loanFirst {
		x.writeShare(s, c, m)
		return false
	}
	x.writeLoan(s, c, m, kind)
	return false
}

// forget takes the ended loan out of its share, then deletes it.
func (x *model) forget(s *state, c *controller, a *act) bool {
	m := a.move
	if c.sub == 0 {
		l := x.all[c.door].loan(m.loan)
		if l == nil {
			return false
		}
		c.loan, c.held = m.loan, l.ver
		wrote, ok := x.clearShare(s, c, m)
		if !ok {
			return false
		}
		if wrote {
			c.sub = 2
			return true
		}
	}
	l := s.f.loan(m.loan)
	if l == nil || (l.ver != c.held && !x.Mutant.AnyDelete) {
		return false
	}
	x.checkForget(s, l)
	s.f.drop(m.loan)
	return false
}

// known is the share of a machine as a controller knows it, by its own write or by the facts that its actions were checked against, and
// whether the API still holds that version.
func (x *model) known(s *state, c *controller, machine int8) (share, bool) {
	now := s.f.m[machine].share
	if v := c.wrote[machine]; v > 0 {
		return now, v == now.ver || x.Mutant.AnyUpdate
	}
	known := x.all[c.door].m[machine].share
	return known, known.ver == now.ver || x.Mutant.AnyUpdate
}

// writeShare brings the entry of one loan to what the move says. ok is false where the API refused.
func (x *model) writeShare(s *state, c *controller, m move) (wrote, ok bool) {
	now, current := x.known(s, c, m.machine)
	e := entry{loan: m.loan, cells: m.cells, holder: m.holder, next: m.next, epoch: m.epoch}
	next := now
	if now.ver == 0 || now.node != m.node {
		next = share{node: m.node}
		next.e[0] = e
	} else {
		i := slices.IndexFunc(now.e[:], func(o entry) bool { return o.loan == e.loan })
		if i < 0 && fleet.Phases()[m.phase].Ended() && slices.ContainsFunc(now.e[:], func(o entry) bool { return o.cells&e.cells != 0 }) {
			return false, true // it never had its share, and another has it: there is nothing to let go
		}
		if i >= 0 {
			e.clean = now.e[i].clean // the status is the node side's
			if now.e[i] == e {
				return false, true
			}
		} else if i = slices.IndexFunc(now.e[:], func(o entry) bool { return o.loan == 0 }); i < 0 {
			return false, false // a cell would be in two parcels
		}
		next.e[i] = e
	}
	return true, x.putShare(s, c, m.machine, next, current)
}

func (x *model) clearShare(s *state, c *controller, m move) (wrote, ok bool) {
	now, current := x.known(s, c, m.machine)
	i := slices.IndexFunc(now.e[:], func(o entry) bool { return o.loan == m.loan })
	if now.ver == 0 || now.node != m.node || i < 0 {
		return false, true
	}
	next := now
	next.e[i] = entry{}
	return true, x.putShare(s, c, m.machine, next, current)
}

// putShare is the API server's side: the version and the rules of the kind decide.
func (x *model) putShare(s *state, c *controller, machine int8, next share, current bool) bool {
	old := &s.f.m[machine].share
	if !current || (c.leader < old.leader && !x.Mutant.AnyLeader) {
		return false
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
	*old = next
	c.wrote[machine] = fresh
	return true
}

// follows are the phases that the API lets follow each other.
var follows = map[fleet.Phase][]fleet.Phase{
	fleet.Emptying:   {fleet.Lent, fleet.Cancelled},
	fleet.Lent:       {fleet.Noticed, fleet.Returned},
	fleet.Noticed:    {fleet.Lent, fleet.Draining, fleet.Returned},
	fleet.Draining:   {fleet.Fenced, fleet.Returned},
	fleet.Fenced:     {fleet.WrittenOff, fleet.Returned},
	fleet.WrittenOff: {fleet.Returned},
}

// writeLoan is the API server's side of a loan's status.
func (x *model) writeLoan(s *state, c *controller, m move, kind planner.MoveKind) bool {
	l := s.f.loan(m.loan)
	if l == nil || (l.ver != c.held && !x.Mutant.AnyUpdate) || (c.leader < l.leader && !x.Mutant.AnyLeader) || m.epoch < l.epoch {
		return false
	}
	from, to := fleet.Phases()[l.phase], fleet.Phases()[m.phase]
	if from != to && !slices.Contains(follows[from], to) {
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
		l.wait, l.announced = ahead, hastened
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

// scale charges the ledger first, then marks the leavers and writes the replicas.
func (x *model) scale(s *state, c *controller, a *act, d *planner.Scale) bool {
	seen := x.sees(s, c)
	var charges int8
	for _, ch := range d.Charges {
		charges += int8(ch.Pods)
	}
	if c.sub == 0 && charges > 0 {
		door := &x.all[c.door]
		if door.spent+charges > budget && !x.Mutant.Spendthrift {
			return false
		}
		// A conflict is looked at once: what was allowed stands as long as the ledger is the same.
		if seen.ver != s.f.ver && seen.spent != s.f.spent && !x.Mutant.AnyUpdate {
			return false
		}
		if c.leader < s.f.leader && !x.Mutant.AnyLeader {
			return false
		}
		s.f.spent = seen.spent + charges
		s.f.ver, s.f.leader = fresh, c.leader
		c.sub = 1
		return true
	}
	if 1+int32(seen.desired) != d.From || 1+int32(s.f.desired) != d.From {
		return false
	}
	for i := range s.f.p[:onlinePods] {
		p := &s.f.p[i]
		p.cost = p.state != absent && slices.Contains(a.pods, p.uid)
	}
	s.f.desired = int8(d.To) - 1
	s.f.taken += charges
	return false
}

// evict asks the Eviction API.
func (x *model) evict(s *state, c *controller, uid, l int8) {
	p := s.f.pod(uid)
	if p == nil || p.state == ending {
		return
	}
	// A loan that drains never turns back. One that was Noticed may have turned, or got another deadline, unless this plan drained it: an
	// eviction that does not rest on the pod's own answer follows that write.
	door := x.all[c.door].loan(l)
	if door != nil && phaseOf(door) == fleet.Noticed && p.ack != p.epoch && !x.Mutant.Hasty {
		if now := s.f.loan(l); now == nil || phaseOf(now) == fleet.Noticed || !phaseOf(now).Away() {
			return
		}
	}
	x.checkEviction(s, c, p, l)
	leave(p)
}

// leave tells a pod to go; one that was never bound is gone.
func leave(p *pod) {
	if p.state == bound {
		p.state = ending
	} else if p.state == waiting {
		*p = pod{}
	}
}

// mark writes a node's marks, which no newer leader has written. They are a level: that the node changed otherwise is no conflict.
func (x *model) mark(s *state, c *controller, d *planner.Mark) {
	i := int8(d.Node[1] - '0')
	seen := x.sees(s, c)
	m := &s.f.m[i]
	if seen.m[i].uid == 0 || nodeUID(seen.m[i].uid) != d.ID || m.uid != seen.m[i].uid || m.leader > c.leader && !x.Mutant.AnyLeader {
		return
	}
	opens := d.Want.OfflineLabel || m.taint && !d.Want.HolderTaint || d.Want.Fence == fleet.FenceExecute
	if _, current := x.known(s, c, i); opens && !current {
		return // the lock was written since: read live, since no rule of a Node fences this write
	}
	m.taint, m.label, m.keep = d.Want.HolderTaint, d.Want.OfflineLabel, d.Want.KeepNode
	m.fence = int8(slices.Index(fences[:], d.Want.Fence))
	m.leader = c.leader
	if m.fence != fenceExecute {
		return
	}
	// Whatever does not tolerate the fence is ended.
	for k := range s.f.p[:fillerSlot] {
		if p := &s.f.p[k]; p.state == bound && p.machine == i {
			x.checkEviction(s, c, p, x.lostLoan(&s.f, i))
			leave(p)
		}
	}
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
