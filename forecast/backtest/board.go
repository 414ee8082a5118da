package backtest

import (
	"math"
	"time"

	"github.com/springtide/springtide/forecast/score"
)

// Board gathers the measures of several models over the same sets.
type Board struct {
	levels []float64
	models []string
	series []string
	index  map[string]int
	// cells[m] is what model m came to, all[m] its pool, took[m] its time.
	cells [][]*score.Tally
	all   []*score.Tally
	took  []time.Duration
	cases []int
}

// NewBoard gathers the models' measures at the levels.
func NewBoard(levels []float64, models []string) *Board {
	b := &Board{levels: levels, models: models, index: map[string]int{}, cells: make([][]*score.Tally, len(models)),
		took: make([]time.Duration, len(models)), cases: make([]int, len(models))}
	for range models {
		b.all = append(b.all, score.NewTally(levels))
	}
	return b
}

// Add notes what a model did on a set, and the time that it took. The order of the first sets is that of the series.
func (b *Board) Add(model int, s *Set, tallies []*score.Tally, took time.Duration) {
	for i := range s.Cases {
		k := b.row(s.Cases[i].Series)
		b.cells[model][k].Merge(tallies[i])
		b.all[model].Merge(tallies[i])
	}
	b.took[model] += took
	b.cases[model] += len(s.Cases)
}

func (b *Board) row(name string) int {
	k, ok := b.index[name]
	if !ok {
		k = len(b.series)
		b.index[name] = k
		b.series = append(b.series, name)
		for m := range b.cells {
			b.cells[m] = append(b.cells[m], score.NewTally(b.levels))
		}
	}
	return k
}

// Result is what a backtest came to.
type Result struct {
	Levels []float64     `json:"levels"`
	Models []ModelResult `json:"models"`
}

// ModelResult is one model's.
type ModelResult struct {
	Model  string         `json:"model"`
	Pooled score.Report   `json:"pooled"`
	Series []SeriesResult `json:"series"`
	// Seconds is the mean time of one forecast, learning included.
	Seconds score.Measure `json:"secondsPerForecast"`
	// BetterOn and ComparedOn say on how many series the first model has the smaller WQL, of those that both forecast.
	BetterOn   int `json:"firstBetterOn"`
	ComparedOn int `json:"comparedOn"`
}

// SeriesResult is one series'.
type SeriesResult struct {
	Series string `json:"series"`
	score.Report
}

// Result sums up.
func (b *Board) Result() Result {
	r := Result{Levels: b.levels}
	for m, name := range b.models {
		one := ModelResult{Model: name, Pooled: b.all[m].Report(), Seconds: score.Measure(b.took[m].Seconds() / float64(b.cases[m]))}
		for k, s := range b.series {
			one.Series = append(one.Series, SeriesResult{Series: s, Report: b.cells[m][k].Report()})
			first, other := float64(b.cells[0][k].Report().WQL), float64(one.Series[k].WQL)
			if m == 0 || math.IsNaN(first) || math.IsNaN(other) {
				continue
			}
			if one.ComparedOn++; first < other {
				one.BetterOn++
			}
		}
		r.Models = append(r.Models, one)
	}
	return r
}
