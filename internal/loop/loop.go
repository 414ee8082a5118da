package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/forecast/festive"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/signal"
)

// Options are the paces of the loop.
type Options struct {
	// React is the time between cycles, Learn the time between two readings of history: no less than the portrait's step, since a step
	// that is not over says nothing.
	React, Learn time.Duration
	// Backfill is how much history a service without a portrait is learned from.
	Backfill time.Duration
	// Remember is how long decisions are kept: no less than the longest stabilisation window.
	Remember time.Duration
	// Save is the time between two savings of portraits.
	Save     time.Duration
	Planner  planner.Options
	Portrait portrait.Options
	Forecast forecast.Options
	// Project makes the tide of a portrait where it is set, instead of [forecast.Project]: a simulation asks what foresight is worth.
	Project func(p portrait.Portrait, now time.Time, o forecast.Options) forecast.Tide
}

// DefaultOptions returns the paces used unless configured.
func DefaultOptions() Options {
	return Options{
		React:    15 * time.Second, // HPA's own sync period
		Learn:    5 * time.Minute,
		Backfill: 15 * 24 * time.Hour, // two whole weeks, and a day for the edges
		Remember: 2 * time.Hour,
		Save:     30 * time.Minute,
		Planner:  planner.DefaultOptions(),
	}
}

// Ports are what a loop is joined to. Reporter and Metrics may be nil.
type Ports struct {
	Observer Observer
	History  History
	Actuator Actuator
	Reporter Reporter
	Journal  Journal
	Memory   Memory
	Clock    Clock
	Metrics  *Metrics
	Log      *slog.Logger
	// Alive is called whenever the loop passed a step, by several goroutines at once; nil where no probe asks whether
	// it is stuck.
	Alive func()
}

// Loop is the cycle and what it remembers from one turn to the next. It is not safe for concurrent use.
type Loop struct {
	p Ports
	o Options

	epoch    int64
	watched  time.Time
	revision fleet.Revision
	// deadline is the first one that the last cycle saw or announced; zero where there is none.
	deadline time.Time
	// frozen says that the last cycle was frozen, seenFrozen that pool status shows the freeze, thawed when the last freeze
	// was seen to be over.
	frozen, seenFrozen bool
	thawed             time.Time
	// learned is when history was last read, projected when the tides were last made, saved when both were last stored.
	learned, projected, saved time.Time

	portraits map[fleet.ServiceID]portrait.Portrait
	tides     map[fleet.ServiceID]forecast.Tide
	decisions map[fleet.ServiceID][]hpa.Decision
	summaries map[fleet.ServiceID]Summary
	// days are what calendars did to services, kin what services of one calendar know together as of pooled; newcomers have learned theirs
	// since.
	days      map[fleet.ServiceID]Days
	calendars map[string]calendarDays
	kin       map[string]*festive.Kin
	pooled    time.Time
	newcomers bool
	begun     []planner.Begun
	refused   map[fleet.UID]time.Time // until when pods whose return from standby failed are left alone
	paces     paceWatch
	gangs     map[fleet.JobID]fleet.Gang
	waits     jobWaits
	links     linkMemory
	shares    quota.Memo
	kinTaught taught
	rooms     []*model.Room // of the workers that learn and forecast
	// ready is when pods became ready first.
	ready firstReady
	// progress is how far the history of each service is learned; see [Loop.progressOf].
	progress map[fleet.ServiceID]*progress
	// seen is when the cycle before saw the cluster.
	seen     time.Time
	promises promises
}

// progress is how far the history of one service is learned, and what was seen live since. It ends with the process.
type progress struct {
	// read is up to when this process has read the history; zero before the first time.
	read time.Time
	// unread says that the last reading got no answer for the service.
	unread bool
	// patience is how long a service that could not be read is left alone, until again: its span grows meanwhile.
	patience time.Duration
	retry    time.Time
	// look is when the whole backfill was last read. again says that the portrait is to be learned from it.
	look  look
	again bool
	// started is up to when the portrait has learned start-ups: not as far as it was read while it is in doubt.
	started time.Time
	moments moments
	// apart are times that teach no capacity, whose minutes are not learned yet.
	apart aparts
	// looks is what the totals of live samples remember.
	looks signal.Looks
	// rests are when it stood at zero.
	rests rests
}

