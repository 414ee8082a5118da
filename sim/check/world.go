package check

import (
	"slices"

	"github.com/springtide/springtide/fleet"
)

// next calls yield with each state that may follow, until it returns false.
func (x *model) next(s *state, yield func(step, *state) bool) bool {
	one := func(st step, do func(n *state)) bool {
		if st.kind > pauses && len(x.Only) > 0 && !slices.Contains(x.Only, st.kind) {
			return true
		}
		n := *s
		x.broken = ""
		do(&n)
		if st.kind > pauses {
			n.faults--
		}
		x.settle(&n)
		if n == *s && x.broken == "" {
			return true
		}
		return yield(st, &n)
	}
	for ci := range s.c {
		if !x.controller(s, ci, one) {
			return false
		}
	}
	return x.clocks(s, one) && x.pods(s, one) && x.machines(s, one) && x.instances(s, one) && x.hands(s, one)
}

// settle brings a state that was changed into order, and looks at what must hold in it.
func (x *model) settle(n *state) {
	x.reconcile(n)
	x.checkState(&n.f)
	x.canonical(n)
}

type doer func(st step, do func(n *state)) bool

// controller is what one process may do, and what may happen to it.
func (x *model) controller(s *state, ci int, one doer) bool {
	c := &s.c[ci]
	who := int8(ci)
	other := &s.c[1-ci]
	if c.mode == standby {
		if other.mode != leading {
			return one(step{elected, who, 0}, func(n *state) { x.elect(n, ci) })
		}
		return s.faults == 0 || one(step{usurps, who, 0}, func(n *state) { x.elect(n, ci) })
	}
	if c.mode == deposed && !one(step{stops, who, 0}, func(n *state) { n.c[ci] = controller{} }) {
		return false
	}
	if !c.watched && c.stage == idle && !one(step{watched, who, 0}, func(n *state) { n.c[ci].watched = true }) {
		return false
	}
	if !x.cycle(s, ci, one) || !x.judge(s, ci, one) {
		return false
	}
	if c.mask != 0 && !one(step{catchesUp, who, 0}, func(n *state) { n.c[ci].mask, n.c[ci].stalled = 0, 0 }) {
		return false
	}
	if s.faults == 0 {
		return true
	}
	if c.mask != 0 {
		return true
	}
	for mask := watchLoans; mask <= watchPool; mask <<= 1 {
		if !one(step{lags, who, mask}, func(n *state) { n.c[ci].mask, n.c[ci].stalled = mask, x.intern(kinds(n.f, mask)) }) {
			return false
		}
	}
	return one(step{lags, who, watchAll}, func(n *state) { n.c[ci].mask, n.c[ci].stalled = watchAll, x.intern(kinds(n.f, watchAll)) })
}

// elect makes a controller the leader, with an epoch above all that was written. The one before it does not know yet.
func (x *model) elect(n *state, ci int) {
	if o := &n.c[1-ci]; o.mode == leading {
		o.mode = deposed
	}
	n.c[ci] = controller{mode: leading, leader: fresh}
}

// clocks are what passes, and the tide.
func (x *model) clocks(s *state, one doer) bool {
	for i := range s.f.l {
		l := &s.f.l[i]
		if l.uid == 0 {
			continue
		}
		if l.wait == ahead || l.wait == near {
			if !one(step{passes, l.uid, 0}, func(n *state) {
				l := &n.f.l[i]
				if l.wait++; !x.Skew {
					l.wait = past
				}
				l.sleptWait = l.sleptWait || n.f.shown && n.f.frozen
			}) {
				return false
			}
		}
		if l.kill == ahead && !one(step{kills, l.uid, 0}, func(n *state) {
			n.f.l[i].kill, n.f.l[i].sleptKill = past, n.f.shown && n.f.frozen
		}) {
			return false
		}
		switch phaseOf(l) {
		case fleet.Emptying, fleet.Draining, fleet.Fenced, fleet.Returned:
			// Counts from the kill begin with it.
			if !l.old && l.kill != ahead && !one(step{ages, l.uid, 0}, func(n *state) { n.f.l[i].old = true }) {
				return false
			}
		}
	}
	if x.Gang && !s.f.gangOld && (gangPhases[s.f.gang] == fleet.GangForming || gangPhases[s.f.gang] == fleet.GangBackedOff) &&
		!one(step{ages, 0, 0}, func(n *state) { n.f.gangOld = true }) {
		return false
	}
	if s.f.taken+s.f.spent > 0 && !one(step{minute, 0, 0}, func(n *state) { n.f.taken, n.f.spent = 0, 0 }) {
		return false
	}
	if s.f.frozen && !one(step{thaws, 0, 0}, func(n *state) { n.f.frozen = false }) {
		return false
	}
	if !s.f.frozen && s.freezes > 0 && !one(step{freezes, 0, 0}, func(n *state) { n.f.frozen = true; n.freezes-- }) {
		return false
	}
	if s.turns == 0 {
		return true
	}
	for t := range int8(onlinePods + 1) {
		if t != s.f.tide && !one(step{turns, t, 0}, func(n *state) { n.f.tide = t; n.turns-- }) {
			return false
		}
	}
	return true
}

