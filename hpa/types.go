package hpa

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

// Live is what was just measured of one service. Everything in it may be unknown.
type Live struct {
	// CPU is the usage of each pod that was measured, by pod name, with the time of the sample.
	CPU map[fleet.Name]fleet.Known[fleet.MilliCPU]
	// Load is the total in the portrait's signal (requests per second, or cores).
	Load fleet.Known[float64]
	// Steady is the mean of Load over the last minutes: a moment alone says too little of where the load stands.
	Steady fleet.Known[float64]
	// Whole says that Load was measured of the service as one, as an ingress does, and not of its pods.
	Whole bool
	// LoadSignal is what Load counts. It may differ from the portrait's signal (an exporter came or went); such a Load says nothing about
	// the tide.
	LoadSignal portrait.Signal
	// Levels are the values of the levels that the SLO states, by the level's name, each in the unit of its limit; see
	// [signal.Service].
	Levels map[string]fleet.Known[float64]
	// Latency is the level of the highest percentile among them.
	Latency fleet.Known[time.Duration]
	// Budget is the share (0..1) of the objective's budget that is left; negative once the objective is missed.
	Budget fleet.Known[float64]
	// Signals are the totals of the service's own metrics, by the metric's name.
	Signals map[string]fleet.Known[float64]
	// Unconfirmed says what was measured and is not believed; see [Believe].
	Unconfirmed []reason.Reason
	// Window is what the rates in CPU and Load average over: four intervals of the source, at least a minute. How old a fresh sample may be, how
	// far ahead replicas are asked for, and how far back a fall is looked for follow from it; 0 means a minute.
	Window time.Duration
}

// Decision is one past sizing: what was recommended when. The stabilisation window looks back over them, and they outlive a restart.
type Decision struct {
	At       time.Time
	Replicas int32
	// From is the replica count that the decision was taken at.
	From int32
}

// Causes that hold a scale-in back, for Target.Held; [Target.Hold] gives it others.
const (
	HeldStale         = reason.StaleMetrics
	HeldForecast      = reason.ForecastNotTrusted
	HeldJustStarted   = reason.JustStarted
	HeldFall          = reason.FallFasterThanHistory
	HeldRollout       = reason.RolloutUnderWay
	HeldStabilisation = reason.Stabilisation
)

// Causes that cut a target, for Target.Limited.
const (
	LimitedMax   = reason.MaxReplicas
	LimitedQuota = reason.Quota
	LimitedRoom  = reason.PoolRoom
	LimitedRate  = reason.Rate
	LimitedDoubt = reason.UnconfirmedFall
)

// MissingKind is what kind of signal a scale-in lacks.
type MissingKind string

// The kinds of signals that a scale-in needs. All but the forecast are live.
const (
	MissingForecast MissingKind = "forecast" // a tide to trust
	MissingLoad     MissingKind = "load"     // the total in the portrait's signal
	MissingLatency  MissingKind = "latency"  // of the service level
	MissingReplicas MissingKind = "replicas" // spec.replicas of the target
	MissingMetric   MissingKind = "metric"   // one of the service's metrics, by its name
	MissingWindow   MissingKind = "window"   // a window that cannot be read, by its name
)

// Missing is a signal that is missing or too old for a scale-in, or a forecast that is not to be trusted.
type Missing struct {
	Kind MissingKind
	// Name tells signals of one kind apart; empty where there is one at most.
	Name string
}

// Live reports whether the signal is measured. A forecast is not.
func (m Missing) Live() bool { return m.Kind != MissingForecast }

// String is how it is shown: a metric or a window by its name.
func (m Missing) String() string { return cmp.Or(m.Name, string(m.Kind)) }

// PartKind is what a part of the sizing uses.
type PartKind string

// The kinds of parts.
const (
	PartForecast PartKind = "forecast" // the tide within the lead
	PartNowcast  PartKind = "nowcast"  // the tide as it runs
	PartReactive PartKind = "reactive" // a metric, by its name
	PartWindow   PartKind = "window"   // an open window, by its name
	PartFestival PartKind = "festival" // approved plans
	PartLink     PartKind = "link"     // the other members of a link group, by its name
	PartMinimum  PartKind = "minimum"  // the service's own bound
)

