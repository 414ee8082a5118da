package peer

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/series"
)

// The reference series and its seasons. The values that the tests hold the peers to were computed by an independent program (plain sums, a
// transform by its definition) from the peers' published descriptions.
const referenceHorizon = 30

var referenceSeasons = Seasons{Day: 24, Week: 168, Step: 300}

func reference() []float64 {
	y := make([]float64, 240)
	for i := range y {
		x := 2 * math.Pi * float64(i)
		y[i] = 50 + 20*math.Sin(x/24) + 5*math.Sin(x/168) + float64((i*7919)%101)/20
	}
	return y
}

func TestReferenceValues(t *testing.T) {
	first := func(e estimator) Point {
		return func(h []float64, s Seasons, horizon int) []float64 {
			return repeat(newSpectrum(h, s.Step).last(e, s.Day), s.Day, horizon)
		}
	}
	tests := []struct {
		name  string
		point Point
		// want are the steps 1, 2, 12, 24 and 30.
		want [5]float64
	}{
		{"Holt-Winters as documented", HoltWinters(phpaDocumented), [5]float64{50.2858751525, 50.6463696078, 40.542325767, 15.7028044068, 29.0323534148}},
		{"Holt-Winters, tame", HoltWinters(phpaTame), [5]float64{54.4962459846, 58.5475407459, 58.5162411979, 50.3424441867, 74.0443679673}},
		{"linear", Linear, [5]float64{48.5152933195, 50.6748003334, 72.2698704729, 98.1839546402, 111.140996724}},
		{"Crane percentile", CranePercentile, [5]float64{89.5290269759, 89.5290269759, 89.5290269759, 89.5290269759, 89.5290269759}},
		{"window percentile", WindowPercentile, [5]float64{84.0280028426, 84.0280028426, 84.0280028426, 84.0280028426, 84.0280028426}},
		{"Crane filter", first(estimator{lines: 3, floor: 1, margin: 0.01}), [5]float64{57.347221545, 62.5590876089, 62.0821750557, 49.6444330272, 76.7688583083}},
		{"Crane DSP", CraneDSP, [5]float64{57.347221545, 62.5590876089, 62.0821750557, 49.6444330272, 76.7688583083}},
		{"Naive2", Naive2, [5]float64{53.3277331285, 57.714861741, 57.9985000773, 47.2599622393, 72.0219473535}},
	}
	for _, tt := range tests {
		got := tt.point(reference(), referenceSeasons, referenceHorizon)
		for i, step := range []int{0, 1, 11, 23, 29} {
			if math.Abs(got[step]-tt.want[i]) > 1e-8*tt.want[i] {
				t.Errorf("%s: step %d is %.12g, want %.12g", tt.name, step+1, got[step], tt.want[i])
			}
		}
	}
}

// The eight estimators' errors on the last day of the reference series.
func TestCraneErrors(t *testing.T) {
	y := reference()
	before := newSpectrum(y[:len(y)-24], 300)
	want := []float64{0.054088, 0.103012, 0.153149, 0.203286, 0.076874, 0.117208, 0.167990, 0.218772}
	for i, e := range craneEstimators {
		if got := craneError(y[len(y)-24:], before.last(e, 24)); math.Abs(got-want[i]) > 1e-6 {
			t.Errorf("estimator %+v: error %.6f, want %.6f", e, got, want[i])
		}
	}
	// Ten percent too low counts 0.47, as its documentation says, ten percent too high 0.1.
	if low, high := craneError([]float64{10}, []float64{9}), craneError([]float64{10}, []float64{11}); math.Abs(low-0.472) > 1e-3 || math.Abs(high-0.1) > 1e-12 {
		t.Errorf("too low %v, too high %v", low, high)
	}
}

