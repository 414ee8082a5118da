package sim

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/fleetapi"
	"github.com/springtide/springtide/internal/loop/memorystore"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/signal"
	"github.com/springtide/springtide/sim/scenario"
)

// planEvery is the pace of plans unless a scenario says otherwise. Between two of them a cycle is due when [loop.Due] says so: nothing else of a plan
// changes within a minute.
const planEvery = time.Minute

// controllerOptions are how far Springtide goes in one run.
type controllerOptions struct {
	// Lends says that it lends and recalls machines itself.
	Lends bool
	// Blind takes its forecast away: the load is said to stay as it is.
	Blind bool
	// Target is a CPU target that all services state; 0 leaves sizing to their SLOs.
	Target float64
	// Knows says that services are sized by what a replica truly carries.
	Knows bool
	// HoldFor is how long a fall that nothing confirms is held; 0 means the default.
	HoldFor time.Duration
	// Quantile (0..1) is the availability asked for; 0 leaves it to the scenario.
	Quantile float64
	// ByObjective states none, so that the loop chooses it by the objective of each service.
	ByObjective bool
	// Explores lets every service approach its knee in quiet hours.
	Explores bool
	// Patience is what the online pool waits for pods that a disruption budget keeps; 0 is the default. A test takes it away.
	Patience time.Duration
}

// controller is the real loop on a world: the world behind its ports.
type controller struct {
	w      *World
	o      controllerOptions
	others []Policy // that act next to it at each tick
	cancel context.CancelFunc

	pools    []fleet.Pool
	loans    []fleet.Loan
	services []fleet.Service
	tenants  []fleet.Tenant
	// limits are what the last division lets the online services of each tenant request.
	limits map[fleet.TenantID]fleet.MilliCPU
	plans  []fleet.Festival
	pods   []fleet.Pod // room that snapshots are built in
	free   map[share.Handover]time.Time
	live   signal.Samples
	// liveBefore are the CPU samples of the tick before, and the room of the next ones.
	liveBefore map[fleet.Name]fleet.Known[float64]
	index      map[fleet.ServiceID]int
	// read is up to when the start-ups of each service were handed out.
	read []int
	// epoch is the leader's; the store outlives it.
	epoch int64
	memorystore.Store
	// fresh are the facts that the running cycle saw, stale those that a cache shows while it lags.
	fresh, stale *fleet.Snapshot
	// api takes the writes, order draws the order of groups of them.
	api   *fleetapi.API
	order *rand.Rand
	// redeliveries are writes that come once more, redelivering says that one of them is under way; last the plan of a leader that was succeeded, late the same while its requests
	// arrive, marked the marks of machines.
	redeliveries []redelivery
	redelivering bool
	last, late   *lastPlan
	marked       map[string]marking
	// stamped is the epoch that a new leader wrote on objects before its first plan, stamps draws which leader does.
	stamped map[protocol.Object]int64
	stamps  *rand.Rand
	judge   judge
	err     error
	// before are the replicas that services have while their metrics are a fraction of the truth.
	before []int32
	// eased says of each service whether its portrait counts a fall as true that nothing confirmed. Forecasts are made side by side, each writes its own.
	eased []bool
}

// stampStream is that of the stamps.
const stampStream = 0x7374616d70

// orderStream keeps the draws of the order of writes apart from those of anything else.
const orderStream = 0x6f72646572

// runController turns the loop on a world until the run is over. A loop that was brought down is followed by a new leader.
func runController(ctx context.Context, w *World, o controllerOptions, shared *Shared, others ...Policy) error {
	if w.b.Faults.Any() {
		w.faults = drawFaults(w.b) // learning from nothing is among what faults may hit
		w.redate()
	}
	c := newController(w, o, others)
	if len(w.faults) == 0 {
		var err error
		if c.Portraits, c.Summaries, err = shared.learned(ctx); err != nil {
			return err
		}
		c.forget()
	}
	w.begin()
	for c.epoch = 1; !w.over() && c.err == nil; c.epoch++ {
		inner, cancel := context.WithCancel(ctx)
		c.cancel = cancel
		leader := &leadership{controller: c}
		l := loop.New(leader.ports(), c.options())
		err := l.Run(inner, c.epoch)
		cancel()
		if err != nil && c.err == nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !w.over() && c.err == nil {
			if f := w.on(scenario.LeaderFlapping); f != nil {
				if err := c.linger(ctx, l, leader, f); err != nil {
					return err
				}
			}
			c.pass() // it takes a moment until the next one leads
			c.epoch++
			c.stamp()
			c.epoch--
		}
	}
	return c.err
}

