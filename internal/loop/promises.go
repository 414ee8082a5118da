package loop

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/signal"
	"github.com/springtide/springtide/slo"
)

// MinuteHistory is a History that can say which minutes this or an earlier process counted, so that a lost store
// loses no budget.
type MinuteHistory interface {
	// Minutes returns the counted minutes of services by hour; a service of which it knows none is left out.
	Minutes(ctx context.Context, services []fleet.Service, from, to time.Time) (map[fleet.ServiceID][]slo.Hour, error)
}

// restoreGap is the shortest time without counted minutes that is asked back: a restart takes less.
const restoreGap = time.Hour

// promises is what became of what each service promises.
type promises struct {
	accounts map[fleet.ServiceID]*slo.Account
	running  map[fleet.ServiceID]*runningMinute
	// broken are the accounts with bad minutes that are not stored yet. They are stored with the cycle: those minutes
	// are what a budget is for.
	broken map[fleet.ServiceID]*slo.Account
	// stated are the quantiles that operators state.
	stated map[fleet.ServiceID]float64
	// compared is the minute in which sizes were asked for at each quantile last.
	compared int64
	// seen are the services that this process knows, lost those of them whose minutes are to be asked back from
	// history, tried when that was last asked.
	seen, lost map[fleet.ServiceID]bool
	tried      time.Time
	// counted are the minutes that the last cycle finished, gone the services that were deleted.
	counted []countedMinute
	gone    []fleet.ServiceID
}

type countedMinute struct {
	service fleet.ServiceID
	minute  slo.Minute
}

// runningMinute is what is gathered of a minute that is not over.
type runningMinute struct {
	judge slo.Judge
	trial slo.Trial
	// cause is that of the newest bad minute.
	cause slo.Cause
}

func newPromises() promises {
	return promises{accounts: map[fleet.ServiceID]*slo.Account{}, running: map[fleet.ServiceID]*runningMinute{},
		broken: map[fleet.ServiceID]*slo.Account{},
		stated: map[fleet.ServiceID]float64{}, seen: map[fleet.ServiceID]bool{}, lost: map[fleet.ServiceID]bool{}}
}

func (p *promises) forget(s *fleet.Snapshot) {
	p.gone = p.gone[:0]
	for id := range p.accounts {
		if s.Service(id) == nil {
			p.gone = append(p.gone, id)
		}
	}
	drop(p.accounts, s)
	drop(p.running, s)
	drop(p.broken, s)
	drop(p.seen, s)
	drop(p.lost, s)
}

// account is that of a service, made where it is new.
func (p *promises) account(id fleet.ServiceID) *slo.Account {
	a := p.accounts[id]
	if a == nil {
		a = &slo.Account{}
		p.accounts[id] = a
	}
	return a
}

// inForce sets the quantile of each service whose operator states none.
func (p *promises) inForce(s *fleet.Snapshot) {
	clear(p.stated)
	for i := range s.Services {
		svc := &s.Services[i]
		if svc.Quantile > 0 {
			p.stated[svc.ID] = svc.Quantile
			continue
		}
		svc.Quantile = slo.StartQuantile
		if a := p.accounts[svc.ID]; a != nil && a.Choice.Quantile > 0 {
			svc.Quantile = a.Choice.Quantile
		}
	}
}

// quantiles are those of which the plan is to say what they would ask for: once a minute, as the record has it.
func (p *promises) quantiles(now time.Time) []float64 {
	minute := now.Unix() / 60
	if minute == p.compared {
		return nil
	}
	p.compared = minute
	return slo.Ladder()
}

