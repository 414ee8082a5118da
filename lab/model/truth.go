package model

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/traces"
)

// TruthOptions say what is accounted.
type TruthOptions struct {
	Fleet *Fleet
	Start time.Time
	// Nodes is the number of machines, AllocatableCores the cores of all of them, OnlineCores those whose home is the online pool.
	Nodes                         int
	AllocatableCores, OnlineCores float64
	// OfflineDemand is the offline work that there is, in core-hours.
	OfflineDemand float64
}

// StepFacts are the facts of one step, which begins at At and lasts Dt.
type StepFacts struct {
	At time.Time
	Dt time.Duration
	// Services holds the pods of each service, in the order of the fleet.
	Services []PodCount
	// OfflineUsed are the cores that offline pods use. OfflineUseful and OfflineLost are their core-hours since the start.
	OfflineUsed, OfflineUseful, OfflineLost float64
	// Loans are all loans that exist; one that ended must be shown once more with its last phase.
	Loans []LoanFacts
	// Demands are the recalls of the step that answered waiting pods.
	Demands []DemandFacts
	// Returns are the parcels that came home for waiting pods and were taken in the step, Unbound those that were not taken yet at its end.
	Returns, Unbound []ReturnFacts
	// Pinned are the nodes that could not be emptied.
	Pinned []Pin
}

// PodCount counts one service's pods that are bound to a node.
type PodCount struct {
	// Ready pods serve. Starting ones do not yet, Leaving ones no longer; both cost what they request.
	Ready, Starting, Leaving int
	// WaitsForLent says that a replica waits for room that is lent or on its way home.
	WaitsForLent bool
}

// LoanFacts is what a report needs to know of a loan.
type LoanFacts struct {
	UID   string
	Kind  fleet.ParcelKind
	Phase fleet.Phase
	Cores float64
	// FromOffline says that online borrowed the parcel: it goes back by scale-in, when online can do without it, and is no recall.
	FromOffline bool
	// FirstNotice, Due and CleanAt are as in the loan; zero while not reached.
	FirstNotice, Due, CleanAt time.Time
	// Name and History, its phases in order, say in the report how a late recall went.
	Name    string
	History []PhaseAt
}

// PhaseAt is when a loan entered a phase.
type PhaseAt struct {
	Phase fleet.Phase
	At    time.Time
}

// Pin is one node that stays, and what keeps it.
type Pin struct {
	Node, By string
}

// Truth plays the queues of all services and keeps the account of a run. Next to the run it plays the same load on
// static provisioning: every service at its static replicas, always ready, nothing lent, offline work on its own
// machines alone.
//
// A service-minute counts as a violation when any step in it violates the SLO.
type Truth struct {
	opt            TruthOptions
	actual, static []line
	to             time.Time // end of the last step

	// Sums in core-seconds.
	online, used, usedStatic, offlineHome, lent float64
	dropped                                     float64
	useful, lost                                float64 // core-hours

	loans    map[string]*loanLine
	order    []string // of loans, as they were first seen
	pins     map[Pin]time.Duration
	minutes  []minuteTruth
	timeline []Moment
	forecast []ForecastFacts
	// writes are by resource; loanTime sums how long loans existed.
	writes   map[string]int
	loanTime time.Duration
	marks    []writeMark
	demands  []DemandFacts
	returns  []ReturnFacts
	unbound  []ReturnFacts
}

// line is one service's account.
type line struct {
	queue               Queue
	violations, harms   int
	violated, harmed    int64 // the minute that was counted last
	requests, coreHours float64
}

func (l *line) violation(minute int64, harm bool) {
	if l.violated != minute {
		l.violated, l.violations = minute, l.violations+1
	}
	if harm && l.harmed != minute {
		l.harmed, l.harms = minute, l.harms+1
	}
}

type loanLine struct {
	facts    LoanFacts
	wasLent  bool
	recalled bool
}

// minuteTruth is what happened to each service in one minute, averaged over its steps.
type minuteTruth struct {
	at        time.Time
	seconds   float64
	rate, cpu []float64 // rate·seconds, cores·seconds
}

// NewTruth begins an account.
func NewTruth(o TruthOptions) (*Truth, error) {
	if o.Fleet == nil || o.Nodes <= 0 || !(o.AllocatableCores > 0) || !(o.OnlineCores > 0) || o.OnlineCores > o.AllocatableCores {
		return nil, fmt.Errorf("truth: want a fleet, nodes and online cores (%v) within the allocatable ones (%v)", o.OnlineCores, o.AllocatableCores)
	}
	n := len(o.Fleet.Services)
	return &Truth{
		opt: o, to: o.Start, actual: make([]line, n), static: make([]line, n),
		loans: map[string]*loanLine{}, pins: map[Pin]time.Duration{},
	}, nil
}

