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

// What stands in the plan for people names machine, cause and what holds it back, and only what is true.
func TestStraysAreTold(t *testing.T) {
	w := newWorld(4).service("web", 18, 0, 3, 95)
	w.worker(3, 0)
	w.worker(3, 1)
	p := made(w.input())
	if len(p.Strays) != 1 || p.Strays[0].Pool != "online" || p.Strays[0].Held != "" || !strings.Contains(p.Strays[0].Why.Message, "2 offline pods are on machine m03, which is home, first batch/w-03-0") {
		t.Errorf("%+v", p.Strays)
	}
	w.s.Pools[1].Mode = fleet.Observe
	if p = made(w.input()); len(p.Strays) != 1 || p.Strays[0].Held != "mode Observe" || len(p.Evictions)+len(p.Notices)+len(p.Moves)+len(p.Marks) > 0 {
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