// judge looks at each service once a cycle. A look that begins another minute ends the one before, which is then
// counted.
func (p *promises) judge(s *fleet.Snapshot, plan *planner.Plan, live map[fleet.ServiceID]hpa.Live,
	portraits map[fleet.ServiceID]portrait.Portrait) {
	p.counted = p.counted[:0]
	recalling := recallingPools(s)
	home := planner.PoolsOf(s)
	for i := range plan.Targets {
		t := &plan.Targets[i]
		svc := s.Service(t.Service)
		if svc == nil || len(svc.SLO.Levels) == 0 {
			continue
		}
		now, known := live[svc.ID], portraits[svc.ID]
		v := view{s: s, svc: svc, target: t, live: &now, portrait: &known, recalling: recalling[home[svc.ID]]}
		p.look(&v)
	}
}

// look takes one service in.
func (p *promises) look(v *view) {
	id := v.svc.ID
	a, r := p.account(id), p.running[id]
	if r == nil {
		r = &runningMinute{}
		p.running[id] = r
	}
	if asked := v.target.AtQuantiles; len(asked) == slo.Notches {
		a.Record.Ask(v.s.At, slo.Asked(asked))
	}
	look := v.look(&a.Record)
	if m, done := r.judge.See(look); done {
		p.count(v, a, r, m)
		r.trial = slo.Trial{}
	}
	v.gather(&r.trial)
}

// count puts a minute that is over into the account of its service.
func (p *promises) count(v *view, a *slo.Account, r *runningMinute, m slo.Minute) {
	good, over := Objective(v.svc)
	a.Budget.Add(m, over)
	r.trial.Minute = m
	a.Record.Try(&r.trial)
	if m.All == slo.Bad {
		r.cause = m.Cause
		p.broken[v.svc.ID] = a
	}
	burns := func(window time.Duration) bool { return a.Budget.Burn(window, good).Value >= slo.BurnRises }
	a.Choice = slo.Choose(a.Choice, &a.Record, slo.Terms{Now: v.s.At, Good: good, Over: over, Stated: p.stated[v.svc.ID],
		Burning: r.cause.Curable() && burns(time.Hour) && burns(6*time.Hour)})
	p.counted = append(p.counted, countedMinute{v.svc.ID, m})
}

// Objective is what a service promises, within bounds, or the default.
func Objective(svc *fleet.Service) (good float64, over time.Duration) {
	good, over = svc.SLO.Objective.GoodMinutes, svc.SLO.Objective.Over
	if !(good > 0 && good < 1) {
		good = slo.DefaultGood
	}
	if over <= 0 {
		over = slo.DefaultOver
	}
	return good, min(max(over, slo.LeastOver), slo.MostOver)
}

// left is the share of a service's budget that is left; unknown where nothing was judged yet.
func (p *promises) left(svc *fleet.Service) fleet.Known[float64] {
	a := p.accounts[svc.ID]
	if a == nil || a.Budget.Sum().Known() == 0 {
		return fleet.Known[float64]{}
	}
	good, over := Objective(svc)
	return fleet.KnownAt(a.Budget.Left(good, over)/slo.Allowed(good, over), a.Budget.Until())
}

// recallingPools are the pools to which capacity is on its way home.
func recallingPools(s *fleet.Snapshot) map[fleet.PoolID]bool {
	out := map[fleet.PoolID]bool{}
	for i := range s.Loans {
		if l := &s.Loans[i]; l.Phase.Away() && !l.FirstNotice.IsZero() {
			out[l.From] = true
		}
	}
	return out
}

// view is one service in one cycle.
type view struct {
	s         *fleet.Snapshot
	svc       *fleet.Service
	target    *hpa.Target
	live      *hpa.Live
	portrait  *portrait.Portrait
	recalling bool
}

// look is what is seen of its levels.
func (v *view) look(r *slo.Record) slo.Look {
	levels := v.svc.SLO.Levels
	l := slo.Look{At: v.s.At, Names: make([]string, 0, len(levels)), States: make([]slo.State, 0, len(levels)),
		Idle: v.idle()}
	for i := range levels {
		limit, ok := v.limit(&levels[i])
		if !ok {
			continue
		}
		state := slo.StateOf(v.measured(&levels[i]), limit)
		l.Names, l.States = append(l.Names, levels[i].Name), append(l.States, state)
		if state == slo.Bad && l.Cause == slo.NoCause {
			l.Cause = slo.CauseOf(v.facts(r))
		}
	}
	return l
}

