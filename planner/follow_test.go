package planner

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// A machine that vanishes ends its loan; under a freeze that waits like every other step, and no move is planned that the door would refuse
// in each cycle.
func TestNodeGone(t *testing.T) {
	for _, phase := range []fleet.Phase{fleet.Emptying, fleet.Lent, fleet.Noticed, fleet.Draining} {
		w := newWorld(3)
		w.loan(1, phase, 1)
		w.s.Nodes = append(w.s.Nodes[:1], w.s.Nodes[2])
		if p := made(w.input()); moves(p, MoveNodeGone) != 1 || !p.Moves[0].After.Phase.Ended() {
			t.Errorf("%s: %+v", phase, p.Moves)
		}
		w.s.Frozen = "network change"
		p := made(w.input())
		if len(p.Moves) > 0 {
			t.Errorf("%s, frozen: %+v", phase, p.Moves)
		}
		if len(p.Withheld) != 1 || p.Withheld[0].By.Text() != "freeze: network change" || p.Withheld[0].Subject.String() != "loan loan-m01" {
			t.Errorf("%s, frozen: withheld %+v", phase, p.Withheld)
		}
	}
}

// A machine that is empty is lent once the taint is up that keeps it so: the first try to put it up may have failed.
func TestLendWaitsForTheTaint(t *testing.T) {
	for _, tainted := range []bool{false, true} {
		w := newWorld(3)
		w.loan(1, fleet.Emptying, 1)
		n := &w.s.Nodes[1]
		n.Share.Parcels[0].Clean, n.Share.Parcels[0].CleanEpoch = true, 1
		n.Marks.HolderTaint = tainted
		p := made(w.input())
		if got := moves(p, MoveLend); (got == 1) != tainted {
			t.Errorf("taint %v: %d machines are lent", tainted, got)
		}
		if !tainted && !slices.ContainsFunc(p.Marks, func(m Mark) bool { return m.Node == n.Name && m.Want.HolderTaint }) {
			t.Errorf("the taint is not tried again: %+v", p.Marks)
		}
	}
}

// The room of a returned parcel is taken by the pod that starts there, however long it has waited.
func TestAClaimantThatWaitedTakesTheRoom(t *testing.T) {
	for _, started := range []time.Duration{-time.Hour, time.Minute} {
		w := newWorld(3).service("web", 1, 1, 1, 4)
		l := w.loan(1, fleet.Returned, 2)
		l.Since, l.CleanAt = t0.Add(-2*time.Minute), t0.Add(-2*time.Minute)
		w.s.Pods[0].Started = fleet.KnownAt(l.CleanAt.Add(started), t0)
		if got := moves(made(w.input()), MoveForget); (got == 1) != (started > 0) {
			t.Errorf("started %v after the return: %d loans are forgotten", started, got)
		}
	}
}

// A socket that came home stays open to online while the other one is on its way: its entry in the share says so, and stays as long, even after a pod took the room or the
// time is over. Once the other one is home, lent or given up, the loan is forgotten as ever.
func TestALoanIsNotForgottenBeforeItsMachineIsHome(t *testing.T) {
	for phase, forgotten := range map[fleet.Phase]int{fleet.Lent: 1, fleet.Noticed: 0, fleet.Draining: 0, fleet.Fenced: 0, fleet.WrittenOff: 1, fleet.Returned: 1} {
		for _, taken := range []bool{true, false} {
			w := newWorld(3).service("web", 1, 1, 1, 4)
			home := w.loan(1, fleet.Returned, 2)
			home.Since, home.CleanAt = t0.Add(-time.Hour), t0.Add(-time.Hour)
			if taken {
				home.Since, home.CleanAt = t0.Add(-2*time.Minute), t0.Add(-2*time.Minute)
				w.s.Pods[0].Node, w.s.Pods[0].NodeName, w.s.Pods[0].Started = home.Node, home.NodeName, fleet.KnownAt(t0.Add(-time.Minute), t0)
			}
			other := *w.loan(1, phase, 2)
			home = &w.s.Loans[0]
			home.Kind, home.Cells, home.ID = fleet.KindSocket, []int{2, 3}, "home"
			w.s.Loans[1] = other
			w.s.Loans[1].Kind, w.s.Loans[1].Cells = fleet.KindSocket, []int{0, 1}
			w.s.Loans[1].Since, w.s.Loans[1].Deadline, w.s.Loans[1].Due = t0, t0.Add(time.Minute), t0.Add(time.Hour)
			got := slices.ContainsFunc(made(w.input()).Moves, func(m Move) bool { return m.Kind == MoveForget && m.Before.ID == "home" })
			if got != (forgotten == 1) {
				t.Errorf("the other one is %s, taken %v: forgotten %v", phase, taken, got)
			}
		}
	}
}

