package series

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var nan = math.NaN()

func at(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

func same(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && !(math.IsNaN(a[i]) && math.IsNaN(b[i])) {
			return false
		}
	}
	return true
}

func TestAlign(t *testing.T) {
	tests := []struct {
		name  string
		start int64
		step  time.Duration
		in    []float64
		to    time.Duration
		how   Aggregate
		begin int64
		want  []float64
	}{
		{"mean of five", 0, time.Minute, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 5 * time.Minute, Mean, 0, []float64{3, 8}},
		{"max of five", 0, time.Minute, []float64{1, 9, 3, 4, 5, 6, 7, 8, 2, 1}, 5 * time.Minute, Max, 0, []float64{9, 8}},
		{"an unfinished step is left out", 0, time.Minute, []float64{1, 1, 1, 1, 1, 9, 9}, 5 * time.Minute, Mean, 0, []float64{1}},
		{"a late start belongs to its step", 180, time.Minute, []float64{4, 6, 1, 1, 1, 1, 1}, 5 * time.Minute, Mean, 0, []float64{5, 1}},
		{"mostly gaps is a gap", 0, time.Minute, []float64{1, nan, nan, nan, 2, 1, nan, 3, nan, 2}, 5 * time.Minute, Mean, 0, []float64{nan, 2}},
		{"same step off the grid", 7, time.Minute, []float64{1, nan, 3}, time.Minute, Mean, 0, []float64{1, nan, 3}},
		{"before the epoch", -300, time.Minute, []float64{1, 2, 3, 4, 5}, 5 * time.Minute, Mean, -300, []float64{3}},
		{"huge values do not overflow", 0, time.Minute, []float64{1e308, 1e308}, 2 * time.Minute, Mean, 0, []float64{1e308}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Series{Start: at(tt.start), Step: tt.step, Values: tt.in}.Align(tt.to, tt.how)
			if !got.Start.Equal(at(tt.begin)) || got.Step != tt.to || !same(got.Values, tt.want) {
				t.Errorf("got %v from %v, want %v from %v", got.Values, got.Start, tt.want, at(tt.begin))
			}
		})
	}
}

func TestAlignOfNothing(t *testing.T) {
	if got := (Series{}).Align(time.Minute, Mean); got.Len() != 0 || got.Step != time.Minute {
		t.Errorf("got %+v", got)
	}
}

func TestFromSamples(t *testing.T) {
	got := FromSamples([]Sample{{at(700), 4}, {at(10), 1}, {at(20), 3}, {at(610), nan}, {at(650), 8}}, 5*time.Minute, Mean)
	if !got.Start.Equal(at(0)) || !same(got.Values, []float64{2, nan, 6}) {
		t.Errorf("got %v from %v", got.Values, got.Start)
	}
	if got := FromSamples(nil, time.Minute, Mean); got.Len() != 0 {
		t.Errorf("no samples gave %v", got.Values)
	}
}

func TestFill(t *testing.T) {
	s := Series{Step: time.Minute, Values: []float64{nan, 1, 2, nan, nan, 5, nan}}
	if got := s.Fill(0).Values; !same(got, []float64{nan, 1, 2, 2, 2, 5, 5}) {
		t.Errorf("last value: %v", got)
	}
	if got := s.Fill(3).Values; !same(got, []float64{nan, 1, 2, 2, 1, 5, 2}) {
		t.Errorf("one period before: %v", got)
	}
	if !math.IsNaN(s.Values[3]) {
		t.Error("Fill changed its receiver")
	}
}

func TestRates(t *testing.T) {
	s := Series{Step: 10 * time.Second, Values: []float64{100, 150, 20, nan, 40, 60}}
	got, resets := s.Rates()
	if resets != 1 || !same(got.Values, []float64{nan, 5, 2, nan, nan, 2}) {
		t.Errorf("got %v with %d resets", got.Values, resets)
	}
}

func TestDropNegative(t *testing.T) {
	got, n := Series{Step: time.Second, Values: []float64{1, -2, nan, 0}}.DropNegative()
	if n != 1 || !same(got.Values, []float64{1, nan, nan, 0}) {
		t.Errorf("got %v, %d", got.Values, n)
	}
}

// Aligning in one go, or first to a step in between, must not move a sample to another step, and a mean stays within its values.
func TestAlignKeepsWithinItsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Series{
			Start:  at(rapid.Int64Range(-1e6, 1e6).Draw(t, "start")),
			Step:   time.Duration(rapid.IntRange(1, 120).Draw(t, "step")) * time.Second,
			Values: rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 50).Draw(t, "values"),
		}
		to := s.Step * time.Duration(rapid.IntRange(1, 10).Draw(t, "factor"))
		mean, most := s.Align(to, Mean), s.Align(to, Max)
		for i, v := range mean.Values {
			if math.IsNaN(v) {
				continue
			}
			low, high := math.Inf(1), math.Inf(-1)
			for j, x := range s.Values {
				if GridIndex(s.Time(j), to) == GridIndex(mean.Time(i), to) {
					low, high = min(low, x), max(high, x)
				}
			}
			if slack := 1e-9 * (1 + math.Abs(low) + math.Abs(high)); v < low-slack || v > high+slack || most.Values[i] != high {
				t.Fatalf("step %d: mean %v, max %v of values in [%v, %v]", i, v, most.Values[i], low, high)
			}
		}
	})
}

func FuzzFromSamples(f *testing.F) {
	f.Add(int64(0), int64(60), int64(3600), 1.0, 2.0, 3.0)
	f.Add(int64(-1), int64(1), int64(-86400), nan, math.Inf(1), -1.0)
	f.Fuzz(func(t *testing.T, a, b, c int64, x, y, z float64) {
		const far = 1 << 20
		samples := []Sample{{at(a % far), x}, {at(b % far), y}, {at(c % far), z}}
		s := FromSamples(samples, time.Minute, Mean)
		for _, p := range samples {
			if i := s.Index(p.At); i < 0 || i >= s.Len() {
				t.Fatalf("sample at %v fell out of %v steps from %v", p.At, s.Len(), s.Start)
			}
		}
		if s.Known() > len(samples) {
			t.Fatalf("%d known values of %d samples", s.Known(), len(samples))
		}
	})
}
