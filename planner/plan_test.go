package planner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
)

var t0 = time.Date(2026, 3, 2, 22, 0, 0, 0, time.UTC)

// world is a small fleet that tests bend: one online pool of machines of 64 cores in two sockets, one offline pool, one job.
type world struct {
	s    fleet.Snapshot
	flat map[fleet.ServiceID]float64 // the load that the tide stays at, in cores
	// rises are tides that do not stay there.
	rises []rise
	// refused are pods whose return from standby failed.
	refused map[fleet.UID]bool
}

// rise is a tide that reaches a load at a time from now, and stays.
type rise struct {
	service fleet.ServiceID
	in      time.Duration
	load    float64
}

func newWorld(machines int) *world {
	w := &world{flat: map[fleet.ServiceID]float64{}}
	w.s = fleet.Snapshot{Revision: 1, At: t0, LeaderEpoch: 1, WatchedSince: t0.Add(-time.Hour)}
	w.s.Pools = []fleet.Pool{
		{ID: "offline", Class: fleet.Offline, Mode: fleet.Auto, Budget: wide()},
		{ID: "online", Class: fleet.Online, Mode: fleet.Auto, Unit: fleet.UnitSocket, LowWatermark: 0.05, HighWatermark: 0.1,
			Notice: 2 * time.Minute, NoticeMax: 10 * time.Minute, MovesAtOnce: 10, MovesPerHour: 60, MinimumTerm: 30 * time.Minute,
			Budget: fleet.DisruptionBudget{EvictionsPerMinute: 60, ServiceShare: 0.2, FleetShare: 0.1}},
	}
	for i := range machines {
		w.s.Nodes = append(w.s.Nodes, machineOf(i, "online"))
	}
	w.s.Jobs = []fleet.Job{{ID: "batch/train", Members: []fleet.Member{{Role: "worker", Kind: "Job", Workload: fleet.Name{Namespace: "batch", Name: "train"},
		Max: 40, Remaining: 1000, Request: fleet.Resources{CPU: 16000, Memory: 32 * fleet.GiB}}}}}
	return w
}

// service adds a service of n ready pods of 8 cores, placed on machines round robin from first, whose tide stays at the given load.
func (w *world) service(name string, n, first, spread int, load float64) *world {
	id := fleet.ServiceID("shop/" + name)
	svc := fleet.Service{ID: id, Target: fleet.ParseName(string(id)), TargetKind: "Deployment", TargetFound: true, Mode: fleet.Auto, Pause: fleet.PauseNone,
		Actuation: fleet.ByScale, SLO: fleet.Levels(fleet.CPU(0.7)), Min: 1, Max: 500, Quantile: 0.95, Steerable: true,
		Request: fleet.Resources{CPU: 8000, Memory: 16 * fleet.GiB}, Template: fleet.Resources{CPU: 8000, Memory: 16 * fleet.GiB}, Desired: fleet.KnownAt(int32(n), t0), Created: t0.Add(-30 * 24 * time.Hour)}
	for i := range n {
		node := &w.s.Nodes[(first+i%spread)%len(w.s.Nodes)]
		p := fleet.Pod{ID: fleet.UID(fmt.Sprintf("%s-%d", name, i)), Name: fleet.Name{Namespace: "shop", Name: fmt.Sprintf("%s-%03d", name, i)},
			Node: node.ID, NodeName: node.Name, Class: fleet.PodOnline, Service: id, Requests: svc.Request, Phase: fleet.PodRunning, Ready: true,
			CurrentRevision: true, Created: t0.Add(-2 * time.Hour), Started: fleet.KnownAt(t0.Add(-2*time.Hour), t0), ReadySince: fleet.KnownAt(t0.Add(-2*time.Hour), t0)}
		svc.Pods = append(svc.Pods, p)
		w.s.Pods = append(w.s.Pods, p)
	}
	w.s.Services = append(w.s.Services, svc)
	w.flat[id] = load
	return w
}

