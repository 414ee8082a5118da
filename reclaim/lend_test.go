package reclaim

import (
	"testing"

	"github.com/springtide/springtide/fleet"
)

const roomy = 1 << 40

func lendAsk(s *fleet.Snapshot, cores int64, drops map[fleet.ServiceID]int) LendAsk {
	return LendAsk{Pool: s.Pool("online"), Room: fleet.Resources{CPU: fleet.MilliCPU(cores * 1000), Memory: roomy << 10, GPU: roomy, Pods: roomy}, Drops: drops, Count: 100}
}

func names(take []Candidate) string {
	out := ""
	for _, c := range take {
		out += c.Node.Name + ":" + string(c.Kind) + " "
	}
	return out
}

func steerable(s *fleet.Snapshot, ids ...fleet.ServiceID) {
	for _, id := range ids {
		s.Services = append(s.Services, fleet.Service{ID: id, Steerable: true})
	}
}

func TestEmptyMachinesFirst(t *testing.T) {
	s := fleetOf(3)
	steerable(s, "web")
	pod(s, 0, fleet.PodOnline, "web", 8000)
	pod(s, 0, fleet.PodOnline, "web", 8000)
	pod(s, 1, fleet.PodOnline, "web", 8000)
	pod(s, 1, fleet.PodSystem, "", 500)
	for i := range s.Nodes {
		s.Nodes[i].Zone = "z"
	}
	s.Sort()
	take, pinned := Lendable(s, lendAsk(s, 128, map[fleet.ServiceID]int{"web": 1}))
	if got := names(take); got != "m02:Node m01:Node " {
		t.Errorf("lent %q: the empty machine first, then the one whose single pod the tide takes away; the room is two machines", got)
	}
	if len(pinned) != 1 || pinned[0].Node != "m00" {
		t.Errorf("m00 is pinned by the pods that web keeps: %+v", pinned)
	}
}

func TestDropsAreSpentOnce(t *testing.T) {
	s := fleetOf(3)
	s.Pools[1].Unit = fleet.UnitNode
	steerable(s, "web")
	for i := range 3 {
		pod(s, i, fleet.PodOnline, "web", 8000)
	}
	s.Loans = append(s.Loans, fleet.Loan{ID: "l", Node: s.Nodes[0].ID, NodeName: "m00", Kind: fleet.KindNode, From: "online", Phase: fleet.Emptying})
	for i := range s.Nodes {
		s.Nodes[i].Zone = "z"
	}
	s.Sort()
	if take, _ := Lendable(s, lendAsk(s, 1000, map[fleet.ServiceID]int{"web": 2})); names(take) != "m01:Node " {
		t.Errorf("of two pods that go one is awaited on m00 already, so one machine more can be emptied: %q", names(take))
	}
}

func TestNoServiceLosesAZone(t *testing.T) {
	s := fleetOf(3)
	s.Pools[1].Unit = fleet.UnitNode
	steerable(s, "web")
	for i := range 3 {
		pod(s, i, fleet.PodOnline, "web", 8000)
	}
	s.Sort()
	take, pinned := Lendable(s, lendAsk(s, 1000, map[fleet.ServiceID]int{"web": 3}))
	if len(take) != 0 || len(pinned) != 3 {
		t.Errorf("each machine is its service's only one in its zone: lent %q", names(take))
	}
}

func TestPinnedByWhatDoesNotScale(t *testing.T) {
	s := fleetOf(2)
	s.Pools[1].Unit = fleet.UnitNode
	s.Services = []fleet.Service{{ID: "db"}}
	pod(s, 0, fleet.PodOnline, "db", 8000)
	pod(s, 1, fleet.PodOnline, "", 8000)
	s.Sort()
	if take, pinned := Lendable(s, lendAsk(s, 1000, map[fleet.ServiceID]int{"db": 1})); len(take) != 0 || len(pinned) != 2 {
		t.Errorf("neither a StatefulSet's pod nor a bare one can be steered: lent %q, pinned %+v", names(take), pinned)
	}
}

func TestSocketFit(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []fleet.MilliCPU
		want  bool
	}{
		{"four of eight cores fill one socket", []fleet.MilliCPU{8000, 8000, 8000, 8000}, true},
		{"three of eleven cores fit no two cells of sixteen", []fleet.MilliCPU{11000, 11000, 11000}, false},
		{"more than the socket", []fleet.MilliCPU{16000, 16000, 1000}, false},
		{"a pod larger than a cell takes whole cells", []fleet.MilliCPU{32000}, true},
		{"and what is left of the last one", []fleet.MilliCPU{20000, 12000}, true},
	} {
		s := fleetOf(1)
		steerable(s, "web")
		for _, size := range c.sizes {
			pod(s, 0, fleet.PodOnline, "web", size)
		}
		s.Sort()
		take, _ := Lendable(s, lendAsk(s, 1000, nil))
		if got := len(take) == 1 && take[0].Kind == fleet.KindSocket; got != c.want {
			t.Errorf("%s: lent %q", c.name, names(take))
		}
	}
}
