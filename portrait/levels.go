package portrait

import (
	"math"
	"time"

	"github.com/springtide/springtide/portrait/capacity"
	"github.com/springtide/springtide/series"
)

// Levels are the values of the service levels in a batch. They may have a finer grid than its load: a minute is best,
// since each known value teaches one. Its load per ready replica is that of the batch at its time.
type Levels struct {
	// Of are all levels that the service states and that are to be learned: one that is not among them is forgotten. A
	// batch without any says nothing of levels, and nothing is forgotten.
	Of []LevelValues
	// Apart are the times that tell nothing of steady replicas. Warm-up is seen from Batch.Ready, and held falls are
	// known to the portrait: neither need be among them.
	Apart []ApartSpan
	// Rule is the load, in the portrait's signal, that a replica is sized for while no capacity is known; 0 where that
	// is not known.
	Rule float64
}

// LevelValues are the values of one level.
type LevelValues struct {
	// Name is the level's key, as latency-p99 or cpu. Limit is in the unit of the values, Objective the share of
	// minutes in which they must not exceed it.
	Name             string
	Limit, Objective float64
	Values           series.Series
}

// ApartSpan is a time whose minutes are kept apart, from From until before To.
type ApartSpan struct {
	From, To time.Time
	Why      capacity.Apart
}

// youngShare is the share of the ready replicas that may have become ready within a step before its minutes are those
// of young ones: a tenth of the replicas moves no mean by more than the tolerance.
const youngShare = 0.1

// learnCapacity takes the minutes of a step in: they lie within it, and the levels know the terms.
func (p *Portrait) learnCapacity(b *Batch, x *lesson) {
	if len(b.Levels.Of) == 0 {
		return
	}
	why := x.apart(p.ReadyLast)
	if x.ready >= 0 {
		p.ReadyLast = x.ready
	}
	for i := range b.Levels.Of {
		of := &b.Levels.Of[i]
		var l *capacity.Level
		if p.Capacity, l = p.Capacity.With(of.Name); l == nil {
			continue
		}
		terms := capacity.Terms{Limit: of.Limit, Objective: of.Objective, Rule: b.Levels.Rule}
		first, end := of.within(x.at, x.at.Add(p.Step))
		for k := first; k < end; k++ {
			at := of.Values.Time(k)
			ready := b.Ready.At(at)
			l.Observe(capacity.Minute{At: at, Load: p.signal(b).At(at) / ready, Value: of.Values.Values[k],
				CPU: b.CPU.At(at) / ready, Apart: why | b.Levels.apart(at)}, terms)
		}
	}
}

// apart says why the minutes of a step are kept apart, of which no other source tells; before are the ready replicas of
// the step before.
func (x *lesson) apart(before float64) (why capacity.Apart) {
	if x.doubted {
		why |= capacity.HeldFall
	}
	if before > 0 && x.ready > before*(1+youngShare) {
		why |= capacity.Young
	}
	return why
}

// within are the cells that begin within a time.
func (v *LevelValues) within(from, to time.Time) (first, end int) {
	s := &v.Values
	if s.Step <= 0 {
		return 0, 0
	}
	cell := func(t time.Time) int {
		n := math.Ceil(float64(t.Sub(s.Start)) / float64(s.Step))
		return int(max(0, min(n, float64(len(s.Values)))))
	}
	return cell(from), cell(to)
}

func (l *Levels) apart(at time.Time) (why capacity.Apart) {
	for i := range l.Apart {
		if s := &l.Apart[i]; !at.Before(s.From) && at.Before(s.To) {
			why |= s.Why
		}
	}
	return why
}

// stated keeps of a set what a batch states.
func (l *Levels) stated(s capacity.Set) capacity.Set {
	if len(l.Of) == 0 {
		return s
	}
	names := make([]string, len(l.Of))
	for i := range l.Of {
		names[i] = l.Of[i].Name
	}
	return s.Only(names)
}
