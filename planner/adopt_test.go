package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// An adoption is two writes beyond the loan's own. A leader that dies between them leaves what the next one brings to an end.
func TestCrashWithinAnAdoption(t *testing.T) {
	for _, c := range []struct {
		name  string
		share func(*fleet.Share)
		kind  MoveKind
		want  fleet.Phase
	}{
		{"the loan was made, and the share still names the one that is gone", func(s *fleet.Share) { s.Parcels[0].Loan, s.Parcels[0].LoanUID = "gone", "gone" }, MoveCancel, fleet.Cancelled},
		{"the share was written, and the loan says nothing yet", func(s *fleet.Share) { s.Parcels[0].Epoch = 2 }, MoveRepair, fleet.Noticed},
		{"pods alone, and the share was not written", func(s *fleet.Share) { s.Parcels = nil }, MoveRepair, fleet.Emptying},
	} {
		w := newWorld(4).service("web", 18, 0, 3, 95)
		l := w.loan(3, fleet.Emptying, 1)
		l.Created, l.Since = t0, t0
		w.worker(3, 0)
		sh := &w.s.Nodes[3].Share
		sh.Parcels[0].Holder, sh.Parcels[0].Next = "offline", "online"
		c.share(sh)
		p := made(w.input())
		found := false
		for _, m := range p.Moves {
			if m.Before.ID == l.ID && m.Kind == c.kind && m.After.Phase == c.want {
				found = true
				if c.want == fleet.Noticed && (m.After.Epoch != 3 || !m.After.Deadline.After(t0.Add(time.Minute))) {
					t.Errorf("%s: %+v", c.name, m.After)
				}
			}
		}
		if !found {
			t.Errorf("%s: want a %s to %s, got %+v", c.name, c.kind, c.want, p.Moves)
		}
	}
}

// A share that has the cells of a loan that lives in another loan of its name is brought in line, whatever it says of them.
func TestAnEntryOfAnotherUIDIsRepaired(t *testing.T) {
	for _, phase := range []fleet.Phase{fleet.Lent, fleet.Noticed, fleet.Draining} {
		w := newWorld(4).service("web", 18, 0, 3, 95)
		l := w.loan(3, phase, 2)
		l.Deadline, l.Due = t0.Add(time.Minute), t0.Add(3*time.Minute)
		l.UID = "of-today"
		w.s.Nodes[3].Share.Parcels[0].LoanUID = "of-before"
		if n := Drift(&w.s); n != 2 {
			t.Errorf("%s: drift %d, want the loan and the entry", phase, n)
		}
		p := made(w.input())
		if moves(p, MoveRepair) != 1 || moves(p, MoveAdopt)+moves(p, MoveClear) > 0 {
			t.Errorf("%s: %+v", phase, p.Moves)
		}
	}
}

// A notice is not taken back while online pods are on the machine: it came to them by no hand-over.
func TestWhatOnlineIsOnDoesNotTurnBack(t *testing.T) {
	for name, c := range map[string]struct {
		online bool
		want   int
	}{"online is on it": {true, 0}, "nobody of online is": {false, 1}} {
		w := newWorld(6).service("web", 2, 0, 2, 8)
		l := w.loan(5, fleet.Noticed, 2)
		l.FirstNotice, l.Deadline, l.Due = t0, t0.Add(2*time.Minute), t0.Add(5*time.Minute)
		w.worker(5, 0)
		if c.online {
			w.s.Pods = append(w.s.Pods, fleet.Pod{ID: "late", Name: fleet.Name{Namespace: "shop", Name: "late"}, Node: "uid-05", NodeName: "m05", Class: fleet.PodOnline,
				Requests: fleet.Resources{CPU: 1000}, Phase: fleet.PodRunning, Created: t0})
		}
		if p := made(w.input()); moves(p, MoveTurnBack) != c.want {
			t.Errorf("%s: %+v", name, p.Moves)
		}
	}
}

// The plan's text for operators names machine, cause and what holds it back, and only what is true.
func TestStraysAreReported(t *testing.T) {
	w := newWorld(4).service("web", 18, 0, 3, 95)
	w.worker(3, 0)
	w.worker(3, 1)
	p := made(w.input())
	if len(p.Strays) != 1 || p.Strays[0].Pool != "online" || p.Strays[0].Held.Text() != "" || !strings.Contains(p.Strays[0].Why.Text(), "2 offline pods are on machine m03, which is home, first batch/w-03-0") {
		t.Errorf("%+v", p.Strays)
	}
	w.s.Pools[1].Mode = fleet.Observe
	if p = made(w.input()); len(p.Strays) != 1 || p.Strays[0].Held.Text() != "mode Observe" || len(p.Evictions)+len(p.Notices)+len(p.Moves)+len(p.Marks) > 0 {
		t.Errorf("Observe: %+v, %+v", p.Strays, p.Moves)
	}
	w.s.Pods = slices.DeleteFunc(w.s.Pods, func(p fleet.Pod) bool { return p.Class == fleet.PodOffline })
	if p = made(w.input()); len(p.Strays) > 0 {
		t.Errorf("after they left: %+v", p.Strays)
	}
}

