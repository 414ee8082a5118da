package planner

import (
	"strings"
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// Machines on which no online pod may land are no room for online: lending stops, and the view of the pool counts them
// by what keeps pods off. Online's work there goes on, so no service is cut for it.
func TestShutMachinesAreNoRoom(t *testing.T) {
	for _, c := range []struct {
		name  string
		shut  fleet.Shut
		n     int
		lends bool
	}{
		{"all are open", fleet.Shut{}, 0, true},
		{"a taint on four of 32", fleet.Shut{By: fleet.ShutByTaint, Taint: "maintenance=yes:NoSchedule"}, 4, true},
		{"a taint on 24 of 32", fleet.Shut{By: fleet.ShutByTaint, Taint: "maintenance=yes:NoSchedule"}, 24, false},
		{"another effect", fleet.Shut{By: fleet.ShutByTaint, Taint: "storage=broken:NoExecute"}, 24, false},
		{"cordoned", fleet.Shut{By: fleet.ShutByCordon}, 24, false},
		{"not ready", fleet.Shut{By: fleet.ShutByKubelet}, 24, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(32)
			w.service("web", 60, 0, 30, 300) // they ask for 480 cores; the eight open machines have 512, all have 2048
			for i := range c.n {
				w.s.Nodes[i].Ready, w.s.Nodes[i].Shut = false, c.shut
			}
			p := made(w.input())
			if got := moves(p, MoveBegin) > 0; got != c.lends {
				t.Errorf("lends is %v, want %v: %+v", got, c.lends, p.Pools)
			}
			var v *PoolView
			for i := range p.Pools {
				if p.Pools[i].Pool == "online" {
					v = &p.Pools[i]
				}
			}
			if c.n == 0 {
				if len(v.Shut) != 0 {
					t.Errorf("shut are %+v", v.Shut)
				}
				return
			}
			if len(v.Shut) != 1 || v.Shut[0] != (ShutMachines{c.shut, c.n}) {
				t.Errorf("shut are %+v, want %d by %s", v.Shut, c.n, c.shut)
			}
			if !c.lends && !strings.Contains(v.Note.Text(), "take no online pods") {
				t.Errorf("nothing is lent, and the note is %q", v.Note)
			}
			if tg := &p.Targets[0]; tg.Limited == hpa.LimitedRoom {
				t.Errorf("the service is cut to %d, though its pods on shut machines go on: %s", tg.Replicas, tg.Why())
			}
		})
	}
}

// Pods that wait for room while most machines carry a foreign taint bring lent machines home.
func TestShutMachinesBringLoansHome(t *testing.T) {
	for _, shut := range []bool{false, true} {
		w := newWorld(8)
		w.service("web", 6, 0, 6, 12)
		l := w.loan(7, fleet.Lent, 1)
		l.Since, l.LentAt = l.Created, l.Created
		for i := range 7 {
			if shut {
				w.s.Nodes[i].Ready, w.s.Nodes[i].Shut = false, fleet.Shut{By: fleet.ShutByTaint, Taint: "maintenance=yes:NoSchedule"}
			}
		}
		w.waits("web", 4)
		if got := moves(made(w.input()), MoveRecall) > 0; got != shut {
			t.Errorf("with foreign taints %v: recalled is %v", shut, got)
		}
	}
}
