package portrait

import (
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/series"
)

// Shape is what a look at the newest days found. A look is taken when a quarter of a day is over, not at each sample: what it finds changes
// in days.
type Shape struct {
	// At is the end of what was looked at; zero while there was no look.
	At time.Time
	// Class is the kind of load.
	Class Class
	// Periods are the seasons that are really present, rising.
	Periods []Period
	// Shift is the newest change of level, zero where none is in sight.
	Shift Shift
	// Burst is how far one step in a hundred stands above the hour before it, against what is usual: p99 over p50 of the load over the
	// median of the hour before. Spread is (p95 - p5) / mean of the load, and PeakToMean its largest value over its mean.
	Burst, Spread, PeakToMean float64
	// Days are the medians of the newest whole days (UTC), gaps where less than half of a day is known. A bad hour leaves a median as it is.
	Days series.Series
}

// Period is a season that is present.
type Period struct {
	Length time.Duration
	// Strength is the share of the variation that the season explains in cycles other than those it was learned from (0..1).
	Strength float64
	// Swing is from the low to the high of the season, as a share of the level.
	Swing float64
}

const (
	// lookEvery is the time from one look to the next.
	lookEvery = 6 * time.Hour
	// lookBack is how much of the newest values a look sees: what the history holds (eleven days), less the time between two looks, so that
	// what it sees does not depend on when the history was folded.
	lookBack = 10 * day
	// keptDays are the days whose medians are kept: eight weeks, in which a week has seven others to be judged by.
	keptDays = 56
)

// perDay is the number of steps of a day, zero where a step is too long to draw one.
func (p *Portrait) perDay() int {
	if p.Step <= 0 || p.Step > day/4 {
		return 0
	}
	return int(math.Round(float64(day) / float64(p.Step)))
}

// dayOver takes the median of the day that ended with the step at grid index i, if one did. l has just observed that step.
func (p *Portrait) dayOver(l *model.Learner, i int64) {
	n := p.perDay()
	today := series.GridIndex(series.GridTime(i, p.Step), day)
	if n == 0 || series.GridIndex(series.GridTime(i+1, p.Step), day) == today {
		return
	}
	known := make([]float64, 0, n)
	for k := 1; k <= n; k++ {
		if y := l.Before(k); !math.IsNaN(y) {
			known = append(known, y)
		}
	}
	middle := math.NaN()
	if 2*len(known) >= n {
		middle = median(known)
	}
	p.Shape.Days = extend(p.Shape.Days, today, middle)
}

// extend returns a series of days with that of one more day; days in between are gaps.
func extend(s series.Series, today int64, v float64) series.Series {
	next := series.GridIndex(s.End(), day)
	if s.Len() == 0 || today-next >= keptDays {
		return series.Series{Start: series.GridTime(today, day), Step: day, Values: []float64{v}}
	}
	values := slices.Clone(s.Values)
	for ; next < today; next++ {
		values = append(values, math.NaN())
	}
	values = append(values, v)
	if cut := len(values) - keptDays; cut > 0 {
		s.Start, values = s.Start.Add(time.Duration(cut)*day), values[cut:]
	}
	return series.Series{Start: s.Start, Step: day, Values: values}
}

// quarter is the end of the last quarter of a day that was over at a time. Each service has quarters of its own, by its name: a look takes
// milliseconds, and those of a fleet must not fall into one cycle.
func (p *Portrait) quarter(at time.Time) time.Time {
	h := fnv.New32a()
	h.Write([]byte(p.Service))
	own := time.Duration(h.Sum32()%uint32(max(1, lookEvery/max(p.Step, time.Second)))) * p.Step
	return series.GridTime(series.GridIndex(at.Add(-own), lookEvery), lookEvery).Add(own)
}

// look brings the shape up to date when a quarter of a day is over since the last look.
func (p *Portrait) look() {
	n := p.perDay()
	end := p.quarter(p.End)
	if n == 0 || !end.After(p.Shape.At) {
		return
	}
	s := &p.Shape
	s.At = end
	seen := p.Recent.Since(end.Add(-lookBack))
	if over := int(p.Recent.End().Sub(end) / p.Step); over > 0 && over < len(seen.Values) {
		seen.Values = seen.Values[:len(seen.Values)-over]
	} else if over > 0 {
		seen.Values = nil
	}
	s.Periods = periods(seen, s.Days)
	s.Shift = shifted(seen, s.Days, n)
	s.measure(seen.Values, max(3, int(time.Hour/p.Step)))
	s.Class = s.classify(seen.Known() >= needed(p.Step))
}

// median of values that are all known, which it sorts; NaN of none.
func median(v []float64) float64 {
	slices.Sort(v)
	return rank(v, 0.5)
}

// rank is a quantile of sorted values, between two neighbours in proportion; NaN of none.
func rank(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	j := min(i+1, len(sorted)-1)
	share := at - float64(i)
	return (1-share)*sorted[i] + share*sorted[j]
}

// knownOf are the values that are no gaps, in their order.
func knownOf(v []float64) []float64 {
	out := make([]float64, 0, len(v))
	for _, y := range v {
		if !math.IsNaN(y) {
			out = append(out, y)
		}
	}
	return out
}