// offline adds machines at home in the offline pool, on terms on which it lends.
func (w *world) offline(n int) {
	p := &w.s.Pools[0]
	p.Notice, p.NoticeMax, p.MovesAtOnce, p.MovesPerHour = time.Minute, 10*time.Minute, 10, 60
	for range n {
		i := len(w.s.Nodes)
		m := machineOf(i, "offline")
		m.Zone, m.Marks = "z0", fleet.NodeMarks{HolderTaint: true, OfflineLabel: true, HomeLabel: true}
		w.s.Nodes = append(w.s.Nodes, m)
	}
}

// waits adds pods of a service that the scheduler found no room for.
func (w *world) waits(name string, n int) {
	for i := range w.s.Services {
		if svc := &w.s.Services[i]; svc.ID == fleet.ServiceID("shop/"+name) {
			for k := range n {
				p := fleet.Pod{ID: fleet.UID(fmt.Sprintf("%s-w%d", name, k)), Name: fleet.Name{Namespace: "shop", Name: fmt.Sprintf("%s-w%02d", name, k)},
					Class: fleet.PodOnline, Service: svc.ID, Requests: svc.Request, Phase: fleet.PodPending, Unschedulable: true, CurrentRevision: true, Created: t0.Add(-time.Minute)}
				svc.Pods = append(svc.Pods, p)
				w.s.Pods = append(w.s.Pods, p)
			}
			svc.Desired.Value += int32(n)
		}
	}
}

// loan adds a loan of a whole machine in a phase, with the share that agrees with it and the marks of a settled loan.
func (w *world) loan(machine int, phase fleet.Phase, epoch int64) *fleet.Loan {
	n := &w.s.Nodes[machine]
	l := loanOf(n, phase, epoch)
	l.Created, l.Since = t0.Add(-time.Hour), t0.Add(-time.Hour)
	if phase == fleet.Emptying {
		l.Created, l.Since = t0.Add(-10*time.Minute), t0.Add(-10*time.Minute) // longer ago it is given up
	}
	w.s.Loans = append(w.s.Loans, l)
	n.Marks = fleet.NodeMarks{HolderTaint: true, OfflineLabel: phase == fleet.Lent, KeepNode: true}
	n.Share = shareOf(&l)
	return &w.s.Loans[len(w.s.Loans)-1]
}

// worker puts a member of the job on a machine.
func (w *world) worker(machine, i int) {
	n := &w.s.Nodes[machine]
	w.s.Pods = append(w.s.Pods, fleet.Pod{ID: fleet.UID(fmt.Sprintf("w-%d-%d", machine, i)), Name: fleet.Name{Namespace: "batch", Name: fmt.Sprintf("w-%02d-%d", machine, i)},
		Node: n.ID, NodeName: n.Name, Class: fleet.PodOffline, Job: "batch/train", Role: "worker", Phase: fleet.PodRunning, Ready: true,
		Requests: fleet.Resources{CPU: 16000, Memory: 32 * fleet.GiB}, Created: t0.Add(-time.Hour)})
	w.s.Jobs[0].Members[0].Desired++
	w.s.Jobs[0].Members[0].Active++
}

