package looptest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/fleetapi"
	"github.com/springtide/springtide/internal/loop/memorystore"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/signal"
)

// The pools of every world.
const (
	OnlinePool  fleet.PoolID = "online"
	OfflinePool fleet.PoolID = "offline"
)

// Options size a world.
type Options struct {
	// Start is when the loop begins to run; history reaches back to Start − History.
	Start   time.Time
	History time.Duration
	// Services and the machines of either pool.
	Services, Online, Offline int
	// Peak is the CPU that one service uses at the top of its day, in cores.
	Peak float64
	// StartUp is the time from an online pod's binding to Ready.
	StartUp time.Duration
	// Twist, when set, replaces the truth: what it returns is what is measured of a service at a time.
	Twist func(id fleet.ServiceID, at time.Time, load float64) float64
	// Requests are the requests a second behind each core that a service uses; 0 where services export none.
	Requests float64
	// Lie, when set, is what the source answers at a time when it is asked for a value of a signal at another time, and
	// whether it answers: a lie that depends on now comes from what stands before the source, one that depends on at
	// from what the source scrapes.
	Lie func(now, at time.Time, signal portrait.Signal, value float64) (float64, bool)
}

// Default is a world of eight services on twelve machines of 64 cores.
func Default() Options {
	return Options{Start: time.Date(2026, 3, 16, 0, 0, 0, 0, time.UTC), History: 16 * 24 * time.Hour, Services: 8, Online: 12, Offline: 2,
		Peak: 40, StartUp: time.Minute}
}

// World is the cluster. Its fields may be set between cycles.
type World struct {
	o   Options
	now time.Time
	// Until ends a run: Park cancels it there.
	until  time.Time
	cancel context.CancelFunc

	nodes    []fleet.Node
	services []fleet.Service
	jobs     []fleet.Job
	loans    []fleet.Loan
	pods     []*pod
	made     int
	live     signal.Samples
	epoch    int64
	api      *fleetapi.API

	// Frozen, when not empty, freezes the fleet.
	Frozen string
	// ObserveErr, HistoryErr, StoreErr and ApplyErr are what the ports answer while they are set.
	ObserveErr, HistoryErr, StoreErr, ApplyErr error
	// Unread are services for which history gives no answer.
	Unread map[fleet.ServiceID]error
	// Pools are the terms of the two pools.
	Pools []fleet.Pool

	// Reports, Records and Evicted are what was reported, journalled and evicted so far.
	Reports []Reported
	Records []loop.Record
	Evicted []fleet.Pod
	// Reads are the calls of Since: how many services, from when.
	Reads []Read
	// Each, when set, is called with every snapshot that the loop is given.
	Each func(s *fleet.Snapshot)

	// Store is what outlives a loop; it is down while StoreErr is set.
	memorystore.Store
}

// Reported is what one report said of the loop's dependencies.
type Reported struct {
	At                   time.Time
	HistoryErr, StoreErr error
	Summaries            map[fleet.ServiceID]loop.Summary
	// Made is when the oldest tide was made, Trusted how many may be trusted.
	Made    time.Time
	Trusted int
}

// Read is one reading of history.
type Read struct {
	At, From time.Time
	Services int
}

