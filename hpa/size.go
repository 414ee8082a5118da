package hpa

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/signal"
)

// sizer is the work of sizing one service once.
type sizer struct {
	svc  *fleet.Service
	p    *portrait.Portrait
	t    *forecast.Tide
	live *Live
	now  time.Time
	o    Options

	util, quantile float64
	tolerance      tolerances
	capacity       float64 // load of one replica
	capacityKnown  bool
	basis          Basis
	lead           time.Duration
	// load is the live load where it counts what the portrait does, signal what live.Load counts.
	load   fleet.Known[float64]
	signal portrait.Signal
	levels []windowSize
	lifts  []lift
	pods   census
	// unforeseen says that the forecast's skill has been lost for longer than it is waited for; known once the forecast was judged.
	unforeseen bool
	// zero says whether the service scales to zero.
	zero Zero

	// within are the bounds that others set.
	within Bounds

	// current is spec.replicas less the pods in standby; held is the number that Springtide itself sets: the same, or
	// the HPA's minReplicas.
	current, held int32
	// missing are the signals that a scale-in lacks, notes what held, cut or raised the size.
	missing []Missing
	notes   []reason.Reason
}

func newSizer(svc *fleet.Service, p *portrait.Portrait, t *forecast.Tide, live *Live, now time.Time, o Options) *sizer {
	z := &sizer{svc: svc, p: p, t: t, live: live, now: now, o: o.resolved(svc, live.Window), quantile: svc.Quantile}
	if !(z.quantile > 0 && z.quantile < 1) {
		z.quantile = 0.95
	}
	z.tolerance = tolerancesOf(svc, z.o.Defaults.Tolerance)
	c := z.o.Defaults.capacityOf(svc, p)
	z.util, z.capacity, z.capacityKnown, z.basis = c.util, c.load, c.known, c.basis
	z.lead = z.leadOf()
	z.signal = live.LoadSignal
	if z.signal == "" {
		z.signal = p.Signal
	}
	if z.signal == p.Signal {
		z.load = live.Load
	}
	z.zero = ZeroOf(svc)
	z.levels = levels(svc.Windows, now, now.Add(z.o.Defaults.AheadFor))
	z.lifts = lifts(z.o.Festivals, svc.ID, span{now, now.Add(z.o.Defaults.AheadFor)})
	z.t = planned(t, z.lifts)
	z.pods = z.census()
	z.current = svc.Serving()
	if !svc.Desired.OK {
		// The pods that exist are the best guess; nothing is changed on it.
		z.current = int32(z.pods.alive)
		z.miss(MissingReplicas, "")
	}
	z.held = z.current
	if z.floorOnly() && svc.HPA != nil {
		z.held = svc.HPA.Min
	}
	return z
}

// floorOnly says that a HorizontalPodAutoscaler of the user's does the reactive part, and Springtide sets its floor alone. Were the
// reactive parts in that floor, usage within tolerance would raise it to what the HPA runs, and the HPA could never come down.
func (z *sizer) floorOnly() bool { return z.svc.Actuation == fleet.ByHPAFloor }

// Demand is what one service asks for by its own signals, now and over the coming day. It is made once a cycle and never changes; what others have to
// say to it comes as [Bounds].
type Demand struct {
	// z sizes for now, plain for all hours: they differ while the service explores alone.
	z, plain *sizer
	// target is what no bound changes, floors and reactive are the parts but for the call chain's, the minimum and the latency's.
	target           Target
	floors, reactive []Part
}

// Ask finds what one service asks for. The service's Mode is not judged here: a service that is only observed is sized like any other, and the planner
// withholds the action.
func Ask(svc *fleet.Service, p portrait.Portrait, t forecast.Tide, live Live, now time.Time, o Options) *Demand {
	z := newSizer(svc, &p, &t, &live, now, o)
	d := z.exploring().ask()
	d.plain = z
	d.target.Ahead = z.ahead()
	d.target.AtQuantiles = d.atQuantiles(o.Quantiles)
	if d.target.DataFresh {
		d.target.Likely = z.likely(d.target.Ahead)
	}
	return d
}

// Median is the demand of now if the tide comes as its median has it, without the day ahead: what lies above it is insurance.
func (d *Demand) Median() *Demand {
	z := *d.plain
	z.quantile, z.missing, z.notes = min(z.quantile, 0.5), nil, nil
	if !z.svc.Desired.OK {
		z.miss(MissingReplicas, "")
	}
	return z.ask()
}

