package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// Whatever stands where, for loans in both directions: no pod but offline's is noticed, evicted or killed; none on the
// way back to offline is; none is evicted before its deadline without an answer, nor killed before the announced time;
// and no machine is cut off that no loan gave up, nor with online pods on it.
func TestNoPodIsTakenWithoutNotice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(2, 5).Draw(t, "machines"))
		own := len(w.s.Nodes)
		w.offline(rapid.IntRange(1, 4).Draw(t, "offline machines"))
		n := rapid.IntRange(1, 3*own).Draw(t, "pods")
		w.service("web", n, 0, rapid.IntRange(1, len(w.s.Nodes)).Draw(t, "spread"), float64(n)*8*rapid.Float64Range(0.05, 1.5).Draw(t, "use"))
		if rapid.Bool().Draw(t, "waits") {
			w.waits("web", rapid.IntRange(1, 8).Draw(t, "waiting"))
		}
		w.s.Jobs[0].Members[0].Min = int32(rapid.IntRange(0, 4).Draw(t, "min"))
		seconds := func(what string) time.Time {
			return t0.Add(time.Duration(rapid.IntRange(-900, 300).Draw(t, what)) * time.Second)
		}
		for i := range w.s.Nodes {
			for k := range rapid.IntRange(0, 2).Draw(t, "workers") {
				w.worker(i, k)
				p := &w.s.Pods[len(w.s.Pods)-1]
				p.Deleting = rapid.Bool().Draw(t, "deleting")
				if rapid.Bool().Draw(t, "told") {
					p.NoticeLoan, p.NoticeEpoch, p.AckEpoch = fleet.LoanID("loan-"+w.s.Nodes[i].Name), 2, int64(rapid.IntRange(1, 2).Draw(t, "answer"))
				}
			}
			if rapid.IntRange(0, 2).Draw(t, "no loan") == 0 {
				continue
			}
			l := w.loan(i, rapid.SampledFrom(fleet.Phases()).Draw(t, "phase"), 2)
			l.Deadline, l.Due, l.Since = seconds("deadline"), seconds("due"), seconds("since")
			if kill := seconds("kill"); l.Phase != fleet.Noticed { // a recall takes back what was announced before
				l.KillAt = kill
			}
			if i >= own {
				l.From, l.To = "offline", "online"
				e := &w.s.Nodes[i].Share.Parcels[0]
				e.Holder, e.Next = l.Holder(), l.Next()
			}
			if rapid.Bool().Draw(t, "clean") {
				e := &w.s.Nodes[i].Share.Parcels[0]
				e.Clean, e.CleanEpoch = true, 2
			}
		}
		in := w.input()
		if rapid.Bool().Draw(t, "thawed") {
			in.Thawed = t0
		}
		p := made(in)
		pod := func(ref PodRef) *fleet.Pod {
			return &w.s.Pods[slices.IndexFunc(w.s.Pods, func(p fleet.Pod) bool { return p.ID == ref.ID })]
		}
		taken := func(what string, ref PodRef, id fleet.LoanID) (*fleet.Pod, *fleet.Loan) {
			x, l := pod(ref), w.s.Loan(id)
			if x.Class != fleet.PodOffline {
				t.Fatalf("%s pod %s is %s", x.Class, x.Name, what)
			}
			if l.From == "offline" && l.Phase != fleet.Emptying {
				t.Fatalf("pod %s is %s for loan %s, which is %s and goes home to offline", x.Name, what, l.ID, l.Phase)
			}
			return x, l
		}
		for _, e := range p.Evictions {
			x, l := taken("evicted", e.Pod, e.Loan)
			if t0.Before(l.Deadline) && (x.NoticeLoan != l.ID || x.AckEpoch != l.Epoch) {
				t.Fatalf("pod %s is evicted %v before the deadline and gave no answer", x.Name, l.Deadline.Sub(t0))
			}
		}
		for _, k := range p.Kills {
			x, l := taken("killed", k.Pod, k.Loan)
			if l.From == "offline" || !l.Killing(t0) || !x.Deleting || !in.Thawed.IsZero() && l.Phase == fleet.Draining {
				t.Fatalf("pod %s (deleting %v) is killed for loan %s, which is %s and announced %v", x.Name, x.Deleting, l.ID, l.Phase, l.KillAt)
			}
		}
		for _, m := range p.Marks {
			if m.Want.Fence == fleet.FenceNone {
				continue
			}
			lost := slices.ContainsFunc(w.s.Loans, func(l fleet.Loan) bool { return l.Node == m.ID && l.Phase.Lost() && l.From == "online" })
			online := slices.ContainsFunc(w.s.Pods, func(p fleet.Pod) bool { return p.Node == m.ID && p.Class == fleet.PodOnline })
			if !lost || online && m.Want.Fence == fleet.FenceExecute {
				t.Fatalf("machine %s is cut off (%s): given up %v, online on it %v", m.Node, m.Want.Fence, lost, online)
			}
		}
	})
}