// New returns a loop that has yet to watch its first window.
func New(p Ports, o Options) *Loop {
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	if p.Alive == nil {
		p.Alive = func() {}
	}
	// A plan that is to hold until the next one must not compute with an earlier one.
	o.Planner.Interval = max(o.Planner.Interval, o.React)
	return &Loop{p: p, o: o,
		portraits: map[fleet.ServiceID]portrait.Portrait{}, tides: map[fleet.ServiceID]forecast.Tide{},
		decisions: map[fleet.ServiceID][]hpa.Decision{}, summaries: map[fleet.ServiceID]Summary{}, days: map[fleet.ServiceID]Days{},
		progress: map[fleet.ServiceID]*progress{}, gangs: map[fleet.JobID]fleet.Gang{}, waits: newWaits(), calendars: map[string]calendarDays{},
		paces: newPaceWatch(), ready: firstReady{}, promises: newPromises()}
}

// progressOf is the progress of a service, which begins when it is first asked for.
func (l *Loop) progressOf(id fleet.ServiceID) *progress {
	p := l.progress[id]
	if p == nil {
		p = &progress{}
		l.progress[id] = p
	}
	return p
}

// Run turns the loop under a leader's context until it ends. epoch fences every write.
func (l *Loop) Run(ctx context.Context, epoch int64) error {
	l.seenFrozen = l.seenFrozen && epoch == l.epoch
	l.epoch, l.watched = epoch, l.p.Clock.Now()
	l.remember(ctx)
	for ctx.Err() == nil {
		started := l.p.Clock.Now()
		l.p.Alive()
		wrote, err := l.Cycle(ctx)
		if err != nil && ctx.Err() == nil {
			l.p.Log.Error("cycle failed", "cycle", l.revision, "err", err)
		}
		next := Due(Pending{Last: started, Now: l.p.Clock.Now(), Tick: started.Truncate(l.o.React).Add(l.o.React), Deadline: l.deadline})
		if err := l.p.Clock.Park(ctx, next, wrote); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the clock stopped: %w", err)
		}
	}
	if err := l.save(context.WithoutCancel(ctx), l.p.Clock.Now()); err != nil {
		l.p.Log.Warn("what was learned since the last saving is lost", "since", l.saved, "err", err)
	}
	return nil
}

// thaw is when the last freeze was seen to be over. One that only another leader saw stands in the status of the pools, if that leader did not
// come to say that it is over.
func (l *Loop) thaw(s *fleet.Snapshot) time.Time {
	seen := s.SeenFrozen()
	if s.Frozen == "" && (l.frozen || seen && !l.seenFrozen) {
		l.thawed = s.At
	}
	l.frozen, l.seenFrozen = s.Frozen != "", seen
	return l.thawed
}

// remember brings back what an earlier process learned. A store that is down costs the knowledge, not the cycle.
func (l *Loop) remember(ctx context.Context) {
	ps, err := l.p.Memory.LoadPortraits(ctx)
	if err != nil {
		l.p.Log.Warn("portraits could not be loaded and are learned again", "err", err)
	}
	for id, p := range ps {
		if p.Version == portrait.Version {
			l.portraits[id] = p
		}
	}
	sums, err := l.p.Memory.LoadSummaries(ctx)
	if err != nil {
		l.p.Log.Warn("summaries could not be loaded and are made again", "err", err)
	}
	maps.Copy(l.summaries, sums)
	days, err := l.p.Memory.LoadDays(ctx)
	if err != nil {
		l.p.Log.Warn("what calendars did could not be loaded and is learned again", "err", err)
	}
	maps.Copy(l.days, days)
	paces, err := l.p.Memory.LoadPaces(ctx)
	if err != nil {
		l.p.Log.Warn("how long recalls take could not be loaded and is learned again", "err", err)
	}
	maps.Copy(l.paces.known, paces)
	accounts, err := l.p.Memory.LoadAccounts(ctx)
	if err != nil {
		l.p.Log.Warn("budgets could not be loaded and are counted again", "err", err)
	}
	l.promises.load(accounts)
	ds, err := l.p.Memory.LoadDecisions(ctx, l.p.Clock.Now().Add(-l.o.Remember))
	if err != nil {
		l.p.Log.Warn("the history of decisions could not be loaded: nothing scales in for one window", "err", err)
	}
	maps.Copy(l.decisions, ds)
}