// ask finds what is asked for now.
func (z *sizer) ask() *Demand {
	d := &Demand{z: z, target: Target{Service: z.svc.ID, Current: z.asked(), Floor: z.current,
		AheadStep: z.o.Defaults.AheadStep, SetsFloor: z.floorOnly(), Lead: z.lead,
		StandsFor: z.o.Defaults.Stabilisation}}
	tg := &d.target
	tg.Standing = int32(z.svc.Standing())
	tg.Basis = z.basis
	if z.capacityKnown {
		tg.CapacityPerReplica = z.capacity
	}
	tide := z.forecastPart()
	if tide.Replicas.OK {
		tg.Floor = tide.Replicas.Value
	}
	d.floors = append(d.floors, tide)
	if part, ok := z.festivalPart(); ok {
		d.floors = append(d.floors, part)
	}
	d.floors = append(d.floors, z.windowParts()...)
	tg.Demand = z.chainLoad(d.floors)
	if z.number(z.load) != signal.Fresh && !z.rests() {
		z.miss(MissingLoad, "")
	}
	d.reactive = z.reactive()
	z.latencyPart(0) // for what it misses: what it asks for hangs on the bounds
	tg.Missing, tg.DataFresh = z.missing, len(z.missing) == 0
	tg.Unmeasured, tg.SeenAtZero = z.unmeasured(), z.zero == ZeroAllowed && z.seen()
	tg.LiveAlone = z.unforeseen && z.onlyForecast()
	if z.t.SkillLost && z.onlyForecast() {
		tg.LiveMost, _ = z.carry(nowcastMost * z.load.Value)
	}
	tg.Unconfirmed = z.live.Unconfirmed
	for _, name := range z.basis.NotByLoad {
		z.note(reason.LevelNotByLoad, name)
	}
	for _, u := range z.live.Unconfirmed {
		z.note(reason.NotBelieved, u)
	}
	return d
}

// Within decides how many replicas the service should have now, within the bounds that others set. For a service under HPAFloor, Replicas is the floor to
// set and Wanted the demand with the reactive parts.
func (d *Demand) Within(b Bounds) Target {
	z, tg := *d.z, d.target
	z.within, z.notes = b, slices.Clip(z.notes) // what one set of bounds adds is not another one's
	tg.Parts = slices.Grow(slices.Clone(d.floors), len(d.reactive)+3)
	if b.Link > 0 {
		tg.Parts = append(tg.Parts, Part{Kind: PartLink, Name: z.svc.LinkGroup, Replicas: fleet.KnownAt(b.Link, z.now),
			Why: b.LinkWhy})
	}
	floors := max(most(tg.Parts), z.least())
	reactive := most(d.reactive)
	tg.Parts = append(tg.Parts, d.reactive...)
	if latency, ok := z.latencyPart(max(floors, reactive)); ok {
		reactive = max(reactive, most([]Part{latency}))
		tg.Parts = append(tg.Parts, latency)
	}
	tg.Parts = append(tg.Parts, Part{Kind: PartMinimum, Replicas: fleet.KnownAt(z.least(), z.now),
		Why: z.whyLeast()})
	tg.Wanted = max(floors, reactive)
	tg.AtRest = z.rests() && reactive == 0
	z.decide(&tg, z.asks(tg.Parts, floors, reactive))
	tg.Notes = z.notes
	return tg
}

// peakMargin is what a service is taken to need above its last peak while its signals are missing: the margin of static provisioning.
const peakMargin = 1.2

// Worst is what the service may need while its signals are not all fresh, 0 while they are: what runs, or last week's peak and a fifth; its maximum when
// no peak is known. While its live signals are fresh, and only its forecast's skill is lost, the most that a nowcast makes of them bounds it too:
// after a flood that no history knew it would otherwise hold the peak of that flood for as many days as its forecast takes to be trusted again.
func (d *Demand) Worst() int32 {
	if d.target.DataFresh {
		return 0
	}
	worst := d.plain.svc.Max
	if d.plain.capacityKnown && d.plain.p.Peak > 0 {
		worst = min(worst, ceil(d.plain.p.Peak*peakMargin/d.plain.capacity))
	}
	if d.target.LiveMost > 0 {
		worst = min(worst, d.target.LiveMost)
	}
	return max(worst, int32(d.plain.svc.Standing()))
}

// asked is spec.replicas, pods in standby included; the pods that exist where it could not be read.
func (z *sizer) asked() int32 {
	if z.svc.Desired.OK {
		return z.svc.Desired.Value
	}
	return z.current
}

// most is the largest known ask of some parts.
func most(parts []Part) int32 {
	var n int32
	for _, p := range parts {
		if p.Replicas.OK {
			n = max(n, p.Replicas.Value)
		}
	}
	return n
}
