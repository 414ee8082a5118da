package place

import (
	"fmt"
	"testing"

	"github.com/springtide/springtide/fleet"
)

// one is a snapshot of one machine, at home in a pool.
func one(pool fleet.PoolID) *fleet.Snapshot {
	n := machine(0)
	n.Pool = pool
	return &fleet.Snapshot{Pools: []fleet.Pool{{ID: "offline", Class: fleet.Offline}, {ID: "online", Class: fleet.Online}}, Nodes: []fleet.Node{n}}
}

// borrow puts a loan of the second socket of the machine into a phase.
func borrow(s *fleet.Snapshot, phase fleet.Phase) *fleet.Snapshot {
	n := &s.Nodes[0]
	l := fleet.Loan{ID: fleet.LoanID(fmt.Sprint("l", len(s.Loans))), Node: n.ID, Cells: []int{2, 3}, From: n.Pool, To: "offline", Phase: phase}
	if n.Pool == "offline" {
		l.To = "online"
	}
	s.Loans = append(s.Loans, l)
	return s
}

func add(s *fleet.Snapshot, class fleet.PodClass, cores fleet.MilliCPU) *fleet.Pod {
	id := fmt.Sprintf("p%02d", len(s.Pods))
	s.Pods = append(s.Pods, fleet.Pod{ID: fleet.UID(id), Name: fleet.Name{Name: id}, Node: s.Nodes[0].ID, NodeName: s.Nodes[0].Name, Class: class, Phase: fleet.PodRunning,
		Requests: fleet.Resources{CPU: cores * 1000}})
	return &s.Pods[len(s.Pods)-1]
}

// served has the bundled scheduler serve the pools.
func served(s *fleet.Snapshot) *fleet.Snapshot {
	for i := range s.Pools {
		s.Pools[i].Scheduler = "springtide"
	}
	return s
}

// entries writes parcels into the share of the machine: cells, holder and next of each, as "0-1 offline online".
func entries(parcels ...string) func(*fleet.Snapshot) {
	return func(s *fleet.Snapshot) {
		for i, text := range parcels {
			var from, to int
			var holder, next string
			if n, _ := fmt.Sscanf(text, "%d-%d %s %s", &from, &to, &holder, &next); n < 3 {
				panic(text)
			}
			p := fleet.ShareParcel{Holder: fleet.PoolID(holder), Next: fleet.PoolID(next), Loan: fleet.LoanID(fmt.Sprint("entry-", i))}
			for c := from; c <= to; c++ {
				p.Cells = append(p.Cells, c)
			}
			s.Nodes[0].Share.Parcels = append(s.Nodes[0].Share.Parcels, p)
		}
	}
}

