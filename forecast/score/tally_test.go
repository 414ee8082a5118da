package score

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
)

// Two forecasts, worked out by hand: errors of 2 and 0 on loads of 10 and 10, and of -1 on a load of 4.
func twoForecasts() []Forecast {
	q := []float64{0.5, 0.9}
	return []Forecast{
		{History: []float64{8, 10, 12, 10}, Period: 1, Actual: []float64{10, 10, math.NaN()}, Quantiles: q,
			Paths: [][]float64{{8, 10, 0}, {9, 12, 0}}},
		{History: []float64{4, 4, 4}, Period: 1, Actual: []float64{4}, Quantiles: q, Paths: [][]float64{{5}, {6}}},
	}
}

func TestTally(t *testing.T) {
	all, parts := NewTally([]float64{0.5, 0.9}), NewTally([]float64{0.5, 0.9})
	for _, f := range twoForecasts() {
		all.Add(f)
		one := NewTally([]float64{0.5, 0.9})
		one.Add(f)
		parts.Merge(one)
	}
	for name, r := range map[string]Report{"added": all.Report(), "merged": parts.Report()} {
		half, high := r.Levels[0], r.Levels[1]
		for _, m := range []struct {
			what      string
			got, want Measure
		}{
			{"sMAPE", r.SMAPE, (200*2.0/18/2 + 200*1.0/9) / 2},
			// The second history is constant: it has no scale.
			{"MASE", r.MASE, 1.0 / 2},
			{"median MASE", r.MedianMASE, 1.0 / 2},
			{"MSIS", r.MSIS, Measure(math.NaN())},
			{"pinball .5", half.Pinball, (1 + 0.5) / 3},
			{"WQL .5", half.WQL, 3.0 / 24},
			// Losses .9·1 + .1·2 and .1·2.
			{"pinball .9", high.Pinball, (0.9 + 0.2 + 0.2) / 3},
			{"WQL .9", high.WQL, 2 * 1.3 / 24},
			{"WQL", r.WQL, (3.0/24 + 2.6/24) / 2},
			// The histories' means are 10 and 4, so the loads are 2 and 1.
			{"scaled WQL .9", high.ScaledWQL, 2 * (1.1/10 + 0.2/4) / 3},
			{"mean WQL .9", high.MeanWQL, (2*1.1/20 + 2*0.2/4) / 2},
			{"coverage .5", half.Coverage, 2.0 / 3},
			{"coverage .9", high.Coverage, 2.0 / 3},
		} {
			if diff := math.Abs(float64(m.got - m.want)); !(diff < 1e-12) && !(math.IsNaN(float64(m.got)) && math.IsNaN(float64(m.want))) {
				t.Errorf("%s: %s = %v, want %v", name, m.what, m.got, m.want)
			}
		}
		if r.Forecasts != 2 || r.Steps != 3 || r.Missed != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A forecast that says nothing of a known step must not gain by it.
func TestMissedForecasts(t *testing.T) {
	base := twoForecasts()[0]
	for name, change := range map[string]func(*Forecast){
		"no paths":           func(f *Forecast) { f.Paths = nil },
		"a gap":              func(f *Forecast) { f.Paths = [][]float64{{8, 10, 0}, {math.NaN(), 12, 0}} },
		"a gap in the point": func(f *Forecast) { f.Paths = [][]float64{{8, math.NaN(), 0}, {9, 12, 0}} },
	} {
		f := base
		change(&f)
		tally := NewTally([]float64{0.9})
		if tally.Add(f) {
			t.Errorf("%s: it was scored", name)
		}
		if r := tally.Report(); r.Missed != 1 || r.Forecasts != 0 || r.Steps != 0 || !math.IsNaN(float64(r.WQL)) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	f := base
	f.Paths = [][]float64{{8, 10, math.NaN()}, {9, 12, math.NaN()}}
	if !NewTally([]float64{0.9}).Add(f) {
		t.Error("a gap where nothing came counts as missed")
	}
}

// M4's MSIS, with the interval from .025 to .975: the reference values of score_test.go.
func TestIntervalOfTally(t *testing.T) {
	q := Quantiles([]float64{0.9, 0.5})
	if !slices.Equal(q, []float64{0.025, 0.5, 0.9, 0.975}) {
		t.Fatalf("quantiles %v", q)
	}
	tally := NewTally([]float64{0.9})
	tally.Add(Forecast{History: history, Period: 4, Actual: actual, Quantiles: q, Paths: [][]float64{low, point, high, high}})
	if got := float64(tally.Report().MSIS); math.Abs(got-26.410714285714285) > 1e-12*26 {
		t.Errorf("MSIS %v", got)
	}
}

func TestCoverageOfTheSameNumber(t *testing.T) {
	if got := Coverage([]float64{7, 7}, []float64{7 * (1 - 1e-7), 7 * (1 - 1e-5)}); got != 0.5 {
		t.Errorf("coverage %v, want 0.5: what rounding took from a path is no miss, a hundred-thousandth is", got)
	}
}

func TestMeasuresInJSON(t *testing.T) {
	b, err := json.Marshal([]Measure{1.5, Measure(math.NaN()), Measure(math.Inf(1))})
	if err != nil || string(b) != "[1.5,null,null]" {
		t.Fatalf("%s, %v", b, err)
	}
	var back []Measure
	if err := json.Unmarshal(b, &back); err != nil || back[0] != 1.5 || !math.IsNaN(float64(back[1])) {
		t.Errorf("%v, %v", back, err)
	}
}