// A loan that came home is forgotten for another one of its cells once that one is away. The plan that adopts does not forget it: the door may refuse the adoption.
func TestALoanIsForgottenForOneThatIsAway(t *testing.T) {
	for _, phase := range fleet.Phases() {
		for _, cells := range [][]int{{0, 1}, {0, 1, 2, 3}, {2, 3}} {
			w := newWorld(3).service("web", 1, 1, 1, 4)
			w.loan(1, fleet.Returned, 2)
			other := *w.loan(1, phase, 2)
			home := &w.s.Loans[0]
			home.Kind, home.Cells, home.ID, home.Since, home.CleanAt = fleet.KindSocket, []int{0, 1}, "home", t0.Add(-time.Minute), t0.Add(-time.Minute)
			w.s.Loans[1] = other
			w.s.Loans[1].Cells, w.s.Loans[1].Since, w.s.Loans[1].Deadline, w.s.Loans[1].Due = cells, t0, t0.Add(time.Minute), t0.Add(time.Hour)
			got := slices.ContainsFunc(made(w.input()).Moves, func(m Move) bool { return m.Kind == MoveForget && m.Before.ID == "home" })
			if want := phase.Away() && cells[0] == 0; got != want {
				t.Errorf("another loan of cells %v is %s: forgotten %v", cells, phase, got)
			}
		}
	}
}

// An online pod that landed after the machine was reported clean keeps it from being lent. The loan is given up in time, and is no step
// that is planned in each cycle and refused at the door.
func TestAnOccupiedMachineIsNotLent(t *testing.T) {
	w := newWorld(3).service("web", 1, 1, 1, 4)
	l := w.loan(1, fleet.Emptying, 1)
	l.Created, l.Since = t0.Add(-2*time.Hour), t0.Add(-2*time.Hour)
	w.s.Nodes[1].Share.Parcels[0].Clean, w.s.Nodes[1].Share.Parcels[0].CleanEpoch = true, 1
	w.s.Services[0].Pods[0].Node = w.s.Nodes[1].ID
	if p := made(w.input()); moves(p, MoveLend) != 0 || moves(p, MoveCancel) != 1 {
		t.Errorf("the loan is to be given up: %+v", p.Moves)
	}
}

// A promise is fixed as soon as a parcel is lent, and looked at four times an hour from then on.
func TestPromisesAreLookedAtNowAndThen(t *testing.T) {
	for _, c := range []struct {
		name    string
		minute  time.Duration
		promise time.Duration // from t0; 0 for none
		want    int
	}{
		{"just lent", 5 * time.Minute, 0, 1},
		{"its write failed", 14 * time.Minute, 0, 1},
		{"about to end, within the step", 5 * time.Minute, 30 * time.Minute, 0},
		{"about to end, at the step", 15 * time.Minute, 30 * time.Minute, 1},
		{"over, at the step", 15 * time.Minute, -time.Hour, 1},
		{"far from its end, at the step", 15 * time.Minute, 2 * time.Hour, 0},
	} {
		w := newWorld(6).service("web", 18, 0, 3, 95)
		l := w.loan(5, fleet.Lent, 1)
		if c.promise != 0 {
			l.ExpectedUntil = t0.Add(c.promise)
		}
		in := w.input()
		in.Snapshot.At = t0.Add(c.minute)
		if p := made(in); len(p.Survivals) != c.want {
			t.Errorf("%s: %+v", c.name, p.Survivals)
		}
	}
}

// No cycle of a day moves a promise earlier or writes one twice, and a promise lasts the minimum term at least, whatever the forecast says by then.
func TestAPromiseNeverMovesEarlier(t *testing.T) {
	w := newWorld(6).service("web", 18, 0, 3, 95)
	l := w.loan(5, fleet.Lent, 1)
	l.Since = t0
	writes := 0
	for at := time.Duration(0); at < 24*time.Hour; at += 5 * time.Minute {
		w.rises = nil
		if k := at / (2 * time.Hour); k%2 == 1 { // the forecast comes and goes
			w.rises = []rise{{"shop/web", at + 4*time.Hour, 200}}
		}
		in := w.input()
		in.Snapshot.At = t0.Add(at)
		for _, x := range made(in).Survivals {
			writes++
			if x.Until.Before(l.ExpectedUntil) || x.Until.Before(l.Since.Add(30*time.Minute)) || !x.Due.After(x.Until) {
				t.Errorf("%v: from %v to %v, due %v", at, l.ExpectedUntil, x.Until, x.Due)
			}
			if !l.ExpectedUntil.IsZero() && x.Until.Sub(l.ExpectedUntil) < extendBy {
				t.Errorf("%v: extended by %v", at, x.Until.Sub(l.ExpectedUntil))
			}
			l.ExpectedUntil = x.Until
		}
	}
	if writes == 0 || writes > 12 {
		t.Errorf("%d writes of a promise in a day", writes)
	}
}

