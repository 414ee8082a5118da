package sim

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/sim/scenario"
)

const (
	// tick is the step of a fleet: nothing is decided between two of them.
	tick       = measure.Step
	perMinute  = int32(time.Minute / tick)
	perHour    = 60 * perMinute
	ticksInDay = 24 * perHour

	// grace is how long an online pod takes to end, offlineGrace an offline one that has not saved its work; one that has goes at once.
	grace        = 30 * time.Second
	offlineGrace = 30 * time.Second
	// offlineStart is the time from binding to running of an offline pod; reading its checkpoint comes on top.
	offlineStart = 15 * time.Second
	// confine is what the node side needs between the cells being free and its saying so.
	confine = 30 * time.Second
)

// ticks brings a time to ticks, rounded up; what takes time takes one at least.
func ticks(d time.Duration) int32 { return max(1, int32((d+tick-1)/tick)) }

// World is a fleet at work: machines, pods, services with their true load, offline jobs. Policies decide on it, and it carries on.
type World struct {
	b     *scenario.Built
	start time.Time // of tick 0
	now   time.Time
	tick  int32
	// scored is the first tick that counts, end the first one beyond the run.
	scored, end int32
	rates       *Rates

	services []service
	jobs     []job
	machines []machine
	facts    []fleet.Node
	pods     []pod
	slots    []int32 // of pods that are gone
	byName   []int32 // all pods in the order of their names, as snapshots list them
	waiting  []podRef
	heldUp   []podRef // would be ready sooner without lending, and are not ready yet
	// noticed are members that save their work; changed says that something happened that is worth a cycle.
	noticed []podRef
	changed bool

	rooms            rooms
	starting, ending agenda
	saves            *rand.Rand

	// borrowed is the number of online machines that offline holds or is to get; it is kept by the lenders.
	borrowed int
	// faults are what goes wrong, lost how many machines are away, lives how often one came back.
	faults      []fault
	lost, lives int
	// watch, when set, is called at each tick once everything is decided.
	watch func()
	// learns says that a controller learns from the values of the levels.
	learns bool
	// journal and reporter, when set, receive each cycle, log of what the loop logs.
	journal  func(*loop.Record)
	reporter loop.Reporter
	log      slog.Handler
	// offlineHeld are the cores that offline pods hold, guests those of them on online's machines.
	offlineHeld, guests int32
	acc                 account
}

// service is one online service in a world.
type service struct {
	*scenario.Online
	id      fleet.ServiceID
	request fleet.Resources // of one replica
	desired int32
	pods    []int32 // those that do not leave, in the order of creation
	// waiting are without a machine, starting bound and not ready, leaving on their way out. Those that are ready and
	// stand by are counted apart.
	ready, starting, leaving, waiting, standing int
	made                                        int
	// rate is the true load of the tick.
	rate  float64
	queue measure.Queue
	// moment is the service's state in the tick, carries what a replica carries then.
	moment  measure.Moment
	carries float64
	// unlent is the queue as it would be without lending, missed the replicas that would be ready then. killed are those that a lender ended
	// in this tick, by when they were ready.
	unlent measure.Queue
	missed int
	killed []int32
	// used is what each ready pod used in the newest ticks, total what all did, readyThen the ready pods.
	used, total [history]float64
	readyThen   [history]int
	// minutes are what was measured of each minute of the run: cores in use.
	minutes []minute
	sum     minute
	// values are those of the levels by minute, where a controller learns from them; value that of the running minute.
	values   [][]float64
	value    []float64
	last     measure.Outcome
	broken   int32 // ticks in a row in which the SLO did not hold
	startUps []time.Duration
	draws    *rand.Rand
}

// minute is what was measured in a minute: cores in use, requests answered a second, ready replicas.
type minute struct{ cores, served, ready float64 }

// history is how many ticks of measurements a service keeps.
const history = 8

