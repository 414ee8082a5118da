package fleet

import (
	"errors"
	"testing"
	"time"

	"github.com/springtide/springtide/reason"
	"pgregory.net/rapid"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func clean(epoch int64, at time.Time) *ShareParcel {
	return &ShareParcel{Clean: true, CleanEpoch: epoch, CleanAt: at}
}

// must unwraps a step that has to be allowed.
func must(t *testing.T) func(Loan, error) Loan {
	return func(l Loan, err error) Loan {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func TestLoanGoesAllTheWay(t *testing.T) {
	ok := must(t)
	l := Loan{ID: "a", From: "online", To: "offline"}.Begin(t0, reason.Said("ebb"))
	if l.Holder() != "online" || l.Next() != "offline" || l.Epoch != 1 {
		t.Fatalf("a new loan is still at home and moving out: holder %s, next %s, epoch %d", l.Holder(), l.Next(), l.Epoch)
	}
	l = ok(l.Lend(t0.Add(time.Minute), clean(1, t0)))
	if l.Holder() != "offline" || l.Next() != "" {
		t.Fatalf("lent: holder %s, next %s", l.Holder(), l.Next())
	}
	due := t0.Add(time.Hour)
	l = ok(l.Recall(t0.Add(10*time.Minute), t0.Add(12*time.Minute), due, reason.Said("flood")))
	if l.Epoch != 2 || l.Holder() != "offline" || l.Next() != "online" || !l.Due.Equal(due) {
		t.Fatalf("noticed: %+v", l)
	}
	l = ok(l.Drain(t0.Add(12*time.Minute), false))
	if _, err := l.Return(t0.Add(13*time.Minute), clean(1, t0)); err == nil {
		t.Fatal("a Clean report of an older epoch must not return a parcel")
	}
	l = ok(l.Return(t0.Add(13*time.Minute), clean(2, t0.Add(13*time.Minute))))
	if l.Holder() != "online" || l.Late(t0.Add(2*time.Hour)) {
		t.Fatalf("home in time: holder %s, late %v", l.Holder(), l.Late(t0.Add(2*time.Hour)))
	}
}

func TestTideTurns(t *testing.T) {
	ok := must(t)
	l := ok(Loan{}.Begin(t0, reason.Said("ebb")).Lend(t0, clean(1, t0)))
	l = ok(l.Recall(t0, t0.Add(2*time.Minute), t0.Add(5*time.Minute), reason.Said("flood")))
	l = ok(l.TurnBack(t0.Add(time.Minute), reason.Said("not needed")))
	if l.Phase != Lent || l.Epoch != 3 || !l.Due.IsZero() {
		t.Fatalf("a notice that is taken back leaves a plain loan of a new epoch: %+v", l)
	}
	if _, err := l.Drain(t0.Add(time.Hour), true); err == nil {
		t.Fatal("nothing may be drained after the notice was taken back")
	}
}

func TestDeadlines(t *testing.T) {
	ok := must(t)
	l := ok(Loan{}.Begin(t0, reason.Said("ebb")).Lend(t0, clean(1, t0)))
	l = ok(l.Recall(t0, t0.Add(2*time.Minute), t0.Add(5*time.Minute), reason.Said("flood")))
	if _, err := l.Drain(t0.Add(time.Minute), false); err == nil {
		t.Fatal("no eviction may precede the announced deadline")
	}
	if _, err := l.Drain(t0.Add(time.Minute), true); err != nil {
		t.Fatalf("acknowledgements shorten the wait: %v", err)
	}
	if l = ok(l.Announce(t0.Add(time.Hour), reason.Said("heartbeat"))); !l.Deadline.Equal(l.Due) {
		t.Fatalf("a heartbeat extends the deadline to the due time and no further, got %v", l.Deadline)
	}
	if l = ok(l.Announce(t0.Add(30*time.Second), reason.Said("emergency"))); !l.Deadline.Equal(t0.Add(30 * time.Second)) {
		t.Fatalf("an emergency may shorten the deadline, got %v", l.Deadline)
	}
	for _, whole := range []time.Time{t0.Add(4 * time.Minute), l.Due.Add(time.Second), l.Due.Add(time.Hour)} {
		due := l.Due
		if l = ok(l.AnnounceAgain(whole, reason.Said("no pod had a notice"))); !l.Deadline.Equal(whole) || !l.Due.Equal(due) {
			t.Fatalf("pods that had no notice get it whole, whatever is due: deadline %v, want %v; due %v", l.Deadline, whole, l.Due)
		}
		if _, err := l.AnnounceAgain(whole, reason.Said("the same")); err == nil {
			t.Fatal("what is announced again is later")
		}
	}
}

func TestRefusalsAreFactsOfARace(t *testing.T) {
	_, err := Loan{ID: "a"}.Begin(t0, reason.Reason{}).Recall(t0, t0, t0, reason.Reason{})
	var pe *PhaseError
	if !errors.As(err, &pe) || pe.Loan != "a" || pe.From != Emptying {
		t.Fatalf("want a PhaseError that names loan and phase, got %v", err)
	}
}

// Whatever is tried in whatever order, the holder changes only by a Clean report of the present epoch, the epoch never falls, and an ended
// loan stays ended.
func TestPhaseInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := t0
		l := Loan{ID: "a", From: "online", To: "offline"}.Begin(now, reason.Said("ebb"))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "wait")) * time.Second)
			before := l
			report := clean(rapid.Int64Range(0, l.Epoch+1).Draw(t, "epoch"), now)
			report.Clean = rapid.Bool().Draw(t, "clean")
			acked := rapid.Bool().Draw(t, "acked")
			deadline := now.Add(time.Duration(rapid.IntRange(-60, 600).Draw(t, "deadline")) * time.Second)
			var err error
			switch rapid.IntRange(0, 11).Draw(t, "step") {
			case 0:
				l, err = l.Lend(now, report)
			case 1:
				l, err = l.Cancel(now, reason.Said("x"))
			case 2:
				l, err = l.Recall(now, deadline, deadline.Add(time.Minute), reason.Said("x"))
			case 3:
				l, err = l.TurnBack(now, reason.Said("x"))
			case 4:
				l, err = l.Announce(deadline, reason.Said("x"))
			case 5:
				l, err = l.Drain(now, acked)
			case 6:
				l, err = l.Fence(now, reason.Said("x"))
			case 7:
				l, err = l.WriteOff(now, reason.Said("x"))
			case 8:
				l, err = l.Return(now, report)
			case 11:
				l, err = l.AnnounceAgain(deadline, reason.Said("x"))
			case 10:
				l, err = l.AnnounceKill(now, deadline, reason.Said("x"))
			case 9:
				if rapid.IntRange(0, 20).Draw(t, "gone") == 0 {
					l = l.NodeGone(now)
					if !l.Phase.Ended() {
						t.Fatalf("a loan of a machine that is gone must end, is %s", l.Phase)
					}
					return
				}
			}
			if err != nil && !sameLoan(l, before) {
				t.Fatalf("a refused step changed the loan: %+v -> %+v", before, l)
			}
			if l.Epoch < before.Epoch {
				t.Fatalf("the epoch fell from %d to %d", before.Epoch, l.Epoch)
			}
			if l.Holder() != before.Holder() && !report.IsClean(before.Epoch) {
				t.Fatalf("%s -> %s changed the holder without a Clean report of epoch %d", before.Phase, l.Phase, before.Epoch)
			}
			if l.Phase == Noticed && before.Phase != Noticed && l.Epoch != before.Epoch+1 {
				t.Fatalf("an entry to Noticed must raise the epoch")
			}
			if before.Phase == Noticed && l.Phase == Draining && now.Before(before.Deadline) && !acked {
				t.Fatalf("drained %v before the announced deadline", before.Deadline.Sub(now))
			}
			if l.KillAt.Before(before.KillAt) && l.Phase != Noticed {
				t.Fatalf("the kill that was announced for %v is at %v", before.KillAt, l.KillAt)
			}
			if l.Phase == Fenced && before.Phase != Fenced && (before.KillAt.IsZero() || now.Before(before.KillAt)) {
				t.Fatalf("fenced before the kill: %+v at %v", before, now)
			}
			if before.Phase.Ended() && l.Phase != before.Phase {
				t.Fatalf("an ended loan moved from %s to %s", before.Phase, l.Phase)
			}
		}
	})
}

