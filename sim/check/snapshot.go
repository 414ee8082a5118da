package check

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
)

// now is the time of every snapshot: what has passed is past for all, what has not lies ahead. Only the few times that
// decide anything are distinguished, so that the number of states is finite.
var now = time.Date(2026, 3, 2, 22, 0, 0, 0, time.UTC)

// The times that facts are given. Each stands for all that decide alike.
const (
	soon    = 2 * time.Minute  // a deadline ahead: a whole notice
	shortly = 20 * time.Second // a deadline that cannot be shortened, and leaves the least notice
	long    = 2 * time.Hour    // longer than any patience
	lately  = 10 * time.Second // since a freeze was seen to end
	earlier = time.Minute      // since a deadline that passed before that
	brief   = time.Second
	dueIn   = 2 * time.Minute // from the first deadline to the due time
	service = fleet.ServiceID("shop/web")
)

// Shape is what the two parcels are.
type Shape int

// The shapes.
const (
	Machines Shape = iota // two machines of one socket
	Sockets               // one machine of two sockets
)

func (s Shape) String() string {
	if s == Sockets {
		return "sockets"
	}
	return "machines"
}

func (s Shape) machines() int { return machines - int(s) }

// units is how many pods fit a machine, which is how many sockets it has.
func (s Shape) units() int { return 1 + int(s) }

// all are the cells of a whole machine.
func (s Shape) all() int8 { return 1<<s.units() - 1 }

// fences are the ways in which a machine is cut off.
var fences = [...]fleet.Fence{fleet.FenceNone, fleet.FenceSchedule, fleet.FenceExecute}

// The places of fences.
const (
	fenceSchedule int8 = 1 + iota
	fenceExecute
)

var unit = fleet.Resources{CPU: 16000, Memory: 64 * fleet.GiB}

func nodeUID(uid int8) fleet.NodeID { return fleet.NodeID("uid-" + strconv.Itoa(int(uid))) }

// stable is the machine, and the pod on it, that the service always has: one that is full and is never lent. A service without any pod would
// be without a signal, and nothing is lent then.
const (
	stable     int8 = 99
	stableName      = "stable"
)

// uidsPerMachine keeps the UIDs of the two machines apart.
const uidsPerMachine = 10

func nodeName(machine int8) string { return fmt.Sprintf("m%d", machine) }

func loanID(l int8, machine, cells int8) fleet.LoanID {
	return fleet.LoanID(fmt.Sprintf("%s-c%d-%02d", nodeName(machine), cellsOf(cells)[0], l))
}

// loanOf is the number in a loan's id.
func loanOf(id fleet.LoanID) int8 {
	s := string(id)
	n, err := strconv.Atoi(s[strings.LastIndexByte(s, '-')+1:])
	if err != nil {
		return 0
	}
	return int8(n)
}

func cellsOf(set int8) []int {
	var out []int
	for c := range units {
		if set&(1<<c) != 0 {
			out = append(out, c)
		}
	}
	return out
}

func setOf(cells []int) int8 {
	var set int8
	for _, c := range cells {
		set |= 1 << c
	}
	return set
}

func poolID(p int8) fleet.PoolID {
	switch p {
	case online:
		return "online"
	case offline:
		return "offline"
	}
	return ""
}

func poolOf(id fleet.PoolID) int8 {
	switch id {
	case "online":
		return online
	case "offline":
		return offline
	}
	return noSide
}

func loanUID(uid int8) fleet.UID { return fleet.UID(strconv.Itoa(int(uid))) }

func podUID(uid int8) fleet.UID { return fleet.UID("pod-" + strconv.Itoa(int(uid))) }

func jobID(j int) fleet.JobID { return fleet.JobID("batch/job" + strconv.Itoa(j)) }

// thawedAt is when a controller saw a freeze end.
var thawedAt = [...]time.Time{none: {}, before: now.Add(-lately), justNow: now}

// eyes are what of a controller decides how it sees facts.
type eyes struct {
	watched, fast bool
	thaw          int8
}