// A service belongs to the online pool that borrowed the machines on which its pods are, and is no service of the lender.
func TestHomesOfWhatIsOnBorrowedMachines(t *testing.T) {
	w := newWorld(3)
	w.offline(1)
	w.service("web", 4, 3, 1, 30)
	for _, c := range []struct {
		phase fleet.Phase
		want  fleet.PoolID
	}{{fleet.Lent, "online"}, {fleet.Noticed, "online"}} {
		w.s.Loans = nil
		l := w.loan(3, c.phase, 2)
		l.From, l.To = "offline", "online"
		w.s.Sort()
		if got := PoolsOf(&w.s)["shop/web"]; got != c.want {
			t.Errorf("while the machine is %s the service belongs to %q", c.phase, got)
		}
	}
}

// In an emergency idle machines go first and those that work after them: each is counted once, and both calls have one budget.
func TestEmergencyBorrowsIdleAndWorking(t *testing.T) {
	for _, c := range []struct {
		budget, begins int
	}{{10, 2}, {1, 1}} {
		w := newWorld(3).service("web", 24, 0, 3, 24*8*0.63)
		w.offline(2)
		w.worker(4, 0)
		w.s.Pools[0].MovesAtOnce = c.budget
		w.waits("web", 12)
		p := made(w.input())
		if got := moves(p, MoveBegin); got != c.begins {
			t.Errorf("with a budget of %d, %d machines are borrowed for 96 cores, want %d: %+v", c.budget, got, c.begins, p.Pools)
		}
	}
}

// A machine that the move budget withholds covers nothing: what online pods wait for is recalled.
func TestWithheldMachineCoversNoEmergency(t *testing.T) {
	for _, c := range []struct{ budget, begins, recalls int }{{0, 0, 1}, {1, 1, 0}} {
		w := newWorld(4).service("web", 24, 0, 3, 24*8*0.63)
		w.loan(3, fleet.Lent, 1)
		w.worker(3, 0)
		w.offline(1)
		w.s.Pools[0].MovesAtOnce = c.budget
		w.waits("web", 4)
		p := made(w.input())
		if begins, recalls := moves(p, MoveBegin), moves(p, MoveRecall); begins != c.begins || recalls != c.recalls {
			t.Errorf("with a budget of %d, %d machines are borrowed and %d recalled, want %d and %d: %+v", c.budget, begins, recalls, c.begins, c.recalls, p.Withheld)
		}
		held := slices.ContainsFunc(p.Withheld, func(x Withheld) bool {
			return x.Subject.String() == "pool offline" && strings.HasPrefix(x.By.Text(), "move budget")
		})
		if held != (c.budget == 0) {
			t.Errorf("with a budget of %d the plan withholds %+v", c.budget, p.Withheld)
		}
	}
}

// Two online pools that borrow in one plan have one lender: neither its budget nor what its jobs have above their minima is spent twice.
func TestTwoBorrowersHaveOneLender(t *testing.T) {
	for _, c := range []struct {
		budget, spare int32
		begins        int
	}{{10, 4, 2}, {1, 4, 1}, {10, 1, 1}} {
		w := newWorld(6).service("web", 24, 0, 3, 24*8*0.63).service("app", 24, 3, 3, 24*8*0.63)
		second := w.s.Pools[1]
		second.ID = "second"
		w.s.Pools = append(w.s.Pools, second)
		for i := 3; i < 6; i++ {
			w.s.Nodes[i].Pool = "second"
		}
		w.offline(4)
		for i := 6; i < 10; i++ {
			w.worker(i, 0)
		}
		w.s.Pools[0].MovesAtOnce, w.s.Jobs[0].Members[0].Min = int(c.budget), 4-c.spare
		w.waits("web", 8)
		w.waits("app", 8)
		p := made(w.input())
		if got := moves(p, MoveBegin); got != c.begins {
			t.Errorf("with a budget of %d and %d members to spare %d machines are borrowed, want %d", c.budget, c.spare, got, c.begins)
		}
	}
}

