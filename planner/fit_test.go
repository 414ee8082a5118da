package planner

import (
	"strings"
	"testing"

	"github.com/springtide/springtide/fleet"
)

// bigWorld is two machines with a little work each, one that a replica of 60 cores fills, and an empty one, which the sums would let go:
// the replica that the tide adds asks for fewer cores than are free, but no other machine has them in one piece.
func bigWorld(cores fleet.MilliCPU) *world {
	w := newWorld(4).service("web", 2, 1, 2, 9).service("big", 1, 0, 1, 50)
	w.s.Pools[1].Unit = fleet.UnitNode
	svc := &w.s.Services[1]
	svc.Request.CPU = cores
	svc.Pods[0].Requests.CPU = 60_000
	w.s.Pods[2].Requests.CPU = 60_000
	return w
}

func TestTheLastPlaceOfALargeReplicaStays(t *testing.T) {
	for _, c := range []struct {
		name  string
		cores fleet.MilliCPU
		lent  int
	}{
		{"it fits the empty machine alone", 60_000, 0},
		{"it fits beside the others' work", 50_000, 1},
		{"it fits no machine at all", 70_000, 1},
	} {
		plan := made(bigWorld(c.cores).input())
		if moves(plan, MoveBegin) != c.lent {
			t.Errorf("%s: %d machines are lent, want %d: %+v", c.name, moves(plan, MoveBegin), c.lent, plan.Pools)
		}
		pinned := false
		for _, p := range plan.Pools[0].Pinned {
			pinned = pinned || p.Node == "m03" && strings.HasPrefix(p.By.Text(), "service shop/big will ask for 1 replicas more")
		}
		if pinned != (c.lent == 0) {
			t.Errorf("%s: pinned %+v", c.name, plan.Pools[0].Pinned)
		}
	}
}

// TestEveryServiceIsAskedFor: that one service's replica fits nowhere does not open the machine that the next one needs.
func TestEveryServiceIsAskedFor(t *testing.T) {
	w := bigWorld(60_000).service("learner", 1, 1, 1, 9)
	w.s.Services[2].Request.GPU = 1 // of which there is none
	if plan := made(w.input()); moves(plan, MoveBegin) != 0 {
		t.Errorf("the last place of a replica of 60 cores is lent: %+v", plan.Pools)
	}
}

// TestSocketNeedsMemoryToo: three pods fit the other socket by cores, and 120 GiB fit its 128; but of 40 GiB a cell of 64 holds one.
func TestSocketNeedsMemoryToo(t *testing.T) {
	for memory, want := range map[fleet.Bytes]bool{20: true, 40: false} {
		w := newWorld(2).service("web", 6, 0, 2, 30)
		w.s.Services[0].Steerable = false // so that the machines stay
		w.s.Services[0].Request.Memory = memory * fleet.GiB
		for i := range w.s.Pods {
			w.s.Pods[i].Requests.Memory = memory * fleet.GiB
		}
		plan := made(w.input())
		if got := moves(plan, MoveBegin) > 0; got != want {
			t.Errorf("pods of %d GiB: a socket is lent: %v: %+v", memory, got, plan.Pools)
		}
	}
}
