package planner

import (
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// A machine without an agent is recalled when an online pod was bound to it after it was lent; an agent would keep the two apart.
func TestLateBindsAreRecalled(t *testing.T) {
	for _, c := range []struct {
		name         string
		alive, known bool
		bound        bool
		want         int
	}{
		{"no agent, a late bind", false, false, true, 1},
		{"no agent", false, false, false, 0},
		{"an agent", true, true, true, 0},
		{"a silent agent", false, true, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(6).service("web", 8, 0, 4, 8*8*0.3)
			w.loan(5, fleet.Lent, 1)
			w.worker(5, 0)
			n := &w.s.Nodes[5]
			n.AgentAlive, n.AgentKnown = c.alive, c.known
			if c.bound {
				w.s.Pods = append(w.s.Pods, fleet.Pod{ID: "late", Name: fleet.Name{Namespace: "shop", Name: "late"}, Node: n.ID, NodeName: n.Name, Class: fleet.PodOnline,
					Requests: fleet.Resources{CPU: 1000}, Phase: fleet.PodRunning, Created: t0})
			}
			late := 0
			for _, m := range made(w.input()).Moves {
				if m.Kind == MoveRecall && m.Why.Code == reason.LateBind {
					late++
				}
			}
			if late != c.want {
				t.Errorf("%d recalls of a late bind, want %d", late, c.want)
			}
		})
	}
}
