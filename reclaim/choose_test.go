package reclaim

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

var t0 = time.Date(2026, 3, 2, 18, 0, 0, 0, time.UTC)

var opts = Options{Drain: time.Minute, Clean: 45 * time.Second, RecallRest: 30 * time.Minute}

// fleetOf is n machines of 64 cores in three zones, two sockets each.
func fleetOf(n int) *fleet.Snapshot {
	s := &fleet.Snapshot{At: t0}
	s.Pools = []fleet.Pool{{ID: "offline", Class: fleet.Offline}, {ID: "online", Class: fleet.Online, Unit: fleet.UnitSocket, Notice: 2 * time.Minute}}
	for i := range n {
		node := fleet.Node{ID: fleet.NodeID(fmt.Sprintf("uid-%02d", i)), Name: fmt.Sprintf("m%02d", i), Zone: fmt.Sprintf("z%d", i%3), Pool: "online",
			Allocatable: fleet.Resources{CPU: 64000, Memory: 256 * fleet.GiB, Pods: 110}, Ready: true, AgentAlive: true, AgentKnown: true}
		for c := range 4 {
			node.Cells = append(node.Cells, fleet.Cell{ID: c, Socket: c / 2, Capacity: fleet.Resources{CPU: 16000, Memory: 64 * fleet.GiB}})
		}
		s.Nodes = append(s.Nodes, node)
	}
	return s
}

func lend(s *fleet.Snapshot, machine int, cells ...int) {
	n := &s.Nodes[machine]
	kind := fleet.KindSocket
	if len(cells) == 0 {
		cells, kind = n.AllCells(), fleet.KindNode
	}
	s.Loans = append(s.Loans, fleet.Loan{ID: fleet.LoanID(fmt.Sprintf("%s-%d", n.Name, cells[0])), Node: n.ID, NodeName: n.Name, Cells: cells, Kind: kind,
		Capacity: n.CapacityOf(cells), From: "online", To: "offline", Phase: fleet.Lent, Epoch: 1})
}

func pod(s *fleet.Snapshot, machine int, class fleet.PodClass, owner string, cpu fleet.MilliCPU) *fleet.Pod {
	n := &s.Nodes[machine]
	p := fleet.Pod{ID: fleet.UID(fmt.Sprintf("p%d", len(s.Pods))), Name: fleet.Name{Namespace: "ns", Name: fmt.Sprintf("p%03d", len(s.Pods))}, Node: n.ID,
		NodeName: n.Name, Class: class, Requests: fleet.Resources{CPU: cpu}, Phase: fleet.PodRunning, Ready: true, Created: t0.Add(-2 * time.Hour)}
	if class == fleet.PodOnline {
		p.Service = fleet.ServiceID(owner)
	} else {
		p.Job = fleet.JobID(owner)
	}
	s.Pods = append(s.Pods, p)
	return &s.Pods[len(s.Pods)-1]
}

func chosen(take []Recall) string {
	out := ""
	for _, r := range take {
		out += string(r.Loan) + " "
	}
	return out
}

func ask(coresWanted int64) Ask {
	return Ask{Pool: "online", Amount: fleet.Resources{CPU: fleet.MilliCPU(coresWanted * 1000)}, Due: t0.Add(10 * time.Minute), Why: reason.Said("flood")}
}

func TestChooseOrder(t *testing.T) {
	s := fleetOf(4)
	for i := range 4 {
		lend(s, i)
	}
	s.Jobs = []fleet.Job{
		{ID: "high", Priority: fleet.PriorityHigh, LastCheckpoint: fleet.KnownAt(t0, t0)},
		{ID: "rested", LastRecalled: fleet.KnownAt(t0.Add(-10*time.Minute), t0), LastCheckpoint: fleet.KnownAt(t0, t0)},
		{ID: "saved", LastCheckpoint: fleet.KnownAt(t0.Add(-time.Minute), t0)},
		{ID: "unsaved", LastCheckpoint: fleet.KnownAt(t0.Add(-time.Hour), t0)},
	}
	for i, job := range []string{"high", "rested", "unsaved", "saved"} {
		pod(s, i, fleet.PodOffline, job, 16000)
	}
	s.Sort()
	take, short := Choose(s, ask(256), opts)
	if got, want := chosen(take), "m01-0 m03-0 m02-0 m00-0 "; got != want {
		t.Errorf("the order is %q, want %q: low before high, least lost work, lately recalled or not", got, want)
	}
	if !short.IsZero() {
		t.Errorf("four machines cover 256 cores, short %v", short)
	}
	if take, short = Choose(s, ask(300), opts); len(take) != 4 || short.CPU != 44000 {
		t.Errorf("44 cores stay short, got %v with %d recalls", short, len(take))
	}
	if take, _ = Choose(s, ask(1), opts); len(take) != 1 {
		t.Errorf("one core needs one machine, got %s", chosen(take))
	}
}

