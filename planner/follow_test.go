package planner

import (
	"testing"

	"github.com/springtide/springtide/fleet"
)

// A machine that vanishes ends its loan; under a freeze that waits like every other step, and no move is planned that the door would refuse
// in each cycle.
func TestNodeGone(t *testing.T) {
	for _, phase := range []fleet.Phase{fleet.Emptying, fleet.Lent, fleet.Noticed, fleet.Draining} {
		w := newWorld(3)
		w.loan(1, phase, 1)
		w.s.Nodes = append(w.s.Nodes[:1], w.s.Nodes[2])
		if p := Make(w.input()); moves(p, MoveNodeGone) != 1 || !p.Moves[0].After.Phase.Ended() {
			t.Errorf("%s: %+v", phase, p.Moves)
		}
		w.s.Frozen = "network change"
		p := Make(w.input())
		if len(p.Moves) > 0 {
			t.Errorf("%s, frozen: %+v", phase, p.Moves)
		}
		if len(p.Withheld) != 1 || p.Withheld[0].By != "freeze: network change" || p.Withheld[0].Subject != "loan loan-m01" {
			t.Errorf("%s, frozen: withheld %+v", phase, p.Withheld)
		}
	}
}
