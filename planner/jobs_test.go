package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// yard is a fleet of offline machines, and of machines that are lent, under a scheduler that binds what fits, oldest job first. Nothing of it is
// online: what is tested is what jobs do to each other.
type yard struct {
	s     fleet.Snapshot
	gangs map[fleet.JobID]fleet.Gang
	made  int
	plan  Plan
	// broken pods are bound and never run.
	broken map[fleet.JobID]bool
	// refused pods are not made.
	refused map[fleet.JobID]bool
	// podQuota bounds the pods of all jobs, as a ResourceQuota does; 0 is none. Controllers make pods in batches, so that two of them share it.
	podQuota int
}

func newYard(home, lent int) *yard {
	y := &yard{gangs: map[fleet.JobID]fleet.Gang{}, broken: map[fleet.JobID]bool{}, refused: map[fleet.JobID]bool{}}
	y.s = fleet.Snapshot{At: t0, LeaderEpoch: 1, WatchedSince: t0.Add(-time.Hour), Pools: []fleet.Pool{
		{ID: "offline", Class: fleet.Offline, Mode: fleet.Auto, Budget: wide()}, {ID: "online", Class: fleet.Online, Mode: fleet.Observe, MovesAtOnce: 10, Budget: wide()}}}
	for i := range home + lent {
		n := machineOf(i, "offline")
		n.Zone, n.Cells, n.AgentKnown, n.Marks = "", nil, false, fleet.NodeMarks{HolderTaint: true, OfflineLabel: true}
		if i >= home {
			n.Pool = "online"
			l := loanOf(&n, fleet.Lent, 1)
			n.Share = shareOf(&l)
			y.s.Loans = append(y.s.Loans, l)
		}
		y.s.Nodes = append(y.s.Nodes, n)
	}
	return y
}

// job adds a job of members of some cores each.
func (y *yard) job(name string, members ...fleet.Member) *fleet.Job {
	j := fleet.Job{ID: fleet.JobID("batch/" + name), Created: t0.Add(time.Duration(len(y.s.Jobs)) * time.Second), Members: members}
	for i := range j.Members {
		j.Members[i].Request.Pods = 1 // as the API server's facts have it
		j.Members[i].Kind, j.Members[i].Workload = "Job", fleet.Name{Namespace: "batch", Name: name + "-" + j.Members[i].Role}
		if j.Members[i].Fixed {
			j.Members[i].Desired = j.Members[i].Max
		}
	}
	y.s.Jobs = append(y.s.Jobs, j)
	return &y.s.Jobs[len(y.s.Jobs)-1]
}

// cycle plans, carries the plan out, and lets the scheduler and the workloads' controllers act.
func (y *yard) cycle() {
	y.s.Sort()
	y.plan = made(Input{Snapshot: &y.s, Gangs: y.gangs, Options: DefaultOptions()})
	for _, g := range y.plan.Gangs {
		y.gangs[g.Job] = g.Gang
	}
	for _, a := range y.plan.Jobs {
		y.member(a.Job, a.Role).Desired = a.To
	}
	for i := range y.s.Tenants {
		if x := y.plan.Division.Share(y.s.Tenants[i].ID); x != nil {
			y.s.Tenants[i].OverSince, y.s.Tenants[i].BurstSince, y.s.Tenants[i].Notices = x.OverSince, x.BurstSince, x.Notices
		}
	}
	y.s.Pods = slices.DeleteFunc(y.s.Pods, func(p fleet.Pod) bool { return p.Deleting })
	for _, e := range y.plan.Evictions {
		y.s.Pods[slices.IndexFunc(y.s.Pods, func(p fleet.Pod) bool { return p.ID == e.Pod.ID })].Deleting = true
	}
	for i := range y.s.Jobs {
		for k := range y.s.Jobs[i].Members {
			y.control(&y.s.Jobs[i], &y.s.Jobs[i].Members[k])
		}
	}
	y.schedule()
	y.s.At = y.s.At.Add(time.Minute)
}

func (y *yard) member(id fleet.JobID, role string) *fleet.Member {
	j := y.s.Job(id)
	i := slices.IndexFunc(j.Members, func(m fleet.Member) bool { return m.Role == role })
	return &j.Members[i]
}

