package hpa

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/signal"
)

// UtilisationTarget is the CPU utilisation (0..1] that a service is sized for: the margin below its limit where CPU is
// one of its levels,
// and no more than the figure for latency where a latency is another one; its CPU metric's target where it states one,
// else the figure
// for latency levels.
func UtilisationTarget(svc *fleet.Service) float64 {
	var d Defaults
	d.fill()
	return d.utilisation(svc)
}

func (d *Defaults) utilisation(svc *fleet.Service) float64 {
	target, limit := d.LatencyUtilisation, svc.SLO.CPULimit()
	switch {
	case limit > 0 && svc.SLO.LatencyLimit() > 0:
		target = min(target, limit*d.UtilisationMargin)
	case limit > 0:
		target = limit * d.UtilisationMargin
	}
	for i := range svc.Metrics {
		m := &svc.Metrics[i]
		if m.Type != fleet.MetricCPU || !(m.Target > 0) {
			continue
		}
		if limit > 0 {
			return min(target, m.Target)
		}
		return m.Target
	}
	return target
}

// replicasFor turns a load into replicas; unknown where the load or the capacity is.
func (z *sizer) replicasFor(load float64) fleet.Known[int32] {
	if n, ok := z.carry(load); ok {
		return fleet.KnownAt(n, z.now)
	}
	return fleet.Known[int32]{}
}

// carry is how many replicas carry a load; false where the load or the capacity is not known.
func (z *sizer) carry(load float64) (int32, bool) {
	if !z.capacityKnown || !signal.Sound(load) {
		return 0, false
	}
	if z.idle(load) {
		return 0, true
	}
	// The epsilon keeps 36.0 / 12.0 from asking for four by a rounding error.
	return ceil(load/z.capacity - 1e-9), true
}

// leadOf is how far ahead replicas must be asked for: their time to Ready, one cycle until the next chance to ask, and what
// slow scrapes add to the age of the load that is carried forward.
func (z *sizer) leadOf() time.Duration {
	d := z.o.Defaults
	return StartUp(z.svc, z.p, d.StartUp) + d.Cycle + d.Late
}

// leastStartUps is how many start-ups of a service were seen before their quantile counts alone: four say little of a 0.9 quantile.
const leastStartUps = 5

// StartUp is the time to Ready that a service is sized with: its operator's figure, or the 0.9 quantile of what was observed. While few
// start-ups were seen, it is at least usual, the figure of a service without any.
func StartUp(svc *fleet.Service, p *portrait.Portrait, usual time.Duration) time.Duration {
	switch {
	case svc.StartUp > 0:
		return svc.StartUp
	case p.StartUps < leastStartUps:
		return max(p.StartUp[1], usual)
	}
	return p.StartUp[1]
}

// forecastPart is the predictive floor.
func (z *sizer) forecastPart() Part {
	part := Part{Kind: PartForecast}
	peak := z.t.Max(z.now, z.now.Add(z.lead), z.quantile)
	part.Replicas = z.replicasFor(peak)
	usable := part.Replicas.OK && z.tideUsable()
	trusted := z.t.Trusted && usable
	z.unforeseen = usable && z.skillLostForLong()
	if !trusted {
		z.miss(MissingForecast, "")
	}
	switch {
	case !signal.Sound(peak):
		part.Why = reason.Of(reason.NoTide)
	case !z.capacityKnown:
		part.Why = reason.Of(reason.CapacityUnknown, z.amount(peak))
	case z.t.Signal != z.p.Signal:
		part.Replicas = fleet.Known[int32]{}
		part.Why = reason.Of(reason.OtherUnits, z.t.Signal, z.p.Signal)
	default:
		part.Why = reason.Of(reason.TideWithin, z.amount(peak), number(z.quantile*100), ago(z.lead), z.amount(z.capacity),
			reason.Said(z.basis.Level), z.liftedDay(), z.doubt(trusted))
	}
	return part
}

// liftedDay is the day of the calendar that lifts the tide within the lead, if one does.
func (z *sizer) liftedDay() reason.Reason {
	d := z.t.Day(z.now, z.now.Add(z.lead))
	if d == nil {
		return reason.Reason{}
	}
	var kin reason.Reason
	if d.Kin {
		kin = reason.Of(reason.SeenByKin)
	}
	return reason.Of(reason.LiftedDay, d.Name, number(d.Factor), kin)
}

// tideUsable reports whether the tide counts what the portrait does, and is neither too old nor of a clock that is
// ahead.
func (z *sizer) tideUsable() bool {
	age := z.now.Sub(z.t.Made)
	if z.t.Signal != z.p.Signal || age > z.o.Defaults.TideAge {
		return false
	}
	return age >= -z.o.MaxAge
}

