package backtest

import (
	"math"
	"time"

	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/series"
)

// Protocol is how a bench cuts traces: what is forecast at each of some origins that lie Gap steps apart, so that no two share a step of
// what came, each from the newest History steps.
type Protocol struct {
	Name                           string
	Step                           time.Duration
	Horizon, History, Origins, Gap int
	// Day is the number of steps of the shorter season, by which errors are scaled and gaps of the history are filled.
	Day int
}

// Protocols are those of the bench: a day at five minutes, two days at an hour.
func Protocols() []Protocol {
	return []Protocol{
		{Name: "5 min", Step: 5 * time.Minute, Horizon: 288, History: 28 * 288, Origins: 4, Gap: 288 + 84, Day: 288},
		{Name: "1 h", Step: time.Hour, Horizon: 48, History: 56 * 24, Origins: 6, Gap: 48 + 7, Day: 24},
	}
}

// Conditions of a case: days of history, and no more than these shares of the history and of what came missing.
const (
	leastDays      = 8
	missingHistory = 0.1
	missingActual  = 0.3
)

// Traces cuts the origins of traces; the sets stand in the order of their origins. A trace that is coarser than the protocol's step is left
// out. Gaps of the histories are filled, so that every method is shown the same.
func Traces(p Protocol, traces []plain.History) []Set {
	sets := make([]Set, p.Origins)
	for k := range sets {
		sets[k] = Set{Origin: k, Horizon: p.Horizon}
	}
	for _, t := range traces {
		if t.Step > p.Step || t.Len() == 0 {
			continue
		}
		whole := resample(t.Series, p.Step)
		for k := range sets {
			end := whole.Len() - p.Horizon - k*p.Gap
			from := max(0, end-p.History)
			if end-from < leastDays*p.Day {
				break
			}
			history, actual := whole.Values[from:end], whole.Values[end:end+p.Horizon]
			if missing(history) > missingHistory || missing(actual) > missingActual || constant(history) {
				continue
			}
			h := series.Series{Start: whole.Time(from), Step: p.Step, Values: fill(history, p.Day)}
			sets[k].Cases = append(sets[k].Cases, Case{Series: t.ID, History: h, Actual: actual, Period: p.Day})
		}
	}
	return sets
}

// resample averages the values of each step; a step of which less than half was measured is a gap, and gaps at the end are cut off.
func resample(s series.Series, step time.Duration) series.Series {
	first := series.GridIndex(s.Start, step)
	last := series.GridIndex(s.Time(s.Len()-1), step)
	out := series.New(series.GridTime(first, step), step, int(last-first+1))
	count := make([]int, out.Len())
	for i, v := range s.Values {
		if math.IsNaN(v) {
			continue
		}
		k := int(series.GridIndex(s.Time(i), step) - first)
		if count[k]++; count[k] == 1 {
			out.Values[k] = v
		} else {
			out.Values[k] += (v - out.Values[k]) / float64(count[k])
		}
	}
	for k, n := range count {
		if 2*time.Duration(n)*s.Step < step {
			out.Values[k] = math.NaN()
		}
	}
	for out.Len() > 0 && math.IsNaN(out.Values[out.Len()-1]) {
		out.Values = out.Values[:out.Len()-1]
	}
	return out
}

func missing(values []float64) float64 {
	n := 0
	for _, v := range values {
		if math.IsNaN(v) {
			n++
		}
	}
	return float64(n) / float64(len(values))
}

func constant(values []float64) bool {
	first := math.NaN()
	for _, v := range values {
		switch {
		case math.IsNaN(v):
		case math.IsNaN(first):
			first = v
		case v != first:
			return false
		}
	}
	return true
}

// fill gives a gap the value of one period before, or the one before where there is none, or the mean at the beginning.
func fill(values []float64, period int) []float64 {
	out := make([]float64, len(values))
	copy(out, values)
	for i, v := range out {
		switch {
		case !math.IsNaN(v):
		case i >= period:
			out[i] = out[i-period]
		case i > 0:
			out[i] = out[i-1]
		default:
			sum, n := 0.0, 0
			for _, w := range values {
				if !math.IsNaN(w) {
					sum, n = sum+w, n+1
				}
			}
			out[i] = sum / float64(n)
		}
	}
	return out
}
