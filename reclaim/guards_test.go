package reclaim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// pinnedBy is what pins a machine; empty where it is not named.
func pinnedBy(pinned []Pinned, machine string) string {
	for _, p := range pinned {
		if p.Node == machine {
			return p.By.Text()
		}
	}
	return ""
}

// oneZone puts all machines into one zone, so that no zone pins them.
func oneZone(s *fleet.Snapshot) {
	for i := range s.Nodes {
		s.Nodes[i].Zone = "z"
	}
}

// Without moves left nothing is looked at; a machine that does not fit hides none that does; and no more is taken than may move.
func TestWhatIsTakenWithinTheAsk(t *testing.T) {
	s := fleetOf(3)
	oneZone(s)
	pod(s, 0, fleet.PodOnline, "", 8000)
	s.Sort()
	none := lendAsk(s, 1000, nil)
	none.Count = 0
	if take, pinned := Lendable(s, none); len(take)+len(pinned) > 0 {
		t.Errorf("no move is left: %q, %+v", names(take), pinned)
	}

	s = fleetOf(3)
	s.Nodes[0].Allocatable.CPU = 128000
	ask := lendAsk(s, 64, nil)
	ask.Pins = 0
	if take, _ := Lendable(s, ask); names(take) != "m01:Node " {
		t.Errorf("64 cores can go: %q, want the first machine of 64", names(take))
	}

	s = fleetOf(3)
	steerable(s, "web")
	for i := range s.Nodes {
		pod(s, i, fleet.PodOnline, "web", 8000)
	}
	s.Sort()
	ask = lendAsk(s, 1000, nil)
	ask.Count = 2
	ask.Frees = func(n *fleet.Node, _ []int) bool { return n.Name != "m00" }
	if take, _ := Lendable(s, ask); names(take) != "m01:Socket m02:Socket " {
		t.Errorf("no socket of m00 can be freed: %q, want one of each of the others", names(take))
	}
	ask.Count = 1
	if take, _ := Lendable(s, ask); names(take) != "m01:Socket " {
		t.Errorf("one move is left: %q", names(take))
	}
}

// The waits of an emptying machine are spent: standing online pods of services, and nothing else that is on it.
func TestWhatAnEmptyingMachineWaitsForIsSpent(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(p *fleet.Pod)
		want string
	}{
		"a pod of the service":             {func(*fleet.Pod) {}, "m01:Node "},
		"it is ending":                     {func(p *fleet.Pod) { p.Deleting = true }, "m01:Node m02:Node "},
		"it is the system's":               {func(p *fleet.Pod) { p.Class = fleet.PodSystem }, "m01:Node m02:Node "},
		"it is of no service":              {func(p *fleet.Pod) { p.Service = "" }, "m01:Node m02:Node "},
		"it is of another service":         {func(p *fleet.Pod) { p.Service = "api" }, "m01:Node m02:Node "},
		"it is offline's, of such a label": {func(p *fleet.Pod) { p.Class = fleet.PodOffline }, "m01:Node m02:Node "},
	} {
		s := fleetOf(4)
		s.Pools[1].Unit = fleet.UnitNode
		oneZone(s)
		steerable(s, "web", "api")
		c.bend(pod(s, 0, fleet.PodOnline, "web", 8000))
		pod(s, 1, fleet.PodOnline, "web", 8000)
		pod(s, 2, fleet.PodOnline, "web", 8000)
		for range 6 { // so that nothing is spread evenly, and crowds no machine
			pod(s, 3, fleet.PodOnline, "web", 8000)
		}
		lend(s, 0)
		s.Loans[0].Phase = fleet.Emptying
		s.Sort()
		if take, _ := Lendable(s, lendAsk(s, 1000, map[fleet.ServiceID]int{"web": 2})); names(take) != c.want {
			t.Errorf("%s: lent %q, want %q", name, names(take), c.want)
		}
	}
}

