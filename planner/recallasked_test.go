package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// A recall that an operator asks for gives notice like any other, cancels what is still being emptied, and touches nothing on its way home.
func TestAskedRecalls(t *testing.T) {
	for _, c := range []struct {
		name  string
		phase fleet.Phase
		asked string
		want  MoveKind
	}{
		{"lent", fleet.Lent, "disk to be changed", MoveRecall},
		{"being emptied", fleet.Emptying, "disk to be changed", MoveCancel},
		{"on its way home", fleet.Noticed, "disk to be changed", ""},
		{"lent, not asked for", fleet.Lent, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(6).service("web", 8, 0, 4, 8*8*0.3)
			w.loan(5, c.phase, 1)
			w.s.Loans[0].Asked = c.asked
			var got MoveKind
			for _, m := range made(w.input()).Moves {
				if m.Why.Code == reason.Asked {
					got = m.Kind
					if !strings.Contains(m.After.Reason.Text(), c.asked) {
						t.Errorf("the loan says %q, not why", m.After.Reason)
					}
				}
			}
			if got != c.want {
				t.Errorf("move %q, want %q", got, c.want)
			}
		})
	}
}

// A recall that an operator asked for stands, although the machine is not needed at home; the notice of one that the tide asked for is taken back.
func TestAskedRecallStands(t *testing.T) {
	for asked, want := range map[string]int{"": 1, "disk to be changed": 0} {
		w := newWorld(4).service("web", 18, 0, 3, 95)
		l := w.loan(3, fleet.Noticed, 2)
		l.FirstNotice, l.Deadline, l.Due, l.Asked = t0, t0.Add(2*time.Minute), t0.Add(5*time.Minute), asked
		w.worker(3, 0)
		p := &w.s.Pods[len(w.s.Pods)-1]
		p.NoticeLoan, p.NoticeEpoch, p.NoticeDeadline = l.ID, l.Epoch, fleet.KnownAt(l.Deadline, t0)
		plan := made(w.input())
		if got := moves(plan, MoveTurnBack); got != want {
			t.Errorf("asked %q: %d notices are taken back, want %d: %+v", asked, got, want, plan.Moves)
		}
	}
}