// skillLostForLong reports whether the forecast's skill has been lost for longer than it is waited for.
func (z *sizer) skillLostForLong() bool {
	lost := z.p.Record.Skill.Since
	if !z.t.SkillLost || lost.IsZero() {
		return false
	}
	return z.now.Sub(lost) >= z.o.Defaults.SkillWait
}

// doubt is why a tide is not trusted.
func (z *sizer) doubt(trusted bool) reason.Reason {
	switch {
	case z.t.SkillLost:
		return reason.Of(reason.TideSkillLost)
	case !z.t.Trusted:
		return reason.Of(reason.TideOfFallBack, z.t.Model)
	case !trusted:
		return reason.Of(reason.TideMadeAgo, ago(z.now.Sub(z.t.Made)))
	}
	return reason.Reason{}
}

// chainLoad is the load that the service is to be ready for: the live one, the tide's within the lead, and what a window or a plan asks for in
// replicas. The service's own minimum says nothing of the load.
func (z *sizer) chainLoad(floors []Part) float64 {
	if !z.capacityKnown {
		return 0
	}
	load := 0.0
	for i := range floors {
		switch p := &floors[i]; {
		case !p.Replicas.OK:
		case p.Kind == PartForecast:
			load = max(load, z.t.Max(z.now, z.now.Add(z.lead), z.quantile)) // without rounding to replicas
		default:
			load = max(load, float64(p.Replicas.Value)*z.capacity)
		}
	}
	if z.number(z.load) == signal.Fresh && signal.Sound(z.load.Value) {
		load = max(load, z.load.Value)
	}
	if !signal.Sound(load) {
		return 0
	}
	return load
}

// lift is one approved festival lift of this service.
type lift struct {
	plan   string
	factor float64
	floor  int32
	// running says that it is in force now: what runs, and stands in where no tide is known, has the crowd already.
	running bool
	span
}

// lifts collects the approved lifts of a service that are in force within a time, clipped to their festival.
func lifts(festivals []fleet.Festival, svc fleet.ServiceID, within span) []lift {
	var out []lift
	for i := range festivals {
		f := &festivals[i]
		for _, l := range f.Lifts {
			if !f.Approved || l.Service != svc {
				continue
			}
			if x := liftOf(f, l); x.meets(within.start, within.end) {
				x.running = x.holds(within.start)
				out = append(out, x)
			}
		}
	}
	slices.SortFunc(out, func(a, b lift) int {
		return cmp.Or(a.start.Compare(b.start), a.end.Compare(b.end), cmp.Compare(a.plan, b.plan),
			cmp.Compare(a.factor, b.factor), cmp.Compare(a.floor, b.floor))
	})
	return out
}

func liftOf(f *fleet.Festival, l fleet.Lift) lift {
	s := span{f.Start, f.End}
	if l.Start.After(s.start) {
		s.start = l.Start
	}
	if !l.End.IsZero() && l.End.Before(s.end) {
		s.end = l.End
	}
	return lift{plan: f.ID, factor: l.Factor, floor: l.Floor, span: s}
}

// planned is the tide as plans see it: where one says by a factor what a time is worth, the calendar's days are taken out of it. They were
// learned, and the operator knows what is planned; a factor on top of them would count one crowd twice. A bare floor says nothing of the
// load, so the days stay under it.
func planned(t *forecast.Tide, lifts []lift) *forecast.Tide {
	if t.Ordinary == nil {
		return t
	}
	out := *t
	for i := range lifts {
		if lifts[i].factor > 0 {
			out = out.Planned(lifts[i].start, lifts[i].end)
		}
	}
	return &out
}

// festivalPart is the floor of the approved festivals in force within the lead; false while there is none.
func (z *sizer) festivalPart() (Part, bool) {
	part, any := Part{Kind: PartFestival}, false
	path := z.along(z.quantile, 1)
	for i := range z.lifts {
		l := &z.lifts[i]
		if !l.meets(z.now, z.now.Add(z.lead)) {
			continue
		}
		n, load := path.lift(l, 0, z.lead)
		if any && n <= part.Replicas.Value {
			continue
		}
		any = true
		part.Replicas, part.Why = fleet.KnownAt(n, z.now), z.whyLift(l, n, load)
	}
	return part, any
}

// whyLift says what a lift asks for: its floor, or its factor on the tide where that says more.
func (z *sizer) whyLift(l *lift, n int32, load float64) reason.Reason {
	if !signal.Sound(load) || l.factor <= 0 {
		return reason.Of(reason.PlanFloor, l.plan, l.floor)
	}
	var floor reason.Reason
	if n == l.floor {
		floor = reason.Of(reason.FloorIs, l.floor)
	}
	return reason.Of(reason.PlanFactor, l.plan, number(l.factor), z.amount(load), floor)
}

