package portrait

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/series"
)

// Fold learns from the samples of b that lie at or after p.End and returns the new portrait; p is left as it was. Only
// whole steps up to the last one that holds a load are folded, so a value that the source delivers late is not lost. A
// portrait of another version, or none, is begun again.
func Fold(p Portrait, b Batch, o Options) Portrait {
	p = p.begin(&b, o)
	if p.Step <= 0 {
		p.learnStarts(&b, false)
		return p
	}
	load := p.signal(&b).Align(p.Step, series.Mean)
	first, n := p.span(load)
	if n == 0 {
		p.learnStarts(&b, false)
		p.judgeQuality()
		return p
	}
	if p.Doubt.Quarantined() {
		b.Moments = nil // they were measured live while the source was in doubt; history tells their steps again, and not them
	}
	cpu, ready := b.CPU.Align(p.Step, series.Mean), b.Ready.Align(p.Step, series.Mean)
	memory := b.Memory.Align(p.Step, series.Max)
	p.Learned, p.Usage, p.Record = p.Learned.Clone(), p.Usage.clone(), p.Record.clone()
	p.Capacity = b.Levels.stated(p.Capacity.Clone())
	recent, from := p.Recent.Values, series.GridIndex(p.Recent.Start, p.Step)
	missing := 0
	if len(recent) == 0 {
		from = first
		p.Begin = series.GridTime(first, p.Step)
	} else {
		missing = int(first - from - int64(len(recent)))
		p.Quality.Gaps += missing
		// After a pause longer than all that is looked back at, the history is nothing but the pause.
		if span := p.Learned.Cycle.Span(); missing > span {
			recent, from, missing = nil, first-int64(span), span
		}
	}
	l := p.Learned.Open(o.Room, from, recent, missing+n)
	l.Ask(o.Kin, series.GridIndex(o.KinUntil, p.Step))
	doubts := suspects{p: &p, l: l, load: load, cpu: cpu, ready: ready, first: first, end: series.GridTime(first+int64(n), p.Step),
		pods: b.PodsReady, most: b.CoresMost, holdFor: o.holdFor(), backfill: o.Backfill, k: max(1, int(fallWithin/p.Step))}
	for i := range missing {
		level := l.Level()
		l.Observe(math.NaN())
		doubts.learnFalls(i+1-missing, level)
		p.dayOver(l, first-int64(missing-i))
		p.advise(first - int64(missing-i))
	}
	moments := b.Moments
	for i := range n {
		if doubts.held(i, n) {
			n = i
			break
		}
		at := series.GridTime(first+int64(i), p.Step)
		level := l.Level()
		step := lesson{index: first + int64(i), at: at, load: load.At(at), cpu: cpu.At(at), memory: memory.At(at),
			ready: ready.At(at), doubted: doubts.fault(i)}
		moments = p.learn(l, &step, moments)
		p.learnCapacity(&b, &step)
		doubts.learnFalls(i+1, level)
		doubts.learnRises(i)
		p.dayOver(l, first+int64(i))
		p.advise(first + int64(i))
	}
	p.learnStarts(&b, n > 0)
	p.End = series.GridTime(first+int64(n), p.Step)
	newest, values := l.Newest()
	p.Recent = series.Series{Start: series.GridTime(newest, p.Step), Step: p.Step, Values: append([]float64(nil), values...)}
	p.summarise()
	p.look()
	p.judgeQuality()
	return p
}

// lesson is what one step of history has to teach.
type lesson struct {
	index int64
	at    time.Time
	// load, cpu and ready are means of the step, memory its peak; each is NaN where it is not known.
	load, cpu, memory, ready float64
	// doubted says that the step was found to be a fault of the measurement, before it is learned or by its learning.
	doubted bool
}