func TestSocketsOfAMachineComeHomeTogether(t *testing.T) {
	s := fleetOf(2)
	lend(s, 0, 2, 3)
	lend(s, 0, 0, 1)
	lend(s, 1, 2, 3)
	pod(s, 1, fleet.PodOnline, "web", 24000)
	s.Sort()
	take, short := Choose(s, ask(64), opts)
	if len(take) != 2 || short.CPU != 0 {
		t.Fatalf("both sockets of m00 give 64 cores, got %s short %v", chosen(take), short)
	}
	take, short = Choose(s, ask(104), opts)
	if len(take) != 3 || short.CPU != 0 {
		t.Errorf("m01 gives all that its online pods do not hold, 40 cores: got %s short %v", chosen(take), short)
	}
}

func TestTimes(t *testing.T) {
	s := fleetOf(1)
	lend(s, 0)
	s.Sort()
	for _, c := range []struct {
		name                string
		due                 time.Duration
		emergency           bool
		notice, dead, least time.Duration
	}{
		{"in good time", 10 * time.Minute, false, 6*time.Minute + 15*time.Second, 8*time.Minute + 15*time.Second, 10 * time.Minute},
		{"too late for the ask: the full notice all the same", time.Minute, false, 0, 2 * time.Minute, 3*time.Minute + 45*time.Second},
		{"emergency", time.Minute, true, 0, EmergencyNotice, EmergencyNotice + 105*time.Second},
		{"emergency with some time left", 3 * time.Minute, true, 0, 75 * time.Second, 3 * time.Minute},
	} {
		a := ask(1)
		a.Due, a.Emergency = t0.Add(c.due), c.emergency
		take, _ := Choose(s, a, opts)
		r := take[0]
		if r.NoticeAt.Sub(t0) != c.notice || r.Deadline.Sub(t0) != c.dead || r.Due.Sub(t0) != c.least {
			t.Errorf("%s: notice %v, deadline %v, due %v; want %v, %v, %v", c.name, r.NoticeAt.Sub(t0), r.Deadline.Sub(t0), r.Due.Sub(t0), c.notice, c.dead, c.least)
		}
	}
}

// The recall of a machine's rest cancels the parcels that are still being emptied.
func TestAMachineOfWhichAPartStillLeavesIsRecalled(t *testing.T) {
	s := fleetOf(1)
	lend(s, 0, 2, 3)
	lend(s, 0, 0, 1)
	s.Loans[1].Phase = fleet.Emptying
	s.Sort()
	if take, short := Choose(s, ask(10), opts); chosen(take) != "m00-2 " || !short.IsZero() {
		t.Errorf("recalled %q, short %v: the parcel that is lent, and nothing else", chosen(take), short)
	}
}

// While GPUs are short, machines that have some come first, and without nothing else no others; for the rest the order
// is as ever.
func TestChooseGPUs(t *testing.T) {
	for _, c := range []struct {
		name     string
		ask      fleet.Resources
		want     string
		short    fleet.Resources
		borrowed string // where it is not the same
	}{
		{"none", fleet.Resources{CPU: 64_000}, "m00-0 ", fleet.Resources{}, ""},
		{"GPUs alone", fleet.Resources{GPU: 4}, "m02-0 ", fleet.Resources{}, ""},
		{"more than one machine has", fleet.Resources{GPU: 9}, "m02-0 m03-0 ", fleet.Resources{}, ""},
		{"more than there are", fleet.Resources{GPU: 20}, "m02-0 m03-0 ", fleet.Resources{GPU: 4}, ""},
		{"and cores", fleet.Resources{GPU: 4, CPU: 100_000}, "m02-0 m00-0 ", fleet.Resources{}, "m02-0 m03-0 "},
		{"more than there are, and cores", fleet.Resources{GPU: 20, CPU: 150_000}, "m02-0 m03-0 m00-0 ", fleet.Resources{GPU: 4}, ""},
	} {
		s := fleetOf(4)
		for i := range 4 {
			lend(s, i)
			if i > 1 {
				s.Nodes[i].Allocatable.GPU = 8
			}
		}
		take, short := Choose(s, Ask{Pool: "online", Amount: c.ask, Due: t0.Add(time.Hour)}, opts)
		if got := chosen(take); got != c.want || short != c.short {
			t.Errorf("%s: %s are recalled and %v stays short, want %s and %v", c.name, got, short, c.want, c.short)
		}
		s = fleetOf(4)
		for i := range 4 {
			s.Nodes[i].Pool = "offline"
			if i > 1 {
				s.Nodes[i].Allocatable.GPU = 8
			}
		}
		got := ""
		lent, short := Borrowable(s, BorrowAsk{Pool: &s.Pools[0], Amount: c.ask, Count: 10}, opts)
		for _, b := range lent {
			got += b.Node.Name + "-0 "
		}
		if want := cmp.Or(c.borrowed, c.want); got != want || short != c.short {
			t.Errorf("%s: %s are borrowed and %v stays short, want %s and %v", c.name, got, short, want, c.short)
		}
	}
}