// windowParts are the levels of the windows that are open now.
func (z *sizer) windowParts() []Part {
	var parts []Part
	for i := range z.levels {
		l := &z.levels[i]
		part := Part{Kind: PartWindow, Name: l.name}
		s, open := l.at(z.now)
		switch {
		case l.err != nil:
			z.miss(MissingWindow, l.name)
			part.Why = reason.Of(reason.WindowNotRead, l.err)
		case open && l.min > 0:
			part.Replicas = fleet.KnownAt(l.min, z.now)
			part.Why = reason.Of(reason.WindowOpen, s.end.Format("02 Jan 15:04"), s.end.Location())
		default:
			continue
		}
		parts = append(parts, part)
	}
	return parts
}

// plain is what a load of the tide asks for. Where the tide cannot say, the last week's peak and what runs now stand in, since an unknown
// future must not look like free room.
func (z *sizer) plain(load float64) int32 {
	n, ok := z.carry(load)
	if !ok {
		n = z.current
		if peak, ok := z.carry(z.p.Peak); ok {
			n = max(n, peak)
		}
	}
	return n
}

// ahead is the demand of the coming day, step by step.
func (z *sizer) ahead() []int32 {
	d := z.o.Defaults
	path, out := z.along(z.quantile, 1), make([]int32, d.AheadFor/d.AheadStep)
	for i := range out {
		from := time.Duration(i) * d.AheadStep
		out[i] = path.most(from, from+d.AheadStep).replicas
	}
	return out
}

// hasPlan reports whether an operator planned for the service, by windows or by lifts of a festival.
func (z *sizer) hasPlan() bool { return len(z.levels)+len(z.lifts) > 0 }

// likelyFor is how far ahead the likely demand is given: well over what lending looks ahead by default.
const likelyFor = 2 * time.Hour

// likely is the beginning of the demand ahead if the tide comes as its median has it, from where the load stands now. As in [Curve.Expected], the
// median is raised by as much as the quantile lies above it within the lead. An operator's plan is not likely but certain, so services
// with windows and lifts have none.
func (z *sizer) likely(ahead []int32) []int32 {
	now := z.t.At(z.now, 0.5)
	margin := z.margin(z.lead)
	if z.hasPlan() || !(now > 0) || !atLeastOne(margin) {
		return nil
	}
	if steady, ok := z.steady(); ok {
		margin *= max(1, min(steady/now, nowcastMost))
	}
	step, path := z.o.Defaults.AheadStep, z.along(0.5, margin)
	out := make([]int32, min(len(ahead), int(likelyFor/step)))
	for i := range out {
		from := time.Duration(i) * step
		out[i] = min(path.most(from, from+step).replicas, ahead[i])
	}
	return out
}

// bounds are the least and the most replicas allowed in some stretch of time.
type bounds struct {
	least, most int32
	by          maximum
}

// maximum is whose the upper bound is: the service's own, that of a window or of a HorizontalPodAutoscaler.
type maximum struct {
	code reason.Code
	name string
}

// whyMost names the upper bound.
func (b bounds) whyMost() reason.Reason {
	if b.by.code == reason.OwnMaximum {
		return reason.Of(b.by.code, b.most)
	}
	return reason.Of(b.by.code, b.most, b.by.name)
}

// bounds computes the bounds of [from, to). A window only ever narrows the service's own. Of several open windows the
// largest ceiling holds, as the largest floor does, and no window's ceiling presses below an open floor. The
// HorizontalPodAutoscaler's maximum is the last word, since the API server refuses a minReplicas above it.
func (z *sizer) bounds(from, to time.Time) bounds {
	b := bounds{least: z.least(), most: math.MaxInt32}
	if z.svc.Max > 0 {
		b.most = z.svc.Max
	}
	b.by = maximum{reason.OwnMaximum, ""}
	floor := z.least()
	var narrow int32
	var name string
	for i := range z.levels {
		if l := &z.levels[i]; l.within(from, to) {
			floor = max(floor, l.min)
			if l.max > narrow {
				narrow, name = l.max, l.name
			}
		}
	}
	if narrow > 0 && max(narrow, floor) < b.most {
		b.most, b.by = max(narrow, floor), maximum{reason.WindowMaximum, name}
	}
	if h := z.svc.HPA; z.svc.Actuation == fleet.ByHPAFloor && h != nil && h.Max < b.most {
		b.most, b.by = h.Max, maximum{reason.AutoscalerMaximum, h.Name}
	}
	b.least = max(0, min(b.least, b.most))
	return b
}
