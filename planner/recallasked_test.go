package planner

import (
	"strings"
	"testing"

	"github.com/springtide/springtide/fleet"
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
				if m.Why.Reason == ReasonAsked {
					got = m.Kind
					if !strings.Contains(m.After.Reason, c.asked) {
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
