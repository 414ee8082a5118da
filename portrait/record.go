package portrait

import (
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/series"
)

// Record is how the forecasts of a service did, as they were said: nothing in it was computed after the load was known.
type Record struct {
	// Horizons are in rising order, at most three.
	Horizons []Horizon
	Skill    Skill
}

// Horizon is the record of the forecasts of one time ahead. Misses are shares of the mean load of the day before: a miss of five requests a
// second at four in the morning is as large as one at noon.
type Horizon struct {
	Ahead time.Duration
	// Judged counts the forecasts that were compared with what came.
	Judged int
	// Miss is the usual distance of the load from the 0.5 quantile, Covered the share of loads at or below the 0.9 quantile, both over the
	// last ten days.
	Miss, Covered float64
	// Lately is the newest part of the record, from which the loss of skill is judged.
	Lately Lately
	// Said waits for what it was said of, the oldest first.
	Said []Said
}

// Lately is how the newest forecasts of one time ahead did.
type Lately struct {
	// Odd is the share of those that missed by far more than usual: a share, so that one huge burst is one forecast.
	Odd float64
	// Miss is their mean miss, Last that of taking the newest value for the future; of both a miss counts up to four usual ones.
	Miss, Last float64
	// Beaten is the share of those that were further off than that value.
	Beaten float64
	// Above is the share of loads above the 0.9 quantile: as far as it is no larger than it should be, misses are of forecasts too high.
	Above float64
	// Covered is as in Horizon, over three days.
	Covered float64
}

// Said is what was forecast for the step with a grid index, and the newest value as it was said.
type Said struct {
	For                 int64
	Middle, Upper, Last float64
}

// Nominal is the quantile whose coverage is kept.
const Nominal = 0.9

// saidQuantiles are the ones that are kept.
var saidQuantiles = []float64{0.5, Nominal}

const (
	// sayEvery is about how often a forecast is put on record, and sayLong how many times rarer one of a day ahead is: those of one day go
	// together, and each waits in the portrait for a day.
	sayEvery = 30 * time.Minute
	sayLong  = 4
	// lastingDays, coveredDays and lately, in forecasts, are the memories of a record: an older one counts less than 1/e. Sixteen forecasts
	// are nine hours, and all of them odd make half of the record odd after six. Coverage needs days: misses of one day go together.
	lastingDays, coveredDays = 10, 3
	lately                   = 16
	// odd is how many times the usual miss is far more than usual: of misses that are spread like Laplace's, one in twenty is.
	odd = 3
	// leastMiss is the share of the load below which no miss is large: usage may miss its target by a tenth before hpa answers.
	leastMiss = 0.1
	// bound is how many times the usual miss is counted of one: an unforeseeable burst must not be the whole record.
	// mostMiss bounds the first ones, of which nothing is usual yet.
	bound, mostMiss = 4, 10
)

// horizons are the times ahead that a step can show: what a scale-out needs, an hour, and what lending looks at.
func horizons(step time.Duration) []Horizon {
	var out []Horizon
	for _, d := range [...]time.Duration{15 * time.Minute, time.Hour, day} {
		d = max(d.Round(step), step)
		if d <= day && (len(out) == 0 || d > out[len(out)-1].Ahead) {
			out = append(out, Horizon{Ahead: d})
		}
	}
	return out
}

// sayEach is the number of steps between two forecasts that are put on record. The step on top lets them wander through the hour, so that
// what happens at full hours is neither all of the record nor none of it.
func sayEach(step time.Duration) int64 {
	if n := int64(sayEvery / step); n > 1 {
		return n + 1
	}
	return 1
}

// account keeps the record of a step: what was said of its value y (NaN for a gap), and what is said now of later ones.
func (p *Portrait) account(l *model.Learner, index int64, y float64) {
	r := &p.Record
	end := series.GridTime(index+1, p.Step)
	if r.judge(index, p.Step, y, l) && end.Sub(p.Begin) >= doubtAfter {
		r.Skill = r.Skill.next(end, r.Horizons)
	}
	if p.Quality.Points >= p.Quality.Needed {
		r.say(l, index, p.Step)
	}
}