// Step accounts one step and returns what it did to each service. Steps follow each other without a gap and stay within a minute.
func (t *Truth) Step(f StepFacts) ([]Outcome, error) {
	switch {
	case !f.At.Equal(t.to):
		return nil, fmt.Errorf("truth: the step at %s does not follow the last one, which ended at %s", f.At, t.to)
	case f.Dt <= 0 || f.Dt > Step || f.At.Truncate(time.Minute).Add(time.Minute).Before(f.At.Add(f.Dt)):
		return nil, fmt.Errorf("truth: a step of %s at %s must last up to %s and stay within its minute", f.Dt, f.At, Step)
	case len(f.Services) != len(t.actual):
		return nil, fmt.Errorf("truth: %d services were given, the fleet has %d", len(f.Services), len(t.actual))
	}
	rates := t.opt.Fleet.Rates(f.At)
	if i := slices.IndexFunc(rates, math.IsNaN); i >= 0 {
		return nil, fmt.Errorf("truth: %s has no load at %s: the replay lasts from %s to %s", t.opt.Fleet.Services[i].Name, f.At, traces.ReplayStart(), traces.End())
	}
	t.markWrites(f.At)
	out := t.play(&f, rates)
	t.loanStep(&f)
	t.demands = append(t.demands, f.Demands...)
	t.returns, t.unbound = append(t.returns, f.Returns...), f.Unbound
	for _, p := range f.Pinned {
		t.pins[p] += f.Dt
	}
	t.useful, t.lost = f.OfflineUseful, f.OfflineLost
	t.to = f.At.Add(f.Dt)
	return out, nil
}

// play runs the queues of the run and of static provisioning.
func (t *Truth) play(f *StepFacts, rates []float64) []Outcome {
	sec := f.Dt.Seconds()
	minute := f.At.Unix() / 60
	truth := t.minuteAt(f.At)
	truth.seconds += sec
	m := Moment{Used: f.OfflineUsed}
	out := make([]Outcome, len(rates))
	for i, s := range t.opt.Fleet.Services {
		p, a, st := f.Services[i], &t.actual[i], &t.static[i]
		o := s.Step(&a.queue, rates[i], p.Ready, f.Dt)
		out[i] = o
		if o.Violated {
			a.violation(minute, p.WaitsForLent)
		}
		cores := float64((p.Ready + p.Starting + p.Leaving) * s.Cores)
		used := o.UsedCores() + s.StartingCores()*float64(p.Starting)
		t.online += cores * sec
		t.used += used * sec
		t.dropped += o.Dropped * sec
		a.coreHours += cores * sec / 3600
		a.requests += rates[i] * sec
		truth.rate[i] += rates[i] * sec
		truth.cpu[i] += o.UsedCores() * sec
		m.Demand += rates[i] / s.Capacity * float64(s.Cores)
		m.Ready += float64(p.Ready * s.Cores)
		m.Used += used

		so := s.Step(&st.queue, rates[i], s.Static, f.Dt)
		if so.Violated {
			st.violation(minute, false)
		}
		t.usedStatic += so.UsedCores() * sec
	}
	t.used += f.OfflineUsed * sec
	t.staticOffline(sec)
	for _, l := range f.Loans {
		if !l.Phase.Ended() {
			t.loanTime += f.Dt
		}
		if l.Phase == fleet.Lent {
			m.Lent += l.Cores
		}
	}
	t.lent += m.Lent * sec
	t.note(f.At, m, sec)
	return out
}

// MoreOfflineWork adds to the offline demand, in core-hours: of the run and of static provisioning alike.
func (t *Truth) MoreOfflineWork(coreHours float64) { t.opt.OfflineDemand += coreHours }

// staticOffline lets the offline machines work by themselves until the demand is met.
func (t *Truth) staticOffline(sec float64) {
	work := min((t.opt.AllocatableCores-t.opt.OnlineCores)*sec, t.opt.OfflineDemand*3600-t.offlineHome)
	if work > 0 {
		t.offlineHome += work
		t.usedStatic += work
	}
}

// loanStep remembers what became of loans.
func (t *Truth) loanStep(f *StepFacts) {
	for _, l := range f.Loans {
		known := t.loans[l.UID]
		if known == nil {
			known = &loanLine{}
			t.loans[l.UID] = known
			t.order = append(t.order, l.UID)
		}
		known.facts = l
		known.wasLent = known.wasLent || l.Phase.Away()
		known.recalled = !l.FirstNotice.IsZero() && !l.FromOffline // a notice that was taken back is none
	}
}

// minuteAt is the account of the minute that holds at.
func (t *Truth) minuteAt(at time.Time) *minuteTruth {
	at = at.Truncate(time.Minute)
	if n := len(t.minutes); n == 0 || !t.minutes[n-1].at.Equal(at) {
		n := len(t.actual)
		t.minutes = append(t.minutes, minuteTruth{at: at, rate: make([]float64, n), cpu: make([]float64, n)})
	}
	return &t.minutes[len(t.minutes)-1]
}

// momentStep is the grain of the timeline.
const momentStep = 5 * time.Minute

// Moment is the fleet over five minutes, in cores: what the load needs at its SLOs, what stands ready for it, what is lent, and what is
// used by online and offline together.
type Moment struct {
	At                        time.Time
	Demand, Ready, Lent, Used float64

	seconds float64
}

// note adds a step to the timeline.
func (t *Truth) note(at time.Time, m Moment, sec float64) {
	at = at.Truncate(momentStep)
	if n := len(t.timeline); n == 0 || !t.timeline[n-1].At.Equal(at) {
		t.timeline = append(t.timeline, Moment{At: at})
	}
	last := &t.timeline[len(t.timeline)-1]
	mean := func(old, v float64) float64 { return (old*last.seconds + v*sec) / (last.seconds + sec) }
	last.Demand, last.Ready = mean(last.Demand, m.Demand), mean(last.Ready, m.Ready)
	last.Lent, last.Used = mean(last.Lent, m.Lent), mean(last.Used, m.Used)
	last.seconds += sec
}

// Timeline is the run so far in steps of five minutes.
func (t *Truth) Timeline() []Moment { return slices.Clone(t.timeline) }
