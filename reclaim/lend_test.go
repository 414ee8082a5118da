package reclaim

import (
	"slices"
	"strings"
	"testing"

	"github.com/springtide/springtide/fleet"
)

const roomy = 1 << 40

func lendAsk(s *fleet.Snapshot, cores int64, drops map[fleet.ServiceID]int) LendAsk {
	return LendAsk{Pool: s.Pool("online"), Room: fleet.Resources{CPU: fleet.MilliCPU(cores * 1000), Memory: roomy << 10, GPU: roomy, Pods: roomy}, Now: fleet.Resources{CPU: roomy, Memory: roomy << 10}, Drops: drops, Count: 100, Pins: 100,
		On: fleet.OccupancyOf(s), Frees: func(*fleet.Node, []int) bool { return true }}
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
	steerable(s, "web", "api")
	pod(s, 0, fleet.PodOnline, "api", 8000)
	pod(s, 0, fleet.PodOnline, "api", 8000)
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
		t.Errorf("m00 is pinned by the pods that api keeps: %+v", pinned)
	}
}

// Of machines that cost the same those go first of whose network pod and GPU model most are lent already; a cheaper one goes before them.
func TestAlikeMachinesSideBySide(t *testing.T) {
	s := fleetOf(6)
	steerable(s, "web")
	for i := range s.Nodes {
		s.Nodes[i].Network, s.Nodes[i].GPUModel = []string{"a", "b", "a", "b", "b", "b"}[i], []string{"", "", "", "h100", "", ""}[i]
	}
	s.Loans = append(s.Loans, fleet.Loan{ID: "l", Node: s.Nodes[5].ID, NodeName: s.Nodes[5].Name, Kind: fleet.KindNode, From: "online", To: "offline", Phase: fleet.Lent, Cells: s.Nodes[5].AllCells()})
	pod(s, 4, fleet.PodOnline, "web", 8000)
	s.Sort()
	take, _ := Lendable(s, lendAsk(s, 1000, map[fleet.ServiceID]int{"web": 1}))
	if got, want := names(take), "m01:Node m00:Node m02:Node m03:Node m04:Node "; got != want {
		t.Errorf("lent %q, want %q: m01 beside the one that is lent, the others of one pod together, and the one with a pod last", got, want)
	}
}

