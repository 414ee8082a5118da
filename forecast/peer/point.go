package peer

import (
	"math"

	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/series"
)

// Seasons are the periods of a series in steps: the shorter one, called the day, and the longer one, called the week. Where a step shows
// only one season the two are the same, and where it shows none they are 1.
type Seasons struct {
	Day, Week int
	// Step is the length of a step in seconds, by which some peers set their bounds.
	Step float64
}

func seasonsOf(h plain.History, o plain.Options) Seasons {
	s := Seasons{Day: 1, Week: 1, Step: h.Step.Seconds()}
	if p := o.Periods(h.Step); len(p) > 0 {
		s.Day, s.Week = p[0], p[len(p)-1]
	}
	return s
}

// Point is a method that gives one number for each of the steps after a history, which is not empty and has no gaps.
type Point func(history []float64, s Seasons, horizon int) []float64

// AsShipped gives a point at every quantile.
func AsShipped(p Point) plain.Forecaster {
	return plain.Each(func(h plain.History, in *plain.Input) plain.Forecast {
		s := seasonsOf(h, in.Options)
		known := filled(h.Series, s.Day)
		if len(known) == 0 {
			return plain.Forecast{}
		}
		point := p(known, s, in.Horizon)
		out := plain.Forecast{Paths: make([][]float64, len(in.Quantiles))}
		for i := range out.Paths {
			out.Paths[i] = point
		}
		return out
	})
}

// filled is the history without gaps, from its first known value on: peers were not made for gaps, and are given the same phase one period
// before.
func filled(h series.Series, period int) []float64 {
	v := h.Fill(period).Values
	for len(v) > 0 && math.IsNaN(v[0]) {
		v = v[1:]
	}
	return v
}
