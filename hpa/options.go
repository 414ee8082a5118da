package hpa

import (
	"cmp"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/signal"
)

// Bounds are what others have to say to a service's demand: its call chain raises it, the room of its pool and its tenant's quota cut it, in this order.
type Bounds struct {
	// Link is what the service's call chain asks of it, in replicas, and LinkWhy by which link; 0 where it asks for no more than the service itself.
	Link    int32
	LinkWhy reason.Reason
	// Room is the most replicas that its pool has room for, next to what the others there need; 0 means no limit. RoomWhy says how full the pool is.
	Room    int32
	RoomWhy reason.Reason
	// Quota is the most replicas that the tenant's share leaves to this service; 0 means no limit. QuotaWhy says whose it is.
	Quota    int32
	QuotaWhy reason.Reason
	// Drain is the most replicas once the deadline has passed by which the tenant had to give back what it runs beyond its quota; 0 while
	// nothing is due.
	Drain int32
}

// Options is what a sizing depends on besides the service, its portrait, its tide and its live signals.
type Options struct {
	// History is the past decisions of this service in any order, reaching back at least as far as the service's stabilisation. It is
	// kept outside of the process, so that a restart forgets nothing.
	History []Decision
	// Festivals are all plans; only approved ones that name this service count.
	Festivals []fleet.Festival
	// WatchedSince is when this controller began to watch as a leader. Nothing scales in before Window has passed since; a zero
	// WatchedSince never scales in.
	WatchedSince time.Time
	// Window is how long a new leader watches; 0 means the service's stabilisation.
	Window time.Duration
	// MaxAge is how old a sample may be to count as fresh; 0 means 150 s, or the window of the live rates and two cycles of 15 s between the
	// read and the decision where that is longer: no rate over the window stands on an older one.
	MaxAge time.Duration
	// Quantiles are those of which Target.AtQuantiles says what they would ask for; nil where that is not asked.
	Quantiles []float64
	// Defaults are the figures behind the rules; each zero field means the standard one.
	Defaults Defaults
}

// Defaults are the figures behind the rules of sizing.
type Defaults struct {
	// Tolerance is the part by which usage may miss its target before a reactive part speaks; used where the service says none.
	Tolerance float64
	// Stabilisation is how long every part must agree before a scale-in; used where the service says none.
	Stabilisation time.Duration
	// RateWindow, RateFactor and RatePods bound what the reactive parts may add where the service has no policies: in one
	// window to at most the larger of
	// RateFactor × the count at its start and RatePods more. Floors are not bounded: an operator's level, like a forecast, is meant.
	RateWindow time.Duration
	RateFactor float64
	RatePods   int32
	// ShrinkWindow, ShrinkShare and ShrinkPods bound a scale-in where the service has no policies: in one window by the
	// larger of the share and the pods.
	ShrinkWindow time.Duration
	ShrinkShare  float64
	ShrinkPods   int32
	// DoubtShare bounds a scale-in within one stabilisation window after a fall that nothing confirmed.
	DoubtShare float64
	// YoungFor is how long a pod's CPU may be start-up work, ReadyDelay how soon after its start an unready pod counts as never ready,
	// and CPUWindow the time that one CPU sample averages over.
	YoungFor, ReadyDelay, CPUWindow time.Duration
	// LastGood is how old a sample may be to still ask for more, though it is too old to agree to less.
	LastGood time.Duration
	// ImputeFor is how long a pod without samples is taken at its worst; after it, a scale-out acts on the rest.
	ImputeFor time.Duration
	// MissingShare is the part of the pods that may lack fresh samples while the signal still counts as fresh; the missing ones are then
	// taken at their worst. Without it one broken pod among hundreds would keep a service at its size for ever.
	MissingShare float64
	// SkillWait is how long a forecast whose skill is lost keeps a service from scaling in. After it the live signals
	// decide alone, at the utilisation for latency, as they would for a service without a forecast.
	SkillWait time.Duration
	// TideAge is how old a tide may be to be trusted.
	TideAge time.Duration
	// Cycle is the time from one plan to the next, StartUp a pod's time to Ready while it is neither stated nor learned.
	Cycle, StartUp time.Duration
	// Late is how much later live samples show a change than they do at intervals of 15 s.
	Late time.Duration
	// LatencyUtilisation is the CPU utilisation that a latency SLO is sized for, UtilisationMargin the part of a utilisation SLO that is.
	LatencyUtilisation, UtilisationMargin float64
	// LatencyFactor is the most that a latency above its limit may multiply what the load itself explains.
	LatencyFactor float64
	// FallReach is how far back a fall is looked for.
	FallReach time.Duration
	// AheadStep and AheadFor are the grid of Target.Ahead.
	AheadStep, AheadFor time.Duration
}

