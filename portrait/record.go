package portrait

import (
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/forecast/model"
	"github.com/springtide/springtide/internal/series"
)

// Record is how the forecasts of a service did, as they were said: nothing in it was reckoned after the load was known.
type Record struct {
	// Horizons are in rising order, at most three.
	Horizons []Horizon
	Skill    Skill
}

// Horizon is the record of the forecasts of one time ahead. Misses are shares of the usual load of a day: a miss of five requests a second
// at four in the morning is as large as one at noon.
type Horizon struct {
	Ahead time.Duration
	// Judged counts the forecasts that were compared with what came.
	Judged int
	// Miss is the usual distance of the load from the 0.5 quantile, Covered the share of the load at or below the 0.9 quantile, both over
	// the last ten days.
	Miss, Covered float64
	// Lately is the same of the last hours.
	Lately Lately
	// Said waits for what it was said of, the oldest first.
	Said []Said
}

// Lately is the newest part of a record, from which the loss of skill is told.
type Lately struct {
	// Judged counts towards the length of this memory and no further.
	Judged float64
	// Odd is the share of the forecasts that missed by far more than usual: a share, so that one huge burst is one forecast.
	Odd float64
	// Miss is the mean miss and Last that of taking the value at the time of the forecast for the future, both bounded.
	Miss, Last float64
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
	// sayEvery is about how often a forecast is put on record.
	sayEvery = 30 * time.Minute
	// lastingDays, coveredDays and latelyHours are the memories of a record: an older forecast counts less than 1/e. Nine hours hold sixteen
	// forecasts, and all of them odd make half of the record odd after six hours. Coverage needs three days: misses of one day go together.
	lastingDays, coveredDays, latelyHours = 10, 3, 9
	// odd is how many times the usual miss is far more than usual: of misses that are spread like Laplace's, one in twenty is.
	odd = 3
	// leastOdd is the share of the load below which no miss is odd: hpa ignores less than a tenth of a miss in replicas.
	leastOdd = 0.05
	// bound is how many times the usual miss is counted of one: a burst that nobody could have known must not be the whole record.
	bound = 4
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

// judge compares value y of a step with what was said of it. level is the usual load of a day.
func (r *Record) judge(index int64, step time.Duration, y, level float64) {
	judged := false
	for i := range r.Horizons {
		h := &r.Horizons[i]
		n := 0
		for n < len(h.Said) && h.Said[n].For < index {
			n++
		}
		if n < len(h.Said) && h.Said[n].For == index {
			if s := h.Said[n]; !math.IsNaN(y) && level > 0 {
				h.learn(math.Abs(y-s.Middle)/level, math.Abs(y-s.Last)/level, y <= s.Upper, float64(day)/float64(time.Duration(sayEach(step))*step))
				judged = true
			}
			n++
		}
		h.Said = h.Said[n:]
	}
	if judged {
		r.Skill = r.Skill.next(series.GridTime(index+1, step), r.Horizons)
	}
}

// learn takes one miss in, and that of the last value. perDay is the number of forecasts on record a day.
func (h *Horizon) learn(miss, last float64, covered bool, perDay float64) {
	held, far := 0.0, 0.0
	if covered {
		held = 1
	}
	h.Judged++
	l := &h.Lately
	n := float64(h.Judged)
	if usual := h.Miss; n > fewest {
		if miss > max(odd*usual, leastOdd) {
			far = 1
		}
		most := bound * max(usual, leastOdd/odd)
		miss, last = min(miss, most), min(last, most)
	}
	h.Miss += (miss - h.Miss) / min(n, lastingDays*perDay)
	h.Covered += (held - h.Covered) / min(n, lastingDays*perDay)
	l.Judged = min(l.Judged+1, latelyHours*perDay/24)
	l.Odd += (far - l.Odd) / l.Judged
	l.Miss += (miss - l.Miss) / l.Judged
	l.Last += (last - l.Last) / l.Judged
	l.Covered += (held - l.Covered) / min(n, coveredDays*perDay)
}

// say puts on record what is forecast now, index being that of the newest step, where it is the turn of that step.
func (r *Record) say(l *model.Learner, index int64, step time.Duration) {
	last := l.Before(1)
	if math.IsNaN(last) || index%sayEach(step) != 0 {
		return
	}
	for i := range r.Horizons {
		h := &r.Horizons[i]
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
