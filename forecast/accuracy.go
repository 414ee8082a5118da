package forecast

import (
	"time"

	"github.com/springtide/springtide/portrait"
)

// Accuracy is how good the forecasts of one time ahead were, as they were said.
type Accuracy struct {
	// Horizon is how far ahead: 15 minutes, an hour or a day, as far as the portrait's step can show it.
	Horizon time.Duration
	// Judged counts the forecasts that were compared with what came.
	Judged int
	// Miss is the usual distance of the load from the 0.5 quantile, as a share of a day's mean load (0.08 is 8 %).
	Miss float64
	// Nominal is the share of loads that the upper quantile promises to hold, Achieved the share that it held, both 0 to 1.
	Nominal, Achieved float64
}

// Accuracies are the records of a portrait's forecasts by rising horizon, at most three; those of which nothing was judged are left out.
func Accuracies(p *portrait.Portrait) []Accuracy {
	var out []Accuracy
	for i := range p.Record.Horizons {
		if h := &p.Record.Horizons[i]; h.Judged > 0 {
			out = append(out, Accuracy{Horizon: h.Ahead, Judged: h.Judged, Miss: h.Miss, Nominal: portrait.Nominal, Achieved: h.Covered})
		}
	}
	return out
}
