package forecast

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

// Tide is the forecast load of one service: quantile paths on a regular grid that begins at Start. Values are in the portrait's signal
// (requests per second or cores), never negative, and rise with the quantile at every step.
type Tide struct {
	Service fleet.ServiceID
	Signal  portrait.Signal
	Made    time.Time
	Start   time.Time
	Step    time.Duration
	// Quantiles in rising order; Paths[i][j] is quantile i at Start + j·Step.
	Quantiles []float64
	Paths     [][]float64
	// Model names the model that spoke last in the fall-back chain, and kin where they spoke with it.
	Model string
	// Trusted is false when only a fall-back spoke: sizing then must not scale in by this tide.
	Trusted bool
	// SkillLost says that the model spoke, but that its newest forecasts were too far off to be trusted.
	SkillLost bool
	// Note says why a fall-back spoke or what is doubtful; empty otherwise.
	Note string
	// Days are the days of the service's calendar that lift the paths, in order. Ordinary are the paths without them, for whom a
	// festival plan speaks; nil where there are none.
	Days     []LiftedDay
	Ordinary [][]float64
}

// LiftedDay is what one day of a calendar does to a tide.
type LiftedDay struct {
	Name     string
	From, To time.Time
	// Factor is the one furthest from 1 by which an hour of the day is multiplied. Kin says that only kin of the service saw such a day.
	Factor float64
	Kin    bool
}

// Day is the lifted day that overlaps [from, to) and is furthest from ordinary, or nil.
func (t *Tide) Day(from, to time.Time) *LiftedDay {
	var out *LiftedDay
	for i := range t.Days {
		d := &t.Days[i]
		if d.From.Before(to) && from.Before(d.To) && (out == nil || math.Abs(math.Log(d.Factor)) > math.Abs(math.Log(out.Factor))) {
			out = d
		}
	}
	return out
}

// Lift is what the days of the calendar multiply the median by at a time: 1 where none does, NaN outside of the grid.
func (t *Tide) Lift(when time.Time) float64 {
	plain, with := *t, t.At(when, 0.5)
	if t.Ordinary != nil {
		plain.Paths = t.Ordinary
	}
	switch without := plain.At(when, 0.5); {
	case math.IsNaN(with):
		return with
	case with == without:
		return 1 // nothing stays nothing, too
	default:
		return with / without
	}
}

// AtMoments is the tide with its upper quantiles taken from means of steps to single moments, which lie around them with a deviation of their
// logarithm (Portrait.Ripple). The two spreads have nothing to do with each other, so that their squares add up.
func (t Tide) AtMoments(deviation float64) Tide {
	if !(deviation > 0) || len(t.Paths) == 0 {
		return t
	}
	t.Paths = t.atMoments(t.Paths, deviation)
	if t.Ordinary != nil {
		t.Ordinary = t.atMoments(t.Ordinary, deviation)
	}
	return t
}

func (t Tide) atMoments(paths [][]float64, deviation float64) [][]float64 {
	t.Paths = paths
	low, high, w := t.around(0.5)
	out := make([][]float64, len(paths))
	for i, q := range t.Quantiles {
		if q <= 0.5 {
			out[i] = paths[i]
			continue
		}
		out[i] = make([]float64, len(paths[i]))
		wide := distuv.UnitNormal.Quantile(q) * deviation
		for j, v := range paths[i] {
			if middle := mixed(low[j], high[j], w); middle > 0 {
				v = middle * math.Exp(math.Hypot(math.Log(max(v/middle, 1)), wide))
			}
			out[i][j] = v
		}
	}
	return out
}