// TestWhereWorkMayLand counts pods of 16 cores, of which a socket holds two.
func TestWhereWorkMayLand(t *testing.T) {
	for _, c := range []struct {
		name            string
		s               *fleet.Snapshot
		bend            func(*fleet.Snapshot)
		online, offline int64
	}{
		{name: "at home with online", s: one("online"), online: 4},
		{name: "at home with offline", s: one("offline"), offline: 4},
		{name: "of no pool", s: one("")},
		{name: "not ready", s: one("online"), bend: func(s *fleet.Snapshot) { s.Nodes[0].Ready = false }},
		{name: "tainted by a loan that is gone", s: one("online"), bend: func(s *fleet.Snapshot) { s.Nodes[0].Marks.HolderTaint = true }},
		{name: "the taint of an offline pool", s: one("offline"), bend: func(s *fleet.Snapshot) { s.Nodes[0].Marks.HolderTaint = true }, offline: 4},
		{name: "a socket empties", s: borrow(one("online"), fleet.Emptying)},
		{name: "a socket is lent", s: borrow(one("online"), fleet.Lent), offline: 2},
		{name: "a socket is on its way home", s: borrow(one("online"), fleet.Noticed)},
		{name: "a socket is written off", s: borrow(one("online"), fleet.WrittenOff)},
		{name: "a socket came home", s: borrow(one("online"), fleet.Returned), online: 4},
		{name: "a socket is lent, the other one empties", s: borrow(borrow(one("online"), fleet.Lent), fleet.Emptying),
			bend: func(s *fleet.Snapshot) { s.Loans[1].Cells = []int{0, 1} }, offline: 2},
		{name: "a socket is lent, the other one goes home", s: borrow(borrow(one("online"), fleet.Lent), fleet.Noticed),
			bend: func(s *fleet.Snapshot) { s.Loans[1].Cells = []int{0, 1} }},
		{name: "its share keeps the entry of a socket that came home, and of a loan that nobody forgets", s: one("online"), bend: entries("2-3 online"), online: 4},
		{name: "a socket came home, the other one drains", s: one("online"), bend: entries("0-1 offline online", "2-3 online")},
		{name: "the bundled scheduler's: a socket came home, the other one drains", s: served(one("online")), bend: entries("0-1 offline online", "2-3 online"), online: 2},
		{name: "the bundled scheduler's: a socket came home, the other one is lent", s: served(one("online")), bend: entries("0-1 offline", "2-3 online"), online: 2},
		{name: "the bundled scheduler's: a machine came home, and the taint is still there", s: served(one("online")), bend: func(s *fleet.Snapshot) {
			entries("0-3 online")(s)
			s.Nodes[0].Marks.HolderTaint = true
		}, online: 4},
		{name: "the bundled scheduler's: a socket is lent", s: served(borrow(one("online"), fleet.Lent)), offline: 2},
		{name: "the share is a step ahead of its loan", s: borrow(one("online"), fleet.Draining), bend: func(s *fleet.Snapshot) {
			entries("2-3 online")(s)
			s.Nodes[0].Share.Parcels[0].Loan = s.Loans[0].ID
		}, online: 4},
		{name: "online borrows a socket", s: borrow(one("offline"), fleet.Lent), online: 2},
		{name: "and gives it back", s: borrow(one("offline"), fleet.Draining)},
		{name: "what online overdraws is missing on the lent socket", s: borrow(one("online"), fleet.Lent),
			bend: func(s *fleet.Snapshot) { add(s, fleet.PodOnline, 40) }, offline: 1},
		{name: "so is what belongs to a machine that is lent whole", s: borrow(one("online"), fleet.Lent),
			bend: func(s *fleet.Snapshot) {
				s.Loans[0].Cells = []int{0, 1, 2, 3}
				add(s, fleet.PodSystem, 1)
			}, offline: 3},
		{name: "a filler holds room", s: one("online"), bend: func(s *fleet.Snapshot) { add(s, fleet.PodFiller, 20) }, online: 2},
		{name: "what is being deleted holds room", s: one("online"), bend: func(s *fleet.Snapshot) { add(s, fleet.PodOnline, 20).Deleting = true }, online: 2},
		{name: "what has ended does not", s: one("online"), bend: func(s *fleet.Snapshot) { add(s, fleet.PodOnline, 20).Phase = fleet.PodFailed }, online: 4},
		{name: "of unknown topology", s: one("online"), bend: func(s *fleet.Snapshot) { s.Nodes[0].Cells = nil }, online: 4},
	} {
		if c.bend != nil {
			c.bend(c.s)
		}
		tab := FromSnapshot(c.s)
		of := func(side fleet.Class) int64 {
			return tab.Fits(tab.Class(Shape{Side: side, Requests: fleet.Resources{CPU: 16000}})).Total
		}
		if of(fleet.Online) != c.online || of(fleet.Offline) != c.offline {
			t.Errorf("%s: room for %d online and %d offline, want %d and %d", c.name, of(fleet.Online), of(fleet.Offline), c.online, c.offline)
		}
	}
}