// ports join a loop to the world.
func (l *leadership) ports() loop.Ports {
	c, log := l.controller, slog.DiscardHandler
	if c.w.log != nil {
		log = c.w.log
	}
	return loop.Ports{Observer: l, History: c, Actuator: l, Reporter: l, Journal: c, Memory: c, Clock: c, Log: slog.New(log)}
}

// options are the controller's own, but for the pace of plans and what the run takes from its foresight.
func (c *controller) options() loop.Options {
	o := loop.DefaultOptions()
	o.Portrait.HoldFor = c.o.HoldFor
	o.React = cmp.Or(time.Duration(c.w.b.Tick), planEvery)
	switch {
	case c.o.Blind:
		o.Project = staysAsItIs
	case len(c.w.faults) > 0:
		o.Project = c.project
	default:
		o.Save = math.MaxInt64 // it is never loaded
	}
	return o
}

// project is the controller's forecast while faults are about: one of them makes it wrong.
func (c *controller) project(p portrait.Portrait, now time.Time, o forecast.Options) forecast.Tide {
	c.eased[c.index[p.Service]] = p.Doubt.Eased
	t := forecast.Project(p, now, o)
	if f := c.w.on(scenario.ForecastWrong); f != nil {
		for i := range t.Paths {
			for k := range t.Paths[i] {
				t.Paths[i][k] *= f.Factor
			}
		}
	}
	return t
}

// staysAsItIs is a tide without foresight: the newest value, for a day.
func staysAsItIs(p portrait.Portrait, now time.Time, _ forecast.Options) forecast.Tide {
	t := forecast.Tide{Service: p.Service, Signal: p.Signal, Made: now, Start: now.Truncate(5 * time.Minute), Step: 5 * time.Minute, Quantiles: []float64{0.5}, Model: "last-value"}
	last := math.NaN()
	for _, v := range p.Recent.Values {
		if !math.IsNaN(v) {
			last = v
		}
	}
	if math.IsNaN(last) {
		return t
	}
	path := make([]float64, 24*12+1)
	for i := range path {
		path[i] = last
	}
	t.Paths, t.Trusted = [][]float64{path}, true
	return t
}

func newController(w *World, o controllerOptions, others []Policy) *controller {
	c := &controller{w: w, o: o, others: others, free: map[share.Handover]time.Time{}, marked: map[string]marking{}, limits: map[fleet.TenantID]fleet.MilliCPU{}, eased: make([]bool, len(w.services)), index: map[fleet.ServiceID]int{}, read: make([]int, len(w.services)),
		order: rand.New(rand.NewPCG(w.b.Seed, orderStream)), stamps: rand.New(rand.NewPCG(w.b.Seed, stampStream))}
	c.api = fleetapi.New(c)
	c.Store = memorystore.Store{Down: c.stored, Most: decisionsKept}
	f := &w.b.Fleet.Lending
	mode := fleet.Observe
	if o.Lends {
		mode = fleet.Auto
	}
	by := w.b.Fleet.Scheduler
	c.pools = []fleet.Pool{
		{ID: offlinePool, Version: "0", Class: fleet.Offline, Mode: mode, Scheduler: by, Notice: time.Duration(f.Notice), NoticeMax: time.Duration(f.NoticeMax),
			MovesAtOnce: f.MovesAtOnce, MovesPerHour: f.MovesPerHour, Budget: budgetOf(w.b)},
		{ID: onlinePool, Version: "0", Class: fleet.Online, Mode: mode, Scheduler: by, Unit: fleet.Unit(f.Unit), LowWatermark: f.LowPercent / 100, HighWatermark: f.HighPercent / 100,
			Notice: time.Duration(f.Notice), NoticeMax: time.Duration(f.NoticeMax), MinimumTerm: time.Duration(f.MinimumTerm), Ladder: fleet.Ladder{Patience: o.Patience},
			MovesAtOnce: f.MovesAtOnce, MovesPerHour: f.MovesPerHour, Budget: budgetOf(w.b)},
	}
	for i := range w.services {
		c.index[w.services[i].ID()] = i
		c.services = append(c.services, c.serviceFacts(i))
	}
	c.tenants, c.plans = tenantsOf(w.b), festivalsOf(w.b)
	c.judge, w.learns = c.newJudge(), c.learns()
	return c
}