// Planned is the tide whose steps that overlap [from, to) are ordinary: a plan that says what that time is worth beats what was learned.
func (t Tide) Planned(from, to time.Time) Tide {
	if t.Ordinary == nil || t.Step <= 0 {
		return t
	}
	paths := make([][]float64, len(t.Paths))
	for i := range paths {
		paths[i] = slices.Clone(t.Paths[i])
		for j := range paths[i] {
			if begin := t.Start.Add(time.Duration(j) * t.Step); begin.Before(to) && from.Before(begin.Add(t.Step)) {
				paths[i][j] = t.Ordinary[i][j]
			}
		}
	}
	t.Paths = paths
	var days []LiftedDay
	for _, d := range t.Days {
		before, behind := d, d
		if from.Before(d.To) {
			before.To = from
		}
		if to.After(d.From) {
			behind.From = to
		}
		if before.From.Before(before.To) {
			days = append(days, before)
		}
		if behind != before && behind.From.Before(behind.To) {
			days = append(days, behind)
		}
	}
	t.Days = days
	return t
}

// At is the value of quantile q for the step that contains t, interpolated between the known quantiles, or NaN outside of the grid.
func (t *Tide) At(when time.Time, q float64) float64 {
	if t.Step <= 0 || len(t.Paths) == 0 || when.Before(t.Start) {
		return math.NaN()
	}
	j := int(when.Sub(t.Start) / t.Step)
	if j >= len(t.Paths[0]) {
		return math.NaN()
	}
	return t.step(j, q)
}

// Max is the largest value of quantile q between two times, both included, or NaN where the grid holds none of them.
func (t *Tide) Max(from, to time.Time, q float64) float64 {
	look := t.Look(from, q)
	return look.Max(0, to.Sub(from))
}

// Growth is by how much the load may grow between two times: the largest value of quantile q over the median at the first. It is 1 where the load falls,
// and NaN where the grid holds none of them or the median is nothing.
func (t *Tide) Growth(from, to time.Time, q float64) float64 {
	now := t.At(from, 0.5)
	if !(now > 0) {
		return math.NaN()
	}
	return max(t.Max(from, to, q)/now, 1)
}

// Look is a tide's quantile path seen from a time on: who asks for hundreds of stretches of it finds the quantile and the time once.
type Look struct {
	t      *Tide
	offset time.Duration // from the start of the grid to that time
	lo, hi []float64     // the paths around the quantile
	w      float64       // of hi
}

// Look begins to look along quantile q from a time on.
func (t *Tide) Look(from time.Time, q float64) Look {
	if t.Step <= 0 || len(t.Paths) == 0 {
		return Look{}
	}
	l := Look{t: t, offset: from.Sub(t.Start)}
	l.lo, l.hi, l.w = t.around(q)
	return l
}

// Max is the largest value between two times after the look's own, both included, or NaN where the grid holds none of them.
func (l *Look) Max(from, to time.Duration) float64 {
	out := math.NaN()
	if l.t == nil || l.offset+to < 0 {
		return out
	}
	first := max(int((l.offset+from)/l.t.Step), 0)
	last := min(int((l.offset+to)/l.t.Step), len(l.lo)-1)
	for j := first; j <= last; j++ {
		if v := mixed(l.lo[j], l.hi[j], l.w); !(v <= out) {
			out = v
		}
	}
	return out
}

// step interpolates linearly between the two quantiles around q, and holds the outermost ones.
func (t *Tide) step(j int, q float64) float64 {
	lo, hi, w := t.around(q)
	return mixed(lo[j], hi[j], w)
}

// around are the two paths around quantile q and the weight of the second; the same one twice where it is met or q lies outside of all.
func (t *Tide) around(q float64) (lo, hi []float64, w float64) {
	i, exact := slices.BinarySearch(t.Quantiles, q)
	switch {
	case exact:
		return t.Paths[i], t.Paths[i], 0
	case i == 0:
		return t.Paths[0], t.Paths[0], 0
	case i == len(t.Quantiles):
		return t.Paths[i-1], t.Paths[i-1], 0
	}
	return t.Paths[i-1], t.Paths[i], (q - t.Quantiles[i-1]) / (t.Quantiles[i] - t.Quantiles[i-1])
}

// mixed is the value between two with the weight of the second.
func mixed(lo, hi, w float64) float64 {
	if w == 0 {
		return lo // hi may be infinite
	}
	return (1-w)*lo + w*hi
}