// The planner looks for machines to borrow as early as the lender's own notice needs (20 minutes here, where its loans
// have two), its drain and clean time, the pods' start and a cycle, and is not sent back by the next plan. Own loans
// come home at their own time, and are not borrowed for.
func TestBorrowsAheadOfTheLendersNotice(t *testing.T) {
	for _, c := range []struct {
		name   string
		notice time.Duration
		in     time.Duration
		bend   func(*world)
		begins bool
	}{
		{"in time", 20 * time.Minute, 24 * time.Minute, func(*world) {}, true},
		{"there is time", 20 * time.Minute, 40 * time.Minute, func(*world) {}, false},
		{"a short notice", time.Minute, 20 * time.Minute, func(*world) {}, false},
		{"a notice longer than the term", 50 * time.Minute, 52 * time.Minute, func(*world) {}, true},
		{"own loans will do", 20 * time.Minute, 24 * time.Minute, func(w *world) {
			for i := 4; i < 6; i++ {
				w.s.Nodes[i].Pool = "online"
				w.s.Nodes[i].Marks = fleet.NodeMarks{}
				w.loan(i, fleet.Lent, 1)
			}
		}, false},
		{"a new leader", 20 * time.Minute, 24 * time.Minute, func(w *world) { w.s.WatchedSince = t0.Add(-time.Minute) }, false},
		{"the lender only watches", 20 * time.Minute, 24 * time.Minute, func(w *world) { w.s.Pools[0].Mode = fleet.Observe }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(3).service("web", 18, 0, 3, 18*8*0.6)
			w.offline(3)
			w.worker(3, 0)
			w.s.Pools[0].Notice, w.s.Pools[0].NoticeMax = c.notice, time.Hour
			w.rises = []rise{{"shop/web", c.in, 150}}
			c.bend(w)
			p := made(w.input())
			if got := moves(p, MoveBegin) > 0; got != c.begins || moves(p, MoveRecall) > 0 {
				t.Fatalf("borrowed: %v, want %v: %s", got, c.begins, p.Pools[len(p.Pools)-1].Note)
			}
			if !c.begins {
				return
			}
			for _, x := range p.Moves {
				if x.After.Deadline.Sub(t0) < c.notice || x.After.Due.Before(t0.Add(c.in)) {
					t.Errorf("%s is to be left in %s, due in %s", x.Node, x.After.Deadline.Sub(t0), x.After.Due.Sub(t0))
				}
				n := &w.s.Nodes[slices.IndexFunc(w.s.Nodes, func(n fleet.Node) bool { return n.ID == x.After.Node })]
				w.s.Loans = append(w.s.Loans, x.After)
				n.Marks = fleet.NodeMarks{HolderTaint: true, HomeLabel: true, KeepNode: true}
				n.Share = fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{{Cells: x.After.Cells, Holder: x.After.Holder(), Next: x.After.Next(), Loan: x.After.ID, Epoch: 1}}}
			}
			if p = made(w.input()); len(p.Moves) > 0 {
				t.Errorf("the next plan does %+v", p.Moves)
			}
		})
	}
}

// A coming shortage is borrowed for ahead only so far as nothing comes home for it: a machine that is not ready, or
// about to leave, does not.
func TestWhoIsDownIsBorrowedFor(t *testing.T) {
	for _, c := range []struct {
		phase  fleet.Phase
		ready  bool
		begins int
	}{{fleet.Lent, true, 0}, {fleet.Lent, false, 1}, {fleet.Emptying, true, 0}, {fleet.Emptying, false, 1}} {
		w := newWorld(4).service("web", 18, 0, 3, 86)
		w.loan(3, c.phase, 1)
		w.offline(2)
		w.s.Pools[0].Notice, w.s.Pools[0].NoticeMax = 20*time.Minute, 20*time.Minute
		w.rises = []rise{{"shop/web", 25 * time.Minute, 125}}
		for _, leaving := range []bool{false, true} {
			if leaving && c.ready {
				continue
			}
			n := &w.s.Nodes[3]
			if n.Ready, n.Leaving = c.ready, ""; leaving {
				n.Ready, n.Leaving = true, "the condition MaintenancePlanned"
			}
			if p := made(w.input()); moves(p, MoveBegin) != c.begins {
				t.Errorf("%s, ready %v, leaving %v: %d machines are borrowed, want %d: %+v", c.phase, c.ready, leaving, moves(p, MoveBegin), c.begins, p.Pools)
			}
		}
	}
}