// Alike are the machines that are lent, not those that could be.
func TestLikenessIsThatOfTheLent(t *testing.T) {
	s := fleetOf(5)
	for i := range s.Nodes {
		s.Nodes[i].Network = []string{"b", "b", "b", "c", "c"}[i]
	}
	lend(s, 4)
	s.Sort()
	ask := lendAsk(s, 1000, nil)
	ask.Count = 1
	if take, _ := Lendable(s, ask); names(take) != "m03:Node " {
		t.Errorf("one machine of c is lent, and three of b could be: %q, want m03", names(take))
	}
	s.Nodes[4].Pool = "another"
	if take, _ := Lendable(s, ask); names(take) != "m00:Node " {
		t.Errorf("what another pool lent is no likeness: %q, want m00", names(take))
	}
}

// Machines that rest are named when they would be judged: ready ones of the pool without a loan.
func TestWhichRestingMachinesAreNamed(t *testing.T) {
	s := fleetOf(5)
	for i := range s.Nodes {
		s.Nodes[i].Share.Rest.Until = t0.Add(time.Minute)
	}
	s.Nodes[1].Pool, s.Nodes[2].Ready, s.Nodes[4].Share.Rest.Turns = "another", false, 2
	lend(s, 3)
	s.Sort()
	take, pinned := Lendable(s, lendAsk(s, 1000, nil))
	if len(take) > 0 || len(pinned) != 2 || !strings.Contains(pinnedBy(pinned, "m00"), "its last loan is just over") ||
		!strings.Contains(pinnedBy(pinned, "m04"), "2 cancelled or early-recalled loans in a row") {
		t.Errorf("lent %q, named %+v", names(take), pinned)
	}
}

// Each pin says its own reason.
func TestWhatPinsAMachineIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(s *fleet.Snapshot)
		want string
		not  string
	}{
		"an offline pod, and nothing is lent": {func(s *fleet.Snapshot) { pod(s, 0, fleet.PodOffline, "train", 8000) }, "belongs to no ElasticService", "node agent"},
		"an online pod of no service":         {func(s *fleet.Snapshot) { pod(s, 0, fleet.PodOnline, "", 8000) }, "belongs to no ElasticService", "node agent"},
		"a service that is not steered":       {func(s *fleet.Snapshot) { pod(s, 0, fleet.PodOnline, "api", 8000) }, "cannot be chosen by pod-deletion-cost", "node agent"},
		"pods that stay": {func(s *fleet.Snapshot) {
			pod(s, 0, fleet.PodOnline, "web", 8000)
			pod(s, 0, fleet.PodOnline, "web", 8000)
			pod(s, 0, fleet.PodOnline, "web", 8000)
		}, "service web keeps 2 of its 3 pods here", "node agent"},
		"no agent, where sockets are lent": {func(s *fleet.Snapshot) {
			pod(s, 0, fleet.PodOnline, "", 8000)
			s.Nodes[0].AgentAlive, s.Nodes[0].AgentKnown = false, false
		}, "needs a node agent", ""},
		"no agent, where machines are lent": {func(s *fleet.Snapshot) {
			pod(s, 0, fleet.PodOnline, "", 8000)
			s.Nodes[0].AgentAlive, s.Nodes[0].AgentKnown, s.Pools[1].Unit = false, false, fleet.UnitNode
		}, "belongs to no ElasticService", "node agent"},
		"no agent, on a machine of one socket": {func(s *fleet.Snapshot) {
			pod(s, 0, fleet.PodOnline, "", 8000)
			s.Nodes[0].AgentAlive, s.Nodes[0].AgentKnown, s.Nodes[0].Cells = false, false, s.Nodes[0].Cells[:2]
		}, "belongs to no ElasticService", "node agent"},
	} {
		s := fleetOf(1)
		steerable(s, "web")
		c.bend(s)
		s.Sort()
		_, pinned := Lendable(s, lendAsk(s, 1000, map[fleet.ServiceID]int{"web": 1}))
		by := pinnedBy(pinned, "m00")
		if !strings.Contains(by, c.want) || c.not != "" && strings.Contains(by, c.not) {
			t.Errorf("%s: %q, want %q", name, by, c.want)
		}
	}
}

