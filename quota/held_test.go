package quota

import (
	"testing"

	"github.com/springtide/springtide/fleet"
)

// Offline work's room on whole machines, machine by machine: 0 and 1 are at home in the offline pool, 2 and 3 in the
// online one. Tenants a and b have pods where it is said, and what is recalled counts only while one of them is on it.
func TestParcelsOf(t *testing.T) {
	node, socket := fleet.ParcelClass{Kind: fleet.KindNode}, fleet.ParcelClass{Kind: fleet.KindSocket}
	type loan struct {
		machine int
		phase   fleet.Phase
		kind    fleet.ParcelKind
	}
	for _, c := range []struct {
		name  string
		loans []loan
		pods  map[string][]int
		want  ParcelSupply
		a, b  int64
	}{
		{"its own", nil, nil, ParcelSupply{Class: node, Firm: 2}, 0, 0},
		{"lent", []loan{{2, fleet.Lent, fleet.KindNode}, {3, fleet.Emptying, fleet.KindNode}}, map[string][]int{"a": {0, 2}}, ParcelSupply{Class: node, Firm: 2, Lent: 1, Held: 2}, 2, 0},
		{"called home, with somebody on it", []loan{{2, fleet.Noticed, fleet.KindNode}, {3, fleet.Draining, fleet.KindNode}}, map[string][]int{"a": {2}},
			ParcelSupply{Class: node, Firm: 2, Lent: 1, Held: 1}, 1, 0},
		{"called home, and empty", []loan{{2, fleet.Noticed, fleet.KindNode}}, nil, ParcelSupply{Class: node, Firm: 2}, 0, 0},
		{"back home", []loan{{2, fleet.Returned, fleet.KindNode}}, nil, ParcelSupply{Class: node, Firm: 2}, 0, 0},
		{"lost", []loan{{2, fleet.Fenced, fleet.KindNode}, {3, fleet.WrittenOff, fleet.KindNode}}, map[string][]int{"a": {2}}, ParcelSupply{Class: node, Firm: 2}, 0, 0},
		{"with online work", []loan{{0, fleet.Lent, fleet.KindNode}}, map[string][]int{"a": {1}}, ParcelSupply{Class: node, Firm: 1, Held: 1}, 1, 0},
		{"until it is back", []loan{{0, fleet.Draining, fleet.KindNode}, {1, fleet.Emptying, fleet.KindNode}}, nil, ParcelSupply{Class: node, Firm: 1}, 0, 0},
		{"shared", []loan{{2, fleet.Lent, fleet.KindNode}}, map[string][]int{"a": {0, 2}, "b": {0}, "": {2}}, ParcelSupply{Class: node, Firm: 2, Lent: 1, Held: 2, Beside: 1}, 2, 1},
		{"by the socket", []loan{{2, fleet.Lent, fleet.KindSocket}, {2, fleet.Noticed, fleet.KindSocket}, {3, fleet.Lent, fleet.KindSocket}, {3, fleet.Noticed, fleet.KindSocket}},
			map[string][]int{"a": {2}, "b": {2}}, ParcelSupply{Class: socket, Lent: 3, Held: 2, Beside: 2}, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "offline", Class: fleet.Offline}, {ID: "online", Class: fleet.Online}}, Tenants: []fleet.Tenant{
				{ID: "a", Namespaces: []string{"a"}, Accepted: true}, {ID: "b", Namespaces: []string{"b"}, Accepted: true}}}
			id := func(i int) fleet.NodeID { return fleet.NodeID(rune('0' + i)) }
			pool := func(i int) fleet.PoolID { return s.Pools[i/2].ID }
			for i := range 4 {
				s.Nodes = append(s.Nodes, fleet.Node{ID: id(i), Pool: pool(i)})
			}
			for _, l := range c.loans {
				s.Loans = append(s.Loans, fleet.Loan{Node: id(l.machine), From: pool(l.machine), Phase: l.phase, Kind: l.kind})
			}
			for _, ns := range []string{"a", "b", ""} {
				for _, i := range c.pods[ns] {
					for range 2 { // however many pods
						s.Pods = append(s.Pods, fleet.Pod{Name: fleet.Name{Namespace: ns}, Node: id(i), NodeName: string(id(i)), Class: fleet.PodOffline, Phase: fleet.PodRunning})
					}
				}
			}
			supply, used := ParcelsOf(TenancyOf(s.Tenants), s, []fleet.ParcelClass{c.want.Class})
			if supply[0] != c.want {
				t.Errorf("%+v, want %+v", supply[0], c.want)
			}
			for id, want := range map[fleet.TenantID]int64{"a": c.a, "b": c.b} {
				var n int64
				for _, p := range used[id] {
					n += p.N
				}
				if n != want {
					t.Errorf("%s is on %d, want %d", id, n, want)
				}
			}
		})
	}
}