// control makes pods up to the parallelism, and ends those that are too many: unbound ones first, then the youngest; of indexed ones those whose
// index is not below it.
func (y *yard) control(j *fleet.Job, mem *fleet.Member) {
	if mem.Leaves == fleet.LeavesHighest {
		y.controlIndexed(j, mem)
		return
	}
	var mine []*fleet.Pod
	for i := range y.s.Pods {
		if p := &y.s.Pods[i]; p.Job == j.ID && p.Role == mem.Role && !p.Deleting {
			mine = append(mine, p)
		}
	}
	slices.SortFunc(mine, func(a, b *fleet.Pod) int {
		return cmp.Or(fleet.TrueFirst(a.NodeName == "", b.NodeName == ""), b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
	})
	for i := range max(len(mine)-int(mem.Desired), 0) {
		mine[i].Deleting = true
	}
	if mem.PodsRefused = ""; y.refused[j.ID] && len(mine) < int(mem.Desired) {
		mem.PodsRefused, mem.Active = "exceeded quota: team", int32(len(mine))
		return
	}
	for n := range max(int(mem.Desired)-len(mine), 0) {
		if y.podQuota > 0 && (n == 3 || len(y.s.Pods) >= y.podQuota) {
			mem.PodsRefused, mem.Active = "exceeded quota: pods", int32(len(mine)+n)
			return
		}
		y.pod(j, mem, fmt.Sprintf("p-%06d", y.made+1))
	}
	mem.Active = mem.Desired
}

func (y *yard) controlIndexed(j *fleet.Job, mem *fleet.Member) {
	there := map[string]bool{}
	for i := range y.s.Pods {
		if p := &y.s.Pods[i]; p.Job == j.ID && p.Role == mem.Role {
			there[p.Name.Name] = true
			p.Deleting = p.Deleting || p.Index() >= int(mem.Desired)
		}
	}
	for i := range mem.Desired {
		if name := fmt.Sprintf("%s-%d", mem.Workload.Name, i); !there[name] {
			y.pod(j, mem, name)
		}
	}
}

func (y *yard) pod(j *fleet.Job, mem *fleet.Member, name string) {
	y.made++
	y.s.Pods = append(y.s.Pods, fleet.Pod{ID: fleet.UID(fmt.Sprintf("p-%06d", y.made)), Name: fleet.Name{Namespace: fleet.ParseName(string(j.ID)).Namespace, Name: name}, Class: fleet.PodOffline,
		Job: j.ID, Role: mem.Role, Requests: mem.Request, Phase: fleet.PodPending, Created: y.s.At})
}

// named finds a pod that does not end.
func (y *yard) named(t *testing.T, name string) *fleet.Pod {
	t.Helper()
	i := slices.IndexFunc(y.s.Pods, func(p fleet.Pod) bool { return p.Name.Name == name && !p.Deleting })
	if i < 0 {
		t.Fatalf("%s: pod %s is gone", y.s.At.Sub(t0), name)
	}
	return &y.s.Pods[i]
}

// recall calls a lent machine home, with its deadline past.
func (y *yard) recall(node fleet.NodeID) {
	for i := range y.s.Loans {
		if l := &y.s.Loans[i]; l.Node == node {
			l.Phase, l.Deadline, l.Due, l.KillAt = fleet.Draining, y.s.At, y.s.At, y.s.At.Add(time.Hour)
			n := slices.IndexFunc(y.s.Nodes, func(n fleet.Node) bool { return n.ID == node })
			y.s.Nodes[n].Marks.OfflineLabel = false
			y.s.Nodes[n].Share.Parcels[0].Next = "online"
		}
	}
}

func (y *yard) schedule() {
	free := map[fleet.NodeID]fleet.MilliCPU{}
	for i := range y.s.Nodes {
		if y.s.Nodes[i].Marks.OfflineLabel {
			free[y.s.Nodes[i].ID] = y.s.Nodes[i].Allocatable.CPU
		}
	}
	for i := range y.s.Pods {
		free[y.s.Pods[i].Node] -= y.s.Pods[i].Requests.CPU
	}
	for _, stable := range []bool{true, false} {
		for i := range y.s.Pods {
			if p := &y.s.Pods[i]; p.NodeName == "" && !p.Deleting && y.member(p.Job, p.Role).Stable == stable {
				y.bind(p, stable, free)
			}
		}
	}
}

// bind puts a pod on the first machine with room; one that may be anywhere goes to lent machines first, which are the last ones.
func (y *yard) bind(p *fleet.Pod, stable bool, free map[fleet.NodeID]fleet.MilliCPU) {
	nodes := slices.Clone(y.s.Nodes)
	if !stable {
		slices.Reverse(nodes)
	}
	for _, n := range nodes {
		if !n.Marks.OfflineLabel || free[n.ID] < p.Requests.CPU || stable && n.Pool != "offline" {
			continue
		}
		free[n.ID] -= p.Requests.CPU
		p.Node, p.NodeName = n.ID, n.Name
		if !y.broken[p.Job] {
			p.Phase = fleet.PodRunning
		}
		return
	}
}

// running counts the members of a role that run.
func (y *yard) running(id fleet.JobID, role string) int {
	n := 0
	for i := range y.s.Pods {
		if p := &y.s.Pods[i]; p.Job == id && p.Role == role && p.Phase == fleet.PodRunning && !p.Deleting {
			n++
		}
	}
	return n
}

// bound counts the members of a role that have a machine.
func (y *yard) bound(id fleet.JobID, role string) int {
	n := 0
	for i := range y.s.Pods {
		if p := &y.s.Pods[i]; p.Job == id && p.Role == role && p.NodeName != "" && !p.Deleting {
			n++
		}
	}
	return n
}

func (y *yard) gang(t *testing.T, name string) GangView {
	t.Helper()
	i := slices.IndexFunc(y.plan.Gangs, func(g GangView) bool { return g.Job == fleet.JobID("batch/"+name) })
	if i < 0 {
		t.Fatalf("job %s has no gang: %+v", name, y.plan.Gangs)
	}
	return y.plan.Gangs[i]
}

func (y *yard) want(t *testing.T, name, role string, want int) {
	t.Helper()
	if got := y.member(fleet.JobID("batch/"+name), role).Desired; int(got) != want {
		t.Errorf("%s: %d members of job %s are asked for, want %d: %+v", y.s.At.Sub(t0), got, name, want, y.plan.Jobs)
	}
}

// A gang is asked for whole or not at all, and what does not fit holds nothing: a launcher without its workers would.
func TestGangWholeOrNothing(t *testing.T) {
	y := newYard(2, 0)
	y.job("big", fleet.Member{Role: "launcher", Min: 1, Max: 1, Remaining: -1, Stable: true, Request: fleet.Resources{CPU: 1000}}, member("worker", 60, 3, 4))
	y.job("small", member("worker", 30, 2, 2))
	y.cycle()
	y.want(t, "big", "launcher", 0)
	y.want(t, "big", "worker", 0)
	y.want(t, "small", "worker", 2)
	if g := y.gang(t, "big"); g.Phase != fleet.GangWaiting || g.Note.Text() != "waits for room for its whole gang: 0 of 1 launcher run, 0 of 3 worker run" {
		t.Errorf("%+v", g)
	}
	y.s.Nodes = append(y.s.Nodes, newYard(5, 0).s.Nodes[2:]...)
	y.cycle()
	y.want(t, "big", "launcher", 1)
	y.want(t, "big", "worker", 3)
	y.cycle()
	if g := y.gang(t, "big"); g.Phase != fleet.GangWhole {
		t.Errorf("%+v", g)
	}
	y.want(t, "big", "worker", 4)
}

// A launcher that waits for a machine is not asked for here, and its workers would hold room for nothing: its gang is
// given up as any other.
func TestLauncherWithoutRoom(t *testing.T) {
	y := newYard(1, 2)
	y.job("other", fleet.Member{Role: "ps", Min: 1, Max: 1, Remaining: -1, Stable: true, Request: fleet.Resources{CPU: 60000}})
	y.cycle()
	y.job("ring", fleet.Member{Role: "launcher", Min: 1, Max: 1, Remaining: -1, Stable: true, Fixed: true, Request: fleet.Resources{CPU: 8000}}, member("worker", 60, 2, 2))
	y.job("fits", member("worker", 60, 2, 2))
	gaveUp := false
	for range 12 {
		y.cycle()
		g := y.gang(t, "ring")
		gaveUp = gaveUp || g.Phase == fleet.GangBackedOff && !g.Note.None()
		if g.Phase == fleet.GangWhole {
			t.Fatalf("%s: whole without its launcher", y.s.At.Sub(t0))
		}
	}
	if got := y.running("batch/fits", "worker"); got != 2 || !gaveUp {
		t.Errorf("%d of the other job run, and the ring has %+v", got, y.gang(t, "ring"))
	}
	y.s.Jobs = slices.DeleteFunc(y.s.Jobs, func(j fleet.Job) bool { return j.ID != "batch/ring" })
	y.s.Pods = slices.DeleteFunc(y.s.Pods, func(p fleet.Pod) bool { return p.Job != "batch/ring" })
	for range 70 {
		y.cycle()
	}
	if g := y.gang(t, "ring"); g.Phase != fleet.GangWhole || y.running("batch/ring", "worker") != 2 {
		t.Errorf("with room for all: %+v", g)
	}
}

// Without a minimum of workers a launcher that waits takes what others have above theirs, and its own workers do not grow meanwhile.
func TestLauncherTakesGrowth(t *testing.T) {
	y := newYard(1, 1)
	y.job("growth", member("worker", 16, 0, 8))
	y.cycle()
	y.cycle()
	y.job("ring", fleet.Member{Role: "launcher", Min: 1, Max: 1, Remaining: -1, Stable: true, Fixed: true, Request: fleet.Resources{CPU: 8000}}, member("worker", 16, 0, 4))
	for range 4 {
		y.cycle()
	}
	if got := y.running("batch/ring", "launcher"); got != 1 {
		t.Errorf("the launcher waits: %+v", y.plan.Gangs)
	}
	// One that lost its machine is waited for as long as any gang, before its workers go.
	y = newYard(1, 1)
	y.job("ring", fleet.Member{Role: "launcher", Min: 1, Max: 1, Remaining: -1, Stable: true, Fixed: true, Request: fleet.Resources{CPU: 64000}}, member("worker", 16, 0, 4))
	for range 3 {
		y.cycle()
	}
	y.s.Pods = slices.DeleteFunc(y.s.Pods, func(p fleet.Pod) bool { return p.Role == "launcher" })
	y.s.Nodes[0].Marks.OfflineLabel, y.s.Nodes[0].Ready = false, false
	var kept []int
	for minute := range 9 {
		y.cycle()
		if y.member("batch/ring", "worker").Desired == 4 {
			kept = append(kept, minute)
		}
	}
	if want := []int{0, 1, 2, 3, 4, 5}; !slices.Equal(kept, want) {
		t.Errorf("workers stay in the minutes %v, want %v", kept, want)
	}
}

// A pod that an operator takes by its index goes when its index is the highest: a machine recalled from the middle of a
// ring ends no other.
func TestIndexedMembersLeaveByIndex(t *testing.T) {
	y := newYard(0, 4)
	ring := member("worker", 60, 0, 4)
	ring.Leaves = fleet.LeavesHighest
	y.job("ring", ring)
	for range 3 {
		y.cycle()
	}
	at := map[string]fleet.NodeID{}
	for _, name := range []string{"ring-worker-0", "ring-worker-1", "ring-worker-2", "ring-worker-3"} {
		if at[name] = y.named(t, name).Node; at[name] == "" {
			t.Fatalf("%s has no machine", name)
		}
	}
	y.recall(at["ring-worker-1"])
	for range 4 {
		y.cycle()
		for _, name := range []string{"ring-worker-0", "ring-worker-2", "ring-worker-3"} {
			if p := y.named(t, name); p.Node != at[name] {
				t.Fatalf("%s was ended for another", name)
			}
		}
	}
	if p := y.named(t, "ring-worker-1"); p.NodeName != "" {
		t.Errorf("one more runs on %s", p.NodeName)
	}
	y.want(t, "ring", "worker", 4)
	// With the highest its size falls, and the hole stays below it.
	y.recall(at["ring-worker-3"])
	for range 4 {
		y.cycle()
	}
	y.want(t, "ring", "worker", 3)
	for _, name := range []string{"ring-worker-0", "ring-worker-2"} {
		if p := y.named(t, name); p.Node != at[name] {
			t.Errorf("%s was ended for another", name)
		}
	}
	// One that still has notice stays to its deadline, though the size could fall with those that are gone.
	y = newYard(0, 4)
	y.job("ring", ring)
	for range 3 {
		y.cycle()
	}
	top := y.named(t, "ring-worker-3").Node
	y.recall(y.named(t, "ring-worker-2").Node)
	y.recall(top)
	y.s.Loans[slices.IndexFunc(y.s.Loans, func(l fleet.Loan) bool { return l.Node == top })].Deadline = y.s.At.Add(3 * time.Minute)
	for range 3 {
		y.cycle()
		y.want(t, "ring", "worker", 4)
	}
	for range 3 {
		y.cycle()
	}
	y.want(t, "ring", "worker", 2)
	// Pods that make room for others go from the top, however young: the one that was made again in the hole is not it.
	y = newYard(1, 0)
	ring = member("worker", 10, 1, 6)
	ring.Leaves = fleet.LeavesHighest
	y.job("ring", ring)
	y.cycle()
	y.cycle()
	y.named(t, "ring-worker-1").Created = y.s.At
	y.job("other", member("worker", 30, 1, 1))
	for range 3 {
		y.cycle()
	}
	y.want(t, "ring", "worker", 3)
	if got := y.running("batch/other", "worker"); got != 1 {
		t.Errorf("%d of the other run: %+v", got, y.plan.Gangs)
	}
}

// Of an indexed workload all get a notice whose index is not below the size, and no others: the ones that are missing
// are no reason to count on.
func TestVictimsByIndex(t *testing.T) {
	st := &staff{job: &fleet.Job{Members: []fleet.Member{{Leaves: fleet.LeavesHighest, Desired: 2}}}, roles: make([]roleState, 1)}
	for _, name := range []string{"w-0", "w-2", "w-10"} {
		st.roles[0].pods = append(st.roles[0].pods, &fleet.Pod{Name: fleet.Name{Name: name}})
	}
	c := &st.roles[0]
	c.stay = 3
	if st.settle(); c.going != 2 || c.stay != 1 || c.pods[0].Name.Name != "w-10" || c.standing()[0].Name.Name != "w-0" {
		t.Errorf("%d go and %d stay, %s first, want w-10 and w-2 to go", c.going, c.stay, c.pods[0].Name.Name)
	}
}

// An operator that chooses by itself gets the names of the pods that a smaller size takes: those that end, those that
// never began, and those that make room.
func TestVictimsAreNamed(t *testing.T) {
	y := newYard(1, 1)
	ray := member("worker", 30, 0, 4)
	ray.Leaves = fleet.LeavesNamed
	y.job("ray", ray)
	for range 3 {
		y.cycle()
	}
	var lent []string
	for i := range y.s.Pods {
		if p := &y.s.Pods[i]; p.NodeName == "m01" {
			lent = append(lent, p.Name.Name)
		}
	}
	slices.Sort(lent)
	y.recall("uid-01")
	var named []string
	for range 3 {
		y.cycle()
		for _, a := range y.plan.Jobs {
			named = append(named, a.Victims...)
		}
	}
	y.want(t, "ray", "worker", 2)
	if len(lent) != 2 || !slices.Contains(named, lent[0]) || !slices.Contains(named, lent[1]) {
		t.Errorf("told to take %v, want %v", named, lent)
	}
	for i := range y.s.Pods {
		if p := &y.s.Pods[i]; p.NodeName == "m00" && slices.Contains(named, p.Name.Name) {
			t.Errorf("%s stays and was named", p.Name.Name)
		}
	}
	y.job("other", member("worker", 40, 1, 1))
	y.cycle()
	if len(y.plan.Jobs) != 1 || y.plan.Jobs[0].To != 0 || len(y.plan.Jobs[0].Victims) != 2 {
		t.Errorf("%+v, want both that are at home named", y.plan.Jobs)
	}
}

// The room at home of a gang that ran stays while its workers are away, unless another gang has waited for the room for
// long. One that never ran gives it back at once.
func TestServersStay(t *testing.T) {
	y := newYard(1, 1)
	y.job("train", fleet.Member{Role: "ps", Min: 1, Max: 1, Remaining: -1, Stable: true, Request: fleet.Resources{CPU: 32000}}, member("worker", 60, 1, 1))
	y.broken["batch/train"] = true
	for range 8 {
		y.cycle()
		if y.gang(t, "train").Phase == fleet.GangBackedOff {
			y.want(t, "train", "ps", 0)
		}
	}
	y.broken["batch/train"] = false
	for range 10 {
		y.cycle()
	}
	if g := y.gang(t, "train"); g.Phase != fleet.GangWhole || !g.Ran {
		t.Fatalf("%+v", g)
	}
	y.recall("uid-01")
	backedOff := false
	for range 120 {
		y.cycle()
		backedOff = backedOff || y.gang(t, "train").Phase == fleet.GangBackedOff
		if y.want(t, "train", "ps", 1); t.Failed() {
			return
		}
	}
	if !backedOff {
		t.Errorf("%+v", y.gang(t, "train"))
	}
	y.job("big", member("worker", 60, 1, 1))
	since := y.s.At
	for range 180 {
		y.cycle()
		if waited := y.s.At.Sub(since); waited < DefaultOptions().GangPatience {
			y.want(t, "train", "ps", 1)
		}
	}
	if got := y.running("batch/big", "worker"); got != 1 {
		t.Errorf("%d of the gang that waits run: %+v", got, y.plan.Gangs)
	}
}

// A minimum that stands on what another tenant is guaranteed goes back when its lender wants it, as a whole, after the notice and no sooner:
// for a gang, and for a job that needs no minimum and has nothing.
func TestABorrowedMinimumGoesBack(t *testing.T) {
	for _, least := range []int{4, 0} {
		t.Run(fmt.Sprint(least), func(t *testing.T) { aBorrowedMinimumGoesBack(t, least) })
	}
}

func aBorrowedMinimumGoesBack(t *testing.T, least int) {
	t.Helper()
	y := newYard(1, 0)
	for _, id := range []string{"a", "b", "house"} {
		y.s.Tenants = append(y.s.Tenants, fleet.Tenant{ID: fleet.TenantID(id), Namespaces: []string{id}, Parent: "house", Accepted: true, Drain: 10 * time.Minute})
	}
	y.s.Tenants[2].Parent = ""
	y.s.Tenants[1].Guarantee = fleet.Resources{CPU: 64000, Memory: 256 * fleet.GiB}
	y.job("ring", member("worker", 16, 4, 4)).ID = "a/ring"
	for range 3 {
		y.cycle()
	}
	if got := y.running("a/ring", "worker"); got != 4 {
		t.Fatalf("%d members run on what nobody else wants", got)
	}
	y.job("own", member("worker", 16, least, 4)).ID = "b/own"
	since := y.s.At
	for range 30 {
		y.cycle()
		if got := y.running("a/ring", "worker"); y.s.At.Sub(since) < 10*time.Minute && got != 4 {
			t.Fatalf("%s after the lender asked %d of 4 run", y.s.At.Sub(since), got)
		}
	}
	if a, b := y.running("a/ring", "worker"), y.running("b/own", "worker"); a != 0 || b != 4 {
		t.Errorf("the borrower runs %d, the lender %d: %+v", a, b, y.plan.Gangs)
	}
}

// Minima take stable room first, growth takes lent room first, and stable members never leave home.
func TestMinimaAtHomeGrowthOnLoans(t *testing.T) {
	y := newYard(1, 1)
	y.job("train", fleet.Member{Role: "ps", Min: 1, Max: 1, Remaining: -1, Stable: true, Request: fleet.Resources{CPU: 32000}}, member("worker", 16, 3, 8))
	x := (&maker{in: &Input{Snapshot: &y.s, Options: DefaultOptions()}}).forTest()
	x.minima()
	for _, p := range placed(x) {
		if want := map[string]int{"m00": 3, "m01": 1}; p.n != want[p.node] {
			t.Errorf("%d members on %s, want %d: the server and two workers fit at home", p.n, p.node, want[p.node])
		}
	}
	y = newYard(1, 1)
	y.job("ps", fleet.Member{Role: "ps", Min: 5, Max: 5, Remaining: -1, Stable: true, Request: fleet.Resources{CPU: 16000}})
	y.cycle()
	y.want(t, "ps", "ps", 0)
}

// A gang that does not run in time gives back what it holds, waits twice as long each time, and begins again once it
// ran.
func TestGangRollsBack(t *testing.T) {
	y := newYard(2, 0)
	y.job("bad", member("worker", 60, 2, 2))
	y.job("good", member("worker", 60, 1, 1))
	y.broken["batch/bad"] = true
	var asked []int
	for minute := range 40 {
		y.cycle()
		if y.member("batch/bad", "worker").Desired > 0 {
			asked = append(asked, minute)
		}
	}
	// Asked for from 0 to 4; one minute later again, two minutes later, four minutes later...; the other job takes a machine as soon as it can.
	if want := []int{0, 1, 2, 3, 4}; !slices.Equal(asked[:5], want) {
		t.Errorf("asked for at %v, want %v first", asked, want)
	}
	y.want(t, "good", "worker", 1)
	if got := y.running("batch/good", "worker"); got != 1 {
		t.Errorf("%d of the other job run", got)
	}
	y = newYard(2, 0)
	y.job("bad", member("worker", 60, 2, 2))
	y.broken["batch/bad"] = true
	var backs []time.Duration
	for range 60 {
		y.cycle()
		if g := y.gang(t, "bad"); g.Phase == fleet.GangBackedOff && g.Since.Equal(y.s.At.Add(-time.Minute)) {
			backs = append(backs, g.RetryAt.Sub(g.Since))
		}
	}
	if want := []time.Duration{1, 2, 4, 8, 16}; len(backs) < 4 || backs[0] != want[0]*time.Minute || backs[1] != 2*time.Minute || backs[2] != 4*time.Minute || backs[3] != 8*time.Minute {
		t.Errorf("waits of %v, want doubled ones from a minute on", backs)
	}
	y.broken["batch/bad"] = false
	for range 40 {
		y.cycle()
	}
	if g := y.gang(t, "bad"); g.Phase != fleet.GangWhole || g.Tries != 0 {
		t.Errorf("%+v", g)
	}
}

// Pods that cannot be made get no room, and their job no back-off: it goes on at once when they can. Others have the room meanwhile.
func TestRefusedPodsHoldNoRoom(t *testing.T) {
	divisible := member("worker", 60, 0, 2)
	divisible.Divisible = true
	for name, workers := range map[string]fleet.Member{"a gang": member("worker", 60, 2, 2), "above its minimum": member("worker", 60, 0, 2), "divisible": divisible} {
		t.Run(name, func(t *testing.T) {
			y := newYard(2, 0)
			y.job("bad", workers).Priority = fleet.PriorityHigh
			y.refused["batch/bad"] = true
			y.cycle() // it is asked for
			y.job("good", member("worker", 60, 2, 2))
			for range 40 {
				y.cycle()
			}
			if got := y.running("batch/good", "worker"); got != 2 {
				t.Errorf("%d of the other job run next to room that is kept for pods that cannot be made", got)
			}
			if got := y.member("batch/bad", "worker").Desired; got == 0 {
				t.Error("its size was taken back, so that its controller does not try again")
			}
			if workers.Min > 0 {
				if g := y.gang(t, "bad"); g.Phase != fleet.GangForming || g.Tries != 0 || !strings.Contains(g.Note.Text(), "exceeded quota: team") {
					t.Errorf("%+v", g)
				}
			}
			y.refused["batch/bad"] = false
			y.member("batch/good", "worker").Remaining = 0
			y.s.Pods = slices.DeleteFunc(y.s.Pods, func(p fleet.Pod) bool { return p.Job == "batch/good" })
			y.cycle()
			y.cycle()
			if got := y.running("batch/bad", "worker"); got != 2 {
				t.Errorf("%d run once nothing refuses its pods", got)
			}
		})
	}
}

// Gangs of which a quota lets a part be made hold that part for nothing, and what each of them holds is what the other lacks: one after the other gives it back.
func TestHalfRefusedGangs(t *testing.T) {
	for name, c := range map[string]struct{ jobs, size, quota, whole int }{
		"two share a quota for one":    {2, 4, 6, 1},
		"three share a quota for two":  {3, 4, 9, 2},
		"one that is never enough for": {1, 4, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(2*c.jobs*c.size, 0)
			y.podQuota = c.quota
			for i := range c.jobs {
				y.job(fmt.Sprintf("train-%d", i), member("worker", 60, c.size, c.size))
			}
			most, rests := 0, 0
			for range 60 {
				y.cycle()
				whole := 0
				for i := range y.s.Jobs {
					if y.running(y.s.Jobs[i].ID, "worker") == c.size {
						whole++
					}
				}
				if most = max(most, whole); len(y.s.Pods) == 0 {
					rests++
				}
			}
			if most != c.whole {
				t.Errorf("%d of %d gangs are whole, want %d", most, c.jobs, c.whole)
			}
			if c.whole == 0 && rests < 20 {
				t.Errorf("a gang that can never be whole gave its machines back for %d of 60 minutes", rests)
			}
		})
	}
}