// judge compares value y of a step with what was said of it, and reports whether anything was.
func (r *Record) judge(index int64, step time.Duration, y float64, l *model.Learner) (judged bool) {
	for i := range r.Horizons {
		h := &r.Horizons[i]
		n := 0
		for n < len(h.Said) && h.Said[n].For < index {
			n++
		}
		if n < len(h.Said) && h.Said[n].For == index {
			said, load := h.Said[n], dayMean(l, step)
			if !math.IsNaN(y) && load > 0 {
				h.learn(math.Abs(y-said.Middle)/load, math.Abs(y-said.Last)/load, y <= said.Upper, turnsPerDay(step))
				judged = true
			}
			n++
		}
		h.Said = h.Said[n:]
	}
	return judged
}

// dayMean is the mean of the known values of the last day, NaN where there is none.
func dayMean(l *model.Learner, step time.Duration) float64 {
	sum, n := 0.0, 0.0
	for i := range int(day / step) {
		if y := l.Before(i + 1); !math.IsNaN(y) {
			sum, n = sum+y, n+1
		}
	}
	return sum / n
}

// turnsPerDay is how often a day it is the turn of a forecast to be put on record.
func turnsPerDay(step time.Duration) float64 {
	return float64(day) / float64(time.Duration(sayEach(step))*step)
}

// learn takes one miss in, and that of the last value; turns is how many forecasts a day are put on record.
func (h *Horizon) learn(miss, last float64, covered bool, turns float64) {
	held, above, far, beaten, most := 0.0, 1.0, 0.0, 0.0, float64(mostMiss)
	if covered {
		held, above = 1, 0
	}
	if miss > last {
		beaten = 1
	}
	if h.Judged >= fewest {
		if miss > max(odd*h.Miss, leastMiss) {
			far = 1
		}
		most = bound * max(h.Miss, leastMiss/odd)
	}
	miss, last = min(miss, most), min(last, most)
	h.Judged++
	n, l := float64(h.Judged), &h.Lately
	h.Miss += (miss - h.Miss) / min(n, lastingDays*turns)
	h.Covered += (held - h.Covered) / min(n, lastingDays*turns)
	l.Odd += (far - l.Odd) / min(n, lately)
	l.Miss += (miss - l.Miss) / min(n, lately)
	l.Last += (last - l.Last) / min(n, lately)
	l.Beaten += (beaten - l.Beaten) / min(n, lately)
	l.Above += (above - l.Above) / min(n, lately)
	l.Covered += (held - l.Covered) / min(n, coveredDays*turns)
}

// say puts on record what is forecast now, index being that of the newest step, where it is the turn of that step.
func (r *Record) say(l *model.Learner, index int64, step time.Duration) {
	last, each := l.Before(1), sayEach(step)
	if math.IsNaN(last) || index%each != 0 {
		return
	}
	for i := range r.Horizons {
		h := &r.Horizons[i]
		if h.Ahead == day && step < sayEvery && index/each%sayLong != 0 {
			continue
		}
		ahead := int(h.Ahead / step)
		q := l.Project(ahead, 1, saidQuantiles)
		h.Said = append(h.Said, Said{For: index + int64(ahead), Middle: single(q[0][0]), Upper: single(q[1][0]), Last: single(last)})
	}
}

// single is a number as the marshalled form keeps it.
func single(v float64) float64 { return float64(float32(v)) }

func (r *Record) clone() Record {
	c := *r
	c.Horizons = slices.Clone(r.Horizons)
	for i := range c.Horizons {
		c.Horizons[i].Said = slices.Clone(c.Horizons[i].Said)
	}
	return c
}