// New returns a world at o.Start, with every service at the replicas that its load asks for.
func New(o Options) *World {
	w := &World{o: o, now: o.Start}
	w.api = fleetapi.New(w)
	w.Down = func() error { return w.StoreErr }
	w.Pools = []fleet.Pool{
		{ID: OfflinePool, Version: "0", Class: fleet.Offline, Mode: fleet.Auto},
		{ID: OnlinePool, Version: "0", Class: fleet.Online, Mode: fleet.Auto, Unit: fleet.UnitSocket, LowWatermark: 0.05, HighWatermark: 0.1, Notice: time.Minute,
			NoticeMax: 5 * time.Minute, MovesAtOnce: 4, MovesPerHour: 20, MinimumTerm: 30 * time.Minute,
			Budget: fleet.DisruptionBudget{EvictionsPerMinute: 60, ServiceShare: 0.2, FleetShare: 0.1}},
	}
	for i := range o.Online + o.Offline {
		pool := OnlinePool
		if i >= o.Online {
			pool = OfflinePool
		}
		w.nodes = append(w.nodes, machine(i, pool))
	}
	for i := range o.Services {
		w.services = append(w.services, service(i, o.Start))
	}
	w.jobs = []fleet.Job{{ID: "batch/train", UID: "train", Checkpoint: 20 * time.Second, Created: o.Start, Members: []fleet.Member{{Role: "worker", Kind: "Job",
		Workload: fleet.Name{Namespace: "batch", Name: "train"}, Min: int32(o.Offline), Max: 1000, Remaining: -1,
		Request: fleet.Resources{CPU: 8000, Memory: 16 * fleet.GiB}}}}}
	for i := range w.services {
		svc := &w.services[i]
		svc.Desired = fleet.KnownAt(int32(w.nature(svc.ID, o.Start)/(0.5*svc.Request.CPU.Cores()))+1, o.Start)
	}
	w.reconcile()
	for _, p := range w.pods {
		p.Ready, p.ReadySince = true, fleet.KnownAt(o.Start, o.Start)
	}
	return w
}

func machine(i int, pool fleet.PoolID) fleet.Node {
	n := fleet.Node{ID: fleet.NodeID(fmt.Sprintf("uid-%03d", i)), Name: fmt.Sprintf("node-%03d", i), Zone: fmt.Sprintf("z%d", i%3), Pool: pool,
		Allocatable: fleet.Resources{CPU: 64000, Memory: 256 * fleet.GiB, Pods: 110}, Ready: true, AgentAlive: true}
	for c := range 4 {
		n.Cells = append(n.Cells, fleet.Cell{ID: c, Socket: c / 2, Capacity: fleet.Resources{CPU: 16000, Memory: 64 * fleet.GiB}})
	}
	if pool == OfflinePool {
		n.Marks = fleet.NodeMarks{HolderTaint: true, OfflineLabel: true, HomeLabel: true}
	}
	return n
}

func service(i int, now time.Time) fleet.Service {
	name := fleet.Name{Namespace: "shop", Name: fmt.Sprintf("svc-%03d", i)}
	return fleet.Service{ID: fleet.ServiceID(name.String()), UID: fleet.UID("uid-" + name.Name), Target: name, TargetKind: "Deployment", TargetFound: true,
		Mode: fleet.Auto, Pause: fleet.PauseNone, Actuation: fleet.ByScale, SLO: fleet.Levels(fleet.CPU(0.7)), Min: 1,
		Max: 200, Quantile: 0.95,
		Steerable: true, Request: fleet.Resources{CPU: 2000, Memory: 4 * fleet.GiB}, Created: now.Add(-30 * 24 * time.Hour)}
}

// Service is one of the world's services, to be bent between cycles.
func (w *World) Service(i int) *fleet.Service { return &w.services[i] }

// Job is the world's offline job, to be bent between cycles.
func (w *World) Job() *fleet.Job { return &w.jobs[0] }

// AddService adds one more service, which has the history of all others.
func (w *World) AddService() {
	svc := service(len(w.services), w.now)
	svc.Desired = fleet.KnownAt[int32](1, w.now)
	w.services = append(w.services, svc)
}

// DropService removes a service and its pods.
func (w *World) DropService(id fleet.ServiceID) {
	w.services = slices.DeleteFunc(w.services, func(s fleet.Service) bool { return s.ID == id })
	w.pods = slices.DeleteFunc(w.pods, func(p *pod) bool { return p.Service == id })
}

// Loans are the loans as they stand.
func (w *World) Loans() []fleet.Loan { return slices.Clone(w.loans) }