// Cycle goes once through observe, learn, forecast, plan, act and record. It reports whether anything in the cluster was changed.
func (l *Loop) Cycle(ctx context.Context) (wrote bool, err error) {
	l.revision++
	t := newTimer(l.p.Alive)
	s, err := l.p.Observer.Snapshot(ctx)
	if err != nil {
		if l.p.Metrics != nil {
			l.p.Metrics.unobserved()
		}
		return false, fmt.Errorf("observe: %w", err)
	}
	s.Revision, s.LeaderEpoch, s.WatchedSince = l.revision, l.epoch, l.watched
	t.lap("observe")

	l.paces.watch(s)
	l.ready.see(s)
	l.noteApart(s)
	historyErr := l.learn(ctx, s)
	t.lap("learn")
	l.restore(ctx, s)
	l.promises.inForce(s)
	samples, err := l.p.History.Live(ctx, s.Services, s.At)
	historyErr = errors.Join(historyErr, err)
	live, lacking := l.observe(s, &samples)
	l.addSamples(live)
	t.lap("live")
	// The samples of the cycle to come are as of this one too, so they are read while it plans, acts and reports.
	problems := l.queryProblems(lacking)
	fetched := make(chan error, 1)
	go func() { fetched <- l.p.History.Prefetch(ctx, s.Services, s.At) }()

	in := planner.Input{Snapshot: s, Portraits: l.portraits, Tides: l.tides, Live: live, History: l.decisions, Paces: l.paces.known,
		Gangs: l.gangs, Begun: l.begun, Refused: l.refusedNow(), Thawed: l.thaw(s), Shares: &l.shares, Options: l.o.Planner,
		Quantiles: l.promises.quantiles(s.At)}
	l.waits.ahead(&in)
	l.links.fill(&in)
	plan := planner.Make(in)
	t.lap("plan")
	l.promises.judge(s, &plan, live, l.portraits)
	t.lap("judge")

	receipt, applyErr := l.p.Actuator.Apply(ctx, &plan)
	t.lap("act")
	l.keepForNext(s.At, &plan, &receipt)
	l.deadline = Deadline(standing(s, &plan), s.Pools)

	storeErr := l.record(ctx, s, &plan, &receipt, t)
	t.lap("record")
	if l.p.Reporter != nil {
		err := l.p.Reporter.Report(ctx, &Report{Snapshot: s, Plan: &plan, Receipt: &receipt, Portraits: l.portraits, Tides: l.tides,
			Summaries: l.summaries, Links: l.links.known, Accounts: l.promises.accounts, Thawed: l.thawed,
			QueryProblems: problems, LevelProblems: l.levelProblems(), HistoryErr: historyErr, StoreErr: storeErr,
			StoreNote: l.storeNote()})
		if err != nil {
			l.p.Log.Warn("status could not be written", "cycle", l.revision, "err", err)
		}
	}
	t.lap("report")
	historyErr = errors.Join(historyErr, <-fetched)
	t.lap("prefetch")
	l.report(s, &plan, &receipt, t, historyErr, storeErr)
	return receipt.Count(Done) > 0, applyErr
}

// keepForNext carries into the next cycle what this one decided.
func (l *Loop) keepForNext(now time.Time, plan *planner.Plan, receipt *Receipt) {
	for i := range plan.Targets {
		t := &plan.Targets[i]
		l.progressOf(t.Service).rests.note(now, t.AtRest, 3*l.o.React)
		if t.Decision.At.IsZero() {
			continue
		}
		ds := append(l.decisions[t.Service], t.Decision)
		for len(ds) > 0 && now.Sub(ds[0].At) > l.o.Remember {
			ds = ds[1:]
		}
		l.decisions[t.Service] = ds
	}
	l.waits.judge(plan, l.p.Metrics)
	clear(l.gangs)
	for i := range plan.Gangs {
		l.gangs[plan.Gangs[i].Job] = plan.Gangs[i].Gang
	}
	for len(l.begun) > 0 && now.Sub(l.begun[0].At) >= time.Hour {
		l.begun = l.begun[1:]
	}
	l.keepRefused(now, plan, receipt)
	for i := range plan.Moves {
		if x := &plan.Moves[i]; x.Kind == planner.MoveBegin && receipt.done(planner.KeyOf(x)) {
			l.begun = append(l.begun, planner.Begun{Loan: x.Before.ID, From: x.Before.From, At: now})
		}
	}
}