// budgetOf is the disruption budget of the online pool: the defaults, which are for 200 machines, in proportion.
func budgetOf(b *scenario.Built) fleet.DisruptionBudget {
	const machines, evictions = 200, 60
	return fleet.DisruptionBudget{EvictionsPerMinute: max(evictions, evictions*b.Online/machines), ServiceShare: 0.2, FleetShare: 0.1}
}

func (c *controller) serviceFacts(i int) fleet.Service {
	s := &c.w.services[i]
	f := fleet.Service{ID: s.ID(), UID: fleet.UID("uid-" + s.Name.String()), Target: s.Name, TargetKind: "Deployment", TargetFound: true, Mode: fleet.Auto,
		Pause: fleet.PauseNone, Actuation: fleet.ByScale, SLO: s.SLO, Min: int32(s.Spec.Min), Max: c.w.mostReplicas(i),
		Quantile: s.Spec.ForecastPercent / 100, Steerable: true, Request: s.Request(),
		Standby: time.Duration(s.Spec.Standby), Gate: s.Spec.Standby > 0,
		RequestsMode: fleet.RequestsOff, Created: c.w.start.Add(-time.Duration(c.w.b.History))}
	for k := range s.Spec.Windows {
		w := &s.Spec.Windows[k]
		x := w.Named(fmt.Sprintf("window-%d", k))
		x.Min, x.Max = int32(w.Min), int32(w.Max)
		f.Windows = append(f.Windows, x)
	}
	f.SLO.Explore = c.o.Explores
	switch {
	case c.o.ByObjective:
		f.Quantile = 0
	case c.o.Quantile > 0:
		f.Quantile = c.o.Quantile
	}
	if c.o.Target > 0 {
		f.Metrics = []fleet.Metric{{Name: "cpu", Type: fleet.MetricCPU, Target: c.o.Target}}
	}
	if c.o.Knows {
		f.Metrics = []fleet.Metric{{Name: "cpu", Type: fleet.MetricCPU, Target: s.trueTarget(c.w.b.Jitter)}}
	}
	return f
}

// drainTime is the API's default.
const drainTime = 10 * time.Minute

func tenantsOf(b *scenario.Built) []fleet.Tenant {
	limit := func(cores *float64) fleet.Known[fleet.Resources] {
		if cores == nil {
			return fleet.Known[fleet.Resources]{}
		}
		return fleet.KnownAt(amount(*cores), b.Start)
	}
	var out []fleet.Tenant
	for i := range b.Tenants {
		t := &b.Tenants[i]
		x := fleet.Tenant{ID: fleet.TenantID(t.Name), Parent: fleet.TenantID(t.Parent), Namespaces: t.Namespaces, Guarantee: amount(t.GuaranteeCores),
			LendingLimit: limit(t.LendingCores), BorrowingLimit: limit(t.BorrowingCores), Drain: cmp.Or(time.Duration(t.Drain), drainTime),
			Burst: fleet.Burst{Percent: t.Burst.Percent, Duration: time.Duration(t.Burst.For)}, MaxPriority: fleet.PriorityHigh, Accepted: true}
		for k := range t.Slices {
			x.Slices = append(x.Slices, fleet.Slice{Window: t.Slices[k].Named(fmt.Sprintf("slice-%d", k)), Guarantee: amount(t.Slices[k].GuaranteeCores)})
		}
		out = append(out, x)
	}
	return out
}

