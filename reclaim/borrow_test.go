package reclaim

import (
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// lenders is a machine of the offline pool for each list of pods: "a/worker" is one of job a, "-" one of no job. The minimum of a role is all of
// its members but those to spare; launchers are stable. Every job saved its work an hour ago.
func lenders(spare map[string]int32, on ...string) *fleet.Snapshot {
	s := fleetOf(len(on))
	members := map[string]*fleet.Member{}
	var names []string
	for i, pods := range on {
		s.Nodes[i].Pool = "offline"
		for _, name := range strings.Fields(pods) {
			job, role, _ := strings.Cut(strings.Trim(name, "-"), "/")
			pod(s, i, fleet.PodOffline, job, 1000).Role = role
			if members[name] == nil {
				members[name] = &fleet.Member{Role: role, Stable: role == "launcher"}
				names = append(names, name)
			}
			members[name].Active++
		}
	}
	for _, name := range names {
		job, _, of := strings.Cut(name, "/")
		if !of {
			continue
		}
		m := members[name]
		m.Min = m.Active - spare[name]
		if s.Job(fleet.JobID(job)) == nil {
			s.Jobs = append(s.Jobs, fleet.Job{ID: fleet.JobID(job), LastCheckpoint: fleet.KnownAt(t0.Add(-time.Hour), t0)})
			s.Sort()
		}
		j := s.Job(fleet.JobID(job))
		j.Members = append(j.Members, *m)
	}
	s.Sort()
	return s
}

// lentBy are the machines that go for an ask, in their order.
func lentBy(s *fleet.Snapshot, ask BorrowAsk) string {
	ask.Pool, ask.Count = s.Pool("offline"), 10
	take, _ := Borrowable(s, ask, opts)
	out := ""
	for _, b := range take {
		out += b.Node.Name + " "
	}
	return out
}

func coresOfMachines(n int) fleet.Resources { return fleet.Resources{CPU: fleet.MilliCPU(64_000 * n)} }

// Each key decides where those before it say nothing, against those after it.
func TestBorrowOrder(t *testing.T) {
	high := func(a *fleet.Job) { a.Priority = fleet.PriorityHigh }
	recalled := func(ago time.Duration) func(*fleet.Job) {
		return func(a *fleet.Job) { a.LastRecalled = fleet.KnownAt(t0.Add(-ago), t0.Add(-ago)) }
	}
	one, two, three := "a/worker", "a/worker a/worker", "b/worker b/worker b/worker"
	for _, c := range []struct {
		name string
		on   []string
		a    func(*fleet.Job)
		want string
	}{
		{"nobody works there", []string{one, ""}, func(*fleet.Job) {}, "m01 m00 "},
		{"the lower priority, though it loses more", []string{one, three}, high, "m01 m00 "},
		{"the less work, though recalled lately", []string{three, one}, recalled(10 * time.Minute), "m01 m00 "},
		{"not recalled lately, though they are more", []string{two, three}, recalled(10 * time.Minute), "m01 m00 "},
		{"recalled longer ago", []string{two, three}, recalled(time.Hour), "m00 m01 "},
		{"the fewest pods", []string{three, two}, func(*fleet.Job) {}, "m01 m00 "},
		{"the name", []string{one, "b/worker"}, func(*fleet.Job) {}, "m00 m01 "},
	} {
		s := lenders(map[string]int32{"a/worker": 9, "b/worker": 9}, c.on...)
		c.a(s.Job("a"))
		if got := lentBy(s, BorrowAsk{Amount: coresOfMachines(2)}); got != c.want {
			t.Errorf("%s: %sgo, want %s", c.name, got, c.want)
		}
	}
}

// A festival that takes stable members takes them, members within their minimum and pods of no job after all that is to spare, and breaks as few
// gangs as it can.
func TestTakeStable(t *testing.T) {
	for _, c := range []struct {
		name    string
		on      []string
		spare   map[string]int32
		begun   string
		n       int
		without string
		want    string
	}{
		{"a launcher after workers to spare, though these lose more", []string{"a/launcher", "a/worker a/worker a/worker"}, map[string]int32{"a/worker": 3}, "", 2, "m01 ", "m01 m00 "},
		{"none while what is to spare will do", []string{"a/launcher", "a/worker a/worker a/worker"}, map[string]int32{"a/worker": 3}, "", 1, "m01 ", "m01 "},
		{"what is to spare is spent once", []string{"a/worker", "a/worker", "b/worker", ""}, map[string]int32{"a/worker": 1, "b/worker": 1}, "", 4, "m03 m00 m02 ", "m03 m00 m02 m01 "},
		{"pods of no job break no gang", []string{"a/worker", "- -", "b/worker b/worker"}, map[string]int32{"b/worker": 2}, "", 3, "m02 ", "m02 m01 m00 "},
		{"one gang before two", []string{"a/worker b/worker", "c/worker c/worker c/worker"}, nil, "", 1, "", "m01 "},
		{"a gang that broke breaks no more", []string{"a/worker", "b/worker", "a/worker a/worker a/worker"}, nil, "", 3, "", "m00 m02 m01 "},
		{"nor does one that broke for another pool", []string{"a/worker", "b/worker", "a/worker a/worker a/worker"}, nil, "m00", 1, "", "m02 "},
		{"nor one that was broken", []string{"a/worker", "b/worker b/worker b/worker"}, map[string]int32{"b/worker": -1}, "", 1, "", "m01 "},
	} {
		for _, takes := range []bool{false, true} {
			s, want := lenders(c.spare, c.on...), c.without
			if takes {
				want = c.want
			}
			ask := BorrowAsk{Amount: coresOfMachines(c.n), TakeStable: takes, Begun: map[fleet.NodeID][]int{}}
			for _, n := range s.Nodes {
				if n.Name == c.begun {
					ask.Begun[n.ID] = n.AllCells()
				}
			}
			if got := lentBy(s, ask); got != want {
				t.Errorf("%s (takeStable %v): %sgo, want %s", c.name, takes, got, want)
			}
		}
	}
}

// The budget and what is short bound what a festival takes, and without GPUs alone no other machine breaks a gang.
func TestTakeStableStopsWhereItHelpsNone(t *testing.T) {
	s := lenders(nil, "a/worker", "b/worker", "c/worker")
	s.Nodes[2].Allocatable.GPU = 8
	for _, c := range []struct {
		amount fleet.Resources
		count  int
		want   string
	}{
		{coresOfMachines(3), 2, "m00 m01 "},
		{fleet.Resources{GPU: 4}, 3, "m02 "},
		{fleet.Resources{GPU: 9}, 3, "m02 "},
		{fleet.Resources{GPU: 9, CPU: 100_000}, 3, "m02 m00 "},
		{fleet.Resources{}, 3, ""},
	} {
		take, _ := Borrowable(s, BorrowAsk{Pool: s.Pool("offline"), Amount: c.amount, Count: c.count, TakeStable: true}, opts)
		got := ""
		for _, b := range take {
			got += b.Node.Name + " "
			if !strings.Contains(b.Why.Text(), "1 jobs of priority 0 give way (1 below their minimum), about ") {
				t.Errorf("%s goes because %s", b.Node.Name, b.Why)
			}
		}
		if got != c.want {
			t.Errorf("for %v, %d at most, %sgo, want %s", c.amount, c.count, got, c.want)
		}
	}
}

// Whom an earlier plan gave away is to spare no more: it still runs, on a machine that goes to online or is recalled.
func TestWhoLeavesIsNotToSpare(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to fleet.PoolID
		phase    fleet.Phase
		deleting bool
		want     string
	}{
		{"goes to online", "offline", "online", fleet.Emptying, false, ""},
		{"is called home", "online", "offline", fleet.Noticed, false, ""},
		{"is called home and drains", "online", "offline", fleet.Draining, false, ""},
		{"is another socket that comes", "online", "offline", fleet.Emptying, false, "m01 "},
		{"stays lent", "online", "offline", fleet.Lent, false, "m01 "},
		{"is no longer counted", "offline", "online", fleet.Emptying, true, "m01 "},
	} {
		s := lenders(map[string]int32{"a/worker": 1}, "a/worker", "a/worker", "a/worker")
		n := &s.Nodes[0]
		s.Loans = []fleet.Loan{{ID: "l", Node: n.ID, NodeName: n.Name, From: c.from, To: c.to, Phase: c.phase}}
		for i := range s.Pods {
			s.Pods[i].Deleting = c.deleting && s.Pods[i].Node == n.ID
		}
		if got := lentBy(s, BorrowAsk{Amount: coresOfMachines(2)}); got != c.want {
			t.Errorf("%s: %q go, want %q", c.name, got, c.want)
		}
	}
}