// A gang that backs off is asked for nowhere, also in a role of which no pod can be made: what another role gives back of a quota is not for it.
func TestRefusedRoleBacksOff(t *testing.T) {
	y := newYard(6, 0)
	j := y.job("train", member("worker", 60, 2, 2), member("ps", 60, 2, 2))
	y.podQuota = 2
	for range 4 {
		y.cycle()
	}
	if got := y.gang(t, "train").Phase; got != fleet.GangForming {
		t.Fatalf("its gang is %s", got)
	}
	for range 20 {
		y.cycle()
		if y.gang(t, "train").Phase == fleet.GangBackedOff {
			for _, role := range []string{"worker", "ps"} {
				if got := y.member(j.ID, role).Desired; got != 0 {
					t.Errorf("%d %s are asked for of a gang that backs off", got, role)
				}
			}
			return
		}
	}
	t.Error("it never backs off")
}

// The bound of a job holds also while its pods are refused.
func TestRefusedPodsStayWithinMax(t *testing.T) {
	y := newYard(8, 0)
	y.job("train", member("worker", 60, 0, 6))
	y.refused["batch/train"] = true
	y.cycle()
	if got := y.member("batch/train", "worker").Desired; got != 6 {
		t.Fatalf("%d are asked for", got)
	}
	y.member("batch/train", "worker").Max = 2
	y.cycle()
	if got := y.member("batch/train", "worker").Desired; got != 2 {
		t.Errorf("%d are asked for of a job that may have 2", got)
	}
}