// The last standing pod of a zone pins its machine as long as no fewer replicas stay than zones are left with one. Pods lie unevenly here, so that no
// crowd pins them.
func TestTheLastPodOfAZone(t *testing.T) {
	for name, c := range map[string]struct {
		pods  []int // on machines in zones z0, z1, z2, z0, ...
		drops int
		bend  func(s *fleet.Snapshot)
		want  string
		zone  string // of the machine that is pinned by it
	}{
		"it stays":                             {[]int{1, 3, 3}, 1, nil, "", "m00"},
		"as many stay as there are zones":      {[]int{1, 3, 1}, 2, nil, "", "m00"},
		"fewer stay than there are zones":      {[]int{1, 4, 1}, 4, nil, "m00:Node ", "m02"},
		"another pod of the zone stays":        {[]int{1, 3, 3, 5}, 1, nil, "m00:Node ", ""},
		"another of the zone is ending":        {[]int{1, 3, 3, 1}, 1, func(s *fleet.Snapshot) { s.Pods[len(s.Pods)-1].Deleting = true }, "m03:Node ", "m00"},
		"another of the zone is the system's":  {[]int{1, 3, 3, 1}, 1, func(s *fleet.Snapshot) { s.Pods[len(s.Pods)-1].Class = fleet.PodSystem }, "m03:Node ", "m00"},
		"all are in one zone, and one may go":  {[]int{1, 3, 3}, 1, oneZone, "m00:Node ", ""},
		"all are in one zone, and all may go":  {[]int{1}, 1, oneZone, "m00:Node ", ""},
		"the only one of several zones leaves": {[]int{1, 0, 0}, 1, nil, "m01:Node m02:Node m00:Node ", ""},
	} {
		s := fleetOf(len(c.pods))
		s.Pools[1].Unit = fleet.UnitNode
		steerable(s, "web")
		for i, n := range c.pods {
			for range n {
				pod(s, i, fleet.PodOnline, "web", 8000)
			}
		}
		if c.bend != nil {
			c.bend(s)
		}
		s.Sort()
		take, pinned := Lendable(s, lendAsk(s, 1000, map[fleet.ServiceID]int{"web": c.drops}))
		if names(take) != c.want {
			t.Errorf("%s: lent %q, want %q; %+v", name, names(take), c.want, pinned)
		}
		if by := pinnedBy(pinned, c.zone); c.zone != "" && !strings.Contains(by, "would leave zone") {
			t.Errorf("%s: %s is pinned by %q", name, c.zone, by)
		}
	}
}

// Services whose pods lie unevenly say nothing about the spread of another.
func TestTheSpreadOfEachServiceIsItsOwn(t *testing.T) {
	s := fleetOf(3)
	s.Pools[1].Unit = fleet.UnitNode
	oneZone(s)
	steerable(s, "web")
	for i := range s.Nodes {
		pod(s, i, fleet.PodOnline, "web", 1000)
	}
	s.Nodes = append(s.Nodes, fleetOf(4).Nodes[3])
	for k := range 30 {
		id := fmt.Sprintf("uneven-%d", k)
		steerable(s, fleet.ServiceID(id))
		for range 3 {
			pod(s, 3, fleet.PodOnline, id, 10)
		}
		pod(s, 0, fleet.PodOnline, id, 10)
	}
	s.Sort()
	_, pinned := Lendable(s, lendAsk(s, 1000, map[fleet.ServiceID]int{"web": 0}))
	if by := pinnedBy(pinned, "m01"); !strings.Contains(by, "keeps 1 of its 1") {
		t.Errorf("m01 is pinned by %q", by)
	}
	take, pinned := Lendable(s, lendAsk(s, 1000, map[fleet.ServiceID]int{"web": 1}))
	if names(take) != "m01:Node " || !strings.Contains(pinnedBy(pinned, "m02"), "keeps 1") {
		t.Errorf("one of three may go: %q, %+v", names(take), pinned)
	}
}

// Sockets are sorted by the room that is idle next to them, whatever the size of the machine.
func TestSocketsOfLargeMachines(t *testing.T) {
	s := fleetOf(2)
	steerable(s, "web")
	large := &s.Nodes[1]
	large.Allocatable.CPU = 128000
	for i := range large.Cells {
		large.Cells[i].Capacity.CPU = 32000
	}
	pod(s, 0, fleet.PodOnline, "web", 8000)
	pod(s, 1, fleet.PodOnline, "web", 60000)
	s.Sort()
	if take, _ := Lendable(s, lendAsk(s, 1000, nil)); names(take) != "m01:Socket m00:Socket " {
		t.Errorf("%q: 4 cores are idle next to a socket of m01, and 24 next to one of m00", names(take))
	}
}

