package forecast

import (
	"math"
	"testing"
	"time"
)

func TestTideAtAndMax(t *testing.T) {
	start := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	d := Tide{Start: start, Step: time.Minute, Quantiles: []float64{0.5, 0.9}, Paths: [][]float64{{1, 2, 3}, {11, 7, 13}}}
	at := func(seconds int, q float64) float64 { return d.At(start.Add(time.Duration(seconds)*time.Second), q) }
	for _, tt := range []struct{ got, want float64 }{
		{at(0, 0.5), 1}, {at(59, 0.5), 1}, {at(60, 0.9), 7}, {at(0, 0.7), 6}, {at(0, 0.1), 1}, {at(0, 0.99), 11},
		{at(-1, 0.5), math.NaN()}, {at(180, 0.5), math.NaN()},
		{d.Max(start, start.Add(time.Hour), 0.9), 13}, {d.Max(start.Add(-time.Hour), start, 0.9), 11}, {d.Max(start.Add(time.Minute), start.Add(time.Minute), 0.9), 7},
		{d.Growth(start, start.Add(time.Hour), 0.9), 13}, {d.Growth(start.Add(2*time.Minute), start.Add(time.Hour), 0.5), 1}, {d.Growth(start.Add(-time.Hour), start, 0.9), math.NaN()},
		{d.Max(start.Add(-2*time.Hour), start.Add(-time.Hour), 0.9), math.NaN()}, {d.Max(start.Add(time.Hour), start.Add(2*time.Hour), 0.9), math.NaN()},
	} {
		if !(math.Abs(tt.got-tt.want) < 1e-9) && !(math.IsNaN(tt.got) && math.IsNaN(tt.want)) {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}
	var empty Tide
	if !math.IsNaN(empty.At(start, 0.5)) || !math.IsNaN(empty.Max(start, start, 0.5)) {
		t.Error("an empty tide has values")
	}
}

func TestTideAtMoments(t *testing.T) {
	tide := Tide{Quantiles: []float64{0.1, 0.5, 0.95}, Paths: [][]float64{{50, 0}, {100, 0}, {200, 10}}, Ordinary: [][]float64{{50, 0}, {100, 0}, {100, 0}}}
	if same := tide.AtMoments(0); &same.Paths[2][0] != &tide.Paths[2][0] {
		t.Error("without a deviation the tide was made anew")
	}
	got := tide.AtMoments(0.3)
	// ln 2 and 1.6449·0.3 are the two spreads.
	if want := 100 * math.Exp(math.Sqrt(math.Ln2*math.Ln2+0.49346*0.49346)); math.Abs(got.Paths[2][0]-want) > 0.01 {
		t.Errorf("the 0.95 path is at %.2f, want %.2f", got.Paths[2][0], want)
	}
	if want := 100 * math.Exp(0.49346); math.Abs(got.Ordinary[2][0]-want) > 0.01 {
		t.Errorf("the 0.95 path without days is at %.2f, want %.2f", got.Ordinary[2][0], want)
	}
	if got.Paths[1][0] != 100 || got.Paths[0][0] != 50 {
		t.Errorf("paths up to the median moved: %v", got.Paths)
	}
	if got.Paths[2][1] != 10 {
		t.Errorf("above a median of nothing the path moved to %v", got.Paths[2][1])
	}
	if tide.Paths[2][0] != 200 {
		t.Error("the tide that was given changed")
	}
}