// A new leader takes nothing away before it has watched, and a freeze is no time in which a gang could form.
func TestGangPatienceOfLeaders(t *testing.T) {
	for _, c := range []struct {
		name string
		bend func(in *Input)
		want fleet.GangPhase
	}{
		{"in time", func(in *Input) { in.Snapshot.At = t0.Add(4 * time.Minute) }, fleet.GangForming},
		{"too late", func(*Input) {}, fleet.GangBackedOff},
		{"under a new leader", func(in *Input) { in.Snapshot.WatchedSince = in.Snapshot.At }, fleet.GangForming},
		{"frozen", func(in *Input) { in.Snapshot.Frozen = "audit" }, fleet.GangForming},
		{"thawed", func(in *Input) { in.Thawed = in.Snapshot.At }, fleet.GangForming},
	} {
		y := newYard(1, 0)
		y.job("train", member("worker", 60, 1, 1)).Members[0].Desired = 1
		y.s.Jobs[0].Gang = fleet.Gang{Phase: fleet.GangForming, Since: t0}
		y.s.At = t0.Add(10 * time.Minute)
		in := Input{Snapshot: &y.s, Options: DefaultOptions()}
		c.bend(&in)
		if plan := made(in); plan.Gangs[0].Phase != c.want {
			t.Errorf("%s: %+v, want %s", c.name, plan.Gangs[0], c.want)
		}
	}
}

