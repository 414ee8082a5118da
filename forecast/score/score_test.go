package score

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The reference values were computed with exact fractions by an independent program from the published formulas.
var (
	actual  = []float64{112, 118, 0, 129, 121, 135, 148, 136}
	point   = []float64{110, 121, 0, 120, 125.5, 140, 139, 136}
	low     = []float64{100, 105, -5, 111, 110, 136, 120, 120}
	high    = []float64{120, 130, 10, 125, 140, 150, 145, 150}
	history = []float64{5, 9, 7, 6, 8, 12, 9, 7, 11, 14}
)

func TestReferenceValues(t *testing.T) {
	tests := []struct {
		name      string
		got, want float64
	}{
		{"MAE", MAE(actual, point), 4.0625},
		{"sMAPE", SMAPE(actual, point), 3.1375542467509554},
		{"scale", Scale(history, 4), 2.3333333333333335},
		{"MASE", MASE(actual, point, history, 4), 1.7410714285714286},
		{"pinball .9", Pinball(0.9, actual, high), 1.7625},
		{"WQL", WQL([]float64{0.1, 0.5, 0.9}, actual, [][]float64{low, point, high}), 0.03081201334816463},
		{"coverage", Coverage(actual, high), 0.75},
		{"MSIS", MSIS(actual, low, high, history, 4, 0.05), 26.410714285714285},
	}
	for _, tt := range tests {
		if math.Abs(tt.got-tt.want) > 1e-12*math.Max(1, math.Abs(tt.want)) {
			t.Errorf("%s = %.16g, want %.16g", tt.name, tt.got, tt.want)
		}
	}
}

// A gap says nothing: measures over known steps alone are the same.
func TestGapsAreLeftOut(t *testing.T) {
	nan := math.NaN()
	gappy, f := append([]float64{nan}, actual...), append([]float64{1e9}, point...)
	if a, b := SMAPE(gappy, f), SMAPE(actual, point); a != b {
		t.Errorf("sMAPE %v with a gap, %v without", a, b)
	}
	if a, b := WQL([]float64{0.5}, gappy, [][]float64{f}), WQL([]float64{0.5}, actual, [][]float64{point}); a != b {
		t.Errorf("WQL %v with a gap, %v without", a, b)
	}
}

func TestWithoutAValue(t *testing.T) {
	nan := math.NaN()
	for name, v := range map[string]float64{
		"nothing known":    MAE([]float64{nan}, []float64{1}),
		"empty":            SMAPE(nil, nil),
		"constant history": MASE(actual, point, []float64{3, 3, 3}, 1),
		"short history":    MASE(actual, point, []float64{3, 3}, 2),
		"no load at all":   WQL([]float64{0.5}, []float64{0}, [][]float64{{1}}),
	} {
		if !math.IsNaN(v) {
			t.Errorf("%s: %v, want NaN", name, v)
		}
	}
}

func TestLengthsMustAgree(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a forecast of another length was scored")
		}
	}()
	MAE(actual, point[:3])
}

// The q quantile of a sample loses least by the q pinball: no other constant forecast does better.
func TestPinballIsLeastAtTheQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y := rapid.SliceOfN(rapid.Float64Range(-100, 100), 1, 30).Draw(t, "y")
		q := rapid.Float64Range(0.01, 0.99).Draw(t, "q")
		constant := func(c float64) []float64 {
			f := make([]float64, len(y))
			for i := range f {
				f[i] = c
			}
			return f
		}
		best := math.Inf(1)
		for _, c := range y { // a sample quantile is one of the values
			best = min(best, Pinball(q, y, constant(c)))
		}
		other := rapid.Float64Range(-200, 200).Draw(t, "other")
		if got := Pinball(q, y, constant(other)); got < best-1e-9 {
			t.Fatalf("constant %v loses %v, the best value of the sample %v", other, got, best)
		}
	})
}
