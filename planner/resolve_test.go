package planner

import (
	"fmt"
	"testing"

	"github.com/springtide/springtide/fleet"
)

// made is Make for tests: a loan move that the planner withheld from itself fails whichever test comes upon it.
func made(in Input) Plan {
	p := Make(in)
	if faults := p.Unresolved(); len(faults) > 0 {
		panic(fmt.Sprintf("the plan holds moves that no precedence resolves: %+v", faults))
	}
	return p
}

// A pair is named once: of two rows the second would never be read.
func TestPrecedencesNameEachPairOnce(t *testing.T) {
	seen := map[[2]proposal]bool{}
	for _, p := range precedences {
		pair := [2]proposal{p.earlier, p.later}
		if seen[pair] || p.stands == undeclared || p.why == "" {
			t.Errorf("%s before %s is named twice, or without a verdict or a reason", p.earlier, p.later)
		}
		if p.stands == laterStands && p.earlier.kind != MoveAnnounce {
			t.Errorf("%s gives way to %s, and leaves its traces in the plan", p.earlier, p.later)
		}
		seen[pair] = true
	}
}

func TestProposalsAreResolved(t *testing.T) {
	type want struct {
		kinds  []MoveKind
		faults int
	}
	for name, c := range map[string]struct {
		propose func(m *maker, l *fleet.Loan)
		want    want
	}{
		"one proposal": {func(m *maker, l *fleet.Loan) { m.propose(passFollow, MoveRepair, *l, *l, Why{}) }, want{[]MoveKind{MoveRepair}, 0}},
		"the earlier stands": {func(m *maker, l *fleet.Loan) {
			m.propose(passFollow, MoveRepair, *l, *l, Why{})
			m.propose(passTurnBack, MoveTurnBack, *l, *l, Why{})
		}, want{[]MoveKind{MoveRepair}, 0}},
		"the later stands": {func(m *maker, l *fleet.Loan) {
			m.propose(passHeartbeat, MoveAnnounce, *l, *l, Why{})
			m.propose(passTurnBack, MoveTurnBack, *l, *l, Why{})
		}, want{[]MoveKind{MoveTurnBack}, 0}},
		"nobody declared the pair": {func(m *maker, l *fleet.Loan) {
			m.propose(passTurnBack, MoveTurnBack, *l, *l, Why{})
			m.propose(passFollow, MoveFence, *l, *l, Why{})
		}, want{[]MoveKind{MoveTurnBack}, 1}},
		"the phase machine refuses": {func(m *maker, l *fleet.Loan) {
			after, err := l.WriteOff(t0, "a test")
			m.step(passFollow, MoveWriteOff, *l, after, err, "Test")
		}, want{nil, 1}},
	} {
		w := newWorld(2)
		l := w.loan(0, fleet.Noticed, 2)
		in := w.input()
		m := newMaker(&in)
		c.propose(m, l)
		var kinds []MoveKind
		for _, x := range m.plan.Moves {
			kinds = append(kinds, x.Kind)
		}
		if faults := m.plan.Unresolved(); fmt.Sprint(kinds) != fmt.Sprint(c.want.kinds) || len(faults) != c.want.faults {
			t.Errorf("%s: moves %v, faults %+v; want %+v", name, kinds, faults, c.want)
		}
	}
}
