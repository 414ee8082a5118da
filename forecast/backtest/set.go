package backtest

import (
	"fmt"
	"slices"

	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/forecast/score"
	"github.com/springtide/springtide/series"
)

// Case is one series up to an origin, and what came.
type Case struct {
	Series string
	// History ends at the origin.
	History series.Series
	Actual  []float64
	// Period is the season of the naive forecast that errors are scaled by, in steps.
	Period int
}

// Set is all that is forecast at one origin. A forecaster may pool over the histories of a set, but never over those of two sets: the
// history of a later origin holds what came after an earlier one.
type Set struct {
	// Origin counts back from the newest one, which is 0.
	Origin  int
	Horizon int
	Options plain.Options
	Cases   []Case
}

// Evaluate asks a forecaster. It is shown copies of the histories alone, so that it can neither read what came nor change what others see.
func Evaluate(s *Set, quantiles []float64, f plain.Forecaster) []plain.Forecast {
	in := plain.Input{Horizon: s.Horizon, Quantiles: slices.Clone(quantiles), Options: s.Options}
	for i := range s.Cases {
		h := s.Cases[i].History
		h.Values = slices.Clip(slices.Clone(h.Values))
		in.Histories = append(in.Histories, plain.History{ID: s.Cases[i].Series, Series: h})
	}
	out := f(in)
	if len(out) != len(s.Cases) {
		panic(fmt.Sprintf("backtest: %d forecasts of %d series", len(out), len(s.Cases)))
	}
	return out
}

// Score judges the forecasts of a set at the levels, one tally for each case.
func Score(s *Set, levels, quantiles []float64, forecasts []plain.Forecast) []*score.Tally {
	out := make([]*score.Tally, len(s.Cases))
	for i := range s.Cases {
		c := &s.Cases[i]
		out[i] = score.NewTally(levels)
		out[i].Add(score.Forecast{History: c.History.Values, Period: c.Period, Actual: c.Actual, Quantiles: quantiles, Paths: forecasts[i].Paths})
	}
	return out
}