// Requests are compared by whole cores: a little more on a machine next to its like is no price.
func TestALittleMoreIsAsCheap(t *testing.T) {
	for more, want := range map[fleet.MilliCPU]string{300: "m01:Node ", 1300: "m00:Node "} {
		s := fleetOf(3)
		s.Pools[1].Unit = fleet.UnitNode
		steerable(s, "web")
		for i := range s.Nodes {
			s.Nodes[i].Zone, s.Nodes[i].Network = "z", []string{"a", "b", "b"}[i]
		}
		s.Loans = append(s.Loans, fleet.Loan{ID: "l", Node: s.Nodes[2].ID, NodeName: s.Nodes[2].Name, Kind: fleet.KindNode, From: "online", To: "offline", Phase: fleet.Lent, Cells: s.Nodes[2].AllCells()})
		pod(s, 0, fleet.PodOnline, "web", 7500)
		pod(s, 1, fleet.PodOnline, "web", 7500+more)
		s.Sort()
		ask := lendAsk(s, 1000, map[fleet.ServiceID]int{"web": 1})
		ask.Count = 1
		if take, _ := Lendable(s, ask); names(take) != want {
			t.Errorf("%d millicores more beside a lent machine: lent %q, want %q", more, names(take), want)
		}
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

// The last pod of a zone pins its machine while as many replicas stay as there are zones, and no longer: scale-in lets it go then, too.
func TestNoServiceLosesAZoneThatItCanKeep(t *testing.T) {
	for _, c := range []struct {
		name     string
		machines int // one pod on each, in three zones in turn
		stay     int
		lent     int
	}{
		{"all stay", 3, 3, 0},
		{"two of three zones can be kept", 3, 2, 1},
		{"one can", 3, 1, 2},
		{"none needs to be", 3, 0, 3},
		{"three replicas keep three zones", 6, 3, 3},
		{"two keep two", 6, 2, 4},
	} {
		s := fleetOf(c.machines)
		s.Pools[1].Unit = fleet.UnitNode
		steerable(s, "web")
		for i := range c.machines {
			pod(s, i, fleet.PodOnline, "web", 8000)
		}
		s.Sort()
		take, pinned := Lendable(s, lendAsk(s, 1000, map[fleet.ServiceID]int{"web": c.machines - c.stay}))
		zones := map[string]bool{}
		for i := range s.Nodes {
			zones[s.Nodes[i].Zone] = true
		}
		for i := range take {
			left := slices.ContainsFunc(s.Nodes, func(n fleet.Node) bool {
				return n.Zone == take[i].Node.Zone && !slices.ContainsFunc(take, func(x Candidate) bool { return x.Node.ID == n.ID })
			})
			zones[take[i].Node.Zone] = left
		}
		kept := 0
		for _, left := range zones {
			if left {
				kept++
			}
		}
		if len(take) != c.lent || len(take)+len(pinned) != c.machines || kept < min(c.stay, 3) {
			t.Errorf("%s: lent %q, want %d; %d zones keep a pod; pinned %+v", c.name, names(take), c.lent, kept, pinned)
		}
	}
}

// A machine stays whose pods' leaving would have a service crowd others: more than a fifth of the replicas that stay, and more than one, on any
// of them, or a larger part than before.
func TestNoServiceCrowdsAMachine(t *testing.T) {
	for _, c := range []struct {
		name string
		on   []int // pods of the service by machine
		stay int
		lent int // of the machines with pods of it
	}{
		{"one each, five of ten stay", []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 5, 5},
		{"two each, ten of twenty fit five machines", []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 10, 5},
		{"nine of them do not: two would be more than a fifth", []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 9, 1},
		{"four fit four machines, one each", []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 4, 6},
		{"a third of many on each was never spread", []int{10, 10, 10}, 10, 2},
		{"nor was most on one", []int{5, 1, 1, 1, 1, 1}, 4, 5},
		{"two on one are no more than rounding", []int{2, 1, 1, 1, 1, 1}, 4, 2},
		{"nine on five are spread, but for rounding: eight are not on four", []int{2, 2, 2, 2, 1}, 8, 0},
		{"nor was half on each of two", []int{2, 2}, 2, 1},
		{"none is to stay", []int{2, 2}, 0, 2},
		{"one is", []int{1, 1}, 1, 1},
	} {
		s := fleetOf(len(c.on) + 1)
		s.Pools[1].Unit = fleet.UnitNode
		steerable(s, "web")
		all := 0
		for i, n := range c.on {
			s.Nodes[i].Zone = "z"
			for range n {
				pod(s, i, fleet.PodOnline, "web", 8000)
			}
			all += n
		}
		s.Nodes[len(c.on)].Pool = "offline"
		s.Sort()
		take, pinned := Lendable(s, lendAsk(s, 10_000, map[fleet.ServiceID]int{"web": all - c.stay}))
		if len(take) != c.lent || len(take)+len(pinned) != len(c.on) {
			t.Errorf("%s: lent %q, want %d: %+v", c.name, names(take), c.lent, pinned)
		}
	}
}

// A machine that is emptied already counts as one that holds none.
func TestWhatLeavesCountsForTheCrowd(t *testing.T) {
	for leaving, want := range []int{1, 0, 0} {
		s := fleetOf(10)
		s.Pools[1].Unit = fleet.UnitNode
		steerable(s, "web")
		for i := range s.Nodes {
			s.Nodes[i].Zone = "z"
			pod(s, i, fleet.PodOnline, "web", 8000)
			pod(s, i, fleet.PodOnline, "web", 8000)
		}
		for i := range leaving {
			lend(s, i)
			s.Loans[i].Phase = fleet.Emptying
		}
		s.Sort()
		if take, _ := Lendable(s, lendAsk(s, 1000, map[fleet.ServiceID]int{"web": 11})); len(take) != want {
			t.Errorf("nine stay, on nine machines, and %d of ten are emptied: lent %q, want %d", leaving, names(take), want)
		}
	}
}

func TestPinnedByWhatDoesNotScale(t *testing.T) {
	s := fleetOf(2)
	s.Pools[1].Unit = fleet.UnitNode
	s.Services = []fleet.Service{{ID: "db"}}
	pod(s, 0, fleet.PodOnline, "db", 8000)
	pod(s, 1, fleet.PodOnline, "", 8000)
	s.Sort()
	few := lendAsk(s, 1000, map[fleet.ServiceID]int{"db": 1})
	few.Pins = 1
	if _, pinned := Lendable(s, few); len(pinned) != 1 {
		t.Errorf("%d machines are named, want one", len(pinned))
	}
	if take, pinned := Lendable(s, lendAsk(s, 1000, map[fleet.ServiceID]int{"db": 1})); len(take) != 0 || len(pinned) != 2 {
		t.Errorf("neither a StatefulSet's pod nor a bare one can be steered: lent %q, pinned %+v", names(take), pinned)
	}
}

// A machine that carries a component of ours stays, but for one that is on its way elsewhere; what every machine runs keeps none.
func TestPinnedByOurOwn(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(*fleet.Pod)
		want string
	}{
		"a controller":              {func(p *fleet.Pod) { p.Own = true }, ""},
		"a controller that ends":    {func(p *fleet.Pod) { p.Own, p.Deleting = true, true }, "m00:Node "},
		"an agent, as on every one": {func(*fleet.Pod) {}, "m00:Node "},
	} {
		s := fleetOf(1)
		s.Pools[1].Unit = fleet.UnitNode
		pod(s, 0, fleet.PodSystem, "", 1000)
		c.bend(&s.Pods[0])
		s.Sort()
		take, pinned := Lendable(s, lendAsk(s, 1000, nil))
		if names(take) != c.want || (len(pinned) == 1) != (c.want == "") {
			t.Errorf("%s: lent %q, pinned %+v", name, names(take), pinned)
		}
	}
}

func TestSocket(t *testing.T) {
	for _, c := range []struct {
		name  string
		bend  func(*fleet.Node)
		pods  int
		frees bool
		want  string
	}{
		{"what is on it fits the other socket", nil, 1, true, "m00:Socket "},
		{"it does not", nil, 1, false, ""},
		{"nobody is beside it: the machine goes whole, or stays", nil, 0, true, "m00:Node "},
		{"nobody confines online to the other socket", func(n *fleet.Node) { n.AgentAlive = false }, 1, true, ""},
		{"its topology is unknown", func(n *fleet.Node) { n.Cells = nil }, 1, true, ""},
		{"it has one socket", func(n *fleet.Node) { n.Cells = n.Cells[:2] }, 1, true, ""},
	} {
		s := fleetOf(1)
		steerable(s, "web")
		for range c.pods {
			pod(s, 0, fleet.PodOnline, "web", 8000)
		}
		if c.bend != nil {
			c.bend(&s.Nodes[0])
		}
		s.Sort()
		ask := lendAsk(s, 1000, nil)
		var asked []int
		ask.Frees = func(n *fleet.Node, cells []int) bool {
			asked = cells
			return c.frees && n.ID == s.Nodes[0].ID
		}
		take, _ := Lendable(s, ask)
		if got := names(take); got != c.want {
			t.Errorf("%s: lent %q", c.name, got)
		}
		if asked != nil && !slices.Equal(asked, []int{2, 3}) {
			t.Errorf("%s: asked for cells %v, want those of the last socket", c.name, asked)
		}
	}
}

// A machine's free room is gone for online as soon as it is to be emptied, the rest only with its pods.
func TestNoMoreIsTakenAtOnceThanOnlineCanDoWithout(t *testing.T) {
	for _, c := range []struct {
		name string
		now  fleet.MilliCPU
		bend func(*fleet.Snapshot)
		want string
	}{
		{"room for both", 64000 + 48000, nil, "m01:Node m00:Node "},
		{"the emptiest takes what there is", 64000, nil, "m01:Node "},
		{"it is waited for", 63999, nil, ""},
		{"a smaller one does not wait for it", 63999, func(s *fleet.Snapshot) { s.Nodes[0].Allocatable.CPU = 48000 }, "m00:Node "},
	} {
		s := fleetOf(2)
		s.Pools[1].Unit = fleet.UnitNode
		steerable(s, "web")
		pod(s, 0, fleet.PodOnline, "web", 8000)
		pod(s, 0, fleet.PodOnline, "web", 8000)
		for i := range s.Nodes {
			s.Nodes[i].Zone = "z"
		}
		if c.bend != nil {
			c.bend(s)
		}
		s.Sort()
		ask := lendAsk(s, 1000, map[fleet.ServiceID]int{"web": 2})
		ask.Now.CPU = c.now
		if take, _ := Lendable(s, ask); names(take) != c.want {
			t.Errorf("%s: lent %q, want %q", c.name, names(take), c.want)
		}
	}
}

// The rest of a machine may follow its other sockets, once its pods leave: online gives up no more than they ask for.
func TestTheOtherSocketFollows(t *testing.T) {
	for _, c := range []struct {
		name  string
		drops int
		bend  func(*fleet.Snapshot)
		want  string
	}{
		{"its pods leave", 2, nil, "m00:Socket "},
		{"one of them stays", 1, nil, ""},
		{"nobody says when it is empty", 2, func(s *fleet.Snapshot) { s.Nodes[0].AgentAlive = false }, ""},
		{"the first goes home", 2, func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Noticed }, ""},
		{"the first is empty soon", 2, func(s *fleet.Snapshot) { s.Loans[0].Phase = fleet.Emptying }, ""},
		{"both are away", 2, func(s *fleet.Snapshot) { lend(s, 0, 0, 1) }, ""},
		{"the pool lends whole machines", 2, func(s *fleet.Snapshot) { s.Pools[1].Unit = fleet.UnitNode }, ""},
	} {
		s := fleetOf(1)
		steerable(s, "web")
		pod(s, 0, fleet.PodOnline, "web", 8000)
		pod(s, 0, fleet.PodOnline, "web", 8000)
		pod(s, 0, fleet.PodOffline, "train", 32000)
		lend(s, 0, 2, 3)
		if c.bend != nil {
			c.bend(s)
		}
		s.Sort()
		ask := lendAsk(s, 16, map[fleet.ServiceID]int{"web": c.drops})
		ask.Now = fleet.Resources{}
		take, _ := Lendable(s, ask)
		if names(take) != c.want {
			t.Errorf("%s: lent %q, want %q", c.name, names(take), c.want)
		}
		if len(take) == 1 && (!slices.Equal(take[0].Cells, []int{0, 1}) || take[0].Capacity.CPU != 32000 || take[0].Victims["web"] != 2) {
			t.Errorf("%s: %+v", c.name, take[0])
		}
	}
}