// input builds a plan's input: every signal fresh, every tide flat, and decisions of the last hour that agree with the tide.
func (w *world) input() Input {
	w.s.Sort()
	in := Input{Snapshot: &w.s, Portraits: map[fleet.ServiceID]portrait.Portrait{}, Tides: map[fleet.ServiceID]forecast.Tide{},
		Live: map[fleet.ServiceID]hpa.Live{}, History: map[fleet.ServiceID][]hpa.Decision{}, Refused: w.refused,
		Options: DefaultOptions()}
	for i := range w.s.Services {
		svc := &w.s.Services[i]
		load := w.flat[svc.ID]
		in.Portraits[svc.ID] = portrait.Portrait{Version: portrait.Version, Service: svc.ID, Signal: portrait.CPU, FastestFalls: portrait.Falls{1, 1, 1},
			Quality: portrait.Quality{Score: 1, Points: 4000, LastSample: t0}}
		tide := forecast.Tide{Service: svc.ID, Signal: portrait.CPU, Made: t0, Start: t0.Add(-5 * time.Minute), Step: 5 * time.Minute,
			Quantiles: []float64{0.5, 0.95}, Trusted: true, Model: "flat"}
		for range tide.Quantiles {
			path := make([]float64, 300)
			for j := range path {
				path[j] = load
				for _, r := range w.rises {
					if r.service == svc.ID && tide.Step*time.Duration(j) >= r.in+5*time.Minute {
						path[j] = r.load
					}
				}
			}
			tide.Paths = append(tide.Paths, path)
		}
		in.Tides[svc.ID] = tide
		live := hpa.Live{CPU: map[fleet.Name]fleet.Known[fleet.MilliCPU]{}, Load: fleet.KnownAt(load, t0)}
		serving := len(svc.Pods) - len(svc.StandingBy())
		for _, p := range svc.Pods {
			live.CPU[p.Name] = fleet.KnownAt(fleet.FromCores(load/float64(serving)), t0)
		}
		in.Live[svc.ID] = live
		for at := t0.Add(-time.Hour); at.Before(t0); at = at.Add(15 * time.Second) {
			in.History[svc.ID] = append(in.History[svc.ID], hpa.Decision{At: at, Replicas: 1, From: int32(serving)})
		}
	}
	return in
}

func moves(p Plan, kind MoveKind) int {
	n := 0
	for _, m := range p.Moves {
		if m.Kind == kind {
			n++
		}
	}
	return n
}

func TestEbbLendsMachines(t *testing.T) {
	w := newWorld(20).service("web", 40, 0, 20, 56) // 40 pods for the load of about 11
	plan := made(w.input())
	if len(plan.Lowers) != 1 || plan.Lowers[0].To >= 40 {
		t.Fatalf("the ebb must scale in: %+v\n%s", plan.Lowers, plan.Targets[0].Why())
	}
	if got := len(plan.Lowers[0].Victims); got != int(plan.Lowers[0].From-plan.Lowers[0].To) {
		t.Errorf("%d leavers are steered for %d that go", got, plan.Lowers[0].From-plan.Lowers[0].To)
	}
	if moves(plan, MoveBegin) == 0 {
		t.Fatalf("nothing is lent: %+v", plan.Pools)
	}
	for _, m := range plan.Moves {
		if m.After.Kind != fleet.KindNode {
			t.Errorf("whole machines go first, got %s %s", m.After.Kind, m.After.ID)
		}
	}
	marked := map[string]bool{}
	for _, m := range plan.Marks {
		marked[m.Node] = m.Want.HolderTaint && !m.Want.OfflineLabel
	}
	for _, m := range plan.Moves {
		if m.Kind == MoveBegin && !marked[m.Node] {
			t.Errorf("machine %s is being emptied without its taint", m.Node)
		}
	}
}

func TestSocketIsLentWhereTheMachineIsPinned(t *testing.T) {
	w := newWorld(12).service("web", 24, 0, 12, 24*8*0.63) // two pods a machine, all of them needed
	plan := made(w.input())
	sockets := 0
	for _, m := range plan.Moves {
		if m.Kind == MoveBegin && m.After.Kind == fleet.KindSocket {
			sockets++
			if len(m.After.Cells) != 2 {
				t.Errorf("a socket here has two cells, got %v", m.After.Cells)
			}
		}
	}
	if sockets == 0 {
		t.Fatalf("no socket is lent: %+v", plan.Pools)
	}
	for i := range w.s.Nodes {
		w.s.Nodes[i].AgentAlive = false
	}
	if plan := made(w.input()); moves(plan, MoveBegin) != 0 {
		t.Error("without a live agent nobody confines online pods, so no socket may be lent")
	}
}