// Members above the minima of others make room for a minimum that waits, and not one member more than needed.
func TestGrowthMakesRoomForMinima(t *testing.T) {
	y := newYard(4, 0)
	y.job("early", member("worker", 16, 2, 40))
	for range 4 {
		y.cycle()
	}
	y.want(t, "early", "worker", 16)
	y.job("late", member("worker", 32, 2, 2))
	y.cycle()
	y.want(t, "early", "worker", 12)
	y.want(t, "late", "worker", 0)
	y.cycle()
	y.cycle()
	y.cycle()
	if got := y.running("batch/late", "worker"); got != 2 {
		t.Errorf("%d of the late job run: %+v", got, y.plan.Gangs)
	}
	y.want(t, "early", "worker", 12)
}

// Room that is made for a gang is for no other, though a part of it is free at once.
func TestRoomThatIsMadeIsKept(t *testing.T) {
	y := newYard(1, 0)
	y.job("early", member("worker", 16, 0, 3))
	y.cycle()
	y.cycle()
	y.job("late", member("worker", 64, 1, 1))
	y.job("third", member("worker", 16, 0, 4))
	for range 4 {
		y.cycle()
		y.want(t, "third", "worker", 0)
	}
	if got := y.running("batch/late", "worker"); got != 1 {
		t.Errorf("%d of the gang run: %+v", got, y.plan.Gangs)
	}
}