// Room next to a lent socket is of no use, so machines of which the other sockets are full go first.
func TestSocketsWithLeastIdleBesideThem(t *testing.T) {
	s := fleetOf(3)
	steerable(s, "web")
	for i, pods := range []int{1, 4, 2} {
		for range pods {
			pod(s, i, fleet.PodOnline, "web", 8000)
		}
	}
	s.Sort()
	if take, _ := Lendable(s, lendAsk(s, 90, nil)); names(take) != "m01:Socket m02:Socket " {
		t.Errorf("lent %q: of 90 cores m01 takes 32, m02 48 and m00 56", names(take))
	}
}

// A machine whose agent is silent would never be reported clean, so it keeps no slot from the others, however empty it is. One that never had
// an agent is offered whole, next to machines that have one too.
func TestSilentAgentsStay(t *testing.T) {
	for _, c := range []struct {
		silent, without []int
		want            string
		pinned          int
	}{
		{nil, nil, "m00:Node m01:Node ", 0},
		{[]int{0}, nil, "m01:Node m02:Node ", 1},
		{[]int{0, 1}, nil, "m02:Node ", 2},
		{[]int{0, 1, 2}, nil, "", 3},
		{nil, []int{0}, "m00:Node m01:Node ", 0},
		{[]int{0}, []int{1, 2}, "m01:Node m02:Node ", 1},
		{nil, []int{0, 1, 2}, "m00:Node m01:Node ", 0},
	} {
		s := fleetOf(3)
		s.Pools[1].Unit = fleet.UnitNode
		for _, i := range c.silent {
			s.Nodes[i].AgentAlive = false
		}
		for _, i := range c.without {
			s.Nodes[i].AgentAlive, s.Nodes[i].AgentKnown = false, false
		}
		s.Sort()
		ask := lendAsk(s, 1000, nil)
		ask.Count = 2
		take, pinned := Lendable(s, ask)
		if got := names(take); got != c.want || len(pinned) != c.pinned {
			t.Errorf("agents silent on %v, none on %v: lent %q, want %q; held back %+v", c.silent, c.without, got, c.want, pinned)
		}
	}
}

// Of a machine without an agent no socket is lent, and the reason says so.
func TestSocketsNeedAnAgent(t *testing.T) {
	s := fleetOf(1)
	s.Nodes[0].AgentAlive, s.Nodes[0].AgentKnown = false, false
	pod(s, 0, fleet.PodOnline, "", 8000)
	s.Sort()
	ask := lendAsk(s, 1000, nil)
	ask.Pins = 1
	take, pinned := Lendable(s, ask)
	if len(take) != 0 || len(pinned) != 1 || !strings.Contains(pinned[0].By.Text(), "needs a node agent") {
		t.Errorf("lent %q, pinned %+v", names(take), pinned)
	}
}