// snapshot is facts as a controller sees them.
func (x *model) snapshot(f *facts, e eyes) *fleet.Snapshot {
	s := &fleet.Snapshot{Revision: 1, At: now, LeaderEpoch: 1, WatchedSince: now.Add(-brief)}
	if e.watched {
		s.WatchedSince = now.Add(-long)
	}
	if f.frozen {
		s.Frozen = "maintenance"
	}
	kind := fleet.UnitNode
	if x.Shape == Sockets {
		kind = fleet.UnitSocket
	}
	ledger := fleet.Ledger{WindowStart: now.Add(-brief), SpanStart: now.Add(-brief), Evictions: int(f.spent)}
	if f.spent > 0 {
		ledger.Owners = []fleet.Disrupted{{Owner: "service " + string(service), Pods: int(f.spent)}}
	}
	s.Pools = []fleet.Pool{
		{ID: "offline", Class: fleet.Offline, Mode: fleet.Auto, Unit: fleet.UnitNode, Notice: 2 * time.Minute, NoticeMax: 10 * time.Minute,
			MovesAtOnce: 10, MovesPerHour: 60, MinimumTerm: 30 * time.Minute, Version: versionSeen},
		{ID: "online", Class: fleet.Online, Mode: fleet.Auto, Unit: kind, Notice: 2 * time.Minute, NoticeMax: 10 * time.Minute,
			MovesAtOnce: 10, MovesPerHour: 60, MinimumTerm: 30 * time.Minute, Ledger: ledger, Version: versionSeen,
			Budget: fleet.DisruptionBudget{EvictionsPerMinute: budget, ServiceShare: 1, FleetShare: 1}},
	}
	if x.Bundled {
		for i := range s.Pools {
			s.Pools[i].Scheduler = "springtide"
		}
	}
	for i := range x.Shape.machines() {
		if f.m[i].uid > 0 {
			s.Nodes = append(s.Nodes, x.node(f, int8(i)))
		}
	}
	s.Nodes = append(s.Nodes, fleet.Node{ID: nodeUID(stable), Name: stableName, Zone: "z", Pool: "online", Allocatable: unit.Add(fleet.Resources{Pods: 110}),
		Cells: []fleet.Cell{{Capacity: unit}}, Ready: true, AgentAlive: !x.NoAgents})
	for i := range f.l {
		if f.l[i].uid > 0 {
			s.Loans = append(s.Loans, x.loan(&f.l[i], e))
		}
	}
	svc := fleet.Service{ID: service, Target: fleet.ParseName(string(service)), TargetKind: "Deployment", TargetFound: true, Mode: fleet.Auto,
		Pause: fleet.PauseNone, Actuation: fleet.ByScale, SLO: fleet.Levels(fleet.CPU(0.7)), Min: 1, Max: 1 + onlinePods,
		Quantile: 0.95, Steerable: true,
		Request: unit, Desired: fleet.KnownAt(1+int32(f.desired), now), Created: now.Add(-30 * 24 * time.Hour)}
	base := x.podFacts(&facts{p: [podSlots]pod{{uid: stable, state: bound}}}, 0)
	base.Node, base.NodeName = nodeUID(stable), stableName
	svc.Pods, s.Pods = append(svc.Pods, base), append(s.Pods, base)
	// A pod of no service keeps the machine where it is.
	pin := base
	pin.ID, pin.Name.Name, pin.Service, pin.Requests = "pin", "pin", "", fleet.Resources{}
	s.Pods = append(s.Pods, pin)
	for i := range f.p {
		if f.p[i].state == absent {
			continue
		}
		p := x.podFacts(f, i)
		if p.Class == fleet.PodOnline {
			svc.Pods = append(svc.Pods, p)
		}
		s.Pods = append(s.Pods, p)
	}
	s.Services = []fleet.Service{svc}
	s.Jobs = x.jobs(f)
	s.Sort()
	return s
}

// gangPhases are the phases of a gang.
var gangPhases = [...]fleet.GangPhase{"", fleet.GangWaiting, fleet.GangForming, fleet.GangWhole, fleet.GangBackedOff}

// jobs are two of one member each, which they can do without, or a gang of two.
func (x *model) jobs(f *facts) []fleet.Job {
	var out []fleet.Job
	for k := range jobPods {
		j := x.jobOf(k)
		if j == len(out) {
			m := fleet.Member{Role: "worker", Kind: "Job", Workload: fleet.ParseName(string(jobID(j))), Max: 1, Remaining: -1, Request: unit, Desired: int32(f.members[j])}
			job := fleet.Job{ID: jobID(j), Priority: fleet.JobPriority(j)}
			if x.Gang {
				m.Min, m.Max = jobPods, jobPods
				job.Gang = fleet.Gang{Phase: gangPhases[f.gang], Since: now.Add(-brief), RetryAt: now.Add(long)}
				if f.gangOld {
					job.Gang.Since, job.Gang.RetryAt = now.Add(-long), now.Add(-brief)
				}
			}
			job.Members = []fleet.Member{m}
			out = append(out, job)
		}
		switch m := &out[j].Members[0]; f.p[onlinePods+k].state {
		case waiting, bound:
			m.Active++
		case ending:
			m.Ending++
		}
	}
	return out
}

