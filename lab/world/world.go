package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/springtide/springtide/deploy/rules"
	"github.com/springtide/springtide/fleet"
	clockapi "github.com/springtide/springtide/internal/clock"
	"github.com/springtide/springtide/lab/clock"
	"github.com/springtide/springtide/lab/liar"
	"github.com/springtide/springtide/lab/model"
	"github.com/springtide/springtide/lab/plane"
	"github.com/springtide/springtide/lab/process"
	"github.com/springtide/springtide/lab/traces"
)

// World is a running world. Its methods are for one goroutine, which is the one that OnStep is called from.
type World struct {
	options Options
	log     *slog.Logger
	dir     string
	store   string // URL of the controllers' store
	// start is when the world begins, counted when its account does, end when it stops.
	start, counted, end time.Time

	plane         *plane.Plane
	died          <-chan error // parts of the plane that died; nil without one
	clock         *clock.Server
	api           *api
	table         *table
	runner        *process.Runner // nil when no machine runs processes
	stopWatch     func()
	exporters     exporters
	ruling        chan error // the evaluation of rules that is under way; nil when none is
	prometheusURL string
	controllers   []*controller
	failed        chan error // a controller that ended by itself

	machines      []machine
	homes         map[string]string // pool by machine
	fleet         *model.Fleet
	serviceByName map[fleet.Name]int
	jobs          []*job
	jobByName     map[fleet.Name]*job
	demand        float64 // offline work, in core-hours
	sides         map[string]*side
	// written is what each counter of a controller's writes stood at.
	written map[string]float64
	truth   *model.Truth
	outages []*outage
	judging *judging   // nil without a judge
	liar    *liar.Liar // nil when nothing stands before Prometheus

	began, countedAt, paced time.Time // by the wall
	// usedBefore is each process's processor time at countedAt.
	usedBefore map[string]time.Duration
	live       atomic.Bool  // the clock has begun to run
	excused    atomic.Int64 // until when (by the wall, in Unix nanoseconds) a controller may end for an outage
	wrote      bool         // the world wrote since the control plane was last quiet
	failures   int          // steps in a row whose writes failed
	violating  int
	forecast   float64
	fresh      freshLooks
	spent      Spent
	closing    sync.Mutex
	closers    []func() error // in the order they were made
}

// Spent is where a run's wall time went.
type Spent struct {
	// Parking is the wait for controllers, Settling that for the control plane, Idle that for the speed.
	Parking, Settling, Idle time.Duration
	// Model, Writes and Scrape are the world's own work, Rules the wait for rules that were not ready by the next step.
	Model, Writes, Scrape, Rules time.Duration
	// Written counts requests to the API server, Samples what was scraped.
	Written, Samples int
}