// A loan carries a due time from its beginning: as long as the offer holds, then as the forecast says. The borrower's
// pods read it.
func TestEveryLoanHasADueTime(t *testing.T) {
	due := func(w *world, kind MoveKind) time.Duration {
		t.Helper()
		for _, m := range made(w.input()).Moves {
			if m.Kind == kind {
				return m.After.Due.Sub(t0)
			}
		}
		t.Fatalf("no %s", kind)
		return 0
	}
	if got := due(newWorld(6).service("web", 2, 0, 2, 8), MoveBegin); got != time.Hour {
		t.Errorf("begun with a due time in %s, want half an hour of emptying and the term", got)
	}
	w := newWorld(6).service("web", 2, 0, 2, 8)
	noticed := w.loan(5, fleet.Noticed, 2)
	noticed.FirstNotice, noticed.Deadline, noticed.Due = t0, t0.Add(2*time.Minute), t0.Add(5*time.Minute)
	w.worker(5, 0)
	if got := due(w, MoveTurnBack); got != 30*time.Minute {
		t.Errorf("after a notice that was taken back it is due in %s, want the term", got)
	}
}

// A heartbeat moves the deadline as far as it asks for, but past neither the pool's longest notice nor the due time.
func TestHeartbeatsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name              string
		notice, due, asks time.Duration // from now
		want              time.Duration // 0: the deadline stands
	}{
		{"as it asks", -time.Minute, time.Hour, 3 * time.Minute, 3 * time.Minute},
		{"the longest notice is ten minutes", -9 * time.Minute, time.Hour, 3 * time.Minute, time.Minute},
		{"it is over", -10 * time.Minute, time.Hour, 3 * time.Minute, 0},
		{"due before", -time.Minute, 2 * time.Minute, 3 * time.Minute, 2 * time.Minute},
		{"for less than it has", -time.Minute, time.Hour, 5 * time.Second, 0},
	} {
		w := newWorld(4).service("web", 24, 0, 3, 130)
		l := w.loan(3, fleet.Noticed, 2)
		l.FirstNotice, l.Deadline, l.Due = t0.Add(c.notice), t0.Add(10*time.Second), t0.Add(c.due)
		w.worker(3, 0)
		p := &w.s.Pods[len(w.s.Pods)-1]
		p.Heartbeat, p.NoticeLoan, p.NoticeEpoch = fleet.KnownAt(t0.Add(c.asks), t0), l.ID, l.Epoch
		got := time.Duration(0)
		for _, m := range made(w.input()).Moves {
			if m.Kind == MoveAnnounce {
				got = m.After.Deadline.Sub(t0)
			}
		}
		if got != c.want {
			t.Errorf("%s: the deadline moves to %v from now, want %v", c.name, got, c.want)
		}
	}
}

// The pool's note speaks of notices that are taken back only where this plan takes one back, and no machine turns of which a parcel drains.
func TestTheNoteOfATurnBackIsTrue(t *testing.T) {
	for name, c := range map[string]struct {
		acked, beats bool
		turns        int
	}{"it turns": {turns: 1}, "a heartbeat": {beats: true, turns: 1}, "it drains": {acked: true}} {
		w := newWorld(4).service("web", 18, 0, 3, 95)
		l := w.loan(3, fleet.Noticed, 2)
		l.FirstNotice, l.Deadline, l.Due = t0, t0.Add(2*time.Minute), t0.Add(5*time.Minute)
		w.worker(3, 0)
		p := &w.s.Pods[len(w.s.Pods)-1]
		p.NoticeLoan, p.NoticeEpoch, p.NoticeDeadline = l.ID, l.Epoch, fleet.KnownAt(l.Deadline, t0)
		if c.acked {
			p.AckEpoch = l.Epoch
		}
		if c.beats {
			p.Heartbeat = fleet.KnownAt(t0.Add(200*time.Second), t0)
		}
		plan := made(w.input())
		said := slices.ContainsFunc(plan.Pools, func(v PoolView) bool { return v.Note.Code == reason.NoticesTakenBack })
		if got := moves(plan, MoveTurnBack); got != c.turns || said != (c.turns > 0) || len(plan.Moves) != 1 || len(plan.Notices) > 0 {
			t.Errorf("%s: %d turn back, the note says so: %v; %+v, notices %+v", name, got, said, plan.Moves, plan.Notices)
		}
	}
}