// Part is one voice in the sizing: a named opinion and its replica count.
type Part struct {
	Kind PartKind
	// Name tells parts of one kind apart; empty where there is one at most.
	Name string
	// Replicas is unknown where the part could not judge: such a part can never agree to a scale-in.
	Replicas fleet.Known[int32]
	// Why is by which numbers it asks, or why it cannot judge.
	Why reason.Reason
}

// String is how the part is shown: "forecast", "reactive:cpu".
func (p *Part) String() string {
	if p.Name == "" {
		return string(p.Kind)
	}
	return string(p.Kind) + ":" + p.Name
}

// Target is the sizing of one service.
type Target struct {
	Service fleet.ServiceID
	// Current is spec.replicas as read, Replicas what it should be now, Standing the pods that exist and do not leave.
	Current, Replicas, Standing int32
	// Wanted is the joined demand before pauses, stabilisation, rates, quota and bounds.
	Wanted int32
	// Floor is the forecast's demand now with the lead included; Ahead[i] is the demand i steps of AheadStep later, at the service's own
	// quantile, so that a planner sees what the tide will ask for.
	Floor     int32
	Ahead     []int32
	AheadStep time.Duration
	// Likely is the beginning of Ahead as it will come to be if the tide comes as its median has it: each size is then
	// decided on a forecast made shortly before, which is surer than today's. Empty where that is unknown.
	Likely []int32
	// AtQuantiles is what each of [Options.Quantiles] would ask for. The journal does not keep it: it is what the
	// record of quantiles is made of.
	AtQuantiles []int32 `json:"-"`
	// Lead is how far ahead replicas are asked for, StandsFor how long a size stands before it may fall.
	Lead, StandsFor time.Duration `json:"-"`
	Parts           []Part
	// CapacityPerReplica is the load, in the portrait's signal, that one replica carries at its target; 0 while unknown.
	CapacityPerReplica float64
	// Basis is what that is based on.
	Basis Basis
	// Demand is the load that the service is sized for by its own signals: what is measured, what the tide holds within the lead, or what a window or
	// plan stands for. It is what the other members of its call chain are to expect; 0 while unknown.
	Demand float64
	// Held names why a change was not made; empty otherwise.
	Held reason.Code
	// Limited names the bound that cut the target; empty otherwise.
	Limited reason.Code
	// SetsFloor says that the size is the floor of a HorizontalPodAutoscaler of the user's, which does the reactive part.
	SetsFloor bool
	// Notes say what held, cut or raised the size, in the order in which it was decided; see [Target.Why].
	Notes []reason.Reason
	// Decision is what is to be remembered of this sizing.
	Decision Decision
	// DataFresh is false while anything that a scale-in needs is missing or stale, a forecast to trust included; Missing names it.
	DataFresh bool
	Missing   []Missing
	// Unconfirmed says what was measured and is not believed, since the ready replicas could not have served it and do
	// not bear it out.
	Unconfirmed []reason.Reason
	// AtRest says that the service stands at zero, that every signal which needs no pod is fresh, and that none of them
	// asks for a replica: its load is nothing.
	AtRest bool
	// SeenAtZero says that every signal which needs no pod is fresh, whether or not there are pods.
	SeenAtZero bool
	// Unmeasured says that no latency is measured of a service whose service level is a latency: CPU sizes it, at the utilisation for latency.
	Unmeasured bool
	// LiveAlone says that the one thing missing is a forecast to trust, and that it has been for so long that scale-in uses live signals.
	LiveAlone bool
	// LiveMost is what the most would take that a nowcast makes of the live load, as soon as the one thing missing is a forecast whose skill is
	// lost; 0 while it is not, or unknown.
	LiveMost int32
}

// LiveMissing names the live signals that are missing or stale. A forecast that is not trusted is none of them: no repair of the metrics would bring
// it, and a young service is no reason to wake an operator.
func (t *Target) LiveMissing() []Missing {
	return slices.DeleteFunc(slices.Clone(t.Missing), func(m Missing) bool { return !m.Live() })
}