// Observations fade by half in two weeks, grow at no time, and weigh the same in the sum and in its part.
func TestPaceFades(t *testing.T) {
	const half = 14 * 24 * time.Hour
	var p Pace
	for i := range 40 {
		took := 20 * time.Second
		if i >= 36 {
			took = 64 * time.Second
		}
		p = p.Add(took, t0)
	}
	for after, want := range map[time.Duration]bool{0: true, time.Hour: true, half - time.Minute: true, half + time.Hour: false, 3 * half: false} {
		q := p.Quantile(0.95, t0.Add(after))
		if q.OK != want || want && q.Value != 64*time.Second {
			t.Errorf("%s later: %+v", after, q)
		}
	}
	few := paceOf(t0, make([]int, 19)...)
	if q := few.Quantile(0.95, t0.Add(-2*half)); q.OK {
		t.Errorf("a clock that went back makes few observations many: %+v", q)
	}
	if q := few.Add(0, t0.Add(-2*half)).Quantile(0.5, t0); !q.OK {
		t.Error("one that was seen before the last is one more")
	}
}

// Loans of other pools, and of machines that are gone, hide none that follows them; pods of no job hide no job.
func TestChooseLooksAtAll(t *testing.T) {
	s := fleetOf(3)
	lend(s, 0)
	lend(s, 1)
	lend(s, 2)
	s.Loans[0].From = "another"
	s.Jobs = []fleet.Job{{ID: "train", Members: []fleet.Member{{Role: "worker"}}}}
	pod(s, 1, fleet.PodOffline, "", 8000)
	pod(s, 1, fleet.PodOffline, "train", 8000).Role = "worker"
	s.Sort()
	take, _ := Choose(s, ask(200), opts)
	if got := chosen(take); got != "m02-0 m01-0 " {
		t.Errorf("another pool's first: %q", got)
	}
	for _, r := range take {
		if r.Loan == "m01-0" && !slices.Equal(r.Jobs, []fleet.JobID{"train"}) {
			t.Errorf("jobs of a machine with a pod of no job: %v", r.Jobs)
		}
	}
	s.Loans[0].From, s.Loans[0].Node = "online", "uid-gone"
	if take, _ := Choose(s, ask(200), opts); chosen(take) != "m02-0 m01-0 " {
		t.Errorf("a machine that is gone first: %q", chosen(take))
	}
}

// Once GPUs are covered, other machines come by their own order.
func TestOnceGPUsAreCovered(t *testing.T) {
	s := fleetOf(3)
	for i := range s.Nodes {
		lend(s, i)
	}
	s.Nodes[0].Allocatable.GPU, s.Nodes[1].Allocatable.GPU = 8, 8
	s.Jobs = []fleet.Job{{ID: "high", Priority: 100, Members: []fleet.Member{{Role: "worker"}}}}
	pod(s, 1, fleet.PodOffline, "high", 8000).Role = "worker"
	s.Sort()
	a := ask(128)
	a.Amount.GPU = 8
	if take, short := Choose(s, a, opts); chosen(take) != "m00-0 m02-0 " || !short.IsZero() {
		t.Errorf("%q, short of %s: want the machine with GPUs that costs less, then the one without", chosen(take), short)
	}
}

// A checkpoint that is older than the pod saved nothing of its work.
func TestACheckpointBeforeThePod(t *testing.T) {
	for saved, want := range map[time.Duration]time.Duration{3 * time.Hour: 16 * time.Hour, time.Hour: 8 * time.Hour, 0: 0} {
		s := fleetOf(1)
		lend(s, 0)
		s.Jobs = []fleet.Job{{ID: "train", LastCheckpoint: fleet.KnownAt(t0.Add(-saved), t0), Members: []fleet.Member{{Role: "worker"}}}}
		pod(s, 0, fleet.PodOffline, "train", 8000).Role = "worker" // two hours ago
		s.Sort()
		if take, _ := Choose(s, ask(8), opts); len(take) != 1 || take[0].WorkLost != want {
			t.Errorf("saved %s ago: %+v, want %s lost", saved, take, want)
		}
	}
}