// refusedFor is how long a pod whose return from standby failed is left alone. Replicas are added in its place.
const refusedFor = 10 * time.Minute

// keepRefused remembers the pods whose return from standby failed.
func (l *Loop) keepRefused(now time.Time, plan *planner.Plan, receipt *Receipt) {
	maps.DeleteFunc(l.refused, func(_ fleet.UID, until time.Time) bool { return !now.Before(until) })
	for i := range plan.Returns {
		if x := &plan.Returns[i]; receipt.outcome(planner.KeyOf(x)) == Failed {
			if l.refused == nil {
				l.refused = map[fleet.UID]time.Time{}
			}
			l.refused[x.Pod.ID] = now.Add(refusedFor)
		}
	}
}

// refusedNow are those that are left alone.
func (l *Loop) refusedNow() map[fleet.UID]bool {
	var out map[fleet.UID]bool
	for id := range l.refused {
		if out == nil {
			out = make(map[fleet.UID]bool, len(l.refused))
		}
		out[id] = true
	}
	return out
}

// done reports whether an action was carried out.
func (r *Receipt) done(k planner.Key) bool { return r.outcome(k) == Done }

// outcome is what became of an action; empty where the receipt does not have it.
func (r *Receipt) outcome(k planner.Key) Outcome {
	for i := range r.Results {
		if x := &r.Results[i]; x.Action == k.Kind && x.Subject == k.Subject {
			return x.Outcome
		}
	}
	return ""
}

// storeNote is what the journal has to say, where it says something.
func (l *Loop) storeNote() string {
	if j, ok := l.p.Journal.(interface{ Note() string }); ok {
		return j.Note()
	}
	return ""
}

// report logs one line per cycle that did something and sets the metrics.
func (l *Loop) report(s *fleet.Snapshot, plan *planner.Plan, receipt *Receipt, t *timer, historyErr, storeErr error) {
	done, stale, failed := receipt.Count(Done), receipt.Count(Stale), receipt.Count(Failed)
	level := slog.LevelDebug
	if done+stale+failed > 0 || historyErr != nil || storeErr != nil {
		level = slog.LevelInfo
	}
	var queries, bytes int64
	if m, ok := l.p.History.(Metered); ok {
		queries, bytes = m.Cost()
	}
	l.p.Log.Log(context.Background(), level, "cycle", "cycle", l.revision, "at", s.At, "services", len(s.Services),
		"loans", len(s.Loans), "done", done, "stale", stale, "failed", failed, "withheld", len(plan.Withheld),
		"queries", queries, "bytes", bytes, "took", t.total(), "historyErr", historyErr, "storeErr", storeErr)
	for i := range receipt.Results {
		if r := &receipt.Results[i]; r.Outcome != Done {
			l.p.Log.Info("action not carried out", "cycle", l.revision, "action", r.Action, "subject", r.Subject,
				"outcome", r.Outcome, "message", r.Message)
		}
	}
	if l.p.Metrics != nil {
		l.p.Metrics.finished.Set(float64(l.p.Clock.Now().Unix()))
		l.p.Metrics.observe(s, plan, receipt, l.portraits, l.tides, &l.promises, t, historyErr, storeErr)
	}
}

// timer splits a cycle's wall time into its steps.
type timer struct {
	start, last time.Time
	steps       []lap
	passed      func() // is called after each step
}

type lap struct {
	name string
	took time.Duration
}

func newTimer(passed func()) *timer {
	now := time.Now()
	return &timer{start: now, last: now, passed: passed}
}

func (t *timer) lap(name string) {
	now := time.Now()
	t.steps = append(t.steps, lap{name, now.Sub(t.last)})
	t.last = now
	t.passed()
}

func (t *timer) total() time.Duration { return t.last.Sub(t.start) }

func (t *timer) laps() map[string]time.Duration {
	out := make(map[string]time.Duration, len(t.steps))
	for _, s := range t.steps {
		out[s.name] = s.took
	}
	return out
}
