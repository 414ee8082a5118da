package check

// viewID names facts in the table of views.
type viewID int32

// views interns facts, so that a state holds a number where a controller remembers facts.
type views struct {
	ids map[facts]viewID
	all []facts
	// plain is the decisive part of each view; 0 where it was not asked for.
	plain map[viewID]viewID
}

func newViews() *views {
	return &views{ids: map[facts]viewID{{}: 0}, all: []facts{{}}, plain: map[viewID]viewID{}}
}

func (v *views) intern(f facts) viewID {
	id, ok := v.ids[f]
	if !ok {
		id = viewID(len(v.all))
		v.all = append(v.all, f)
		v.ids[f] = id
	}
	return id
}

// plainOf is the decisive part of a view.
func (v *views) plainOf(id viewID) viewID {
	p, ok := v.plain[id]
	if !ok {
		p = v.intern(decisive(v.all[id]))
		v.plain[id] = p
	}
	return p
}

// decisive strips facts of what no decision looks at: versions, leaders, ghosts, and shares of machines that are gone.
func decisive(f facts) facts {
	f = checked(f)
	for i := range f.m {
		m := &f.m[i]
		if m.last = 0; m.share.node != m.uid {
			m.share = share{}
		}
		m.share.ver = min(m.share.ver, 1)
	}
	for i := range f.l {
		f.l[i].ver = 0
	}
	return f
}

// checked is decisive, with the versions that writes depend on.
func checked(f facts) facts {
	for i := range f.m {
		f.m[i].leader, f.m[i].share.leader, f.m[i].share.acked = 0, 0, false
	}
	for i := range f.l {
		l := &f.l[i]
		l.leader, l.claimed, l.sleptWait, l.sleptKill = 0, false, false, false
	}
	f.ver, f.leader, f.taken, f.shown = 0, 0, 0, false
	return f
}

// sees is what a controller's watches show.
func (x *model) sees(s *state, c *controller) facts {
	f := s.f
	if c.mask == 0 {
		return f
	}
	old := &x.all[c.stalled]
	if c.mask&watchLoans != 0 {
		f.l = old.l
		f.tick(&s.f)
	}
	if c.mask&watchPool != 0 {
		f.spent, f.ver, f.shown = old.spent, old.ver, old.shown
	}
	if c.mask&watchPods != 0 {
		f.p, f.desired, f.members = old.p, old.desired, old.members
	}
	for i := range f.m {
		m := s.f.m[i]
		if c.mask&watchNodes != 0 {
			m = old.m[i]
		}
		m.share = s.f.m[i].share
		if c.mask&watchShares != 0 {
			m.share = old.m[i].share
		}
		f.m[i] = m
	}
	return f
}

// tick brings remembered loans to the present time: clocks do not stall with watches. A deadline that is still the same
// one has passed for each component that remembers it, too.
func (f *facts) tick(now *facts) {
	for i := range f.l {
		l, is := &f.l[i], now.loan(f.l[i].uid)
		if is == nil || is.epoch != l.epoch {
			continue
		}
		if l.announced == is.announced && l.recalled == is.recalled {
			l.wait, l.waitOver = is.wait, is.waitOver
		}
		if l.kill != unset && is.kill != unset {
			l.kill, l.killOver = is.kill, is.killOver
		}
		if l.phase == is.phase {
			l.old = is.old
		}
	}
}

// kinds keeps of facts the kinds of a mask.
func kinds(f facts, mask int8) facts {
	ver, shown, shares := f.ver, f.shown, f.m
	f = checked(f)
	var out facts
	if mask&watchLoans != 0 {
		out.l = f.l
	}
	if mask&watchPool != 0 {
		out.spent, out.ver, out.shown = f.spent, ver, shown
	}
	if mask&watchPods != 0 {
		out.p, out.desired, out.members = f.p, f.desired, f.members
	}
	for i := range f.m {
		if mask&watchNodes != 0 {
			out.m[i] = f.m[i]
			out.m[i].share = share{}
		}
		if mask&watchShares != 0 {
			out.m[i].share, out.m[i].share.acked = f.m[i].share, shares[i].share.acked
		}
	}
	return out
}