// The notice of a machine is the longest that offline work on it needs.
func TestNoticeOn(t *testing.T) {
	s := fleetOf(1)
	pool := &s.Pools[1]
	pool.NoticeMax = 10 * time.Minute
	s.Jobs = []fleet.Job{{ID: "train", Checkpoint: 5 * time.Minute, Members: []fleet.Member{{Role: "worker"}}}}
	for name, c := range map[string]struct {
		class fleet.PodClass
		job   fleet.JobID
		want  time.Duration
	}{
		"offline":           {fleet.PodOffline, "train", 5 * time.Minute},
		"of no job":         {fleet.PodOffline, "", 2 * time.Minute},
		"of a job unknown":  {fleet.PodOffline, "gone", 2 * time.Minute},
		"online, so marked": {fleet.PodOnline, "train", 2 * time.Minute},
	} {
		if got := NoticeOn(s, pool, []*fleet.Pod{{Class: c.class, Job: c.job, Role: "worker"}}, opts); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Borrowed are ready machines of the pool that move for no other; of idle ones alone where only these are asked for.
func TestWhichMachinesAreBorrowed(t *testing.T) {
	all := func(bend func(s *fleet.Snapshot)) *fleet.Snapshot {
		s := lenders(map[string]int32{"a/worker": 9, "b/worker": 9}, "a/worker", "b/worker", "", "")
		bend(s)
		s.Sort()
		return s
	}
	for name, c := range map[string]struct {
		bend func(s *fleet.Snapshot)
		idle bool
		want string
	}{
		"all":                    {func(*fleet.Snapshot) {}, false, "m02 m03 m00 m01 "},
		"idle ones":              {func(*fleet.Snapshot) {}, true, "m02 m03 "},
		"one of another pool":    {func(s *fleet.Snapshot) { s.Nodes[2].Pool = "online" }, false, "m03 m00 m01 "},
		"one that is not ready":  {func(s *fleet.Snapshot) { s.Nodes[2].Ready = false }, false, "m03 m00 m01 "},
		"one that moves already": {func(s *fleet.Snapshot) { lend(s, 2) }, false, "m03 m00 m01 "},
	} {
		if got := lentBy(all(c.bend), BorrowAsk{Amount: coresOfMachines(4), Idle: c.idle}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A role that keeps exactly its minimum is not broken: the machine that breaks fewer goes first.
func TestARoleAtItsMinimumIsNotBroken(t *testing.T) {
	s := lenders(map[string]int32{"b/worker": 1}, "c/worker d/worker", "a/worker b/worker", "b/worker")
	if got := lentBy(s, BorrowAsk{Amount: coresOfMachines(1), TakeStable: true}); !strings.HasPrefix(got, "m02 ") {
		t.Fatalf("what is to spare goes first: %q", got)
	}
	s = lenders(map[string]int32{"b/worker": 1}, "c/worker d/worker", "a/worker b/worker")
	if got := lentBy(s, BorrowAsk{Amount: coresOfMachines(1), TakeStable: true}); got != "m01 " {
		t.Errorf("%q: m00 breaks two jobs, m01 one", got)
	}
}

// A pod on a machine that leaves is not to spare any more, unless it is over or ending.
func TestWhoOccupiesALeavingMachine(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(p *fleet.Pod)
		want string
	}{
		"it runs":    {func(*fleet.Pod) {}, ""},
		"it ends":    {func(p *fleet.Pod) { p.Deleting = true }, "m01 "},
		"it is over": {func(p *fleet.Pod) { p.Phase = fleet.PodSucceeded }, "m01 "},
	} {
		s := lenders(map[string]int32{"a/worker": 1}, "a/worker", "a/worker", "a/worker")
		lend(s, 0)
		s.Loans[0].From, s.Loans[0].To, s.Loans[0].Phase = "offline", "online", fleet.Emptying
		s.Nodes[2].Ready = false
		for i := range s.Pods {
			if s.Pods[i].Node == s.Nodes[0].ID {
				c.bend(&s.Pods[i])
			}
		}
		s.Sort()
		if got := lentBy(s, BorrowAsk{Amount: coresOfMachines(2)}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
