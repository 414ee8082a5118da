package planner

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

func TestTheFewestAreCalledOff(t *testing.T) {
	for _, c := range []struct {
		name  string
		free  []int64
		short int64
		want  int
	}{
		{"the least that covers it", []int64{64, 16, 24, 32}, 20, 2},
		{"the first of equals", []int64{24, 24}, 20, 0},
		{"the most where none covers it", []int64{8, 32, 16, 32}, 40, 1},
		{"exactly as much", []int64{64, 20}, 20, 1},
	} {
		var left []freed
		for _, f := range c.free {
			left = append(left, freed{free: cpu(f)})
		}
		if got := bestFor(left, cpu(c.short)); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// Of three machines that are emptied one is full: calling it off would give online nothing. One of the others covers what is short.
func TestShortageCallsOffWhatHasRoom(t *testing.T) {
	w := newWorld(6).service("web", 32, 0, 4, 31*8*0.63)
	for i := 3; i < 6; i++ {
		w.loan(i, fleet.Emptying, 1).Created = t0.Add(-time.Duration(i) * time.Minute)
	}
	plan := made(w.input())
	if moves(plan, MoveCancel) != 1 || plan.Moves[0].Node == "m03" {
		t.Errorf("one machine with room is to be called off, and not m03, which is full: %+v", plan.Moves)
	}
	if n := moves(plan, MoveRecall); n != 0 {
		t.Errorf("%d recalls although emptying machines have room", n)
	}
}

// A begun loan is still right in the next plan: the rule of the offer and that of the recall see the same tide, and the
// room that the former leaves free lies between the two.
func TestWhatBeginsIsNotCalledOffByTheNextPlan(t *testing.T) {
	begun := 0
	rapid.Check(t, func(t *rapid.T) {
		machines := rapid.IntRange(4, 16).Draw(t, "machines")
		w := newWorld(machines)
		w.s.Pools[1].Unit = rapid.SampledFrom([]fleet.Unit{fleet.UnitNode, fleet.UnitSocket}).Draw(t, "unit")
		for i := range rapid.IntRange(1, 2).Draw(t, "services") {
			name := fmt.Sprintf("s%d", i)
			n := rapid.IntRange(1, machines*4).Draw(t, "pods")
			use := rapid.Float64Range(0.05, 0.9).Draw(t, "use")
			w.service(name, n, rapid.IntRange(0, machines-1).Draw(t, "first"), machines, float64(n)*8*use)
			if rapid.Bool().Draw(t, "turns") {
				w.rises = append(w.rises, rise{fleet.ServiceID("shop/" + name), time.Duration(rapid.IntRange(0, 8).Draw(t, "in")) * 5 * time.Minute,
					float64(n) * 8 * use * rapid.Float64Range(0.2, 1.2).Draw(t, "by")})
			}
		}
		plan := made(w.input())
		begun += moves(plan, MoveBegin)
		apply(w, &plan)
		next := made(w.input())
		for _, m := range next.Moves {
			if m.Kind == MoveCancel {
				t.Fatalf("loan %s is begun by one plan and called off by the next: %s", m.Before.ID, m.Why.Text())
			}
		}
	})
	if begun == 0 {
		t.Error("nothing was ever lent")
	}
}

// apply does what a plan says of loans: those that begin are there, with their shares and marks. No pod left yet.
func apply(w *world, p *Plan) {
	for _, m := range p.Moves {
		if m.Kind != MoveBegin {
			continue
		}
		l := m.After
		w.s.Loans = append(w.s.Loans, l)
		n := w.s.Node(l.Node)
		n.Marks = fleet.NodeMarks{HolderTaint: true, KeepNode: true}
		n.Share = fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{{Cells: l.Cells, Holder: l.Holder(), Next: l.Next(), Loan: l.ID, Epoch: l.Epoch}}}
	}
}

// In half an hour online needs little; what it needs until then stays, of free machines too: a loan takes what is free at once.
func TestWhatIsNeededNowIsNotLent(t *testing.T) {
	for _, c := range []struct{ pods, begins int }{{38, 0}, {30, 1}} {
		w := newWorld(6).service("web", c.pods, 0, 5, float64(c.pods)*8*0.62)
		w.s.Pools[1].Unit = fleet.UnitNode
		w.rises = []rise{{"shop/web", 25 * time.Minute, 20}}
		p := made(w.input())
		if got := moves(p, MoveBegin); min(got, 1) != c.begins {
			t.Errorf("of %d pods on five of six machines most go in 25 minutes: %d loans begin, want %d: %s", c.pods, got, c.begins, p.Pools[0].Note)
		}
	}
}

// Whatever keeps a loan from being handed over, it is given up after an hour, though nothing else of lending is looked at meanwhile; one that
// can be handed over is.
func TestALateLoanIsGivenUp(t *testing.T) {
	const blindCase = "while signals are missing"
	for _, c := range []struct {
		name string
		bend func(w *world, n *fleet.Node, l *fleet.Loan)
		want MoveKind
	}{
		{"nobody is there and the agent is silent", func(_ *world, n *fleet.Node, _ *fleet.Loan) { n.AgentAlive = false }, MoveCancel},
		{"its only online pod does not end", func(w *world, n *fleet.Node, _ *fleet.Loan) {
			w.service("api", 1, 5, 1, 4)
			w.s.Pods[len(w.s.Pods)-1].Deleting = true
		}, MoveCancel},
		{"a socket whose agent died", func(_ *world, n *fleet.Node, l *fleet.Loan) {
			n.AgentAlive, l.Kind, l.Cells = false, fleet.KindSocket, []int{2, 3}
			n.Share.Parcels[0].Cells = l.Cells
		}, MoveCancel},
		{blindCase, func(*world, *fleet.Node, *fleet.Loan) {}, MoveCancel},
		{"while pods wait", func(w *world, _ *fleet.Node, _ *fleet.Loan) { w.waits("web", 1) }, MoveCancel},
		{"while machines are borrowed", func(w *world, _ *fleet.Node, _ *fleet.Loan) {
			w.offline(1)
			b := w.loan(6, fleet.Lent, 1)
			b.From, b.To = "offline", "online"
		}, MoveCancel},
		{"a new leader", func(w *world, _ *fleet.Node, _ *fleet.Loan) { w.s.WatchedSince = t0 }, MoveCancel},
		{"it is just clean", func(_ *world, n *fleet.Node, _ *fleet.Loan) {
			n.Share.Parcels[0].Clean, n.Share.Parcels[0].CleanEpoch = true, 1
		}, MoveLend},
	} {
		for _, early := range []bool{true, false} {
			w := newWorld(6).service("web", 12, 0, 4, 12*8*0.63)
			l := w.loan(5, fleet.Emptying, 1)
			l.Created = t0.Add(-DefaultOptions().EmptyMax)
			if early {
				l.Created = l.Created.Add(time.Second)
			}
			c.bend(w, &w.s.Nodes[5], l)
			in, want := w.input(), c.want
			if c.name == blindCase {
				in.Live = nil
			}
			if early && want == MoveCancel {
				want = ""
			}
			var got MoveKind
			for _, m := range made(in).Moves {
				if m.Node == "m05" {
					got = m.Kind
				}
			}
			if got != want {
				t.Errorf("%s, a second early %v: %q, want %q", c.name, early, got, want)
			}
		}
	}
}

// A loan that is given up comes home, so a shortage recalls no other machine for the same room.
func TestWhatIsGivenUpCoversAShortage(t *testing.T) {
	w := newWorld(6).service("web", 30, 0, 4, 30*8*0.63)
	w.loan(4, fleet.Lent, 1)
	w.loan(5, fleet.Emptying, 1).Created = t0.Add(-2 * time.Hour)
	if p := made(w.input()); moves(p, MoveCancel) != 1 || moves(p, MoveRecall) != 0 {
		t.Errorf("the room of one machine is short: %+v", p.Moves)
	}
}
