package hpa

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
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
	capacity       float64 // load of one replica
	capacityKnown  bool
	lead           time.Duration
	// load is the live load where it counts what the portrait does, signal what live.Load counts.
	load   fleet.Known[float64]
	signal portrait.Signal
	levels []level
	lifts  []lift
	pods   census
	// unforeseen says that the forecast's skill has been lost for longer than it is waited for; known once the forecast was judged.
	unforeseen bool

	// current is spec.replicas; held is the number that Springtide itself writes: spec.replicas too, or the HPA's minReplicas.
	current, held int32
	// missing are the signals that a scale-in lacks, notes the clauses that the reason ends with.
	missing, notes []string
}

func newSizer(svc *fleet.Service, p *portrait.Portrait, t *forecast.Tide, live *Live, now time.Time, o Options) *sizer {
	z := &sizer{svc: svc, p: p, t: t, live: live, now: now, o: o.resolved(svc, live.Window), quantile: svc.Quantile}
	if !(z.quantile > 0 && z.quantile < 1) {
		z.quantile = 0.95
	}
	if o.Quantile > 0 {
		z.quantile = min(z.quantile, o.Quantile)
	}
	z.util = z.o.Defaults.utilisation(svc)
	z.capacity, z.capacityKnown = capacity(svc, p, z.util)
	z.lead = z.leadOf()
	z.signal = live.LoadSignal
	if z.signal == "" {
		z.signal = p.Signal
	}
	if z.signal == p.Signal {
		z.load = live.Load
	}
	z.levels = levels(svc.Windows, now, now.Add(z.o.Defaults.AheadFor))
	z.lifts = lifts(z.o.Festivals, svc.ID)
	z.t = planned(t, z.lifts)
	z.pods = z.census()
	z.current = svc.Desired.Value
	if !svc.Desired.OK {
		// The pods that exist are the best guess; nothing is changed on it.
		z.current = int32(z.pods.alive)
		z.miss("replicas")
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

// Size decides how many replicas one service should have now, and what it will ask for over the coming day. The service's Mode is not
// judged here: a service that is only observed is sized like any other, and the planner withholds the action.
//
// For a service under HPAFloor, Replicas is the floor to set and Wanted the demand with the reactive parts.
func Size(svc *fleet.Service, p portrait.Portrait, t forecast.Tide, live Live, now time.Time, o Options) Target {
	z := newSizer(svc, &p, &t, &live, now, o)
	tg := Target{Service: svc.ID, Current: z.current, Floor: z.current, AheadStep: z.o.Defaults.AheadStep, Ahead: z.ahead()}
	if z.capacityKnown {
		tg.CapacityPerReplica = z.capacity
	}

	tide := z.forecastPart()
	if tide.Replicas.OK {
		tg.Floor = tide.Replicas.Value
	}
	tg.Parts = append(tg.Parts, tide)
	if part, ok := z.festivalPart(); ok {
		tg.Parts = append(tg.Parts, part)
	}
	tg.Parts = append(tg.Parts, z.windowParts()...)
	tg.Demand = z.chainLoad(tg.Parts)
	if o.Link > 0 {
		tg.Parts = append(tg.Parts, Part{Name: "link:" + svc.LinkGroup, Replicas: fleet.KnownAt(o.Link, now), Detail: o.LinkWhy})
	}
	floors := max(most(tg.Parts), svc.Min, 0)

	if z.number(z.load) != fresh {
		z.miss("load")
	}
	reactive := z.reactive(floors)
	tg.Parts = append(tg.Parts, reactive...)
	tg.Parts = append(tg.Parts, Part{Name: "minimum", Replicas: fleet.KnownAt(max(0, svc.Min), now), Detail: "the service's own bound"})

	tg.Wanted = max(floors, most(reactive))
	tg.Missing, tg.DataFresh = z.missing, len(z.missing) == 0
	if tg.DataFresh {
		tg.Likely = z.likely(tg.Ahead)
	}
	tg.Unmeasured = z.unmeasured()
	tg.LiveAlone = z.unforeseen && z.onlyForecast()
	if z.t.SkillLost && z.onlyForecast() {
		tg.LiveMost, _ = z.carry(nowcastMost * z.load.Value)
	}
	tg.Unconfirmed = live.Unconfirmed
	for _, u := range live.Unconfirmed {
		z.note("not believed: %s", u)
	}
	z.decide(&tg, floors, most(reactive))
	tg.Reason = z.reason(&tg)
	return tg
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