// Ports joins a loop to the world.
func (w *World) Ports() loop.Ports {
	return loop.Ports{Observer: w, History: w, Actuator: w, Reporter: w, Journal: w, Memory: w, Clock: w}
}

// Run turns the loop under a leader's epoch until the world's time is until.
func (w *World) Run(l *loop.Loop, epoch int64, until time.Time) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.until, w.cancel, w.epoch = until, cancel, epoch
	return l.Run(ctx, epoch)
}

// Now implements loop.Clock.
func (w *World) Now() time.Time { return w.now }

// At implements loop.Clock: the world has one clock.
func (w *World) At(stamp time.Time) time.Time { return stamp }

// Append implements loop.Journal. A record shares nothing with what the loop goes on to use: each cycle makes a new plan.
func (w *World) Append(_ context.Context, r *loop.Record) error {
	if w.StoreErr != nil {
		return w.StoreErr
	}
	w.Records = append(w.Records, *r)
	return nil
}

// Park implements loop.Clock: time passes at once, and the world with it.
func (w *World) Park(_ context.Context, until time.Time, _ bool) error {
	w.now = until
	w.reconcile()
	if !w.now.Before(w.until) {
		w.cancel()
	}
	return nil
}

// Snapshot implements loop.Observer.
func (w *World) Snapshot(context.Context) (*fleet.Snapshot, error) {
	if w.ObserveErr != nil {
		return nil, w.ObserveErr
	}
	s := w.facts()
	if w.Each != nil {
		w.Each(s)
	}
	return s, nil
}

// facts is the world as a snapshot that shares nothing with it.
func (w *World) facts() *fleet.Snapshot {
	s := &fleet.Snapshot{At: w.now, LeaderEpoch: w.epoch, Frozen: w.Frozen, Nodes: slices.Clone(w.nodes), Pools: slices.Clone(w.Pools),
		Services: slices.Clone(w.services), Jobs: slices.Clone(w.jobs), Loans: slices.Clone(w.loans)}
	for i := range s.Nodes {
		s.Nodes[i].Share.Parcels = slices.Clone(s.Nodes[i].Share.Parcels)
	}
	of := map[fleet.ServiceID]int{}
	for i := range s.Services {
		of[s.Services[i].ID] = i
	}
	// Sorted while they are pointers: a pod is large.
	ordered := slices.SortedFunc(slices.Values(w.pods), func(a, b *pod) int { return a.Name.Compare(b.Name) })
	s.Pods = make([]fleet.Pod, 0, len(ordered))
	for _, p := range ordered {
		s.Pods = append(s.Pods, p.Pod)
		if i, ok := of[p.Service]; ok {
			s.Services[i].Pods = append(s.Services[i].Pods, p.Pod)
		}
	}
	for i := range s.Jobs {
		s.Jobs[i].Members = slices.Clone(s.Jobs[i].Members)
	}
	s.Sort()
	return s
}

// Report implements loop.Reporter.
func (w *World) Report(_ context.Context, r *loop.Report) error {
	report := Reported{At: r.Snapshot.At, HistoryErr: r.HistoryErr, StoreErr: r.StoreErr, Summaries: r.Summaries, Made: r.Snapshot.At}
	for _, tide := range r.Tides {
		if tide.Made.Before(report.Made) {
			report.Made = tide.Made
		}
		if tide.Trusted {
			report.Trusted++
		}
	}
	w.Reports = append(w.Reports, report)
	for i := range w.Pools {
		w.Pools[i].SeenFrozen = r.Snapshot.Frozen != ""
	}
	return nil
}

// ErrDown is a dependency that does not answer.
var ErrDown = errors.New("connection refused")

var (
	_ loop.Observer = (*World)(nil)
	_ loop.History  = (*World)(nil)
	_ loop.Actuator = (*World)(nil)
	_ loop.Reporter = (*World)(nil)
	_ loop.Journal  = (*World)(nil)
	_ loop.Memory   = (*World)(nil)
	_ loop.Clock    = (*World)(nil)

	_ = portrait.Version
)