// jobOf is the job of the k-th pod of jobs.
func (x *model) jobOf(k int) int {
	if x.Gang {
		return 0
	}
	return k
}

func (x *model) node(f *facts, i int8) fleet.Node {
	m := &f.m[i]
	n := fleet.Node{ID: nodeUID(m.uid), Name: nodeName(i), Zone: "z", Pool: poolID(x.home()), Allocatable: unit.Times(int64(x.Shape.units())).Add(fleet.Resources{Pods: 110}),
		Ready: true, AgentAlive: !x.NoAgents, AgentKnown: !x.NoAgents, Marks: fleet.NodeMarks{HolderTaint: m.taint, OfflineLabel: m.label, KeepNode: m.keep, Fence: fences[m.fence]}}
	// No machine's home changes here, so the label of it is no state of its own.
	n.Marks.HomeLabel = x.Borrow
	for c := range x.Shape.units() {
		n.Cells = append(n.Cells, fleet.Cell{ID: c, Socket: c, Capacity: unit})
	}
	// A NodeShare of another UID speaks of a machine that is gone.
	if m.share.ver > 0 && m.share.node == m.uid {
		n.Share.Exists, n.Share.Version = true, versionSeen
		for _, e := range m.share.e {
			if e.loan == 0 {
				continue
			}
			p := fleet.ShareParcel{Cells: cellsOf(e.cells), Holder: poolID(e.holder), Next: poolID(e.next), Epoch: int64(e.epoch)}
			p.Loan, p.LoanUID = loanID(e.loan, i, e.cells), loanUID(e.loan)
			if e.clean > 0 {
				p.Clean, p.CleanEpoch, p.CleanAt = true, int64(e.clean), now.Add(-time.Minute)
			}
			n.Share.Parcels = append(n.Share.Parcels, p)
		}
	}
	return n
}

func (x *model) loan(l *loan, e eyes) fleet.Loan {
	since := now.Add(-brief)
	if l.old {
		since = now.Add(-long)
	}
	out := fleet.Loan{ID: loanID(l.uid, l.machine, l.cells), UID: loanUID(l.uid), Version: versionSeen, Kind: fleet.KindSocket, Node: nodeUID(l.node),
		NodeName: nodeName(l.machine), Cells: cellsOf(l.cells), From: poolID(x.home()), To: poolID(online + offline - x.home()), Phase: fleet.Phases()[l.phase], Epoch: int64(l.epoch),
		Created: since, Since: since}
	out.Parcel, out.Capacity = fleet.MakeParcelID(out.Node, out.Cells), unit.Times(int64(len(out.Cells)))
	if l.cells == x.Shape.all() {
		out.Kind = fleet.KindNode
	}
	switch {
	case l.announced == shortened && (l.wait == ahead || l.wait == near && !e.fast):
		out.Deadline = now.Add(shortly)
	case l.wait == ahead, l.wait == near && !e.fast:
		out.Deadline = now.Add(soon)
	case l.waitOver:
		out.Deadline = now.Add(-earlier)
	case l.wait != unset:
		out.Deadline = now.Add(-brief)
	}
	if x.Borrow {
		out.Due = now.Add(long)
	}
	if l.recalled {
		// One that was extended has reached the due time.
		out.Due = out.Deadline
		if l.announced != extended {
			out.Due = out.Due.Add(dueIn)
		}
		out.FirstNotice = out.Due.Add(-10 * time.Minute)
	}
	switch {
	case l.kill == ahead:
		out.KillAt = now.Add(soon)
	case l.kill == past && l.old:
		out.KillAt = now.Add(-long)
	case l.kill == past && l.killOver:
		out.KillAt = now.Add(-earlier)
	case l.kill == past:
		out.KillAt = now.Add(-brief)
	}
	if out.Phase.Away() {
		out.LentAt = now.Add(-long)
	}
	if out.Phase == fleet.Returned {
		out.CleanAt = now.Add(-time.Minute)
	}
	return out
}

