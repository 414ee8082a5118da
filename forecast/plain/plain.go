package plain

import (
	"github.com/springtide/springtide/series"
)

// History is what is known of one series at the origin, which is its End: a missing value at its end is a step that passed.
type History struct {
	ID string
	series.Series
}

// Input is what a forecaster is shown.
type Input struct {
	// Histories are those of all series of the origin.
	Histories []History
	// Horizon is the number of steps to forecast; step j+1 begins at End + j·Step.
	Horizon int
	// Quantiles rise, and lie strictly between 0 and 1.
	Quantiles []float64
	Options   Options
	// Kin is what the series taught before, where the histories are not all of them; nil where they are.
	Kin *Groups
}

// Options are what the caller knows next to the histories. The zero value means that nothing is known.
type Options struct {
	// Seasons are the periods to look for, rising; the day and the week where there are none. Our own methods know two of them, the
	// shortest and the longest.
	Seasons []Season
	// Holidays are days unlike others, by time.
	Holidays []Holiday
}

// Forecast is what a forecaster says of one series.
type Forecast struct {
	// Paths[i][j] is quantile i at step j+1; nil where the forecaster has nothing to say.
	Paths [][]float64
	// Model names the model that spoke, Note says why it was not a better one; both may be empty.
	Model, Note string
}

// Forecaster forecasts all series of an origin; its answer has one forecast for each history, in their order.
type Forecaster func(Input) []Forecast

// Each makes a forecaster of a method that looks at one series at a time.
func Each(one func(h History, in *Input) Forecast) Forecaster {
	return func(in Input) []Forecast {
		out := make([]Forecast, len(in.Histories))
		for i, h := range in.Histories {
			out[i] = one(h, &in)
		}
		return out
	}
}
