package check

// instance is the bundled scheduler, which alone binds where the options say [Options.Bundled]: it decides by the NodeShares that it has seen, and
// acknowledges each once what it decided before has its answer.
type instance struct {
	// holder is who may use a machine by the share that was seen last; no side while it changes hands. knows says that this is the share as it is.
	holder [machines]int8
	knows  [machines]bool
	// dead: the process is gone, and what it sent may still be carried out. over: its Lease has ended, and the time after it in which that can happen.
	dead, over bool
}

// holderOf is who may use a machine by its share, which has one parcel at most.
func (x *model) holderOf(m *machine) int8 {
	for _, e := range m.share.e {
		switch {
		case e.loan == 0 || m.share.ver == 0 || m.share.node != m.uid:
		case e.next != noSide:
			return noSide
		default:
			return e.holder
		}
	}
	return x.home()
}

// reads is an instance that lists the cluster fresh.
func (x *model) reads(f *facts) instance {
	var out instance
	for i := range int8(x.Shape.machines()) {
		out.holder[i], out.knows[i] = x.holderOf(&f.m[i]), true
	}
	return out
}

// instances are what the bundled scheduler does, and what becomes of it.
func (x *model) instances(s *state, one doer) bool {
	if !x.Bundled {
		return true
	}
	if s.i.dead {
		// A request is carried out until its own timeout and no later.
		if !s.i.over && (s.binding.pod == 0 || x.Mutant.Eager) && !one(step{expires, 0, 0}, func(n *state) { n.i.over = true }) {
			return false
		}
		// A new owner begins after that, with a fresh list.
		return !s.i.over || s.binding.pod > 0 || one(step{succeeds, 0, 0}, func(n *state) { n.i = x.reads(&n.f) })
	}
	for i := range int8(x.Shape.machines()) {
		m := &s.f.m[i]
		if !s.i.knows[i] && !one(step{learns, i, 0}, func(n *state) {
			n.i.holder[i], n.i.knows[i] = x.holderOf(m), true
			n.binding.older = n.binding.older || n.binding.pod > 0 && n.binding.machine == i
		}) {
			return false
		}
		owes := m.uid > 0 && x.holderOf(m) == noSide && !m.share.acked
		unanswered := s.binding.older && s.binding.machine == i && !x.Mutant.Hasty
		if s.i.knows[i] && owes && !unanswered && !one(step{acknowledges, i, 0}, func(n *state) {
			n.f.m[i].share.acked, n.f.m[i].share.ver = true, fresh
		}) {
			return false
		}
	}
	return s.faults == 0 || one(step{falls, 0, 0}, func(n *state) { n.i.dead = true })
}

// admits is the bundled scheduler's answer, by the share that it knows. A dead one decides nothing.
func (x *model) admits(s *state, slot int, machine int8) bool {
	return !s.i.dead && s.f.m[machine].fence == 0 && s.i.holder[machine] == sideOf(slot)
}