func (x *model) podFacts(f *facts, slot int) fleet.Pod {
	is := &f.p[slot]
	p := fleet.Pod{ID: podUID(is.uid), Requests: unit, Phase: fleet.PodPending, Created: now.Add(-long), CurrentRevision: true, Deleting: is.state == ending}
	switch {
	case slot < onlinePods:
		p.Class, p.Service = fleet.PodOnline, service
		p.Name = fleet.Name{Namespace: "shop", Name: fmt.Sprintf("web-%02d", is.uid)}
	case slot < fillerSlot:
		j := x.jobOf(slot - onlinePods)
		p.Class, p.Job, p.Role = fleet.PodOffline, jobID(j), "worker"
		p.Name = fleet.Name{Namespace: "batch", Name: fmt.Sprintf("job%d-%02d", j, is.uid)}
	default:
		p.Class, p.HoldsOn = fleet.PodFiller, nodeName(0)
		p.Name = fleet.Name{Namespace: "springtide-system", Name: fmt.Sprintf("filler-%02d", is.uid)}
	}
	if is.state == waiting {
		p.Unschedulable = true
	} else {
		p.Node, p.NodeName = nodeUID(f.m[is.machine].uid), nodeName(is.machine)
		started := now.Add(-long)
		if is.late {
			started = now.Add(-brief)
		}
		p.Phase, p.Ready, p.Started, p.ReadySince = fleet.PodRunning, is.state == bound, fleet.KnownAt(started, now), fleet.KnownAt(started, now)
	}
	p.Killed = is.killed
	if is.cost {
		p.DeletionCost = -1
	}
	if is.loan > 0 {
		p.NoticeEpoch, p.AckEpoch = int64(is.epoch), int64(is.ack)
		// The notice names the loan by its id.
		for i := range f.l {
			if l := &f.l[i]; l.uid == is.loan {
				p.NoticeLoan = loanID(l.uid, l.machine, l.cells)
			}
		}
	}
	if is.beat {
		p.Heartbeat = fleet.KnownAt(now.Add(long), now)
	}
	return p
}

// input is what a controller plans from: every signal fresh, and a load that stays as it is.
func (x *model) input(f *facts, e eyes) planner.Input {
	o := planner.DefaultOptions()
	o.Placement = 0
	s := x.snapshot(f, e)
	load := x.tides[f.tide].load
	live := hpa.Live{CPU: map[fleet.Name]fleet.Known[fleet.MilliCPU]{}, Load: fleet.KnownAt(load, now), LoadSignal: portrait.CPU}
	pods := s.Services[0].Pods
	for i := range pods {
		live.CPU[pods[i].Name] = fleet.KnownAt(fleet.FromCores(load/float64(len(pods))), now)
	}
	return planner.Input{Snapshot: s, Portraits: x.portraits, Tides: x.tides[f.tide].tide, Live: map[fleet.ServiceID]hpa.Live{service: live},
		History: x.tides[f.tide].history[f.desired], Thawed: thawedAt[e.thaw], Options: o}
}

// tide is a load that asks for a number of replicas.
type tide struct {
	load float64
	tide map[fleet.ServiceID]forecast.Tide
	// history is, for each number of replicas beyond the stable one, what was decided while they ran: for longer than anything waits.
	history [onlinePods + 1]map[fleet.ServiceID][]hpa.Decision
}

// loadPerReplica is what one replica carries at its target, and a little less.
const loadPerReplica = 9.0

func newTide(replicas int) tide {
	replicas++ // with the stable one
	t := tide{load: loadPerReplica * float64(replicas)}
	f := forecast.Tide{Service: service, Signal: portrait.CPU, Made: now, Start: now.Add(-5 * time.Minute), Step: 5 * time.Minute, Quantiles: []float64{0.5, 0.95},
		Trusted: true, Model: "flat"}
	for range f.Quantiles {
		path := make([]float64, 300)
		for i := range path {
			path[i] = t.load
		}
		f.Paths = append(f.Paths, path)
	}
	t.tide = map[fleet.ServiceID]forecast.Tide{service: f}
	for run := range t.history {
		var past []hpa.Decision
		for at := now.Add(-10 * time.Minute); at.Before(now); at = at.Add(time.Minute) {
			past = append(past, hpa.Decision{At: at, Replicas: int32(replicas), From: int32(run) + 1})
		}
		t.history[run] = map[fleet.ServiceID][]hpa.Decision{service: past}
	}
	return t
}

func newPortraits() map[fleet.ServiceID]portrait.Portrait {
	return map[fleet.ServiceID]portrait.Portrait{service: {Version: portrait.Version, Service: service, Signal: portrait.CPU, FastestFalls: portrait.Falls{1, 1, 1},
		Quality: portrait.Quality{Score: 1, Points: 4000, LastSample: now}}}
}
