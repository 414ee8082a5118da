package planner

import (
	"testing"

	"github.com/springtide/springtide/fleet"
)

// TestOnlineRoom: by hand, of ten machines of 64 cores. Pods of 24 cores fit twice on each, so a quarter is left over.
func TestOnlineRoom(t *testing.T) {
	machine := func(id fleet.NodeID) fleet.Node {
		return fleet.Node{ID: id, Name: string(id), Pool: "web", Ready: true,
			Allocatable: fleet.Resources{CPU: 64_000, Memory: 256 * fleet.GiB, Pods: 110}}
	}
	for _, c := range []struct {
		name string
		edit func(s *fleet.Snapshot)
		each fleet.MilliCPU // of a pod
		want fleet.MilliCPU
	}{
		{"small pods", nil, 1_000, 627_451}, // 640 cores, less the 2 % of scatter
		{"pods that leave a quarter over", nil, 24_000, 480_000},
		{"a DaemonSet of 4 cores", func(s *fleet.Snapshot) {
			for i := range s.Nodes {
				s.Pods = append(s.Pods, fleet.Pod{Name: fleet.Name{Namespace: "kube-system", Name: string(s.Nodes[i].ID)},
					Node: s.Nodes[i].ID, NodeName: s.Nodes[i].Name, Class: fleet.PodSystem, Phase: fleet.PodRunning,
					Requests: fleet.Resources{CPU: 4_000, Memory: fleet.GiB}})
			}
		}, 1_000, 588_235},
		{"a pod of its own service changes nothing", func(s *fleet.Snapshot) {
			s.Pods = []fleet.Pod{{Name: fleet.Name{Namespace: "shop", Name: "cart-1"}, Node: "m0", NodeName: "m0",
				Service: "shop/cart",
				Class:   fleet.PodOnline, Phase: fleet.PodRunning, Requests: fleet.Resources{CPU: 8_000}}}
		}, 1_000, 627_451},
		{"one that is lent comes home", func(s *fleet.Snapshot) {
			s.Loans = []fleet.Loan{{ID: "l", Node: "m0", From: "web", To: "train", Phase: fleet.Lent}}
		}, 1_000, 627_451},
		{"one that did not come home", func(s *fleet.Snapshot) {
			s.Loans = []fleet.Loan{{ID: "l", Node: "m0", From: "web", To: "train", Phase: fleet.WrittenOff}}
		}, 1_000, 564_706},
		{"one that is not ready, and one that leaves", func(s *fleet.Snapshot) {
			s.Nodes[0].Ready, s.Nodes[1].Leaving = false, "drain"
		}, 1_000, 501_961},
		{"others' machines", func(s *fleet.Snapshot) { s.Nodes[0].Pool, s.Nodes[1].Pool = "train", "" }, 1_000, 501_961},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "web", Class: fleet.Online}, {ID: "train", Class: fleet.Offline}}}
			for _, id := range []fleet.NodeID{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9"} {
				s.Nodes = append(s.Nodes, machine(id))
			}
			if c.edit != nil {
				c.edit(s)
			}
			s.Sort()
			got := OnlineRoom(s)(map[fleet.Resources]int64{{CPU: c.each, Memory: 1 << 20}: 1000})
			if d := got.CPU - c.want; d < -1 || d > 1 {
				t.Errorf("room for services: %s, want %d", got, c.want)
			}
		})
	}
}
