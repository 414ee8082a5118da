package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Each of six machines has 16 cores free next to two replicas of 24, and two are lent. Free cores in all are no room
// for a replica: pods that wait bring machines home, as many as hold them. A pod that fits no empty machine, or would
// fit one that is there, brings none.
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
			p := made(in)
			if got := moves(p, MoveRecall); got != c.recalls {
				t.Errorf("%d machines are recalled, want %d: %s", got, c.recalls, p.Pools[0].Note)
			}
			for _, m := range p.Moves {
				if m.Kind == MoveRecall && m.After.Deadline.Sub(t0) > 30*time.Second {
					t.Errorf("a recall with notice until %s is no emergency", m.After.Deadline.Sub(t0))
				}
				if m.Kind == MoveRecall && m.After.Claimant != "shop/web" {
					t.Errorf("the recall is for %q, want the service whose pods wait", m.After.Claimant)
				}
			}
		})
	}
}

// Eight GPUs are on one machine that is lent, next to three without any; CPU is free at home. Pods that wait for GPUs
// bring that machine home and no other, pods that would find no CPU either bring what they lack, and GPUs that cannot
// come home are no reason for anything.
func TestWaitingPodsThatLackGPUs(t *testing.T) {
	for _, c := range []struct {
		name    string
		bend    func(*world)
		recalls string
	}{
		{"four of one GPU", func(*world) {}, "m06"},
		{"no GPU is asked for", func(w *world) { w.gpus(0) }, ""},
		{"more than any machine has", func(w *world) { w.gpus(9) }, ""},
		{"some at home are free", func(w *world) { w.s.Nodes[0].Allocatable.GPU = 8 }, ""},
		{"some at home are taken", func(w *world) {
			w.s.Nodes[0].Allocatable.GPU = 8
			w.s.Pods[0].Requests.GPU, w.s.Services[0].Pods[0].Requests.GPU = 8, 8
		}, "m06"},
		{"a machine with GPUs comes home", func(w *world) { w.s.Loans[2].Phase = fleet.Draining }, ""},
		{"none that could come home", func(w *world) { w.s.Nodes[6].Allocatable.GPU, w.s.Nodes[0].Allocatable.GPU = 0, 2; w.gpus(2) }, ""},
		{"a machine with GPUs is being emptied", func(w *world) {
			l, e := &w.s.Loans[2], &w.s.Nodes[6].Share.Parcels[0]
			l.Phase = fleet.Emptying
			e.Holder, e.Next = l.Holder(), l.Next()
		}, "m06 is kept"},
		{"idle machines of offline pools have none", func(w *world) { w.offline(2) }, "m06"},
		{"no room for their CPU either", func(w *world) {
			for _, pods := range [][]fleet.Pod{w.s.Pods, w.s.Services[0].Pods} {
				for i := range pods {
					pods[i].Requests.CPU = fleet.FromCores(33)
				}
			}
		}, "m04 m05 m06"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(8).service("web", 4, 0, 4, 4*8*0.6)
			w.s.Pools[1].LowWatermark, w.s.Pools[1].HighWatermark = 0, 0
			w.s.Nodes[6].Allocatable.GPU = 8
			for i := 4; i < 8; i++ {
				w.loan(i, fleet.Lent, 1)
			}
			w.waits("web", 4)
			w.gpus(1)
			c.bend(w)
			var got []string
			for _, m := range made(w.input()).Moves {
				switch m.Kind {
				case MoveRecall:
					got = append(got, m.Node)
				case MoveCancel:
					got = append(got, m.Node+" is kept")
				case MoveBegin:
					got = append(got, m.Node+" is borrowed")
				}
			}
			if s := strings.Join(got, " "); s != c.recalls {
				t.Errorf("recalls %q, want %q", s, c.recalls)
			}
		})
	}
}

// gpus makes every pod that waits ask for so many GPUs.
func (w *world) gpus(n int64) {
	for _, pods := range [][]fleet.Pod{w.s.Pods, w.s.Services[0].Pods} {
		for i := range pods {
			if pods[i].Unschedulable {
				pods[i].Requests.GPU = n
			}
		}
	}
}
