package planner

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Each of six machines has 16 cores free beside two replicas of 24, and two are lent. Free cores in all are no room for a replica: pods that wait bring
// machines home, as many as hold them. What fits no empty machine, or would fit one that is there, brings none.
func TestWaitingPodsThatFitNowhere(t *testing.T) {
	for _, c := range []struct {
		name    string
		waiting int
		bend    func(*world)
		recalls int
	}{
		{"one", 1, func(*world) {}, 1},
		{"two fit one machine", 2, func(*world) {}, 1},
		{"three need two", 3, func(*world) {}, 2},
		{"none waits", 0, func(*world) {}, 0},
		{"a machine comes home", 1, func(w *world) { w.s.Loans[0].Phase = fleet.Draining }, 0},
		{"a machine has come home and is about to be opened", 1, func(w *world) {
			w.s.Loans = w.s.Loans[1:]
			w.s.Nodes[6].Share = fleet.Share{}
		}, 0},
		{"one fits, and waits for something else", 1, func(w *world) {
			w.s.Pods, w.s.Services[0].Pods = w.s.Pods[1:], w.s.Services[0].Pods[1:]
			w.s.Services[0].Desired.Value--
		}, 0},
		{"larger than any machine", 1, func(w *world) {
			for _, pods := range [][]fleet.Pod{w.s.Pods, w.s.Services[0].Pods} {
				pods[len(pods)-1].Requests.CPU = fleet.FromCores(65)
			}
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(8)
			size := func(pods []fleet.Pod) {
				for i := range pods {
					pods[i].Requests = fleet.Resources{CPU: fleet.FromCores(24), Memory: 48 * fleet.GiB}
				}
			}
			w.service("web", 12, 0, 6, 12*24*0.6)
			size(w.s.Pods)
			size(w.s.Services[0].Pods)
			w.s.Services[0].Request = w.s.Pods[0].Requests
			w.s.Pools[1].LowWatermark, w.s.Pools[1].HighWatermark = 0, 0
			w.loan(6, fleet.Lent, 1)
			w.loan(7, fleet.Lent, 1)
			if c.waiting > 0 {
				w.waits("web", c.waiting)
			}
			c.bend(w)
			in := w.input()
			for id, tide := range in.Tides { // what is asked for by forecast is there: nothing but the waiting pods speaks
				for _, path := range tide.Paths {
					for k := range path {
						path[k] = 10
					}
				}
				in.Tides[id] = tide
			}
			p := Make(in)
			if got := moves(p, MoveRecall); got != c.recalls {
				t.Errorf("%d machines are recalled, want %d: %s", got, c.recalls, p.Pools[0].Note)
			}
			for _, m := range p.Moves {
				if m.Kind == MoveRecall && m.After.Deadline.Sub(t0) > 30*time.Second {
					t.Errorf("a recall with notice until %s is no emergency", m.After.Deadline.Sub(t0))
				}
			}
		})
	}
}