// learn is the one door by which a portrait learns of a step: its load, and whatever stands next to the load. A step
// comes to it once no doubt of it is left (see [suspects]), and one that was a fault, or that the methods set aside as
// an outage, teaches nothing but that it was there. Moments are those of the steps to come; each step settles the
// moments of the step before, since the step in which a fault begins is a mean of both and looks usual alone. The
// remaining moments are returned.
func (p *Portrait) learn(l *model.Learner, x *lesson, moments []Moment) []Moment {
	y := p.accept(x.load)
	if x.doubted && !math.IsNaN(y) {
		p.Quality.Outliers++
		y = math.NaN()
	}
	mean := l.Before(1)
	if !l.Observe(y) && !math.IsNaN(y) {
		p.Quality.Outliers++
		p.Quality.LastSample = x.at.Add(p.Step)
		y, x.doubted = math.NaN(), true
	}
	p.seen(x.at, y)
	p.account(l, x.index, y)
	before := x.at.Add(-p.Step)
	if x.doubted {
		return after(moments, x.at.Add(p.Step))
	}
	moments = p.Ripple.learn(moments, before, p.Step, mean)
	if p.Signal == Requests {
		p.Cost.learn(y, x.cpu, x.ready)
		p.carry(y, x.ready)
	}
	p.Usage.learn(x.at, x.cpu, x.memory, x.ready)
	return moments
}

// learnStarts takes the start-ups of a batch in; settled says that steps of the batch were learned. Start-ups have no time of their own. A batch that
// is in doubt from its first step teaches none, since all of it is read again. A batch that only ends in doubt teaches its start-ups: the steps
// before the doubt are not read again. The start-ups within the doubt are then counted twice.
func (p *Portrait) learnStarts(b *Batch, settled bool) {
	if !settled && p.Doubt.Quarantined() {
		return
	}
	p.addStartUps(b.StartUps)
	p.addStarts(b.Starts)
}

// begin returns a portrait that can be folded into: p itself, or a new one where p has learned nothing or was made by another version.
// The signal is fixed by the first batch that holds values; CPU yields to requests only once it has dried up.
func (p Portrait) begin(b *Batch, o Options) Portrait {
	signal, first := Requests, b.Load
	if b.Load.Known() == 0 {
		signal, first = CPU, b.CPU
	}
	if p.Version == Version && p.Step > 0 {
		dried := p.Signal == CPU && signal == Requests && b.CPU.Known() == 0 && p.wholeSince(first) > 0
		if !dried {
			return p
		}
	}
	if p.Version != Version {
		p.End = time.Time{}
	}
	fresh := p.WithoutLoad(p.Service)
	fresh.End = p.End
	if first.Known() == 0 || first.Step <= 0 {
		return fresh
	}
	fresh.Signal, fresh.Step = signal, max(o.step(), first.Step)
	fresh.Learned = model.NewState(fresh.Step)
	if o.Cycle != (model.Cycle{}) {
		fresh.Learned = model.NewStateOf(fresh.Step, o.Cycle)
	}
	fresh.Quality.Needed = needed(fresh.Step)
	fresh.Record.Horizons = horizons(fresh.Step)
	return fresh
}

// WithoutLoad is a portrait that has learned no load yet. It keeps the start-ups, which a reading of history brings few of.
func (p *Portrait) WithoutLoad(id fleet.ServiceID) Portrait {
	return Portrait{Version: Version, Service: id, StartUpTimes: p.StartUpTimes, StartUps: p.StartUps, StartUp: p.StartUp, Present: p.Present, Absent: p.Absent}
}

// Lacks is how many steps more b knows before the portrait's end than the portrait ever took in; negative where b knows fewer.
func (p *Portrait) Lacks(b *Batch) int {
	load := p.signal(b).Align(p.Step, series.Mean)
	known := 0
	for i, v := range load.Values {
		if !math.IsNaN(v) && !load.Time(i).Add(p.Step).After(p.End) {
			known++
		}
	}
	return known - p.Quality.Points - p.Quality.Outliers - p.Quality.Resets
}

// Begun reports whether a first sample was folded in.
func (p *Portrait) Begun() bool { return p.Step > 0 }

// wholeSince counts the known values of s after the portrait's end.
func (p *Portrait) wholeSince(s series.Series) int { return s.Since(p.End).Known() }