// limit is what the value of a level must not exceed; false where no look can say that it is kept. Work is done as it
// arrives while the ready replicas do as much, and a backlog in time while what they do beyond that is enough.
func (v *view) limit(l *fleet.Level) (float64, bool) {
	if l.Kind != fleet.LevelThroughput && l.Kind != fleet.LevelBacklog {
		return l.Limit, true
	}
	work := v.svc.SLO.Level(fleet.LevelNameThroughput)
	if work == nil {
		return 0, false
	}
	does := v.does(work)
	if !(does > 0) {
		return 0, false
	}
	done := does * float64(v.svc.Ready())
	if l.Kind == fleet.LevelThroughput {
		return done, true
	}
	arrives := v.measured(work)
	return max(done-arrives.Value, 0) * l.DrainWithin.Seconds(), arrives.OK
}

// does is how much work a replica does a second at most: by the operator, else what the CPU that it requests did of it.
func (v *view) does(work *fleet.Level) float64 {
	if work.PerReplica > 0 {
		return work.PerReplica
	}
	if v.portrait.Signal != portrait.Requests {
		return 0
	}
	return portrait.CapacityPerReplica(*v.portrait, v.svc.Request, 1).Value
}

// idle reports whether the service is known to have no load. One that is measured by the CPU that it uses never is,
// unless it rests at zero.
func (v *view) idle() bool {
	if t := v.target; t != nil && t.AtRest {
		return true
	}
	return v.live.LoadSignal == portrait.Requests && v.fresh(v.live.Load.At) && v.live.Load.OK && v.live.Load.Value == 0
}

func (v *view) fresh(at time.Time) bool {
	age := v.s.At.Sub(at)
	return age <= signal.FreshFor(v.live.Window) && age >= -signal.FreshFor(v.live.Window)
}

// measured is the value of a level, in the unit of its limit; unknown where nothing fresh measures it.
func (v *view) measured(l *fleet.Level) fleet.Known[float64] {
	if l.Name == fleet.LevelNameCPU {
		return v.cpu()
	}
	if k := v.live.Levels[l.Name]; k.OK && v.fresh(k.At) {
		return k
	}
	return fleet.Known[float64]{}
}

// measuredShare is the share of the ready pods that must be measured for their CPU utilization to be known, as for a
// scale-in.
const measuredShare = 0.9

// cpu is the CPU utilization of the ready pods, as a share of their requests.
func (v *view) cpu() fleet.Known[float64] {
	var used, requested fleet.MilliCPU
	ready, measured := 0, 0
	for i := range v.svc.Pods {
		pod := &v.svc.Pods[i]
		if !pod.Ready || pod.Deleting {
			continue
		}
		ready++
		if k := v.live.CPU[pod.Name]; k.OK && v.fresh(k.At) {
			measured++
			used += k.Value
			requested += pod.Requests.CPU
		}
	}
	if requested <= 0 || float64(measured) < measuredShare*float64(ready) {
		return fleet.Known[float64]{}
	}
	return fleet.KnownAt(float64(used)/float64(requested), v.s.At)
}

// carries is the load that one replica carries while all levels hold. A level of CPU says it by itself; for any
// other the sizing's own figure stands, until the portrait has learned better.
func (v *view) carries() float64 {
	out := v.target.CapacityPerReplica
	limit := v.svc.SLO.CPULimit()
	if limit == 0 {
		return out
	}
	at := portrait.CapacityPerReplica(*v.portrait, v.svc.Request, limit)
	if at.OK && (out == 0 || v.svc.SLO.LatencyLimit() == 0) {
		return at.Value
	}
	return out
}

// load is the live load in the portrait's unit; NaN where it is not known.
func (v *view) load() float64 {
	k := v.live.Load
	if !k.OK || !v.fresh(k.At) || v.live.LoadSignal != v.portrait.Signal {
		return math.NaN()
	}
	return k.Value
}