func TestFloodBringsHome(t *testing.T) {
	w := newWorld(6).service("web", 30, 0, 4, 30*8*0.63)
	w.loan(4, fleet.Lent, 1)
	w.loan(5, fleet.Lent, 1)
	w.worker(4, 0)
	w.worker(5, 0)
	plan := made(w.input())
	if moves(plan, MoveRecall) == 0 {
		t.Fatalf("32 pods fit the four machines at home and 38 are asked for: %+v\n%s", plan.Pools, plan.Targets[0].Why())
	}
	for _, m := range plan.Moves {
		if m.Kind == MoveRecall && (m.After.Deadline.Sub(t0) < 2*time.Minute || m.After.Due.Before(m.After.Deadline)) {
			t.Errorf("the notice must be kept: deadline %v, due %v", m.After.Deadline, m.After.Due)
		}
	}
	if len(plan.Evictions) != 0 {
		t.Error("no eviction before a notice")
	}
}

func TestNoticeThenDrainThenHome(t *testing.T) {
	w := newWorld(5).service("web", 30, 0, 4, 30*8*0.63)
	l := w.loan(4, fleet.Noticed, 2)
	l.FirstNotice, l.Deadline, l.Due = t0, t0.Add(2*time.Minute), t0.Add(5*time.Minute)
	w.worker(4, 0)
	plan := made(w.input())
	if len(plan.Notices) != 1 || plan.Notices[0].Epoch != 2 {
		t.Fatalf("the pod must be told once: %+v", plan.Notices)
	}
	if moves(plan, MoveDrain) != 0 {
		t.Fatal("the deadline has not come and nobody acknowledged")
	}
	for i := range w.s.Pods {
		if p := &w.s.Pods[i]; p.Class == fleet.PodOffline {
			p.NoticeLoan, p.NoticeEpoch, p.AckEpoch = l.ID, 2, 1
		}
	}
	if plan = made(w.input()); moves(plan, MoveDrain) != 0 {
		t.Fatal("an acknowledgement of an older epoch is void")
	}
	for i := range w.s.Pods {
		if p := &w.s.Pods[i]; p.Class == fleet.PodOffline {
			p.AckEpoch = 2
		}
	}
	if plan = made(w.input()); moves(plan, MoveDrain) != 1 {
		t.Fatalf("everybody acknowledged: %+v", plan.Moves)
	}
	w.s.Loans[0].Phase = fleet.Draining
	if plan = made(w.input()); len(plan.Evictions) != 1 || plan.Evictions[0].Job != "batch/train" {
		t.Fatalf("draining evicts what is left: %+v", plan.Evictions)
	}
	for _, n := range []int{4} {
		e := &w.s.Nodes[n].Share.Parcels[0]
		e.Clean, e.CleanEpoch, e.CleanAt = true, 2, t0
	}
	if plan = made(w.input()); moves(plan, MoveReturn) != 0 || len(plan.Evictions) != 1 {
		t.Fatalf("clean, but a pod of the borrower is there: %+v", plan.Moves)
	}
	w.s.Pods = slices.DeleteFunc(w.s.Pods, func(p fleet.Pod) bool { return p.Class == fleet.PodOffline })
	w.s.Nodes[4].Marks.OfflineLabel = true
	if plan = made(w.input()); moves(plan, MoveReturn) != 0 {
		t.Fatalf("clean, but still open to offline: %+v", plan.Moves)
	}
	w.s.Nodes[4].Marks.OfflineLabel = false
	if plan = made(w.input()); moves(plan, MoveReturn) != 1 {
		t.Fatalf("clean and home: %+v", plan.Moves)
	}
}