// hands are what a user does to our objects and should not. They are played where a search names them.
func (x *model) hands(s *state, one doer) bool {
	if s.faults == 0 || !slices.Contains(x.Only, erases) {
		return true
	}
	for i := range s.f.l {
		if uid := s.f.l[i].uid; uid > 0 && !one(step{erases, uid, 0}, func(n *state) { n.f.drop(uid) }) {
			return false
		}
	}
	return true
}

// pods are what the scheduler, kubelets and the pods themselves do.
func (x *model) pods(s *state, one doer) bool {
	for i := range s.f.p {
		p := &s.f.p[i]
		switch p.state {
		case waiting:
			for m := range int8(x.Shape.machines()) {
				if s.binding.pod == p.uid || !x.fits(s, i, m) {
					continue
				}
				if !one(step{binds, int8(i), m}, func(n *state) { x.bind(n, i, m) }) {
					return false
				}
				if s.faults > 0 && sideOf(i) != noSide && s.binding == (binding{}) &&
					!one(step{bindsLate, int8(i), m}, func(n *state) { n.binding = binding{pod: p.uid, machine: m, node: s.f.m[m].uid} }) {
					return false
				}
			}
		case ending:
			if !one(step{ends, int8(i), 0}, func(n *state) { n.f.p[i] = pod{} }) {
				return false
			}
		case bound:
			if p.loan == 0 {
				continue
			}
			if p.ack != p.epoch && !one(step{answers, int8(i), 0}, func(n *state) { n.f.p[i].ack = p.epoch }) {
				return false
			}
			if !p.beat && i == fillerSlot-1 && !one(step{beats, int8(i), 0}, func(n *state) { n.f.p[i].beat = true }) {
				return false
			}
			if s.faults > 0 && p.epoch > 1 && p.ack < p.epoch-1 && !one(step{answersLate, int8(i), 0}, func(n *state) { n.f.p[i].ack = p.epoch - 1 }) {
				return false
			}
		}
	}
	return true
}

// fits is the scheduler's answer: online lands where no taint is, offline where the label is, a filler on its machine.
func (x *model) fits(s *state, slot int, machine int8) bool {
	m := &s.f.m[machine]
	taken := s.f.taking(machine)
	if s.binding.pod > 0 && s.binding.machine == machine {
		taken++
	}
	if m.uid == 0 || taken >= x.Shape.units() {
		return false
	}
	if x.Bundled {
		return x.admits(s, slot, machine)
	}
	switch sideOf(slot) {
	case online:
		return !m.taint && m.fence == 0
	case offline:
		return m.label && m.fence == 0
	}
	return machine == 0 // fillers tolerate all
}

// land binds the pod that was on its way; the kubelet turns it away where no room is left.
func (x *model) land(n *state) {
	i := slices.IndexFunc(n.f.p[:], func(p pod) bool { return p.state == waiting && p.uid == n.binding.pod })
	if at := n.binding.machine; n.f.taking(at) < x.Shape.units() {
		x.bind(n, i, at)
	} else {
		n.f.p[i] = pod{}
	}
	n.binding = binding{}
}

