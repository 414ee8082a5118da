package check

import (
	"fmt"
	"slices"
	"strings"
)

// end says how a controller's cycle ends.
type end struct {
	kind kind
	// at is the number of reads and writes before it; a cycle that ends by itself has none.
	at int8
}

// cycle tries each way in which a controller may go on from where it is: to the end of its cycle, or until it stops before one of its
// reads or writes, dies there, or is refused the write.
func (x *model) cycle(s *state, ci int, one doer) bool {
	who := int8(ci)
	points := int8(0)
	if !one(step{cycles, who, 0}, func(n *state) { points = x.run(n, ci, end{kind: cycles}, nil) }) {
		return false
	}
	for at := range points {
		// The first point of a cycle that has not begun is where it is.
		moved := at > 0 || s.c[ci].stage == idle
		if s.pauses > 0 && moved && !one(step{pauses, who, at}, func(n *state) { n.pauses--; x.run(n, ci, end{pauses, at}, nil) }) {
			return false
		}
		if s.faults > 0 && !one(step{crashes, who, at}, func(n *state) { x.run(n, ci, end{crashes, at}, nil) }) {
			return false
		}
		if s.faults > 0 && !one(step{fails, who, at}, func(n *state) { x.run(n, ci, end{fails, at}, nil) }) {
			return false
		}
	}
	return true
}

// run goes on with a controller's cycle and returns the number of points at which it might have ended: before it reads
// the facts again, and before each write. report, which may be nil, receives what it does.
func (x *model) run(n *state, ci int, e end, report func(string)) int8 {
	c := &n.c[ci]
	say := func(format string, args ...any) {
		if report != nil {
			report(fmt.Sprintf(format, args...))
		}
	}
	if c.stage == idle {
		seen := x.sees(n, c)
		x.thaw(n, c, &seen)
		c.plan = x.intern(decisive(seen))
		if x.planOf(x.planKey(n, ci)).CountActions() == 0 {
			say("finds nothing to do")
			x.finish(n, ci)
			return 0
		}
		say("plans")
		c.stage = planned
	}
	at := int8(0)
	for ; c.stage != idle; at++ {
		if at == e.at && (e.kind == pauses || e.kind == crashes) {
			if e.kind == crashes {
				*c = controller{}
			}
			return at
		}
		if c.stage == planned {
			say("reads the facts again")
			c.door, c.stage = x.intern(checked(x.sees(n, c))), applying
			x.skip(n, ci)
			continue
		}
		a := &x.scriptOf(x.doorKey(n, ci))[c.step]
		refused := at == e.at && e.kind == fails
		if refused {
			say("cannot write %s", a)
		} else {
			say("writes %s in the %s", a, strings.ToLower(string(a.writes[c.sub].Object.Kind)))
		}
		x.play(n, ci, a, refused)
		x.settle(n)
	}
	return at
}

// skip passes actions that do not hold any more or have nothing to write, and ends the cycle behind the last.
func (x *model) skip(s *state, ci int) {
	c := &s.c[ci]
	script := x.scriptOf(x.doorKey(s, ci))
	for int(c.step) < len(script) && (!script[c.step].holds || len(script[c.step].writes) == 0 || script[c.step].owes && !c.charged) {
		c.step++
	}
	if int(c.step) == len(script) {
		x.finish(s, ci)
	}
}

// thaw is what a loop makes of a freeze: it remembers when it saw its end, and takes the word of the pools' status that another saw one.
func (x *model) thaw(n *state, c *controller, seen *facts) {
	if c.thaw != none {
		c.thaw = before
	}
	if !seen.frozen && (c.froze || seen.shown && !c.shown && !x.Mutant.Heedless) {
		c.thaw = justNow
		for i := range n.f.l {
			l := &n.f.l[i]
			l.waitOver, l.killOver = l.wait == past, l.kill == past
		}
	}
	c.froze, c.shown = seen.frozen, seen.shown
}

// finish ends a cycle: the status of the pools says whether all is frozen, in the words of the newest leader.
func (x *model) finish(s *state, ci int) {
	c := &s.c[ci]
	if c.leader >= s.f.leader || x.Mutant.AnyLeader {
		s.f.shown, s.f.leader = x.all[c.plan].frozen, c.leader
		for _, g := range x.planOf(x.planKey(s, ci)).Gangs {
			if phase := int8(slices.Index(gangPhases[:], g.Phase)); phase != s.f.gang {
				s.f.gang, s.f.gangOld = phase, false
			}
		}
	}
	*c = controller{mode: c.mode, leader: c.leader, watched: c.watched, froze: c.froze, shown: c.shown, thaw: c.thaw, mask: c.mask, stalled: c.stalled}
}

// play does the next write of a controller's plan. refused says that the API takes it for no reason of ours.
func (x *model) play(s *state, ci int, a *act, refused bool) {
	c := &s.c[ci]
	w := a.writes[c.sub]
	taken := !refused && x.take(s, c, a, w)
	if !taken && w.Undo != nil {
		x.undo(s, c)
	}
	if c.sub++; !taken || int(c.sub) == len(a.writes) {
		c.sub, c.loan, c.held = 0, 0, 0
		c.step++
		x.skip(s, ci)
	}
}

// describeCycle says what a controller did.
func (x *model) describeCycle(s *state, st step) string {
	n := *s
	var b strings.Builder
	x.run(&n, int(st.a), end{st.kind, st.b}, func(t string) { b.WriteString("; " + t) })
	switch st.kind {
	case pauses:
		b.WriteString("; stops for a while")
	case crashes:
		b.WriteString("; dies")
	}
	return b.String()
}
