package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
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
		"one proposal": {func(m *maker, l *fleet.Loan) { m.propose(passFollow, MoveRepair, *l, *l, reason.Reason{}) }, want{[]MoveKind{MoveRepair}, 0}},
		"the earlier stands": {func(m *maker, l *fleet.Loan) {
			m.propose(passFollow, MoveRepair, *l, *l, reason.Reason{})
			m.propose(passTurnBack, MoveTurnBack, *l, *l, reason.Reason{})
		}, want{[]MoveKind{MoveRepair}, 0}},
		"the later stands": {func(m *maker, l *fleet.Loan) {
			m.propose(passHeartbeat, MoveAnnounce, *l, *l, reason.Reason{})
			m.propose(passTurnBack, MoveTurnBack, *l, *l, reason.Reason{})
		}, want{[]MoveKind{MoveTurnBack}, 0}},
		"nobody declared the pair": {func(m *maker, l *fleet.Loan) {
			m.propose(passTurnBack, MoveTurnBack, *l, *l, reason.Reason{})
			m.propose(passFollow, MoveFence, *l, *l, reason.Reason{})
		}, want{[]MoveKind{MoveTurnBack}, 1}},
		"the phase machine refuses": {func(m *maker, l *fleet.Loan) {
			after, err := l.WriteOff(t0, reason.Said("a test"))
			m.step(passFollow, MoveWriteOff, *l, after, err)
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

// Whatever stands where, each pair of proposals for one loan is named, and no pass proposes what the phase machine refuses: made fails on both.
func TestEveryPairOfProposalsIsNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(2, 5).Draw(t, "machines"))
		own := len(w.s.Nodes)
		w.offline(rapid.IntRange(0, 2).Draw(t, "offline machines"))
		n := rapid.IntRange(1, 4*own).Draw(t, "pods")
		w.service("web", n, 0, own, float64(n)*8*rapid.Float64Range(0.05, 1.2).Draw(t, "use"))
		if rapid.Bool().Draw(t, "waits") {
			w.waits("web", rapid.IntRange(1, 8).Draw(t, "waiting"))
		}
		w.s.Pools[0].MovesAtOnce = rapid.IntRange(0, 2).Draw(t, "budget")
		seconds := func(what string) time.Time {
			return t0.Add(time.Duration(rapid.IntRange(-5000, 300).Draw(t, what)) * time.Second)
		}
		for i := range w.s.Nodes {
			node := &w.s.Nodes[i]
			for k := range rapid.IntRange(0, 2).Draw(t, "workers") {
				w.worker(i, k)
				p := &w.s.Pods[len(w.s.Pods)-1]
				if rapid.Bool().Draw(t, "told") {
					p.NoticeLoan, p.NoticeEpoch, p.AckEpoch = fleet.LoanID("loan-"+node.Name), 2, int64(rapid.IntRange(1, 2).Draw(t, "answer"))
				}
				if rapid.Bool().Draw(t, "beats") {
					p.Heartbeat = fleet.KnownAt(seconds("beat"), t0)
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "no loan") == 0 {
				continue
			}
			parts := 1
			if i < own {
				parts = rapid.IntRange(1, 2).Draw(t, "parcels")
			}
			for k := range parts {
				before := node.Share.Parcels
				l := w.loan(i, rapid.SampledFrom(fleet.Phases()).Draw(t, "phase"), 2)
				node.Share.Parcels = append(before, node.Share.Parcels...)
				e := &node.Share.Parcels[len(node.Share.Parcels)-1]
				l.Created, l.Deadline, l.Due, l.Since, l.FirstNotice = seconds("created"), seconds("deadline"), seconds("due"), seconds("since"), t0.Add(-time.Minute)
				if kill := seconds("kill"); l.Phase != fleet.Noticed { // a recall takes back what was announced before
					l.KillAt = kill
				}
				if parts > 1 {
					l.ID += fleet.LoanID(fmt.Sprintf("-%d", k))
					l.Kind, l.Cells = fleet.KindSocket, []int{2 * k, 2*k + 1}
					l.Parcel, l.Capacity = fleet.MakeParcelID(node.ID, l.Cells), node.CapacityOf(l.Cells)
					e.Loan, e.Cells = l.ID, l.Cells
				}
				if i >= own {
					l.From, l.To = "offline", "online"
					e.Holder, e.Next = l.Holder(), l.Next()
				}
				e.Clean, e.CleanEpoch = rapid.Bool().Draw(t, "clean"), 2
				if rapid.IntRange(0, 3).Draw(t, "differs") == 0 {
					e.Epoch++
				}
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
			w.s.Nodes = slices.Delete(w.s.Nodes, 0, 1)
		}
		in := w.input()
		if rapid.IntRange(0, 3).Draw(t, "thawed") == 0 {
			in.Thawed = t0
		}
		made(in)
	})
}
