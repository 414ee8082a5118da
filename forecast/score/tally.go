package score

import (
	"fmt"
	"math"
	"slices"
)

// Forecast is one forecast next to what came.
type Forecast struct {
	// History is what the forecast was made from, Period the season of the naive forecast that errors are scaled by.
	History []float64
	Period  int
	Actual  []float64
	// Quantiles rise; Paths[i] is the path of Quantiles[i].
	Quantiles []float64
	Paths     [][]float64
}

// interval are the quantiles that bound what MSIS calls the 95 % interval.
var interval = [2]float64{0.025, 0.975}

const intervalAlpha = 0.05

// Quantiles are those that a forecast must have for every measure over some levels: the levels, the median that points are read from, and
// the bounds of the 95 % interval. They rise.
func Quantiles(levels []float64) []float64 {
	out := append(slices.Clone(levels), 0.5, interval[0], interval[1])
	slices.Sort(out)
	return slices.Compact(out)
}

// Tally gathers the measures of many forecasts. Tallies of the same levels add up.
type Tally struct {
	levels []float64
	// forecasts were scored, missed had no value for a known step; steps counts the known ones.
	forecasts, missed, steps int
	by                       []levelSums
	load, scaledLoad         float64
	smape, msis              mean
	mase                     []float64
}

// levelSums are what one level adds up: the pinball losses, the same over the mean of each history, the steps at or below the path, and
// the mean of the forecasts' own losses.
type levelSums struct {
	loss, scaledLoss float64
	under            int
	own              mean
}

type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) {
	if !math.IsNaN(v) {
		m.sum, m.n = m.sum+v, m.n+1
	}
}

func (m mean) value() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.sum / float64(m.n)
}

// NewTally gathers quantile losses and coverage at the levels.
func NewTally(levels []float64) *Tally {
	return &Tally{levels: slices.Clone(levels), by: make([]levelSums, len(levels))}
}

// Add scores a forecast and reports whether it could: one that lacks a value for a step whose load is known counts as missed, and nothing
// else of it does.
func (t *Tally) Add(f Forecast) bool {
	paths := make([][]float64, len(t.levels))
	for i, q := range t.levels {
		if paths[i] = f.path(q); paths[i] == nil || !covers(paths[i], f.Actual) {
			t.missed++
			return false
		}
	}
	middle := f.path(0.5)
	if middle == nil || !covers(middle, f.Actual) {
		t.missed++
		return false
	}
	t.forecasts++
	size := 0.0
	known := 0
	for _, y := range f.Actual {
		if !math.IsNaN(y) {
			known++
			size += math.Abs(y)
		}
	}
	t.steps += known
	t.load += size
	unit := meanSize(f.History)
	if unit > 0 {
		t.scaledLoad += size / unit
	}
	for i, q := range t.levels {
		if known == 0 {
			break
		}
		loss := Pinball(q, f.Actual, paths[i]) * float64(known)
		t.by[i].loss += loss
		if unit > 0 {
			t.by[i].scaledLoss += loss / unit
		}
		t.by[i].under += int(math.Round(Coverage(f.Actual, paths[i]) * float64(known)))
		t.by[i].own.add(ratio(2*loss, size))
	}
	t.smape.add(SMAPE(f.Actual, middle))
	if v := MASE(f.Actual, middle, f.History, f.Period); !math.IsNaN(v) {
		t.mase = append(t.mase, v)
	}
	if low, high := f.path(interval[0]), f.path(interval[1]); low != nil && high != nil {
		t.msis.add(MSIS(f.Actual, low, high, f.History, f.Period, intervalAlpha))
	}
	return true
}

// Merge adds what another tally of the same levels gathered.
func (t *Tally) Merge(o *Tally) {
	if !slices.Equal(t.levels, o.levels) {
		panic(fmt.Sprintf("score: a tally of levels %v and one of %v", t.levels, o.levels))
	}
	t.forecasts, t.missed, t.steps = t.forecasts+o.forecasts, t.missed+o.missed, t.steps+o.steps
	t.load, t.scaledLoad = t.load+o.load, t.scaledLoad+o.scaledLoad
	for i := range t.by {
		a, b := &t.by[i], &o.by[i]
		a.loss, a.scaledLoss, a.under = a.loss+b.loss, a.scaledLoss+b.scaledLoss, a.under+b.under
		a.own = mean{a.own.sum + b.own.sum, a.own.n + b.own.n}
	}
	t.smape = mean{t.smape.sum + o.smape.sum, t.smape.n + o.smape.n}
	t.msis = mean{t.msis.sum + o.msis.sum, t.msis.n + o.msis.n}
	t.mase = append(t.mase, o.mase...)
}

// path is that of a quantile, nil where the forecast has none.
func (f *Forecast) path(q float64) []float64 {
	if i := slices.Index(f.Quantiles, q); i >= 0 && i < len(f.Paths) {
		return f.Paths[i]
	}
	return nil
}

// covers reports whether every known step has a value.
func covers(path, actual []float64) bool {
	if len(path) != len(actual) {
		panic(fmt.Sprintf("score: %d actual and %d forecast values", len(actual), len(path)))
	}
	for i, y := range actual {
		if !math.IsNaN(y) && math.IsNaN(path[i]) {
			return false
		}
	}
	return true
}

// meanSize is the mean of |y| over the known values.
func meanSize(history []float64) float64 {
	return over(history, history, func(y, _ float64) float64 { return math.Abs(y) })
}