// Standard returns the figures that are used unless stated, each with its arithmetic.
func Standard() Defaults {
	return Defaults{
		// These eight are the HorizontalPodAutoscaler's own.
		Tolerance:     0.1,
		Stabilisation: 300 * time.Second,
		RateWindow:    15 * time.Second,
		RateFactor:    2,
		RatePods:      4,
		YoungFor:      300 * time.Second,
		ReadyDelay:    30 * time.Second,
		CPUWindow:     time.Minute,

		// Ebbs take hours. A fifth a minute follows any of them, and leaves a third of the replicas after one stabilisation window.
		ShrinkWindow: time.Minute,
		ShrinkShare:  0.2,
		ShrinkPods:   2,
		// Half of the replicas are left after 35 minutes: long enough to see latency rise and to pause the service.
		DoubtShare: 0.1,
		LastGood:   signal.LastGood,
		// Three stabilisation windows: long enough for a scrape target to come back, short against a working day.
		ImputeFor:    15 * time.Minute,
		MissingShare: 0.1, // as large as the tolerance: even at no load at all they move the mean by no more
		TideAge:      15 * time.Minute,
		SkillWait:    time.Hour, // a fault of the load or its measurement shows within it; the day that skill takes to come back is too dear
		Cycle:        time.Minute,
		StartUp:      2 * time.Minute,
		// Waiting grows as 1/(1−u): 2.5 service times at 0.60. The tolerance lets u rise to 0.66 unanswered (2.9), and the loss of one
		// replica in ten on top to 0.73 (3.8), still on the flat side of the knee.
		LatencyUtilisation: 0.60,
		// The tolerance lets usage rise to 1.1 × its target unanswered: 0.9 × 1.1 = 0.99 of the limit.
		UtilisationMargin: 0.9,
		LatencyFactor:     2,
		FallReach:         15 * time.Minute,
		AheadStep:         5 * time.Minute,
		AheadFor:          24 * time.Hour,
	}
}

// resolved fills every zero field of the options for one service whose live rates average over a window.
func (o Options) resolved(svc *fleet.Service, window time.Duration) Options {
	o.Defaults.fill()
	o.Defaults.follow(window)
	usual := o.Defaults.Stabilisation
	o.Defaults.Stabilisation = svc.Behavior.Down.Stabilization.Or(usual)
	if o.MaxAge <= 0 {
		o.MaxAge = signal.FreshFor(window)
	}
	o.Defaults.LastGood = max(o.Defaults.LastGood, 2*o.MaxAge)
	if o.Window <= 0 {
		// A scale-in that needs no agreement still needs a leader that has seen the service.
		o.Window = cmp.Or(max(o.Defaults.Stabilisation, 0), usual)
	}
	return o
}

// follow lengthens what depends on how far apart live samples are.
func (d *Defaults) follow(window time.Duration) {
	beyond := window - time.Minute
	if beyond <= 0 {
		return
	}
	d.CPUWindow = max(d.CPUWindow, window)
	d.Late = signal.LateBy(window)
	if beyond > time.Minute {
		// Such a load still falls while the true one lies at its bottom: the level before the fall is looked for one span further back.
		d.FallReach += 5 * time.Minute
	}
}

func (d *Defaults) fill() {
	std := Standard()
	for _, f := range [...]struct{ have, std *time.Duration }{
		{&d.Stabilisation, &std.Stabilisation}, {&d.RateWindow, &std.RateWindow}, {&d.ShrinkWindow, &std.ShrinkWindow}, {&d.YoungFor, &std.YoungFor},
		{&d.ReadyDelay, &std.ReadyDelay}, {&d.CPUWindow, &std.CPUWindow}, {&d.LastGood, &std.LastGood}, {&d.ImputeFor, &std.ImputeFor}, {&d.SkillWait, &std.SkillWait},
		{&d.TideAge, &std.TideAge}, {&d.Cycle, &std.Cycle}, {&d.StartUp, &std.StartUp},
		{&d.FallReach, &std.FallReach}, {&d.AheadStep, &std.AheadStep}, {&d.AheadFor, &std.AheadFor},
	} {
		if *f.have <= 0 {
			*f.have = *f.std
		}
	}
	for _, f := range [...]struct{ have, std *float64 }{
		{&d.Tolerance, &std.Tolerance}, {&d.RateFactor, &std.RateFactor}, {&d.ShrinkShare, &std.ShrinkShare}, {&d.DoubtShare, &std.DoubtShare}, {&d.MissingShare, &std.MissingShare},
		{&d.LatencyUtilisation, &std.LatencyUtilisation}, {&d.UtilisationMargin, &std.UtilisationMargin},
		{&d.LatencyFactor, &std.LatencyFactor},
	} {
		if !(*f.have > 0) {
			*f.have = *f.std
		}
	}
	if d.ShrinkPods <= 0 {
		d.ShrinkPods = std.ShrinkPods
	}
	if d.RatePods <= 0 {
		d.RatePods = std.RatePods
	}
}