// signal is the series of the batch that the portrait follows.
func (p *Portrait) signal(b *Batch) series.Series {
	if p.Signal == Requests {
		return b.Load
	}
	return b.CPU
}

// span finds the steps of load to be folded: from p.End, or the first known value of a new portrait, up to the last known value.
func (p *Portrait) span(load series.Series) (first int64, n int) {
	if load.Known() == 0 {
		return 0, 0
	}
	begin := series.GridIndex(load.Start, p.Step)
	last := len(load.Values) - 1
	for math.IsNaN(load.Values[last]) {
		last--
	}
	i := 0
	if !p.End.IsZero() {
		// A step is folded when all of it lies after End.
		end := series.GridIndex(p.End, p.Step)
		if series.GridTime(end, p.Step).Before(p.End) {
			end++
		}
		i = int(max(end-begin, 0))
	}
	if len(p.Recent.Values) == 0 {
		for i <= last && math.IsNaN(load.Values[i]) {
			i++
		}
	}
	return begin + int64(i), max(last+1-i, 0)
}

// hugest is the largest value that is taken for a load: sums of a history of them still are numbers.
const hugest = 1e300

// accept turns what no load can be into a gap, and counts it.
func (p *Portrait) accept(y float64) float64 {
	switch {
	case math.IsNaN(y):
		p.Quality.Gaps++
	case y < 0:
		p.Quality.Resets++
		return math.NaN()
	case y > hugest:
		p.Quality.Outliers++
		return math.NaN()
	}
	return y
}

// seen counts the sample of the step at a time.
func (p *Portrait) seen(at time.Time, y float64) {
	if math.IsNaN(y) {
		return
	}
	p.Quality.Points++
	p.Quality.LastSample = at.Add(p.Step)
	if y >= p.Peak || p.PeakAt.IsZero() {
		p.Peak, p.PeakAt = y, at
	}
}

const (
	// fallShare is the share of the level below which a value is too small to fall from: three requests that become two are no event.
	fallShare = 0.2
	// fallMemory is the time in which a fall loses half of its weight, so that one odd day does not disarm the guard for ever.
	fallMemory = 30 * 24 * time.Hour
	fallWithin = 5 * time.Minute
)

// UtilisationAt is the CPU utilisation, a share of the request, of a replica at a load: the inverse of
// [CapacityPerReplica]. It is unknown where that is.
func UtilisationAt(p *Portrait, request fleet.Resources, load float64) fleet.Known[float64] {
	cores := load
	if p.Signal != CPU {
		if !p.CPUPerLoad.OK || !(p.CPUPerLoad.Value > 0) {
			return fleet.Known[float64]{}
		}
		cores = load * p.CPUPerLoad.Value
		if p.CPUIdle.OK {
			cores += max(p.CPUIdle.Value, 0)
		}
	}
	if !(request.CPU.Cores() > 0) {
		return fleet.Known[float64]{}
	}
	return fleet.KnownAt(cores/request.CPU.Cores(), p.End)
}

// CapacityPerReplica is the load that one replica of the given request carries at a CPU utilisation, in the portrait's signal:
//
//	cpu:      util · request
//	requests: (util · request − idle) / cost of one request
//
// It is unknown while the cost is, and where an idle replica alone exceeds the utilisation.
func CapacityPerReplica(p Portrait, request fleet.Resources, util float64) fleet.Known[float64] {
	budget := util * request.CPU.Cores()
	if !(budget > 0) || math.IsInf(budget, 0) {
		return fleet.Known[float64]{}
	}
	if p.Signal == CPU {
		return fleet.KnownAt(budget, p.End)
	}
	if !p.CPUPerLoad.OK || !(p.CPUPerLoad.Value > 0) {
		return fleet.Known[float64]{}
	}
	if p.CPUIdle.OK {
		budget -= max(p.CPUIdle.Value, 0)
	}
	if !(budget > 0) {
		return fleet.Known[float64]{}
	}
	return fleet.KnownAt(budget/p.CPUPerLoad.Value, p.CPUPerLoad.At)
}