func amount(cores float64) fleet.Resources {
	return fleet.Resources{CPU: fleet.FromCores(cores), Memory: fleet.Bytes(cores * float64(scenario.MemoryPerCore))}
}

func festivalsOf(b *scenario.Built) []fleet.Festival {
	var out []fleet.Festival
	for i := range b.Festivals {
		f := &b.Festivals[i]
		x := fleet.Festival{ID: f.Name, Start: f.Start, End: f.End, Approved: true}
		for _, l := range f.Lifts {
			x.Lifts = append(x.Lifts, fleet.Lift{Service: fleet.ServiceID(l.Service), Factor: l.Factor, Floor: int32(l.Floor)})
		}
		out = append(out, x)
	}
	return out
}

// Now implements loop.Clock.
func (c *controller) Now() time.Time { return c.w.now.Add(c.w.skew()) }

// At implements loop.Clock: a fleet has one clock.
func (c *controller) At(stamp time.Time) time.Time { return stamp }

// Park implements loop.Clock: time passes at once, and the fleet with it.
func (c *controller) Park(ctx context.Context, until time.Time, _ bool) error {
	last := c.Now()
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.pass()
		if c.w.over() || c.down() {
			c.cancel()
			return nil
		}
		if now := c.Now(); !now.Before(until) || !now.Before(loop.Due(c.pending(last, until))) {
			return nil
		}
	}
}

// pass lets one tick pass.
func (c *controller) pass() {
	w := c.w
	if len(c.others) == 0 {
		for i := range w.jobs {
			w.refill(i)
		}
	}
	w.changed = false
	w.finish()
	if w.over() {
		c.settle()
		c.checkSettled()
		return
	}
	w.begin()
	c.nodeSides()
	c.redeliver()
	c.arrive()
	for _, p := range c.others {
		p.Decide(w)
	}
	c.check()
	c.checkShrunk()
}

// down reports whether the leadership changes hands now.
func (c *controller) down() bool {
	return c.w.on(scenario.LeaderFlapping) != nil && c.w.tick%perMinute == 0
}

// pending is what the fleet has for the loop to do before its tick.
func (c *controller) pending(last, tick time.Time) loop.Pending {
	w := c.w
	p := loop.Pending{Last: last, Now: c.Now(), Tick: tick, Changed: w.changed, Deadline: loop.Deadline(c.loans, c.pools)}
	for i := range w.services {
		s := &w.services[i]
		target := hpa.UtilisationTarget(&c.services[i])
		each, _, ok := s.usedBy(w.tick, metricTicks, liveAgo)
		if !ok {
			continue
		}
		n, ok := hpa.Reactive(hpa.Alike{Request: fleet.MilliCPU(1000 * s.Cores), Used: fleet.FromCores(each), Measured: s.ready,
			Unready: s.starting + s.waiting}, s.desired-int32(s.standing), target, tolerance)
		p.Short = p.Short || ok && n > s.desired-int32(s.standing)
		p.Waiting = p.Waiting || s.waiting > 0 && w.borrowed > 0 && c.o.Lends
		if p.Short || p.Waiting {
			break
		}
	}
	return p
}

// settle counts what is overdue at the end.
func (c *controller) settle() {
	for i := range c.loans {
		if l := &c.loans[i]; l.From == onlinePool && l.CleanAt.IsZero() && l.Late(c.w.now) {
			c.w.acc.late++
		}
	}
}

var (
	_ loop.Observer = (*leadership)(nil)
	_ loop.History  = (*controller)(nil)
	_ loop.Actuator = (*leadership)(nil)
	_ loop.Reporter = (*leadership)(nil)
	_ loop.Journal  = (*controller)(nil)
	_ loop.Memory   = (*controller)(nil)
	_ loop.Clock    = (*controller)(nil)
)

func (c *controller) serviceAt(id fleet.ServiceID) (int, error) {
	i, ok := c.index[id]
	if !ok {
		return 0, fmt.Errorf("there is no service %s", id)
	}
	return i, nil
}
