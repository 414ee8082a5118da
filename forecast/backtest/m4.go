package backtest

import (
	"time"

	"github.com/springtide/springtide/series"
)

// The M4 competition's hourly part: forecasts of 48 hours of series with a day and a week.
const (
	m4Horizon = 48
	m4Day     = 24
)

// m4Offsets are the origins within the training part, in steps before its end, on which choices may be made.
func m4Offsets() []int { return []int{48, 96, 144, 168, 216, 336} }

// Numbers is one series of M4, which has no dates.
type Numbers struct {
	ID     string
	Values []float64
}

// M4 cuts rolling origins within the training part.
func M4(train []Numbers) []Set {
	var sets []Set
	for k, offset := range m4Offsets() {
		s := Set{Origin: k, Horizon: m4Horizon}
		for _, t := range train {
			if n := len(t.Values) - offset; n >= 2*m4Day {
				s.Cases = append(s.Cases, m4Case(t.ID, t.Values[:n], t.Values[n:n+m4Horizon]))
			}
		}
		sets = append(sets, s)
	}
	return sets
}

// M4Test is the competition's own origin. test holds the series of train in the same order.
func M4Test(train, test []Numbers) []Set {
	s := Set{Horizon: m4Horizon}
	for i, t := range train {
		s.Cases = append(s.Cases, m4Case(t.ID, t.Values, test[i].Values))
	}
	return []Set{s}
}

func m4Case(id string, history, actual []float64) Case {
	return Case{Series: id, Actual: actual, Period: m4Day,
		History: series.Series{Start: time.Unix(0, 0).UTC(), Step: time.Hour, Values: history}}
}