func TestCranePeriod(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	make := func(f func(i int) float64) []float64 {
		y := make([]float64, 56*24)
		for i := range y {
			y[i] = f(i)
		}
		return y
	}
	s := Seasons{Day: 24, Week: 168, Step: 3600}
	tests := []struct {
		name string
		y    []float64
		want int
	}{
		{"day", make(func(i int) float64 { return 10 + math.Sin(2*math.Pi*float64(i)/24) + 0.2*r.NormFloat64() }), 24},
		{"week", make(func(i int) float64 { return 10 + math.Sin(2*math.Pi*float64(i)/168) + 0.2*r.NormFloat64() }), 168},
		{"noise", make(func(int) float64 { return 10 + r.NormFloat64() }), 0},
		{"twelve and a half hours", make(func(i int) float64 { return 10 + math.Sin(2*math.Pi*float64(i)/12.5) }), 0},
		{"constant", make(func(int) float64 { return 3 }), 0},
	}
	for _, tt := range tests {
		if got := cranePeriod(tt.y, s); got != tt.want {
			t.Errorf("%s: period %d, want %d", tt.name, got, tt.want)
		}
	}
}

func history(y []float64) plain.History {
	return plain.History{ID: "a", Series: series.Series{Start: time.Unix(0, 0).UTC(), Step: 300 * time.Second, Values: y}}
}

func TestResiduals(t *testing.T) {
	in := plain.Input{Histories: []plain.History{history(reference())}, Horizon: referenceHorizon, Quantiles: []float64{0.5, 0.9, 0.99},
		Options: plain.Options{Seasons: []plain.Season{{Steps: 24}, {Steps: 168}}}}
	got := WithResiduals(SeasonalDay)(in)[0].Paths
	want := [][5]float64{
		{58.83344829, 60.9648187626, 61.0256471999, 48.3362396383, 78.5776052041},
		{63.4138999548, 65.5452704273, 66.9984382163, 54.3090306547, 84.5503962206},
		{66.3484177712, 68.4797882438, 69.2423600036, 56.552952442, 86.7943180078},
	}
	for q := range want {
		for i, step := range []int{0, 1, 11, 23, 29} {
			if math.Abs(got[q][step]-want[q][i]) > 1e-8*want[q][i] {
				t.Errorf("quantile %v, step %d: %.12g, want %.12g", in.Quantiles[q], step+1, got[q][step], want[q][i])
			}
		}
	}
}

// No peer may fail on a series that a CSV can hold: each gives finite values for every step, or nothing where nothing is known.
func TestOddSeries(t *testing.T) {
	nan := math.NaN()
	long := func(f func(i int) float64) []float64 {
		y := make([]float64, 2*2016+17)
		for i := range y {
			y[i] = f(i)
		}
		return y
	}
	odd := map[string][]float64{
		"one value":    {3},
		"two values":   {3, 4},
		"gap first":    {nan, nan, 5, nan},
		"constant":     long(func(int) float64 { return 7 }),
		"zeros":        long(func(int) float64 { return 0 }),
		"negative":     long(func(i int) float64 { return -float64(i % 288) }),
		"huge":         long(func(i int) float64 { return 1e300 * float64(1+i%288) }),
		"tiny":         long(func(i int) float64 { return 1e-300 * float64(1+i%288) }),
		"half missing": long(func(i int) float64 { return []float64{nan, 1}[i/500%2] }),
	}
	quantiles := []float64{0.025, 0.5, 0.99}
	for _, p := range All() {
		for name, y := range odd {
			f := p.Forecast(plain.Input{Histories: []plain.History{history(y)}, Horizon: 40, Quantiles: quantiles})[0]
			if len(f.Paths) != len(quantiles) {
				t.Fatalf("%s, %s: %d paths", p.Name, name, len(f.Paths))
			}
			for i := range f.Paths {
				if len(f.Paths[i]) != 40 {
					t.Fatalf("%s, %s: %d steps", p.Name, name, len(f.Paths[i]))
				}
				for j, v := range f.Paths[i] {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						t.Fatalf("%s, %s: quantile %v, step %d: %v", p.Name, name, quantiles[i], j+1, v)
					}
					if i > 0 && v < f.Paths[i-1][j] {
						t.Fatalf("%s, %s: step %d: quantile %v below %v", p.Name, name, j+1, quantiles[i], quantiles[i-1])
					}
				}
			}
		}
		if f := p.Forecast(plain.Input{Histories: []plain.History{history([]float64{nan, nan})}, Horizon: 4, Quantiles: quantiles})[0]; f.Paths != nil {
			t.Errorf("%s: a forecast of nothing: %v", p.Name, f.Paths)
		}
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		if p.Name == "" || p.About == "" || seen[p.Name] {
			t.Errorf("peer %q (%q) is not named well", p.Name, p.About)
		}
		seen[p.Name] = true
	}
}