// A machine of an offline pool whose taints keep the borrower's services off is not borrowed, and covers nothing while it is: neither what waits now nor
// what will be short.
func TestTaintedMachinesAreNotBorrowed(t *testing.T) {
	waits := func(repels ...fleet.PoolID) *world {
		w := newWorld(3).service("web", 24, 0, 3, 24*8*0.63)
		w.offline(2)
		w.waits("web", 8)
		w.s.Nodes[3].Repels = repels
		return w
	}
	ahead := func(repels ...fleet.PoolID) *world {
		w := newWorld(4).service("web", 18, 0, 3, 86)
		w.offline(3)
		l := w.loan(4, fleet.Emptying, 1)
		l.From, l.To, l.Deadline = "offline", "online", t0.Add(time.Minute)
		w.waits("web", 10)
		w.s.Nodes[3].Ready, w.s.Nodes[4].Repels = false, repels
		return w
	}
	leaves := ahead()
	leaves.s.Nodes[4].Leaving = "the taint karpenter.sh/disrupted:NoSchedule"
	begun := func(w *world) string {
		out := ""
		for _, x := range made(w.input()).Moves {
			if x.Kind == MoveBegin {
				out += x.After.NodeName + " "
			}
		}
		return out
	}
	for _, c := range []struct {
		name string
		w    *world
		want string
	}{
		{"open", waits(), "m03 "},
		{"it repels another pool", waits("other"), "m03 "},
		{"it repels the borrower", waits("online"), "m04 "},
		{"what is emptied comes", ahead(), ""},
		{"what is emptied comes, for another pool it would not", ahead("other"), ""},
		{"what is emptied is no room any more", ahead("online"), "m05 "},
		{"what is emptied is about to leave", leaves, "m05 "},
	} {
		if got := begun(c.w); got != c.want {
			t.Errorf("%s: borrowed is %q, want %q", c.name, got, c.want)
		}
	}
}

// A pool that keeps a borrowed machine lends nothing. One on its way home, where pods may stand for hours until their services are scaled in, holds
// nothing up; but what is on it must have room on the pool's own machines before any of those goes.
func TestLendsWhileBorrowedMachinesGoHome(t *testing.T) {
	for _, c := range []struct {
		name   string
		phase  fleet.Phase
		guests int     // pods on the borrowed machine, of 8 cores each
		load   float64 // cores of load, at about 0.6 of what is asked for
		lends  bool
	}{
		{"it is kept", fleet.Lent, 7, 60, false},
		{"it is being emptied for online", fleet.Emptying, 0, 60, false},
		{"it goes home, one pod is left", fleet.Noticed, 1, 20, true},
		{"it is being cleaned", fleet.Draining, 0, 20, true},
		{"it goes home, all that is asked for fits nowhere else", fleet.Noticed, 7, 110, false},
	} {
		w := newWorld(4)
		w.offline(1)
		w.service("web", 16, 0, 4, c.load)
		if c.guests > 0 {
			w.service("guest", c.guests, 4, 1, float64(c.guests)*5)
		}
		l := w.loan(4, c.phase, 2)
		l.From, l.To, l.Deadline, l.Due = "offline", "online", t0.Add(-time.Hour), t0.Add(2*time.Hour)
		w.s.Nodes[4].Marks = fleet.NodeMarks{HolderTaint: true, HomeLabel: true, KeepNode: true}
		p := made(w.input())
		if got := moves(p, MoveBegin) > 0; got != c.lends {
			t.Errorf("%s: lends %v, want %v: %s", c.name, got, c.lends, p.Pools[len(p.Pools)-1].Note)
		}
	}
}

// A festival plan takes stable members from an hour before its festival until its end, once it was approved.
func TestAFestivalTakesStableMembersInItsTime(t *testing.T) {
	approved := fleet.Festival{ID: "sale", Approved: true, TakeStable: true}
	for _, c := range []struct {
		name     string
		plan     fleet.Festival
		from, to time.Duration // from now
		begins   int
	}{
		{"days ahead", approved, 48 * time.Hour, 72 * time.Hour, 0},
		{"a second too early", approved, time.Hour + time.Second, 2 * time.Hour, 0},
		{"an hour before", approved, time.Hour, 2 * time.Hour, 1},
		{"in its last second", approved, -time.Hour, time.Second, 1},
		{"when it is over", approved, -time.Hour, 0, 0},
		{"not approved", fleet.Festival{ID: "sale", TakeStable: true}, 0, time.Hour, 0},
		{"one that takes none", fleet.Festival{ID: "sale", Approved: true}, 0, time.Hour, 0},
	} {
		w := newWorld(3).service("web", 22, 0, 3, 130)
		w.offline(1)
		w.worker(3, 0)
		w.s.Jobs[0].Members[0].Stable = true
		c.plan.Start, c.plan.End = t0.Add(c.from), t0.Add(c.to)
		w.s.Festivals = []fleet.Festival{c.plan}
		if got := moves(made(w.input()), MoveBegin); got != c.begins {
			t.Errorf("%s: %d machines of stable members are borrowed, want %d", c.name, got, c.begins)
		}
	}
}