// A job that leaves the machine that is kept for a gang does not grow next to it: the size would rise again, and no pod
// would leave.
func TestWhoMakesRoomDoesNotGrow(t *testing.T) {
	room := func() *yard {
		y := newYard(1, 0)
		y.job("early", member("worker", 16, 0, 4))
		y.cycle()
		y.cycle()
		lent := newYard(1, 1)
		y.s.Nodes, y.s.Loans = append(y.s.Nodes, lent.s.Nodes[1]), lent.s.Loans
		y.job("late", fleet.Member{Role: "ps", Min: 1, Max: 1, Remaining: -1, Stable: true, Request: fleet.Resources{CPU: 64000}})
		return y
	}
	y := room()
	y.cycle()
	y.want(t, "early", "worker", 0)
	for range 4 {
		y.cycle()
	}
	if ps, workers := y.running("batch/late", "ps"), y.running("batch/early", "worker"); ps != 1 || workers != 4 {
		t.Errorf("%d servers and %d workers run: %+v", ps, workers, y.plan.Gangs)
	}
	// Nor while its operator has not carried the smaller size out.
	y = room()
	y.member("batch/early", "worker").Desired = 0
	y.s.Sort()
	if plan := made(Input{Snapshot: &y.s, Gangs: y.gangs, Options: DefaultOptions()}); len(plan.Jobs) > 0 {
		t.Errorf("%+v", plan.Jobs)
	}
}

// mixed are two machines full of one job's members, whose ages alternate between them, and another job that waits.
func mixed(leaves fleet.LeaveOrder, waits fleet.Member) *yard {
	y := still(16, 8)
	y.s.Nodes = append(y.s.Nodes, newYard(2, 0).s.Nodes[1])
	y.s.Jobs[0].Members[0].Leaves = leaves
	for i := range y.s.Pods {
		p := &y.s.Pods[i]
		p.Node, p.NodeName = y.s.Nodes[i%2].ID, y.s.Nodes[i%2].Name
		p.Created = p.Created.Add(time.Duration(i) * time.Second)
	}
	y.job("gang", waits)
	return y
}

// A workload that accepts names makes room on one machine.
func TestThoseWhoMakeRoomAreNamed(t *testing.T) {
	y := mixed(fleet.LeavesNamed, member("worker", 64, 1, 1))
	plan := made(Input{Snapshot: &y.s, Options: DefaultOptions()})
	if len(plan.Jobs) != 1 || plan.Jobs[0].To != 4 || !slices.Equal(plan.Jobs[0].Victims, []string{"j0-00", "j0-02", "j0-04", "j0-06"}) {
		t.Errorf("%+v, want all members on the first machine to go", plan.Jobs)
	}
	// For another job's share, too: one more of 32 cores has room where two leave the same machine.
	y = mixed(fleet.LeavesNamed, member("worker", 32, 0, 1))
	plan = made(Input{Snapshot: &y.s, Options: DefaultOptions()})
	if len(plan.Jobs) != 1 || !slices.Equal(plan.Jobs[0].Victims, []string{"j0-05", "j0-07"}) {
		t.Errorf("%+v, want two members on one machine to go", plan.Jobs)
	}
}

// Where no workload accepts names, the plan computes with the pods that the operator takes: the room is made at once,
// and not piece by piece elsewhere.
func TestVictimsMakeRoom(t *testing.T) {
	y := mixed(fleet.LeavesEvicted, member("worker", 64, 1, 1))
	var sizes []int32
	for range 5 {
		y.cycle()
		for _, a := range y.plan.Jobs {
			if a.Job == "batch/j0" {
				sizes = append(sizes, a.To)
			}
		}
	}
	// The youngest are in turn on both machines, so that seven have to go until one of them is empty; then three come back to the other.
	if got := y.running("batch/gang", "worker"); got != 1 || !slices.Equal(sizes, []int32{1, 4}) {
		t.Errorf("%d of the gang run, and the other job had the sizes %v: %+v", got, sizes, y.plan.Gangs)
	}
}

// still fills a yard of one machine with pods of jobs that run for an hour already.
func still(cores int, running ...int) *yard {
	y := newYard(1, 0)
	for i, n := range running {
		j := y.job(fmt.Sprintf("j%d", i), member("worker", cores, 0, 100))
		j.Members[0].Desired = int32(n)
		for k := range n {
			name := fleet.Name{Namespace: "batch", Name: fmt.Sprintf("j%d-%02d", i, k)}
			y.s.Pods = append(y.s.Pods, fleet.Pod{ID: fleet.UID(name.Name), Name: name, Class: fleet.PodOffline, Job: j.ID, Role: "worker", Requests: j.Members[0].Request,
				Phase: fleet.PodRunning, Created: t0.Add(-time.Hour), Node: y.s.Nodes[0].ID, NodeName: y.s.Nodes[0].Name})
		}
	}
	return y
}

// Shares are levelled where that is worth a restart, in small steps, and not for the last member.
func TestLevelling(t *testing.T) {
	for _, c := range []struct {
		a, b, want int // members of a, of b, and of a after one plan
	}{{6, 4, 6}, {7, 3, 6}, {10, 0, 9}, {9, 1, 8}, {5, 5, 5}} {
		y := still(6, c.a, c.b)
		plan := made(Input{Snapshot: &y.s, Options: DefaultOptions()})
		got := c.a
		for _, j := range plan.Jobs {
			if j.Job != "batch/j0" {
				t.Errorf("%d and %d: %+v: room is given to nobody before it is free", c.a, c.b, j)
			}
			got = int(j.To)
		}
		if got != c.want {
			t.Errorf("%d and %d: the first has %d members next, want %d", c.a, c.b, got, c.want)
		}
	}
	y := still(6, 7, 3)
	for i := range y.s.Pods {
		y.s.Pods[i].Created = t0.Add(-9 * time.Minute)
	}
	if plan := made(Input{Snapshot: &y.s, Options: DefaultOptions()}); len(plan.Jobs) > 0 {
		t.Errorf("members that came nine minutes ago make room: %+v", plan.Jobs)
	}
	for _, c := range []struct {
		name string
		b    int // members of the second job, of 10
		ago  time.Duration
		want int
	}{{"while its machines are called home", 3, 29 * time.Minute, 7}, {"half an hour later", 3, 31 * time.Minute, 6}, {"when it has nothing left", 0, time.Minute, 9}} {
		y := still(6, 10-c.b, c.b)
		y.s.Jobs[1].LastRecalled = fleet.KnownAt(t0.Add(-c.ago), t0.Add(-c.ago))
		got := 10 - c.b
		if plan := made(Input{Snapshot: &y.s, Options: DefaultOptions()}); len(plan.Jobs) > 0 {
			got = int(plan.Jobs[0].To)
		}
		if got != c.want {
			t.Errorf("%s: the other job has %d members next, want %d", c.name, got, c.want)
		}
	}
}