// Work that takes long to save is recalled as much earlier: the need is looked for as far ahead as the longest notice reaches.
func TestLeadHoldsTheLongestCheckpoint(t *testing.T) {
	for _, c := range []struct {
		save time.Duration
		want bool
	}{{0, false}, {15 * time.Minute, true}} {
		w := newWorld(6).service("web", 20, 0, 4, 20*8*0.5)
		w.loan(4, fleet.Lent, 1)
		w.loan(5, fleet.Lent, 1)
		w.worker(4, 0)
		w.worker(5, 0)
		w.s.Jobs[0].Checkpoint, w.s.Pools[1].NoticeMax = c.save, 20*time.Minute
		in := w.input()
		for _, path := range in.Tides["shop/web"].Paths {
			for i := range path[5:] {
				path[5+i] = 34 * 8 * 0.63 // the flood comes in twenty minutes
			}
		}
		if got := moves(made(in), MoveRecall) > 0; got != c.want {
			t.Errorf("saving takes %v: recalled %v, want %v", c.save, got, c.want)
		}
	}
}

func TestJobsGrowIntoLentRoom(t *testing.T) {
	w := newWorld(6).service("web", 8, 0, 4, 8*8*0.63)
	w.loan(5, fleet.Lent, 1)
	w.worker(5, 0)
	plan := made(w.input())
	if len(plan.Jobs) != 1 || plan.Jobs[0].To != 4 {
		t.Fatalf("one machine of 64 cores holds four members of 16: %+v", plan.Jobs)
	}
	w.s.Loans[0].Phase, w.s.Loans[0].Epoch, w.s.Loans[0].Deadline = fleet.Noticed, 2, t0.Add(time.Minute)
	w.s.Node(w.s.Loans[0].Node).Share.Parcels[0] = fleet.ShareParcel{Holder: "offline", Next: "online", Loan: w.s.Loans[0].ID, Epoch: 2}
	plan = made(w.input())
	if len(plan.Jobs) != 0 {
		t.Fatalf("a member that was told to leave stays counted until it ends, so that nobody deletes another one: %+v", plan.Jobs)
	}
}

func TestCrashBetweenShareAndLoan(t *testing.T) {
	w := newWorld(4).service("web", 8, 0, 2, 8*8*0.63)
	l := w.loan(3, fleet.Lent, 1)
	e := &w.s.Nodes[3].Share.Parcels[0]
	e.Epoch, e.Next = 2, "online" // a recall wrote the share and died
	e.Clean, e.CleanEpoch = true, 2
	if n := Drift(&w.s); n != 1 {
		t.Errorf("drift %d, want 1", n)
	}
	w.s.Nodes[2].Share.Parcels = []fleet.ShareParcel{{Cells: []int{0}, Holder: "offline", Loan: "nobody's", Epoch: 1}}
	if n := Drift(&w.s); n != 2 {
		t.Errorf("drift %d with an entry of no loan, want 2", n)
	}
	w.s.Nodes[2].Share.Parcels = nil
	plan := made(w.input())
	if moves(plan, MoveRepair) != 1 {
		t.Fatalf("the share is ahead of the loan: %+v", plan.Moves)
	}
	if got := plan.Moves[0].After; got.Epoch != 3 || got.Phase != fleet.Lent || got.ID != l.ID {
		t.Fatalf("the loan must take an epoch that voids every report for the unfinished recall, got %+v", got)
	}
}

// A write of the loan failed after the share had handed the parcel over: a scheduler that reads shares may have bound pods there already, so the loan follows.
func TestCrashAfterAHandOver(t *testing.T) {
	for _, c := range []struct {
		from, to     fleet.Phase
		holder, next fleet.PoolID
	}{
		{fleet.Emptying, fleet.Lent, "offline", ""},
		{fleet.Draining, fleet.Returned, "online", ""},
		{fleet.Emptying, fleet.Emptying, "offline", "online"}, // not one step ahead: no pod may be there
	} {
		w := newWorld(4).service("web", 8, 0, 2, 8*8*0.63)
		w.loan(3, c.from, 1)
		e := &w.s.Nodes[3].Share.Parcels[0]
		e.Holder, e.Next, e.Clean, e.CleanEpoch = c.holder, c.next, true, e.Epoch
		plan := made(w.input())
		if moves(plan, MoveRepair) != 1 || plan.Moves[0].After.Phase != c.to {
			t.Errorf("%s, and the share says holder %s, next %q: want a repair to %s, got %+v", c.from, c.holder, c.next, c.to, plan.Moves)
		}
	}
}

