package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// A parcel of a machine that an administrator will take away is recalled with notice, a parcel that is being emptied
// there stays at home, and nothing is lent there.
func TestLifecycleRecalls(t *testing.T) {
	for _, c := range []struct {
		name, condition string
		phase           fleet.Phase
		want            MoveKind
	}{
		{"lent", "MaintenancePlanned", fleet.Lent, MoveRecall},
		{"lent, another condition", "DrainInProgress", fleet.Lent, MoveRecall},
		{"being emptied", "GracefulNodeShutdownInProgress", fleet.Emptying, MoveCancel},
		{"on its way home", "Drained", fleet.Noticed, ""},
		{"none is true", "", fleet.Lent, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(6).service("web", 8, 0, 4, 8*8*0.3)
			w.loan(5, c.phase, 1)
			w.s.Nodes[5].Leaving = c.condition
			var got MoveKind
			for _, m := range made(w.input()).Moves {
				if m.Why.Code != reason.NodeLifecycle {
					continue
				}
				got = m.Kind
				if !strings.Contains(m.After.Reason.Text(), c.condition) {
					t.Errorf("the loan says %q, not why", m.After.Reason)
				}
				if m.Kind == MoveRecall && m.After.Deadline.Sub(w.s.At) < w.s.Pool("online").Notice {
					t.Errorf("the notice is %s", m.After.Deadline.Sub(w.s.At))
				}
			}
			if got != c.want {
				t.Errorf("move %q, want %q", got, c.want)
			}
		})
	}
}

// A parcel that is being emptied on a machine that is about to leave, or that was cordoned, goes to no borrower,
// whichever side it is for. A kubelet that is silent for a moment calls nothing off.
func TestNothingIsHandedOverOfALeavingMachine(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*fleet.Node)
		want int
	}{
		{"it stays", func(*fleet.Node) {}, 0},
		{"a taint", func(n *fleet.Node) { n.Leaving = "the taint karpenter.sh/disrupted:NoSchedule" }, 1},
		{"a taint that the services do not tolerate either", func(n *fleet.Node) {
			n.Leaving, n.Ready, n.Shut = "the taint x", false, fleet.Shut{By: fleet.ShutByTaint, Taint: "x"}
		}, 1},
		{"a cordon", func(n *fleet.Node) { n.Ready, n.Shut = false, fleet.Shut{By: fleet.ShutByCordon} }, 1},
		{"a silent kubelet", func(n *fleet.Node) { n.Ready, n.Shut = false, fleet.Shut{By: fleet.ShutByKubelet} }, 0},
	} {
		for _, borrowed := range []bool{false, true} {
			w := newWorld(6).service("web", 8, 0, 4, 8*8*0.3)
			l := w.loan(5, fleet.Emptying, 1)
			if borrowed {
				w.s.Nodes[5].Pool = "offline"
				l.From, l.To = "offline", "online"
				l.Deadline = w.s.At.Add(time.Minute)
				e := &w.s.Nodes[5].Share.Parcels[0]
				e.Holder, e.Next = l.Holder(), l.Next()
			}
			c.do(&w.s.Nodes[5])
			got := 0
			for _, m := range made(w.input()).Moves {
				if m.Kind == MoveCancel && m.Why.Code == reason.NodeLifecycle {
					got++
				}
			}
			if got != c.want {
				t.Errorf("%s, borrowed %v: %d loans are called off, want %d", c.name, borrowed, got, c.want)
			}
		}
	}
}

// A recall counts on no machine that is about to leave: one that is on its way home covers nothing, and another is called.
func TestRecallsCountOnNoLeavingMachine(t *testing.T) {
	for _, leaving := range []string{"", "the condition MaintenancePlanned", "the taint ToBeDeletedByClusterAutoscaler=1:NoSchedule"} {
		w := newWorld(5).service("web", 24, 0, 3, 24*8*0.6)
		l := w.loan(3, fleet.Noticed, 2)
		l.FirstNotice, l.Deadline, l.Due = t0, t0.Add(2*time.Minute), t0.Add(5*time.Minute)
		w.loan(4, fleet.Lent, 1)
		w.s.Nodes[3].Leaving = leaving
		w.waits("web", 4)
		if got, want := moves(made(w.input()), MoveRecall) > 0, leaving != ""; got != want {
			t.Errorf("the machine on its way home leaves by %q: another is recalled %v, want %v", leaving, got, want)
		}
	}
}

// A condition on the whole fleet recalls by the pool's budget, and each machine that waits is named.
func TestLifecycleOfAFleet(t *testing.T) {
	w := newWorld(12).service("web", 8, 0, 4, 8*8*0.3)
	for i := range 8 {
		w.loan(4+i, fleet.Lent, 1)
	}
	for i := range w.s.Nodes {
		w.s.Nodes[i].Leaving = "MaintenancePlanned"
	}
	w.s.Pool("online").MovesPerHour = 120
	p := made(w.input())
	if got := moves(p, MoveRecall); got != 2 {
		t.Errorf("%d recalls in a minute, want 2", got)
	}
	held := 0
	for _, h := range p.Withheld {
		if h.Why.Code == reason.NodeLifecycle {
			held++
		}
	}
	if held != 6 {
		t.Errorf("%d recalls wait, want 6: %+v", held, p.Withheld)
	}
	if got := moves(p, MoveBegin); got != 0 {
		t.Errorf("%d loans begin", got)
	}
}

// Of a fleet that lends, the machines with a condition stay, and the view of the pool names it; a notice there is not taken back.
func TestLifecycleMachinesAreNotLent(t *testing.T) {
	w := newWorld(8).service("web", 8, 0, 4, 8*8*0.3)
	for i := range w.s.Nodes {
		if i != 6 {
			w.s.Nodes[i].Leaving = "MaintenancePlanned"
		}
	}
	p := made(w.input())
	for _, m := range p.Moves {
		if m.Kind == MoveBegin && m.After.Node != w.s.Nodes[6].ID {
			t.Errorf("machine %s is lent", m.After.NodeName)
		}
	}
	if moves(p, MoveBegin) == 0 {
		t.Error("the machine without a condition is not lent: the fleet tests nothing")
	}
	for condition, want := range map[string]int{"": 1, "MaintenancePlanned": 0} {
		w := newWorld(4).service("web", 18, 0, 3, 95)
		l := w.loan(3, fleet.Noticed, 2)
		l.FirstNotice, l.Deadline, l.Due = t0, t0.Add(2*time.Minute), t0.Add(5*time.Minute)
		w.worker(3, 0)
		q := &w.s.Pods[len(w.s.Pods)-1]
		q.NoticeLoan, q.NoticeEpoch, q.NoticeDeadline = l.ID, l.Epoch, fleet.KnownAt(l.Deadline, t0)
		w.s.Nodes[3].Leaving = condition
		if got := moves(made(w.input()), MoveTurnBack); got != want {
			t.Errorf("condition %q: %d notices are taken back, want %d", condition, got, want)
		}
	}
}