// Rates are the true loads at each tick of a run, by service: the minute's load, with requests that do not come evenly within it.
type Rates struct{ of [][]float64 }

// NewRates draws the loads of a scenario. They are the same for every policy.
func NewRates(b *scenario.Built) *Rates {
	n := int(b.End().Sub(b.RunStart()) / tick)
	r := &Rates{of: make([][]float64, len(b.Services))}
	for i := range b.Services {
		o := &b.Services[i]
		draw := o.Draws(1)
		r.of[i] = make([]float64, n)
		for k := range r.of[i] {
			r.of[i][k] = o.Load.At(b.RunStart().Add(time.Duration(k)*tick)) * math.Exp(b.Jitter*draw.NormFloat64())
		}
	}
	return r
}

// NewWorld returns a fleet at the start of its warm-up, every service at its static provisioning.
func NewWorld(b *scenario.Built, rates *Rates) *World {
	w := &World{b: b, start: b.RunStart(), now: b.RunStart(), rates: rates, saves: rand.New(rand.NewPCG(b.Seed, 2))}
	w.scored, w.end = int32(scenario.WarmUp/tick), int32(b.End().Sub(b.RunStart())/tick)
	w.buildMachines()
	w.services = make([]service, len(b.Services))
	for i := range w.services {
		o := &b.Services[i]
		w.services[i] = service{Online: o, id: o.ID(), request: o.Request(), desired: int32(o.Static), draws: o.Draws(2),
			moment: o.Moment(w.now)}
		w.services[i].carries = o.Carries(w.services[i].moment)
		w.resize(i)
	}
	w.schedule()
	for id := range w.pods {
		// They have run for long.
		p := &w.pods[id]
		if p.node == none {
			continue
		}
		p.ready, p.created, p.bound, p.readyAt = true, -ticksInDay, -ticksInDay, -ticksInDay+1
		s := &w.services[p.owner]
		s.ready++
		s.starting--
		p.uid += "-0" // what was put down for its start does not find it any more
	}
	w.buildJobs()
	w.acc = newAccount(w)
	return w
}

// mostLuck bounds the deviations that a start-up may be off its median, either way.
const mostLuck = 3

// startUp draws the time from binding to Ready of one more pod. With a spread no pod is quicker than the median by more than its share of
// luck, and the slowest of a hundred takes twice as long at a spread of 0.3.
func (s *service) startUp() time.Duration {
	median := time.Duration(s.Spec.StartUp)
	if s.Spec.StartUpSpread == 0 {
		return median
	}
	return time.Duration(float64(median) * math.Exp(s.Spec.StartUpSpread*max(-mostLuck, min(mostLuck, s.draws.NormFloat64()))))
}

// longestStart is the most that startUp draws, as it is played.
func (s *service) longestStart() time.Duration {
	return time.Duration(ticks(time.Duration(float64(s.Spec.StartUp)*math.Exp(s.Spec.StartUpSpread*mostLuck)))) * tick
}

// Policy decides on a world at each tick.
type Policy interface {
	// Decide looks at what is known at the tick and acts.
	Decide(w *World)
}

// Begin lets what happened since the last tick take effect: pods become ready or go, and members save.
func (w *World) begin() {
	w.trouble()
	w.kubelets()
	w.followNotices()
}

// finish lets controllers and scheduler follow what was decided, plays the tick and keeps the account.
func (w *World) finish() {
	for i := range w.services {
		w.resize(i)
	}
	w.schedule()
	w.holdUp()
	if w.watch != nil {
		w.watch()
	}
	w.play()
	w.tick++
	w.now = w.start.Add(time.Duration(w.tick) * tick)
}

// step plays one tick under policies.
func (w *World) step(policies []Policy) {
	w.begin()
	for _, p := range policies {
		p.Decide(w)
	}
	w.finish()
}

// over reports whether the run has ended.
func (w *World) over() bool { return w.tick >= w.end }