// A loan object that was made late, or twice, after another one took its parcel never has a share: it ends, and leaves the other's alone.
func TestALoanWhoseParcelIsTakenEnds(t *testing.T) {
	w := newWorld(4).service("web", 8, 0, 2, 8*8*0.63)
	other := w.loan(3, fleet.Lent, 1)
	late := *other
	late.ID, late.Phase = "loan-of-before", fleet.Emptying
	w.s.Loans = append(w.s.Loans, late)
	plan := made(w.input())
	if moves(plan, MoveRepair) != 0 || moves(plan, MoveCancel) != 1 {
		t.Fatalf("a loan without its parcel is cancelled: %+v", plan.Moves)
	}
	if got := plan.Moves[0]; got.After.ID != late.ID || got.Why.Code != "ParcelTaken" {
		t.Errorf("%+v", got)
	}
}

func TestFreezeHoldsEverything(t *testing.T) {
	w := newWorld(20).service("web", 40, 0, 20, 56)
	l := w.loan(19, fleet.Noticed, 2)
	l.Deadline = t0.Add(-time.Minute)
	w.s.Frozen = "a change is under way"
	p := made(w.input())
	if n := len(p.Lowers) + len(p.Raises) + len(p.Moves) + len(p.Notices) + len(p.Evictions) + len(p.Jobs) + len(p.Fillers) + len(p.Marks); n != 0 {
		t.Fatalf("%d actions under a freeze: %+v", n, p)
	}
	if len(p.Withheld) == 0 {
		t.Error("what the freeze holds back must be said")
	}
	w.s.Frozen = ""
	in := w.input()
	in.Thawed = in.Snapshot.At
	if p := made(in); moves(p, MoveAnnounce) != 1 {
		t.Errorf("a deadline that ran out under the freeze is announced again: %+v", p.Moves)
	}
}

// A deadline that is announced again leaves the work as long as it needs to be saved, as the first one did: after a freeze, in each direction and phase, and
// for a pool that is gone.
func TestAgainMeansTheWholeNotice(t *testing.T) {
	for _, c := range []struct {
		name string
		bend func(w *world, l *fleet.Loan, in *Input)
	}{
		{"a recall", func(_ *world, l *fleet.Loan, _ *Input) { l.Phase, l.Deadline = fleet.Noticed, t0.Add(-time.Minute) }},
		{"a drain", func(_ *world, l *fleet.Loan, _ *Input) { l.Phase, l.Deadline = fleet.Draining, t0.Add(-time.Minute) }},
		{"a machine that goes to online", func(w *world, l *fleet.Loan, _ *Input) {
			l.Phase, l.Deadline, l.From, l.To = fleet.Emptying, t0.Add(-time.Minute), "offline", "online"
			w.s.Nodes[19].Pool, w.s.Pool("offline").NoticeMax = "offline", 10*time.Minute
		}},
		{"a pool that is gone", func(w *world, l *fleet.Loan, in *Input) { l.From, in.Thawed = "nowhere", time.Time{} }},
	} {
		w := newWorld(20).service("web", 40, 0, 19, 56)
		w.s.Jobs[0].Checkpoint = 7 * time.Minute
		l := w.loan(19, fleet.Lent, 2)
		l.Asked = "an operator, so that it does not turn back"
		w.worker(19, 0)
		in := w.input()
		in.Thawed = t0
		c.bend(w, l, &in)
		w.s.Nodes[19].Share.Parcels[0].Holder, w.s.Nodes[19].Share.Parcels[0].Next = l.Holder(), l.Next()
		p := made(in)
		i := slices.IndexFunc(p.Moves, func(m Move) bool { return m.After.ID == l.ID })
		if i < 0 || !p.Moves[i].After.Deadline.Equal(t0.Add(7*time.Minute)) {
			t.Errorf("%s: %+v, want a deadline in 7 minutes", c.name, p.Moves)
		}
	}
}