func sameLoan(a, b Loan) bool {
	return a.Phase == b.Phase && a.Epoch == b.Epoch && a.Deadline.Equal(b.Deadline) && a.KillAt.Equal(b.KillAt) && a.Due.Equal(b.Due) && a.Since.Equal(b.Since)
}

func TestTakeAll(t *testing.T) {
	n := &Node{ID: "n", Cells: []Cell{{ID: 0}, {ID: 1, Socket: 1}}}
	loan := func(phase Phase, kind ParcelKind, cells ...int) *Loan {
		return &Loan{Node: "n", Phase: phase, Kind: kind, Cells: cells}
	}
	for _, c := range []struct {
		name  string
		loans []*Loan
		want  bool
	}{
		{"none", nil, false},
		{"the machine", []*Loan{loan(Emptying, KindNode, 0, 1)}, true},
		{"one socket", []*Loan{loan(Lent, KindSocket, 1)}, false},
		{"both", []*Loan{loan(Lent, KindSocket, 1), loan(Emptying, KindSocket, 0)}, true},
		{"both, of which one is back", []*Loan{loan(Lent, KindSocket, 1), loan(Returned, KindSocket, 0)}, false},
		{"both of another machine", []*Loan{{Node: "other", Phase: Lent, Kind: KindNode, Cells: []int{0, 1}}}, false},
	} {
		if got := TakeAll(n, c.loans); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A loan that is adopted begins with its notice, and goes home as any other does.
func TestAdopted(t *testing.T) {
	ok := must(t)
	l := Loan{ID: "a", From: "online", To: "offline", Node: "u"}.Adopt(t0, t0.Add(2*time.Minute), t0.Add(5*time.Minute), reason.Said("stray pods"))
	if l.Phase != Noticed || l.Holder() != "offline" || l.Next() != "online" || l.Epoch < 2 || !l.FirstNotice.Equal(t0) {
		t.Fatalf("%+v", l)
	}
	if _, err := l.Drain(t0.Add(time.Minute), false); err == nil {
		t.Error("drained before its deadline")
	}
	l = ok(l.Drain(t0.Add(2*time.Minute), false))
	if l = ok(l.Return(t0.Add(3*time.Minute), clean(l.Epoch, t0))); l.Late(t0.Add(3*time.Minute)) || l.Vanished != "" {
		t.Errorf("home: %+v", l)
	}
	again := Loan{ID: "b", From: "online", To: "offline"}.Begin(t0, reason.Reason{})
	for _, c := range []struct {
		name  string
		loan  Loan
		entry *ShareParcel
		want  int64 // 0: refused
	}{
		{"its share says so", again, &ShareParcel{Holder: "offline", Next: "online", Epoch: 2}, 3},
		{"a later epoch", again, &ShareParcel{Holder: "offline", Next: "online", Epoch: 7}, 8},
		{"the first epoch is of a loan that empties", again, &ShareParcel{Holder: "offline", Next: "online", Epoch: 1}, 0},
		{"it was lent", again, &ShareParcel{Holder: "offline", Epoch: 2}, 0},
		{"it is home", again, &ShareParcel{Holder: "online", Next: "offline", Epoch: 2}, 0},
		{"no entry", again, nil, 0},
		{"it is noticed", l, &ShareParcel{Holder: "offline", Next: "online", Epoch: 2}, 0},
	} {
		got, err := c.loan.AdoptAgain(t0, t0.Add(time.Minute), t0.Add(2*time.Minute), c.entry, reason.Reason{})
		if (err == nil) != (c.want > 0) || c.want > 0 && (got.Epoch != c.want || got.Phase != Noticed) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

// A loan that ends since its machine is gone names it.
func TestNodeGoneNamesTheMachine(t *testing.T) {
	for _, p := range Phases() {
		l := Loan{Node: "u", Phase: p}.NodeGone(t0)
		if want := NodeID("u"); !p.Ended() && l.Vanished != want || p.Ended() && l.Vanished != "" {
			t.Errorf("%s: vanished %q", p, l.Vanished)
		}
	}
}