// Work is priced by the part of its machine that it holds, of cores or of GPUs, whichever is more.
func TestWorkIsPricedByWhatItHolds(t *testing.T) {
	for _, c := range []struct {
		name string
		all  int64 // GPUs of the machine
		pod  fleet.Resources
		want float64 // cores
	}{
		{"cores alone", 0, fleet.Resources{CPU: 16_000}, 16},
		{"cores alone beside GPUs", 8, fleet.Resources{CPU: 16_000}, 16},
		{"memory has no price", 0, fleet.Resources{CPU: 1000, Memory: 256 * fleet.GiB}, 1},
		{"all GPUs are the whole machine", 8, fleet.Resources{CPU: 8000, GPU: 8}, 64},
		{"half of them half of it", 8, fleet.Resources{CPU: 8000, GPU: 4}, 32},
		{"more cores than GPUs", 8, fleet.Resources{CPU: 32_000, GPU: 1}, 32},
		{"more than there are", 8, fleet.Resources{CPU: 8000, GPU: 16}, 64},
		{"a machine that shows none", 0, fleet.Resources{CPU: 8000, GPU: 8}, 8},
	} {
		s := fleetOf(1)
		s.Nodes[0].Allocatable.GPU = c.all
		s.Jobs = []fleet.Job{{ID: "train", LastCheckpoint: fleet.KnownAt(t0.Add(-time.Hour), t0)}}
		lend(s, 0)
		pod(s, 0, fleet.PodOffline, "train", 0).Requests = c.pod
		s.Sort()
		take, _ := Choose(s, ask(1), opts)
		if got := take[0].WorkLost.Hours(); got != c.want {
			t.Errorf("%s: an hour of it is %v core-hours, want %v", c.name, got, c.want)
		}
	}
}

// Eight GPUs with a few cores are dearer than half a machine of cores: the latter comes home first, and offline lends it first.
func TestGPUWorkComesHomeLast(t *testing.T) {
	s := fleetOf(2)
	s.Nodes[0].Allocatable.GPU, s.Nodes[1].Allocatable.GPU = 8, 8
	s.Jobs = []fleet.Job{{ID: "gpus", Members: []fleet.Member{{Active: 1}}}, {ID: "cores", Members: []fleet.Member{{Active: 1}}}}
	pod(s, 0, fleet.PodOffline, "gpus", 8000).Requests.GPU = 8
	pod(s, 1, fleet.PodOffline, "cores", 30_000)
	s.Sort()
	for i := range 2 {
		s.Nodes[i].Pool = "offline"
	}
	if lent, _ := Borrowable(s, BorrowAsk{Pool: &s.Pools[0], Amount: fleet.Resources{CPU: 1000}, Count: 10}, opts); len(lent) != 1 || lent[0].Node.Name != "m01" {
		t.Errorf("offline lends %+v, want m01", lent)
	}
	for i := range 2 {
		s.Nodes[i].Pool = "online"
		lend(s, i)
	}
	if take, _ := Choose(s, ask(1), opts); chosen(take) != "m01-0 " {
		t.Errorf("%s comes home, want m01-0: what computes on the GPUs of m00 costs all of its 64 cores", chosen(take))
	}
}

// Among machines that cost the same those come first that are away as a whole; that a job was recalled lately weighs less, and the name least.
func TestWholeMachinesComeHomeFirst(t *testing.T) {
	for _, c := range []struct{ name, rested, want string }{
		{"they come first", "", "m01-0 m00-0 m00-2 "},
		{"though their job was recalled lately", "b", "m01-0 m00-0 m00-2 "},
	} {
		s := fleetOf(2)
		lend(s, 0, 0, 1)
		lend(s, 0, 2, 3)
		lend(s, 1)
		for i, job := range []string{"a", "b"} {
			pod(s, i, fleet.PodOffline, job, 16000)
			j := fleet.Job{ID: fleet.JobID(job), LastCheckpoint: fleet.KnownAt(t0.Add(-time.Hour), t0)}
			if job == c.rested {
				j.LastRecalled = fleet.KnownAt(t0.Add(-10*time.Minute), t0)
			}
			s.Jobs = append(s.Jobs, j)
		}
		s.Sort()
		if take, _ := Choose(s, ask(128), opts); chosen(take) != c.want {
			t.Errorf("%s: %q, want %q", c.name, chosen(take), c.want)
		}
	}
}