// A parallelism that was lowered stands until the workload's controller has carried it out.
func TestANoticeStays(t *testing.T) {
	y := still(16, 4)
	y.s.Jobs[0].Members[0].Desired = 2
	if plan := made(Input{Snapshot: &y.s, Options: DefaultOptions()}); len(plan.Jobs) > 0 {
		t.Errorf("%+v", plan.Jobs)
	}
}

// A minimum is never taken for another's, be it of a higher priority.
func TestMinimaStand(t *testing.T) {
	y := newYard(1, 0)
	y.job("low", member("worker", 32, 2, 2))
	y.cycle()
	y.cycle()
	y.job("high", member("worker", 32, 2, 2)).Priority = fleet.PriorityHigh
	for range 5 {
		y.cycle()
	}
	y.want(t, "low", "worker", 2)
	y.want(t, "high", "worker", 0)
}

// Small gangs pass a large one for a while, and not for ever.
func TestNoGangStarves(t *testing.T) {
	y := newYard(2, 0)
	y.job("small-0", member("worker", 32, 1, 1))
	y.cycle()
	y.job("large", member("worker", 64, 2, 2))
	born := map[fleet.JobID]time.Time{}
	for k := 1; k < 90; k++ {
		// Each small one works for ten minutes, and another comes every third.
		if k%3 == 0 {
			y.job(fmt.Sprintf("small-%d", k), member("worker", 32, 1, 1)).Created = y.s.At
		}
		y.cycle()
		for i := range y.s.Jobs {
			j := &y.s.Jobs[i]
			if j.ID == "batch/large" || y.running(j.ID, "worker") == 0 {
				continue
			}
			if born[j.ID].IsZero() {
				born[j.ID] = y.s.At
			}
			if y.s.At.Sub(born[j.ID]) >= 10*time.Minute {
				j.Members[0].Remaining, j.Members[0].Desired = 0, 0
				y.s.Pods = slices.DeleteFunc(y.s.Pods, func(p fleet.Pod) bool { return p.Job == j.ID })
			}
		}
		if y.running("batch/large", "worker") == 2 {
			return
		}
	}
	t.Errorf("the large job has waited for 90 minutes: %+v", y.gang(t, "large"))
}

// Equals get equal shares of what is above their minima, whichever came first, and then no member moves.
func TestFairGrowth(t *testing.T) {
	y := newYard(4, 4)
	y.job("a", member("worker", 16, 4, 100))
	y.job("b", member("worker", 8, 0, 100))
	for range 20 {
		y.cycle()
	}
	y.job("c", member("worker", 16, 0, 100))
	moves := 0
	for k := range 60 {
		y.cycle()
		if k > 40 {
			moves += len(y.plan.Jobs)
		}
	}
	// 512 cores, less the minimum of 64: about 149 each, within the band of a quarter.
	for _, c := range []struct {
		name        string
		cores, less int
	}{{"a", 16, 4}, {"b", 8, 0}, {"c", 16, 0}} {
		if got := (y.running(fleet.JobID("batch/"+c.name), "worker") - c.less) * c.cores; got < 120 || got > 192 {
			t.Errorf("job %s has %d cores above its minimum, want about 149", c.name, got)
		}
	}
	if moves > 0 {
		t.Errorf("%d resizes when shares are level: %+v", moves, y.plan.Jobs)
	}
}

// Divisible work fills what is left, and gives way first.
func TestDivisibleFillsLast(t *testing.T) {
	y := newYard(1, 0)
	spark := member("executor", 4, 0, 100)
	spark.Divisible = true
	y.job("spark", spark)
	y.job("train", member("worker", 24, 1, 2))
	for range 4 {
		y.cycle()
	}
	y.want(t, "spark", "executor", 4)
	y.want(t, "train", "worker", 2)
	y.job("more", member("worker", 16, 1, 1))
	for range 4 {
		y.cycle()
	}
	y.want(t, "more", "worker", 1)
	y.want(t, "spark", "executor", 0)
}

// The invariants between jobs, over random jobs, machines that come and go, and pods that never start.
func TestPropertyJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y := newYard(rapid.IntRange(0, 4).Draw(t, "home"), rapid.IntRange(0, 3).Draw(t, "lent"))
		drawJobs(t, y)
		for k := range rapid.IntRange(3, 25).Draw(t, "cycles") {
			before := map[string]int32{}
			y.s.Sort()
			for _, j := range y.s.Jobs {
				for _, mem := range j.Members {
					before[string(j.ID)+"/"+mem.Role] = mem.Desired
				}
			}
			wasWhole := wholeOf(y)
			y.cycle()
			checkJobs(t, y, before, wasWhole)
			if n := len(y.s.Nodes); n > 0 && k%5 == 4 && rapid.Bool().Draw(t, "close") {
				i := rapid.IntRange(0, n-1).Draw(t, "machine")
				m := &y.s.Nodes[i]
				m.Ready, m.Marks.OfflineLabel = !m.Ready, !m.Marks.OfflineLabel
			}
			if rapid.IntRange(0, 5).Draw(t, "break") == 0 && len(y.s.Jobs) > 0 {
				id := y.s.Jobs[rapid.IntRange(0, len(y.s.Jobs)-1).Draw(t, "job")].ID
				y.broken[id] = !y.broken[id]
			}
		}
	})
}

func drawJobs(t *rapid.T, y *yard) {
	for i := range rapid.IntRange(1, 5).Draw(t, "jobs") {
		var members []fleet.Member
		for _, role := range []string{"a", "b"}[:rapid.IntRange(1, 2).Draw(t, "roles")] {
			m := member(role, rapid.SampledFrom([]int{1, 4, 16, 40}).Draw(t, "cores"), rapid.IntRange(0, 6).Draw(t, "min"), 0)
			m.Max = m.Min + int32(rapid.IntRange(0, 12).Draw(t, "more"))
			m.Max = max(m.Max, 1)
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				m.Stable = true
			case 1:
				m.Divisible = true
			case 2:
				m.Stable, m.Fixed, m.Min = true, true, m.Max
			case 3:
				m.Leaves = fleet.LeavesHighest
			}
			members = append(members, m)
		}
		y.job(fmt.Sprintf("j%d", i), members...).Priority = fleet.JobPriority(rapid.IntRange(0, 1).Draw(t, "priority"))
	}
}

// wholeOf are the jobs whose gang runs, and whose pods are all on machines that offline work may use.
func wholeOf(y *yard) map[fleet.JobID]bool {
	out := map[fleet.JobID]bool{}
	for i := range y.s.Jobs {
		j := &y.s.Jobs[i]
		whole, any := true, false
		for k := range j.Members {
			if mem := &j.Members[k]; gangs(mem) {
				any = true
				whole = whole && y.running(j.ID, mem.Role) >= int(leastOf(mem))
			} else if mem.Fixed {
				whole = whole && y.bound(j.ID, mem.Role) >= int(mem.Max)
			}
		}
		out[j.ID] = whole && any
	}
	return out
}