// New starts a world and brings it to its first moment: the fleet stands, every online service is ready at its static size, the
// controllers have made their first plan. ctx bounds the start alone; Close ends the world.
func New(ctx context.Context, o Options) (*World, error) {
	o = o.withDefaults()
	w := &World{
		options: o, log: o.Log, dir: o.Dir, failed: make(chan error, 4),
		homes: map[string]string{}, serviceByName: map[fleet.Name]int{}, jobByName: map[fleet.Name]*job{}, sides: map[string]*side{},
		forecast: math.NaN(),
	}
	if err := w.build(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// build makes the world from the ground up.
func (w *World) build(ctx context.Context) error {
	if err := w.invent(); err != nil {
		return err
	}
	if err := w.makeDirectory(); err != nil {
		return err
	}
	var err error
	if w.clock, err = clock.Listen(w.start); err != nil {
		return err
	}
	w.onClose(w.clock.Close)
	past := make(chan error, 1)
	go func() { past <- w.recall(ctx) }()
	err = w.stand(ctx)
	// The past is written while the machines are built; its database is closed only after it was written.
	if err := errors.Join(err, <-past); err != nil {
		return err
	}
	for i := range w.machines {
		w.exporters.model.AddNode(w.machines[i].name, w.machines[i].allocatable())
	}
	if w.options.Springtide == "" {
		return nil
	}
	w.options.Progress("starting springtide")
	if err := w.startControllers(ctx); err != nil {
		return err
	}
	return w.startJudge()
}

// invent settles what the world is made of: services from traces, machines, jobs. Nothing runs yet.
func (w *World) invent() error {
	o := w.options
	w.begin(traces.ReplayStart().Add(o.Begin))
	if w.end.After(traces.End()) {
		return fmt.Errorf("the traces end %s after the world's start: %s and a warm-up of %s are too long",
			traces.End().Sub(w.start), o.Length, o.WarmUp)
	}
	w.machines = machines(o.Nodes, o.RealNode != nil)
	for i := range w.machines {
		w.homes[w.machines[i].name] = w.machines[i].pool
	}
	sources, err := traces.Services(o.Services, o.Seed)
	if err != nil {
		return err
	}
	if w.fleet, err = model.NewFleet(sources, model.Spec{OnlineCores: float64(onlineCores(w.machines)), Seed: o.Seed}); err != nil {
		return err
	}
	if o.AtPeak {
		w.begin(w.peak())
	}
	for i, s := range w.fleet.Services {
		w.serviceByName[s.Name] = i
	}
	if err := w.newJobs(); err != nil {
		return err
	}
	for _, f := range o.Faults {
		w.outages = append(w.outages, &outage{Fault: f})
	}
	// Two accounts: one over the warm-up, which is thrown away, and one over what counts.
	w.truth, err = w.newTruth(w.start)
	return err
}

// begin settles the frame of the world's time.
func (w *World) begin(at time.Time) {
	w.start = at
	w.counted = w.start.Add(w.options.WarmUp)
	w.end = w.counted.Add(w.options.Length)
}

// peak is the time of the first day's greatest demand, or earlier, so that the whole length can be played.
func (w *World) peak() time.Time {
	latest := traces.End().Add(-w.options.WarmUp - w.options.Length)
	best, most := w.start, 0.0
	for at := w.start; at.Before(w.start.Add(24*time.Hour)) && !at.After(latest); at = at.Add(15 * time.Minute) {
		if d := w.demandAt(at); d > most {
			best, most = at, d
		}
	}
	return best
}

// demandAt is what the load of all services needs at its SLOs, in cores.
func (w *World) demandAt(at time.Time) float64 {
	sum := 0.0
	for i, rate := range w.fleet.Rates(at) {
		if s := w.fleet.Services[i]; !math.IsNaN(rate) {
			sum += rate / s.Capacity * float64(s.Cores)
		}
	}
	return sum
}

// newTruth begins an account.
func (w *World) newTruth(start time.Time) (*model.Truth, error) {
	return model.NewTruth(model.TruthOptions{
		Fleet: w.fleet, Start: start, Nodes: len(w.machines), AllocatableCores: float64(allCores(w.machines)),
		OnlineCores: float64(onlineCores(w.machines)), OfflineDemand: w.demand,
	})
}

// beginAccount throws the account of the warm-up away and begins the one that counts.
func (w *World) beginAccount() error {
	var err error
	w.truth, err = w.newTruth(w.counted)
	for _, j := range w.jobs {
		j.usefulBefore, j.lostBefore = j.play.UsefulCoreHours(), j.play.LostCoreHours()
	}
	w.countedAt = time.Now()
	w.spent = Spent{}
	w.usedBefore = map[string]time.Duration{}
	for _, u := range w.processes() {
		w.usedBefore[u.Component] = u.CPU
	}
	return err
}

// makeDirectory makes the directory of this run, which goes with the world.
func (w *World) makeDirectory() error {
	dir, err := os.MkdirTemp(w.options.Dir, "springtide-lab-")
	if err != nil {
		return fmt.Errorf("make the lab's directory: %w", err)
	}
	w.dir = dir
	if !w.options.Keep {
		w.onClose(func() error { return os.RemoveAll(dir) })
	}
	w.store = w.options.Store
	if w.store == "" {
		w.store = "sqlite://" + filepath.Join(dir, "springtide.db")
	}
	return nil
}

// recall opens Prometheus with the services' past in it.
func (w *World) recall(ctx context.Context) error {
	begin := time.Now()
	rulesDir, promDir := filepath.Join(w.dir, "rules"), filepath.Join(w.dir, "prometheus")
	for _, d := range []string{rulesDir, promDir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if err := os.CopyFS(rulesDir, rules.Files); err != nil {
		return fmt.Errorf("write the rules: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(rulesDir, "*.yaml"))
	if err != nil {
		return err
	}
	if err := w.openPrometheus(ctx, promDir, files); err != nil {
		return err
	}
	w.options.Progress(fmt.Sprintf("prometheus serves the past of %d services (%.1fs)", len(w.fleet.Services), time.Since(begin).Seconds()))
	return nil
}

// stand starts the control plane and builds the fleet in it.
func (w *World) stand(ctx context.Context) error {
	o := w.options.Plane
	o.Dir, o.Keep, o.Progress = w.dir, w.options.Keep, w.options.Progress
	o.Lab = &clockapi.Lab{Clock: w.clock.URL("reader"), Store: w.store}
	if err := w.prepareJudge(&o); err != nil {
		return err
	}
	var err error
	if w.plane, err = plane.Start(ctx, o); err != nil {
		return err
	}
	w.died = w.plane.Died()
	w.onClose(w.plane.Stop)
	if w.api, err = connect(w.plane.RESTConfig()); err != nil {
		return err
	}
	w.options.Progress(fmt.Sprintf("building %d machines, %d services, %d jobs", len(w.machines), len(w.fleet.Services), len(w.jobs)))
	if err := w.buildBase(ctx); err != nil {
		return err
	}
	if err := w.install(ctx); err != nil {
		return err
	}
	w.table = newTable(w.clock.Now, w.startUp)
	w.table.homes, w.table.followsShares = w.homes, w.options.Scheduler == SchedulerSpringtide
	if w.machines[0].real {
		w.table.realMachine = w.machines[0].name
	}
	if err := w.openProcesses(); err != nil {
		return err
	}
	if err := w.rewatch(ctx); err != nil {
		return err
	}
	w.onClose(func() error { w.stopWatch(); return nil })
	if err := w.buildFleet(ctx); err != nil {
		return err
	}
	if err := w.settleFirst(ctx); err != nil {
		return err
	}
	if err := apply(ctx, w.lifecycle(w.start)); err != nil {
		return err
	}
	w.live.Store(true)
	renewing, stop := context.WithCancel(context.Background())
	w.onClose(func() error { stop(); return nil })
	if !w.options.NoAgents {
		go w.renewAgents(renewing)
	}
	return nil
}

// buildFleet makes machines, services and jobs. The real machine boots meanwhile; its pods may come before it.
func (w *World) buildFleet(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	booted := make(chan error, 1)
	go func() { booted <- w.startKubelet(ctx) }()
	for _, build := range []func(context.Context) error{w.buildMachines, w.buildAgents, w.buildPolicy, w.buildServices, w.buildJobs} {
		if err := build(ctx); err != nil {
			stop()
			return errors.Join(err, <-booted)
		}
	}
	return <-booted
}

// startUp is how long a pod takes from binding to ready. Pods from before the clock runs have been there for long.
func (w *World) startUp(p *pod) time.Duration {
	if !w.live.Load() {
		return 0
	}
	switch p.kind {
	case online:
		if i, ok := w.serviceByName[p.owner]; ok {
			return w.fleet.Services[i].StartUpOf(p.object.Name)
		}
	case offline:
		return offlineStart
	}
	return 0
}

// onClose has something closed when the world ends, before all that was made earlier.
func (w *World) onClose(f func() error) {
	w.closing.Lock()
	defer w.closing.Unlock()
	w.closers = append(w.closers, f)
}

// Close ends the world: first those who depend on others. It may be called more than once.
func (w *World) Close() error {
	w.closing.Lock()
	defer w.closing.Unlock()
	var errs []error
	if w.ruling != nil {
		if err := <-w.ruling; !errors.Is(err, context.Canceled) { // the database must not be closed under it
			errs = append(errs, err)
		}
	}
	for _, c := range slices.Backward(w.closers) {
		errs = append(errs, c())
	}
	w.closers = nil
	return errors.Join(errs...)
}

// wallPerDay is what a virtual day takes by the wall at the pace since the account began.
func (w *World) wallPerDay() time.Duration {
	since, at := w.counted, w.countedAt
	if at.IsZero() {
		since, at = w.start, w.began
	}
	if played := w.clock.Now().Sub(since); played > 0 && !at.IsZero() {
		return time.Duration(float64(time.Since(at)) * float64(24*time.Hour) / float64(played))
	}
	return 0
}

// Report is what the run came to so far.
func (w *World) Report() model.Report {
	var wall time.Duration
	if !w.countedAt.IsZero() {
		wall = time.Since(w.countedAt)
	}
	report := w.truth.Report(wall)
	report.Judge = w.judgement()
	return report
}

// Counted is the virtual time that is in the account.
func (w *World) Counted() time.Duration { return w.clock.Now().Sub(w.counted) }

// Spent is where the wall time went since the account began.
func (w *World) Spent() Spent { return w.spent }

// Now is the virtual time.
func (w *World) Now() time.Time { return w.clock.Now() }

// Plane is the control plane, for tests that look at it.
func (w *World) Plane() *plane.Plane { return w.plane }

// PrometheusURL is where Prometheus serves.
func (w *World) PrometheusURL() string { return w.prometheusURL }

// AnyService is the name of one of the services, as in "shop/cart"; empty where there is none.
func (w *World) AnyService() string {
	if len(w.fleet.Services) == 0 {
		return ""
	}
	return w.fleet.Services[0].Name.String()
}

// Dir is the directory of this run's data and logs.
func (w *World) Dir() string { return w.dir }