// A later demand may wait; a machine that covers the rest comes before it and does not, though it covers some of the
// later part as well.
func TestWhatIsAskedForLaterMayWait(t *testing.T) {
	for _, c := range []struct{ cores, later, wait int64 }{{200, 0, 0}, {200, 100, 2}, {200, 136, 3}, {200, 200, 4}, {64, 10, 0}} {
		s := fleetOf(4)
		for i := range 4 {
			lend(s, i)
		}
		s.Sort()
		a := ask(c.cores)
		a.Later.CPU = fleet.MilliCPU(1000 * c.later)
		take, _ := Choose(s, a, opts)
		n := int64(0)
		for i, r := range take {
			if r.MayWait {
				n++
			} else if n > 0 {
				t.Errorf("%d cores, %d of them later: the recall of place %d comes after one that may wait, and may not", c.cores, c.later, i)
			}
		}
		if n != c.wait {
			t.Errorf("%d cores, %d of them later: %d of %d recalls may wait, want %d", c.cores, c.later, n, len(take), c.wait)
		}
	}
}

// Machines that are not ready, or about to leave, come home last, though nothing runs there, and what they would bring stays short.
func TestChooseCountsOnNoUnreadyMachine(t *testing.T) {
	for _, c := range []struct {
		name  string
		ask   fleet.Resources
		want  string
		short fleet.Resources
	}{
		{"the live one covers it", fleet.Resources{CPU: 48_000}, "m02-0 ", fleet.Resources{}},
		{"it does not", fleet.Resources{CPU: 96_000}, "m02-0 m00-0 ", fleet.Resources{CPU: 32_000}},
		{"nor do all", fleet.Resources{CPU: 256_000}, "m02-0 m00-0 m01-0 ", fleet.Resources{CPU: 192_000}},
		{"GPUs that only a dead one has", fleet.Resources{GPU: 4}, "m00-0 ", fleet.Resources{GPU: 4}},
	} {
		s := fleetOf(3)
		for i := range 3 {
			lend(s, i)
		}
		s.Nodes[0].Ready, s.Nodes[1].Ready, s.Nodes[0].Allocatable.GPU = false, false, 8
		s.Nodes[1].Ready, s.Nodes[1].Leaving = true, "the taint karpenter.sh/disrupted:NoSchedule"
		s.Jobs = []fleet.Job{{ID: "high", Priority: fleet.PriorityHigh}}
		pod(s, 2, fleet.PodOffline, "high", 16_000)
		s.Sort()
		ask := ask(0)
		ask.Amount = c.ask
		if take, short := Choose(s, ask, opts); chosen(take) != c.want || short != c.short {
			t.Errorf("%s: %sare recalled, short of %v; want %sand %v", c.name, chosen(take), short, c.want, c.short)
		}
		order := Order(s, s.Pool("online"), opts)
		if len(order) != 3 || order[0].Gain.CPU != 64_000 || order[1].Gain != (fleet.Resources{}) || order[2].Gain != (fleet.Resources{}) {
			t.Errorf("the order is %+v", order)
		}
	}
}

// A pod of no job costs what it would lose too, all since it started, and ranks as its class says.
func TestPodsOfNoJobHaveAPrice(t *testing.T) {
	for _, c := range []struct {
		name   string
		rank   fleet.JobPriority
		began  time.Duration
		job    fleet.JobPriority
		saved  time.Duration
		want   string
		losing time.Duration
	}{
		{"ten hours of work stay", fleet.PriorityLow, 10 * time.Hour, fleet.PriorityLow, 7 * time.Minute, "m00-0 ", 16 * 7 * time.Minute},
		{"a minute of it goes", fleet.PriorityLow, time.Minute, fleet.PriorityLow, 7 * time.Minute, "m01-0 ", 16 * time.Minute},
		{"of high class it stays", fleet.PriorityHigh, time.Minute, fleet.PriorityLow, 7 * time.Minute, "m00-0 ", 16 * 7 * time.Minute},
		{"before a job that is high", fleet.PriorityLow, 10 * time.Hour, fleet.PriorityHigh, 7 * time.Minute, "m01-0 ", 160 * time.Hour},
	} {
		s := fleetOf(2)
		lend(s, 0)
		lend(s, 1)
		s.Jobs = []fleet.Job{{ID: "job", Priority: c.job, LastCheckpoint: fleet.KnownAt(t0.Add(-c.saved), t0)}}
		pod(s, 0, fleet.PodOffline, "job", 16_000)
		p := pod(s, 1, fleet.PodOffline, "", 16_000)
		p.Created, p.Rank = t0.Add(-c.began), c.rank
		s.Sort()
		if take, _ := Choose(s, ask(10), opts); chosen(take) != c.want || take[0].WorkLost != c.losing {
			t.Errorf("%s: %sis recalled, want %s: %+v", c.name, chosen(take), c.want, take)
		}
	}
}