// facts are what the cause of a broken level is found by.
func (v *view) facts(r *slo.Record) slo.Facts {
	f := slo.Facts{Load: v.load(), Carries: v.carries(), Ready: v.svc.Ready(), Wanted: v.target.Wanted,
		Recalling: v.recalling,
		Foreseen:  r.Foreseen(v.s.At, v.target.Lead, v.target.StandsFor, v.svc.Quantile),
		Unsized:   !v.svc.Mode.Acts() || v.svc.Blocked.Any() || v.s.Frozen != "" || v.svc.Contested(v.s.At),
		Limited:   v.target.Limited, Held: v.target.Held}
	for i := range v.svc.Pods {
		if p := &v.svc.Pods[i]; p.NodeName == "" && p.Phase == fleet.PodPending && !p.Deleting {
			f.Waiting++
		}
	}
	return f
}

// gather keeps the highest load and the fewest replicas of the minute.
func (v *view) gather(t *slo.Trial) {
	ready, load := v.svc.Ready(), v.load()
	first := t.Lead == 0
	if first || ready < t.Ready {
		t.Ready = ready
	}
	if first || load > t.Load || math.IsNaN(load) { // a load that is not known makes that of the minute unknown
		t.Load = load
	}
	t.Carries, t.Lead, t.Hold = v.carries(), max(v.target.Lead, 1), v.target.StandsFor
}

// restore asks history for the minutes of services that were counted by a process whose store is lost: once, or while
// history does not answer again at the pace at which it is read.
func (l *Loop) restore(ctx context.Context, s *fleet.Snapshot) {
	p := &l.promises
	p.miss(s)
	source, ok := l.p.History.(MinuteHistory)
	if !ok || len(p.lost) == 0 || s.At.Sub(p.tried) < l.o.Learn {
		return
	}
	p.tried = s.At
	var lost []fleet.Service
	longest := time.Duration(0)
	for i := range s.Services {
		if svc := &s.Services[i]; p.lost[svc.ID] {
			_, over := Objective(svc)
			lost, longest = append(lost, *svc), max(longest, over)
		}
	}
	hours, err := source.Minutes(ctx, lost, s.At.Add(-longest), s.At)
	if err != nil {
		l.p.Log.Warn("minutes that were counted before could not be read back", "services", len(lost), "err", err)
		return
	}
	for i := range lost {
		_, over := Objective(&lost[i])
		if record := hours[lost[i].ID]; len(record) > 0 {
			p.account(lost[i].ID).Budget.Restore(record, s.At, over)
		}
	}
	clear(p.lost)
	l.p.Log.Info("minutes that were counted before were read back", "services", len(lost), "known", len(hours))
}

// miss finds the services that are seen for the first time by this process, and of which the store knows nothing of
// the last hour.
func (p *promises) miss(s *fleet.Snapshot) {
	for i := range s.Services {
		svc := &s.Services[i]
		if p.seen[svc.ID] || len(svc.SLO.Levels) == 0 {
			continue
		}
		p.seen[svc.ID] = true
		a := p.accounts[svc.ID]
		if s.At.Sub(svc.Created) > restoreGap && (a == nil || s.At.Sub(a.Budget.Until()) > restoreGap) {
			p.lost[svc.ID] = true
		}
	}
}

// load brings back the accounts that an earlier process stored.
func (p *promises) load(stored map[fleet.ServiceID]slo.Account) {
	for id, a := range stored {
		p.accounts[id] = &a
	}
}

// saveBroken stores the accounts with bad minutes that are not stored yet.
func (l *Loop) saveBroken(ctx context.Context) error {
	if len(l.promises.broken) == 0 {
		return nil
	}
	if err := l.p.Memory.SaveAccounts(ctx, l.promises.broken); err != nil {
		return fmt.Errorf("budgets: %w", err)
	}
	clear(l.promises.broken)
	return nil
}