// A machine that was moved to another pool of its side while its share still names the pool of before is home: nothing lands there for offline, online may, and
// an entry that outlived its loan is cleared.
func TestAHomeOfBeforeIsHome(t *testing.T) {
	for name, c := range map[string]struct {
		loan func(*world)
		kind MoveKind
	}{
		"the loan is not forgotten":       {func(*world) {}, ""},
		"the loan was deleted by hand":    {func(w *world) { w.s.Loans = nil }, MoveClear},
		"another loan has its name again": {func(w *world) { w.s.Loans[0].UID = "again" }, ""},
	} {
		w := newWorld(4).service("web", 18, 0, 3, 95)
		api := w.s.Pools[1]
		api.ID = "api"
		w.s.Pools = append(w.s.Pools[:1:1], api, w.s.Pools[1])
		slices.SortFunc(w.s.Pools, func(a, b fleet.Pool) int { return strings.Compare(string(a.ID), string(b.ID)) })
		l := w.loan(3, fleet.Returned, 2)
		l.Since, l.CleanAt = t0.Add(-time.Minute), t0.Add(-time.Minute)
		w.s.Nodes[3].Pool, w.s.Nodes[3].Marks = "api", fleet.NodeMarks{}
		w.s.Nodes[3].Share.Parcels[0].Holder, w.s.Nodes[3].Share.Parcels[0].Next = "online", ""
		c.loan(w)
		p := made(w.input())
		if moves(p, MoveAdopt) > 0 || c.kind != "" && moves(p, c.kind) != 1 || len(p.Strays) > 0 {
			t.Errorf("%s: %+v", name, p.Moves)
		}
		for _, m := range p.Marks {
			if m.Node == "m03" && (m.Want.OfflineLabel || m.Want.HolderTaint) {
				t.Errorf("%s: %+v", name, m.Want)
			}
		}
	}
}

// The cells of an entry are a part of it: a hand that takes some away, adds some or writes the entry twice is corrected, under an epoch of its own, so that no
// report on the wrong cells hands the parcel over.
func TestAnEntryOfOtherCellsIsRepaired(t *testing.T) {
	for _, phase := range []fleet.Phase{fleet.Emptying, fleet.Lent, fleet.Noticed, fleet.Draining} {
		for name, bend := range map[string]func(s *fleet.Share){
			"fewer":      func(s *fleet.Share) { s.Parcels[0].Cells = []int{0} },
			"more":       func(s *fleet.Share) { s.Parcels[0].Cells = []int{0, 1, 2, 3} },
			"others":     func(s *fleet.Share) { s.Parcels[0].Cells = []int{2, 3} },
			"some other": func(s *fleet.Share) { s.Parcels[0].Cells = []int{1, 2} },
			"twice": func(s *fleet.Share) {
				again := s.Parcels[0]
				again.Cells = []int{2, 3}
				s.Parcels = append(s.Parcels, again)
			},
		} {
			w := newWorld(4).service("web", 18, 0, 3, 95)
			l := w.loan(3, phase, 2)
			l.Kind, l.Cells, l.Deadline, l.Due = fleet.KindSocket, []int{0, 1}, t0.Add(time.Minute), t0.Add(3*time.Minute)
			sh := &w.s.Nodes[3].Share
			sh.Parcels[0].Cells, sh.Parcels[0].Clean, sh.Parcels[0].CleanEpoch, sh.Parcels[0].CleanAt = l.Cells, true, 2, t0
			bend(sh)
			if n := Drift(&w.s); n != 1 {
				t.Errorf("%s, %s: drift %d, want 1", phase, name, n)
			}
			p := made(w.input())
			i := slices.IndexFunc(p.Moves, func(m Move) bool { return m.Before.ID == l.ID })
			if i < 0 || p.Moves[i].Kind != MoveRepair || p.Moves[i].After.Phase != phase || p.Moves[i].After.Epoch != 3 {
				t.Errorf("%s, %s: %+v", phase, name, p.Moves)
			}
		}
	}
}

// An entry of a loan that is over says that its cells are home and stay there. Whatever else a hand writes shuts the machine to online, and is cleared.
func TestAnEntryOfALoanThatIsOverIsHome(t *testing.T) {
	for name, c := range map[string]struct {
		phase fleet.Phase
		next  fleet.PoolID
		old   time.Duration
		kind  MoveKind
	}{
		"on its way to the borrower":            {fleet.Returned, "offline", time.Minute, MoveClear},
		"on its way to a pool that is not":      {fleet.Returned, "nowhere", time.Minute, MoveClear},
		"on its way, and about to be forgotten": {fleet.Returned, "offline", time.Hour, MoveClear},
		"cancelled, and on its way":             {fleet.Cancelled, "offline", time.Minute, MoveClear},
		"home":                                  {fleet.Returned, "", time.Minute, ""},
		"home, and forgotten":                   {fleet.Returned, "", time.Hour, MoveForget},
	} {
		w := newWorld(4).service("web", 18, 0, 3, 95)
		l := w.loan(3, c.phase, 2)
		l.Since, l.CleanAt = t0.Add(-c.old), t0.Add(-c.old)
		w.s.Nodes[3].Marks = fleet.NodeMarks{}
		w.s.Nodes[3].Share.Parcels[0].Next = c.next
		p := made(w.input())
		of := slices.DeleteFunc(slices.Clone(p.Moves), func(m Move) bool { return m.Before.Node != l.Node })
		if len(of) > 1 || c.kind != "" && moves(p, c.kind) != 1 || c.kind == "" && len(of) > 0 {
			t.Errorf("%s: %+v", name, p.Moves)
		}
	}
}