func checkJobs(t *rapid.T, y *yard, before map[string]int32, wasWhole map[fleet.JobID]bool) {
	// An earlier request may have lost its room since; nothing is added to one that does not fit.
	var asked fleet.Resources
	grown, promised, ran := false, map[fleet.JobID]bool{}, map[fleet.JobID]bool{}
	for _, g := range y.plan.Gangs {
		ran[g.Job] = g.Ran
		promised[g.Job] = g.Phase == fleet.GangForming && g.Since.Before(y.plan.At)
	}
	for i := range y.s.Jobs {
		j := &y.s.Jobs[i]
		full, none := true, true
		for k := range j.Members {
			mem := &j.Members[k]
			if n := y.bound(j.ID, mem.Role); mem.Fixed {
				continue // made by its operator, whenever it likes
			} else if promised[j.ID] || mem.Leaves == fleet.LeavesHighest {
				asked = asked.Add(mem.Request.Times(int64(n)))
			} else {
				asked = asked.Add(mem.Request.Times(int64(mem.Desired)))
			}
			grown = grown || mem.Desired > before[string(j.ID)+"/"+mem.Role]
			if mem.Desired > mem.Max {
				t.Fatalf("job %s asks for %d of %d", j.ID, mem.Desired, mem.Max)
			}
			if gangs(mem) {
				if kept := mem.Stable && ran[j.ID]; !kept {
					full, none = full && mem.Desired >= leastOf(mem), none && mem.Desired == 0
				}
				if wasWhole[j.ID] && mem.Desired < leastOf(mem) {
					t.Fatalf("the minimum of job %s, which runs, was lowered to %d", j.ID, mem.Desired)
				}
			}
		}
		if !full && !none {
			t.Fatalf("a part of the gang of job %s is asked for: %+v", j.ID, j.Members)
		}
	}
	var room fleet.Resources
	for i := range y.s.Nodes {
		if n := &y.s.Nodes[i]; n.Ready {
			room = room.Add(n.Allocatable)
			continue
		}
		for k := range y.s.Pods {
			if p := &y.s.Pods[k]; p.Node == y.s.Nodes[i].ID {
				room = room.Add(p.Requests)
			}
		}
	}
	if grown && asked.CPU > room.CPU {
		t.Fatalf("%s are asked for, and the room is %s", asked, room)
	}
}

// placement counts members on a machine.
type onNode struct {
	node string
	n    int
}

// forTest prepares a maker for its jobs alone.
func (m *maker) forTest() *staffing {
	*m = *newMaker(m.in)
	m.size()
	return m.newStaffing()
}

// placed counts what a staffing has placed on each machine.
func placed(x *staffing) []onNode {
	count := map[string]int{}
	for p := range x.room().Pods() {
		count[x.m.in.Snapshot.Node(p.Node).Name]++
	}
	var out []onNode
	for i := range x.m.in.Snapshot.Nodes {
		name := x.m.in.Snapshot.Nodes[i].Name
		out = append(out, onNode{name, count[name]})
	}
	return out
}

// A requested member that waits for a machine takes its tenant's quota: it is seated in the moment that the machine is
// there, and another job that had grown into the same quota would be beyond it. A member that is given up takes it until its
// size has fallen, which is not before the next plan.
func TestWhatIsAskedForIsCharged(t *testing.T) {
	ring, rise := member("worker", 64, 2, 2), member("worker", 65, 0, 2) // machines have 64 cores
	for _, tc := range []struct {
		name               string
		member             fleet.Member
		asked, stays, fill int
		since              time.Duration
	}{
		{name: "no gang", member: ring, fill: 4},
		{name: "a gang", member: ring, asked: 2, stays: 2},
		{name: "a gang that is given up", member: ring, asked: 2, since: time.Hour},
		{name: "no growth", member: rise, fill: 4},
		{name: "growth that finds no room", member: rise, asked: 1, fill: 3},
		{name: "growth beyond the quota", member: rise, asked: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			y := newYard(2, 0)
			y.s.Nodes[1].Ready = false
			y.s.Tenants = []fleet.Tenant{{ID: "lab", Namespaces: []string{"batch"}, Accepted: true, Guarantee: fleet.Resources{CPU: 128000, Memory: 512 * fleet.GiB},
				BorrowingLimit: fleet.KnownAt(fleet.Resources{}, t0)}}
			first := y.job("first", tc.member)
			if first.Members[0].Desired = int32(tc.asked); tc.member.Min > 0 && tc.asked > 0 {
				first.Gang = fleet.Gang{Phase: fleet.GangForming, Since: t0.Add(-tc.since)}
			}
			y.job("second", member("worker", 16, 0, 8))
			y.cycle()
			y.want(t, "first", "worker", tc.stays)
			y.want(t, "second", "worker", tc.fill)
		})
	}
}

// Where the bundled scheduler has pods of a gang to place, it measures how long the gang waits: the gang is given up when the scheduler reports it, and not
// by a report on an earlier try. A scheduler that reports nothing for twice the time is taken not to run. A job says how long its gang has.
func TestGangTimeoutIsTheSchedulers(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout time.Duration
		after   time.Duration
		report  fleet.Known[time.Time]
		bundled bool
		want    fleet.GangPhase
	}{
		{"its own time", 20 * time.Minute, 19 * time.Minute, fleet.Known[time.Time]{}, false, fleet.GangForming},
		{"its own time is over", 20 * time.Minute, 20 * time.Minute, fleet.Known[time.Time]{}, false, fleet.GangBackedOff},
		{"no report", 0, 9 * time.Minute, fleet.Known[time.Time]{}, true, fleet.GangForming},
		{"a report", 0, 3 * time.Minute, fleet.KnownAt(t0.Add(2*time.Minute), t0), true, fleet.GangBackedOff},
		{"a report on an earlier try", 0, 9 * time.Minute, fleet.KnownAt(t0.Add(-time.Minute), t0), true, fleet.GangForming},
		{"no scheduler", 0, 10 * time.Minute, fleet.Known[time.Time]{}, true, fleet.GangBackedOff},
	} {
		y := newYard(1, 0)
		j := y.job("train", member("worker", 60, 1, 1))
		j.Members[0].Desired, j.GangTimeout, j.Gang = 1, c.timeout, fleet.Gang{Phase: fleet.GangForming, Since: t0}
		y.pod(j, &j.Members[0], "worker-0")
		y.s.Pods[0].Bundled, y.s.Pods[0].GangTimedOut = c.bundled, c.report
		y.s.At = t0.Add(c.after)
		if plan := made(Input{Snapshot: &y.s, Options: DefaultOptions()}); plan.Gangs[0].Phase != c.want {
			t.Errorf("%s: %+v, want %s", c.name, plan.Gangs[0], c.want)
		}
	}
}