// While a machine drains, the deadline stands for pods that have not answered: one that ran out under a freeze is
// announced again, once, and the pod hears of it. One that was answered, or that ran out since, is no reason.
func TestDeadlinesOfADrainSleepUnderAFreeze(t *testing.T) {
	for _, c := range []struct {
		name     string
		deadline time.Duration // before now
		answered bool
		announce int
		evict    int
	}{
		{"ran out under the freeze", 2 * time.Minute, false, 1, 0},
		{"answered", 2 * time.Minute, true, 0, 1},
		{"ran out since", 30 * time.Second, false, 0, 1},
		{"ran out since, of an earlier notice", 30 * time.Second, false, 1, 0},
	} {
		w := newWorld(20).service("web", 40, 0, 20, 56)
		l := w.loan(19, fleet.Draining, 2)
		l.Deadline, l.KillAt = t0.Add(-c.deadline), t0.Add(time.Minute)
		w.worker(19, 0)
		p := &w.s.Pods[len(w.s.Pods)-1]
		p.NoticeLoan, p.NoticeEpoch, p.NoticeDeadline = l.ID, 2, fleet.KnownAt(l.Deadline, t0)
		if c.answered {
			p.AckEpoch = 2
		}
		if strings.Contains(c.name, "earlier") {
			p.NoticeEpoch = 1
		}
		in := w.input()
		in.Thawed = t0.Add(-time.Minute)
		plan := made(in)
		if moves(plan, MoveAnnounce) != c.announce || len(plan.Evictions) != c.evict || len(plan.Notices) != c.announce {
			t.Errorf("%s: %d announcements, %d notices, %d evictions", c.name, moves(plan, MoveAnnounce), len(plan.Notices), len(plan.Evictions))
		}
		if c.announce > 0 && !plan.Notices[0].Deadline.After(t0) {
			t.Errorf("%s: the notice says %s", c.name, plan.Notices[0].Deadline)
		}
	}
}