// TestHandOverAndRoles: who stands in the way of a socket that is to be freed on a machine of 64 cores, next to two
// online pods of ten.
func TestHandOverAndRoles(t *testing.T) {
	for _, c := range []struct {
		role     fleet.PodClass
		deleting bool
		cores    fleet.MilliCPU
		want     bool
	}{
		{fleet.PodOnline, false, 6, true}, // next to ten cores in a cell of sixteen
		{fleet.PodOnline, false, 7, false},
		{fleet.PodOnline, true, 7, false}, // until it is gone
		{fleet.PodSystem, false, 12, true},
		{fleet.PodSystem, false, 13, false},
		{fleet.PodFiller, false, 13, true},
	} {
		s := one("online")
		add(s, fleet.PodOnline, 10)
		add(s, fleet.PodOnline, 10)
		add(s, c.role, c.cores).Deleting = c.deleting
		if _, ok := FromSnapshot(s).HandOver(s.Nodes[0].ID, []int{2, 3}); ok != c.want {
			t.Errorf("%s of %d cores (deleting %v): %v", c.role, c.cores, c.deleting, ok)
		}
	}
}

// TestSystemPodsNeedRoomToo: what belongs to a machine must fit the cells that its side keeps, and stands in the way of nothing where the
// machine goes whole.
func TestSystemPodsNeedRoomToo(t *testing.T) {
	s := one("online")
	add(s, fleet.PodSystem, 33)
	tab := FromSnapshot(s)
	if _, ok := tab.HandOver(s.Nodes[0].ID, []int{2, 3}); ok {
		t.Error("33 cores were kept on 32")
	}
	if _, ok := tab.HandOver(s.Nodes[0].ID, []int{0, 1, 2, 3}); !ok {
		t.Error("a machine is kept for the sake of what goes with it")
	}
}

// TestVictimsNeedNoPlace: a pod that is being deleted is moved nowhere, and does not count as one of its service on the machine.
func TestVictimsNeedNoPlace(t *testing.T) {
	s := one("online")
	s.Services = []fleet.Service{{ID: "web"}}
	p := add(s, fleet.PodOnline, 10)
	p.Service, p.Deleting = "web", true
	tab := FromSnapshot(s)
	if _, ok := tab.Place(tab.Class(ReplicaShape(&s.Services[0]))); !ok {
		t.Error("the pod that leaves stands in the way of the next one of its service")
	}
	tab = FromSnapshot(s)
	if moved, ok := tab.Empty(s.Nodes[0].ID); !ok || len(moved) != 0 {
		t.Errorf("the pod that leaves was to be moved: %v, %v", moved, ok)
	}
}

// TestShapesOfPods: what is there keeps its service's spread and its job's wish for stable room when it must move.
func TestShapesOfPods(t *testing.T) {
	s := one("online")
	s.Services = []fleet.Service{{ID: "web"}}
	for range 12 {
		s.Services[0].Pods = append(s.Services[0].Pods, fleet.Pod{})
	}
	s.Jobs = []fleet.Job{{ID: "train", Members: []fleet.Member{{Role: "server", Stable: true}, {Role: "worker"}}}}
	add(s, fleet.PodOnline, 1).Service = "web"
	add(s, fleet.PodOnline, 2).Service = "of nobody"
	for _, role := range []string{"server", "worker"} {
		p := add(s, fleet.PodOffline, 3)
		p.Job, p.Role = "train", role
	}
	tab := FromSnapshot(s)
	want := []Shape{
		{Requests: fleet.Resources{CPU: 1000}, Side: fleet.Online, Group: "web", Zones: true, PerHost: 2},
		{Requests: fleet.Resources{CPU: 2000}, Side: fleet.Online},
		{Requests: fleet.Resources{CPU: 3000}, Side: fleet.Offline, Stable: true},
		{Requests: fleet.Resources{CPU: 3000}, Side: fleet.Offline},
	}
	for i, w := range want {
		if got := tab.classes[tab.pods[i].class].shape; got != w {
			t.Errorf("pod %d: %+v, want %+v", i, got, w)
		}
	}
}
