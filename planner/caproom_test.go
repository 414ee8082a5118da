package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// doubtful are services of 8-core replicas that carry 5.04 cores each, whose tides lie at a median and, at 0.95, above it by a half.
func doubtful(machines int, medians ...float64) (*world, func() Input) {
	w := newWorld(machines)
	for i, load := range medians {
		w.service(string(rune('a'+i)), int(load/5.04)+1, i, machines, load)
	}
	return w, func() Input {
		in := w.input()
		for _, t := range in.Tides {
			for k := range t.Paths[1] {
				t.Paths[1][k] *= 1.5
			}
		}
		return in
	}
}

// Three services whose medians ask for 12, 16 and 8 replicas and whose quantiles ask for 18, 24 and 12 share machines of 48: each has two thirds of
// its insurance. A pool on which pods may wait, and one with room, leave them all.
func TestFullPoolIsShared(t *testing.T) {
	for _, c := range []struct {
		name     string
		machines int
		bend     func(*world)
		want     []int32
		why      string
	}{
		{"room for all", 7, func(*world) {}, []int32{18, 24, 12}, ""},
		{"full", 6, func(*world) {}, []int32{16, 21, 10}, "pool online has room for 67% of"},
		{"full with two machines not ready", 6, func(w *world) { w.s.Nodes[0].Ready, w.s.Nodes[3].Ready = false, false }, []int32{16, 21, 10}, "67%"},
		{"no room for the medians", 4, func(*world) {}, []int32{12, 16, 8}, "room for 0% of"},
		{"full, and pods may wait", 6, func(w *world) { w.s.Pools[1].Waits = true }, []int32{18, 24, 12}, ""},
		{"one is only observed", 6, func(w *world) { w.s.Services[0].Mode = fleet.Observe }, []int32{18, 20, 10}, "50%"},
		{"borrowed machines are room", 6, func(w *world) {
			w.offline(1)
			l := w.loan(6, fleet.Lent, 1)
			l.From, l.To = "offline", "online"
		}, []int32{18, 24, 12}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, input := doubtful(c.machines, 60, 80, 40)
			c.bend(w)
			p := made(input())
			for i, want := range c.want {
				tg := &p.Targets[i]
				if tg.Replicas != want {
					t.Errorf("%s: %d replicas, want %d: %s", tg.Service, tg.Replicas, want, tg.Why())
				}
				if cut := tg.Replicas < tg.Wanted; cut &&
					(tg.Limited != hpa.LimitedRoom || !strings.Contains(tg.Why().Text(), c.why)) {
					t.Errorf("%s was cut to %d of %d, limited by %q: %s", tg.Service, tg.Replicas, tg.Wanted, tg.Limited, tg.Why())
				}
				if tg.Ahead[0] != []int32{18, 24, 12}[i] {
					t.Errorf("%s: the day ahead begins with %d: lending must see all that is asked for", tg.Service, tg.Ahead[0])
				}
			}
		})
	}
}

// Measured load is no insurance: with loads at their quantiles no service is cut, and pods wait.
func TestCapRoomLeavesTheLoad(t *testing.T) {
	w, input := doubtful(6, 60, 80, 40)
	in := input()
	for id, live := range in.Live {
		live.Load = fleet.KnownAt(live.Load.Value*1.5, t0)
		live.Steady = live.Load
		for pod, k := range live.CPU {
			live.CPU[pod] = fleet.KnownAt(k.Value*3/2, t0)
		}
		in.Live[id] = live
	}
	p, sum := made(in), int32(0)
	for i := range p.Targets {
		sum += p.Targets[i].Replicas
	}
	if sum < 18+24+12 {
		t.Errorf("%d replicas of %d machines: %s", sum, len(w.s.Nodes), p.Targets[0].Why())
	}
}

// A squeezed service scales in as it always does: not before the stabilisation window agrees.
func TestCapRoomWaitsForTheWindow(t *testing.T) {
	w, input := doubtful(6, 60, 80, 40)
	for i := range w.s.Services {
		w.s.Services[i].Desired.Value *= 2
	}
	in := input()
	for id := range in.History {
		in.History[id] = []hpa.Decision{{At: t0.Add(-time.Hour), Replicas: 100, From: 30}, {At: t0.Add(-time.Minute), Replicas: 100, From: 30}}
	}
	for _, a := range made(in).Lowers {
		t.Errorf("%s: %d -> %d", a.Service, a.From, a.To)
	}
}

// In a call chain the member that the room of its pool cuts the most is the bottleneck.
func TestRoomMakesABottleneck(t *testing.T) {
	w, input := doubtful(6, 60, 80, 40)
	for i, ratio := range []float64{3, 4, 2} {
		w.s.Services[i].LinkGroup, w.s.Services[i].LinkRatio = "checkout", ratio
	}
	p := made(input())
	if len(p.Links) != 1 || p.Links[0].Bottleneck != "shop/c" ||
		!strings.Contains(p.Links[0].Why.Text(), "pool room leaves it 10 of the 12") {
		t.Errorf("%+v", p.Links)
	}
}