// Whatever the fleet looks like: nothing that takes away is done by a new leader, on missing signals, under a freeze or outside of Auto; no
// loan takes two steps at once; only offline pods are ever evicted or noticed; and the same facts give the same bytes.
func TestPlanIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		machines := rapid.IntRange(3, 12).Draw(t, "machines")
		w := newWorld(machines)
		for i := range rapid.IntRange(1, 3).Draw(t, "services") {
			n := rapid.IntRange(1, machines*2).Draw(t, "pods")
			w.service(fmt.Sprintf("s%d", i), n, rapid.IntRange(0, machines-1).Draw(t, "first"), rapid.IntRange(1, machines).Draw(t, "spread"),
				float64(n)*8*rapid.Float64Range(0.05, 1.2).Draw(t, "use"))
		}
		for i := range machines {
			switch rapid.IntRange(0, 5).Draw(t, "loan") {
			case 0:
				phase := rapid.SampledFrom([]fleet.Phase{fleet.Emptying, fleet.Lent, fleet.Noticed, fleet.Draining, fleet.Returned, fleet.Cancelled}).Draw(t, "phase")
				l := w.loan(i, phase, rapid.Int64Range(1, 5).Draw(t, "epoch"))
				l.Deadline = t0.Add(time.Duration(rapid.IntRange(-120, 120).Draw(t, "deadline")) * time.Second)
				w.worker(i, 0)
			}
		}
		fresh := rapid.Bool().Draw(t, "new leader")
		if fresh {
			w.s.WatchedSince = t0.Add(-time.Minute)
		}
		if rapid.IntRange(0, 5).Draw(t, "frozen") == 0 {
			w.s.Frozen = "held"
		}
		in := w.input()
		mode := rapid.SampledFrom([]fleet.Mode{"", fleet.Observe, fleet.Recommend, fleet.Auto}).Draw(t, "mode")
		blind := rapid.Bool().Draw(t, "blind")
		for i := range w.s.Services {
			w.s.Services[i].Mode = mode
			if blind {
				in.Live[w.s.Services[i].ID] = hpa.Live{}
			}
		}
		p := made(in)
		begins := moves(p, MoveBegin)
		if (fresh || blind || w.s.Frozen != "" || !mode.Acts()) && len(p.Lowers) > 0 {
			t.Fatalf("scale-in with new leader %v, blind %v, frozen %q, mode %q: %+v", fresh, blind, w.s.Frozen, mode, p.Lowers)
		}
		if (fresh || blind || w.s.Frozen != "") && begins > 0 {
			t.Fatalf("lending with new leader %v, blind %v, frozen %q", fresh, blind, w.s.Frozen)
		}
		if !mode.Acts() && len(p.Raises)+len(p.Lowers) > 0 {
			t.Fatalf("mode %q scales", mode)
		}
		seen := map[fleet.LoanID]bool{}
		for _, m := range p.Moves {
			if seen[m.Before.ID] {
				t.Fatalf("loan %s takes two steps in one plan", m.Before.ID)
			}
			seen[m.Before.ID] = true
			if m.After.Epoch < m.Before.Epoch {
				t.Fatalf("loan %s: the epoch falls", m.Before.ID)
			}
		}
		class := map[fleet.UID]fleet.PodClass{}
		for i := range w.s.Pods {
			class[w.s.Pods[i].ID] = w.s.Pods[i].Class
		}
		for _, e := range p.Evictions {
			if class[e.Pod.ID] != fleet.PodOffline {
				t.Fatalf("evicts %s pod %s", class[e.Pod.ID], e.Pod.Name)
			}
		}
		for _, n := range p.Notices {
			if class[n.Pod.ID] != fleet.PodOffline {
				t.Fatalf("gives notice to %s pod %s", class[n.Pod.ID], n.Pod.Name)
			}
		}
		if a, b := asJSON(t, p), asJSON(t, made(in)); a != b {
			t.Fatalf("the same facts gave two plans:\n%s\n%s", a, b)
		}
	})
}

func asJSON(t *rapid.T, p Plan) string {
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A source that is down is no flood: loans stay out while the need of services is unknown, and nothing new is lent.
func TestBlindnessRecallsNothing(t *testing.T) {
	w := newWorld(12).service("web", 8, 0, 4, 8*8*0.63)
	for i := 6; i < 12; i++ {
		w.loan(i, fleet.Lent, 1)
	}
	in := w.input()
	id := w.s.Services[0].ID
	in.Live[id] = hpa.Live{}
	p := in.Portraits[id]
	p.Peak = 60 * 8 // last week's peak would need nearly everything
	in.Portraits[id] = p
	plan := made(in)
	if moves(plan, MoveRecall) != 0 || moves(plan, MoveBegin) != 0 {
		t.Fatalf("blind, and yet: %+v %+v", plan.Moves, plan.Pools)
	}
}

// A leader who has not watched a window recalls nothing for what a forecast says, and answers pods that wait.
func TestNewLeaderRecallsForWhatItSees(t *testing.T) {
	for _, c := range []struct {
		name    string
		leads   time.Duration
		waiting int
		recalls int
	}{
		{"forecast, window watched", 5 * time.Minute, 0, 1},
		{"forecast, a new leader", 4 * time.Minute, 0, 0},
		{"pods wait, a new leader", 0, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(5).service("web", 24, 0, 3, 24*8*0.62)
			w.loan(3, fleet.Lent, 1)
			w.loan(4, fleet.Lent, 1)
			w.worker(3, 0)
			w.worker(4, 0)
			if c.waiting > 0 {
				w.waits("web", c.waiting)
			}
			w.s.WatchedSince = t0.Add(-c.leads)
			p := made(w.input())
			if got := moves(p, MoveRecall); got != c.recalls {
				t.Errorf("%d machines are recalled, want %d: %s", got, c.recalls, p.Pools[0].Note)
			}
		})
	}
}