func (x *model) bind(n *state, slot int, machine int8) {
	p := &n.f.p[slot]
	p.state, p.machine = bound, machine
	if sideOf(slot) != online {
		return
	}
	for i := range n.f.l {
		if l := &n.f.l[i]; l.uid > 0 && l.machine == machine && phaseOf(l) == fleet.Returned {
			p.late, l.claimed = true, true
		}
	}
}

// machines are what the node sides do, and what becomes of machines.
func (x *model) machines(s *state, one doer) bool {
	if s.report != (report{}) && !one(step{arrives, s.report.machine, 0}, func(n *state) {
		x.arrive(n, n.report)
		n.report = report{}
	}) {
		return false
	}
	if s.binding.pod > 0 && !one(step{lands, s.binding.machine, 0}, func(n *state) { x.land(n) }) {
		return false
	}
	for i := range int8(x.Shape.machines()) {
		m := &s.f.m[i]
		if m.uid == 0 {
			if !one(step{rejoins, i, 0}, func(n *state) { x.rejoin(n, i) }) {
				return false
			}
			continue
		}
		if m.share.ver > 0 && m.share.node != m.uid && !one(step{collects, i, 0}, func(n *state) { n.f.m[i].share, n.i.knows[i] = share{}, false }) {
			return false
		}
		if !x.NoAgents && !x.agents(s, i, one) {
			return false
		}
		if s.faults > 0 && m.uid%uidsPerMachine < uidsPerMachine-1 && !one(step{dies, i, 0}, func(n *state) { x.die(n, i) }) {
			return false
		}
	}
	return true
}

// die takes a machine and its pods away. Its share stays until it is collected.
func (x *model) die(n *state, at int8) {
	m := &n.f.m[at]
	*m = machine{last: m.uid, share: m.share}
	n.i.knows[at] = false
	for i := range n.f.p {
		if p := &n.f.p[i]; p.state != absent && p.state != waiting && p.machine == at {
			*p = pod{}
		}
	}
}

// machine is one as it joins: those of the offline pool bring the marks of offline along.
func (o Options) machine(uid int8) machine {
	return machine{uid: uid, taint: o.Borrow, label: o.Borrow}
}

// rejoin brings a machine back under its name with another UID. The bundled scheduler counts a share for the node of its UID alone, and what it decided for the
// machine of before is in vain, as a binding that is under way.
func (x *model) rejoin(n *state, i int8) {
	m := &n.f.m[i]
	sh := m.share
	*m = x.machine(m.last + 1)
	m.share = sh
	n.i.knows[i] = false
	if !x.Mutant.Namesake {
		n.i.holder[i] = x.home()
	}
}

// reconcile lets the controllers of workloads keep to what is asked for, at once.
func (x *model) reconcile(n *state) {
	standing := int8(0)
	for i := range n.f.p[:onlinePods] {
		if st := n.f.p[i].state; st == waiting || st == bound {
			standing++
		}
	}
	for i := range n.f.p[:onlinePods] {
		if p := &n.f.p[i]; p.state == absent && standing < n.f.desired {
			*p = pod{uid: fresh + int8(i), state: waiting}
			standing++
		}
	}
	for standing > n.f.desired {
		leave(&n.f.p[x.victimOf(&n.f)])
		standing--
	}
	for k := range jobPods {
		p := &n.f.p[onlinePods+k]
		want := n.f.members[k]
		if x.Gang {
			want = n.f.members[0] - int8(k) // the second member comes last and goes first
		}
		switch {
		case p.state == absent && want > 0:
			*p = pod{uid: fresh + onlinePods + int8(k), state: waiting}
		case (p.state == waiting || p.state == bound) && want <= 0:
			leave(p)
		}
	}
}

// victimOf is the pod that a ReplicaSet takes first: one that waits, then one that was chosen, then the youngest.
func (x *model) victimOf(f *facts) int {
	best, rank := -1, -1
	for i := range f.p[:onlinePods] {
		p := &f.p[i]
		r := 0
		switch {
		case p.state == waiting:
			r = 2
		case p.state != bound:
			continue
		case p.cost:
			r = 1
		}
		if r > rank || r == rank && p.uid > f.p[best].uid {
			best, rank = i, r
		}
	}
	return best
}
