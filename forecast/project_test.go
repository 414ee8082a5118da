package forecast

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/forecast/score"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

var nan = math.NaN()

func fold(s series.Series) portrait.Portrait {
	return portrait.Fold(portrait.Portrait{Version: portrait.Version, Service: "shop/cart"}, portrait.Batch{Load: s}, portrait.Options{Step: s.Step})
}

func head(s series.Series, n int) series.Series {
	return series.Series{Start: s.Start, Step: s.Step, Values: s.Values[:n]}
}

// wellFormed checks what every consumer of a tide depends on.
func wellFormed(t interface{ Fatalf(string, ...any) }, d Tide, steps int) {
	if len(d.Paths) == 0 {
		if d.Trusted || d.Note == "" || d.Model != ModelNone {
			t.Fatalf("an empty tide with model %q, trusted %v, note %q", d.Model, d.Trusted, d.Note)
		}
		return
	}
	if len(d.Paths) != len(d.Quantiles) {
		t.Fatalf("%d paths of %d quantiles", len(d.Paths), len(d.Quantiles))
	}
	for i, p := range d.Paths {
		if len(p) != steps {
			t.Fatalf("path %d has %d steps, want %d", i, len(p), steps)
		}
		for j, v := range p {
			if !(v >= 0) || math.IsInf(v, 0) {
				t.Fatalf("quantile %v at step %d is %v", d.Quantiles[i], j, v)
			}
			if i > 0 && v < d.Paths[i-1][j] {
				t.Fatalf("step %d: quantile %v is %v, below %v of quantile %v", j, d.Quantiles[i], v, d.Paths[i-1][j], d.Quantiles[i-1])
			}
		}
	}
}

// Whatever comes after t changes nothing up to t: not a byte of the portrait, not a bit of the tide.
func TestLookAhead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom([]time.Duration{15 * time.Minute, time.Hour}).Draw(t, "step")
		day := int(24 * time.Hour / step)
		n := rapid.IntRange(1, 10).Draw(t, "days") * day
		s := tides(rapid.Uint64().Draw(t, "seed"), step, n)
		other := head(s, n)
		other.Values = append([]float64(nil), s.Values...)
		at := rapid.IntRange(0, n-1).Draw(t, "t")
		for i := at; i < n; i++ {
			other.Values[i] = rapid.SampledFrom([]float64{0, nan, 1e6, 77}).Draw(t, "after")
			if i > at+3 {
				other.Values[i] = other.Values[at]
			}
		}
		made := func(s series.Series) string {
			var log strings.Builder
			var p portrait.Portrait
			now := s.Time(at)
			for from := 0; from < at; from += day {
				to := min(from+day, at)
				p = portrait.Fold(p, portrait.Batch{Load: series.Series{Start: s.Time(from), Step: step, Values: s.Values[from:to]}}, portrait.Options{Step: step})
			}
			// The array of the values holds more than the past, as a trace does: what lies at or after now must not be read.
			tide := Project(p, now, Options{Horizon: 6 * time.Hour})
			b, err := portrait.Marshal(p)
			fmt.Fprintf(&log, "%x %v %s %v %s", b, err, tide.Model, tide.Trusted, tide.Note)
			for _, path := range tide.Paths {
				for _, v := range path {
					fmt.Fprintf(&log, " %x", math.Float64bits(v))
				}
			}
			return log.String()
		}
		if made(s) != made(other) {
			t.Fatalf("values from %v on changed what was made before", s.Time(at))
		}
	})
}

func TestChain(t *testing.T) {
	const step = 5 * time.Minute
	s := tides(1, step, 20*288)
	tests := []struct {
		name    string
		n       int
		model   string
		trusted bool
		note    string
	}{
		{"two weeks", 14 * 288, ModelWeek, true, ""},
		{"eight days", 8 * 288, ModelWeek, true, ""},
		{"a week", 7 * 288, ModelDay, true, ""},
		{"two days", 2 * 288, ModelDay, true, ""},
		{"a day", 288, ModelLevel, false, "288 of 576 samples"},
		{"an hour", 12, ModelLevel, false, "12 of 576 samples"},
		{"one sample", 1, ModelLevel, false, "1 of 576 samples"},
		{"nothing", 0, ModelNone, false, "no samples yet"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := fold(head(s, tt.n))
			d := Project(p, s.Time(tt.n), Options{})
			wellFormed(t, d, 288)
			if d.Model != tt.model || d.Trusted != tt.trusted || !strings.Contains(d.Note, tt.note) || tt.note == "" && d.Note != "" {
				t.Errorf("model %q, trusted %v, note %q; want %q, %v, %q", d.Model, d.Trusted, d.Note, tt.model, tt.trusted, tt.note)
			}
			if tt.n > 0 && (d.Step != step || !d.Start.Equal(s.Time(tt.n)) || d.Service != "shop/cart" || d.Signal != portrait.Requests) {
				t.Errorf("tide from %v at %v of %s", d.Start, d.Step, d.Service)
			}
		})
	}
}

func TestChainByStep(t *testing.T) {
	for _, tt := range []struct {
		step  time.Duration
		n     int
		model string
	}{
		{time.Hour, 24 * 9, ModelWeek},
		{24 * time.Hour, 28, ModelDay}, // its season is the week
		{30 * 24 * time.Hour, 48, ModelLevel},
	} {
		d := Project(fold(tides(1, tt.step, tt.n)), series.GridTime(series.GridIndex(tides(1, tt.step, tt.n).Start, tt.step)+int64(tt.n), tt.step), Options{Steps: 30})
		wellFormed(t, d, 30)
		if d.Model != tt.model {
			t.Errorf("step %v: model %q (%s), want %q", tt.step, d.Model, d.Note, tt.model)
		}
	}
}

func TestStaleAndPoor(t *testing.T) {
	s := tides(1, 5*time.Minute, 9*288)
	p := fold(s)
	for _, tt := range []struct {
		after   time.Duration
		trusted bool
	}{{0, true}, {15 * time.Minute, true}, {16 * time.Minute, false}, {40 * time.Hour, false}} {
		now := p.End.Add(tt.after)
		d := Project(p, now, Options{})
		wellFormed(t, d, 288)
		if d.Trusted != tt.trusted || d.At(now, 0.5) != d.Paths[1][0] {
			t.Errorf("%v after the newest sample: trusted %v (%s), %v now", tt.after, d.Trusted, d.Note, d.At(now, 0.5))
		}
	}
	gappy := head(s, s.Len())
	gappy.Values = append([]float64(nil), s.Values...)
	for i := range gappy.Values {
		if i%3 > 0 {
			gappy.Values[i] = nan
		}
	}
	gappy.Values[gappy.Len()-1] = s.Values[gappy.Len()-1]
	if d := Project(fold(gappy), gappy.End(), Options{}); d.Trusted || !strings.Contains(d.Note, "more than half of the last week is missing") {
		t.Errorf("two thirds missing: trusted %v, note %q", d.Trusted, d.Note)
	}
}

// Zeros all of a sudden are no ebb: the tide stays that of a normal day.
func TestOutageLeavesTheTideStanding(t *testing.T) {
	s := tides(4, 5*time.Minute, 10*288+100)
	down := head(s, s.Len())
	down.Values = append([]float64(nil), s.Values...)
	for i := 10*288 + 70; i < s.Len(); i++ {
		down.Values[i] = 0
	}
	up, out := Project(fold(s), s.End(), Options{}), Project(fold(down), s.End(), Options{})
	for j := range up.Paths[1] {
		if r := out.Paths[1][j] / up.Paths[1][j]; r < 0.6 || r > 1.7 {
			t.Fatalf("step %d: %v after an outage, %v without", j, out.Paths[1][j], up.Paths[1][j])
		}
	}
	if !out.Trusted || !strings.Contains(out.Note, "outage") {
		t.Errorf("trusted %v, note %q", out.Trusted, out.Note)
	}
}

// Whatever history holds, a tide is well formed, and nothing panics.
func TestTidesAreWellFormed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom([]time.Duration{time.Minute, 5 * time.Minute, 7 * time.Minute, time.Hour, 24 * time.Hour, 31 * 24 * time.Hour}).Draw(t, "step")
		n := rapid.IntRange(0, 1200).Draw(t, "n")
		s := tides(rapid.Uint64().Draw(t, "seed"), step, n)
		scale := rapid.SampledFrom([]float64{1, 1e-300, 1e290, 0}).Draw(t, "scale")
		for i := range s.Values {
			s.Values[i] *= scale
		}
		for range rapid.IntRange(0, 4).Draw(t, "faults") {
			bad := rapid.SampledFrom([]float64{nan, 0, -1, 1e299, 1e305, 1e-320}).Draw(t, "bad")
			from := rapid.IntRange(0, 1200).Draw(t, "from")
			for i := from; i < min(n, from+rapid.IntRange(1, 400).Draw(t, "long")); i++ {
				s.Values[i] = bad
			}
		}
		p := fold(s)
		now := s.End().Add(time.Duration(rapid.Int64Range(-1e15, 1e15).Draw(t, "late")))
		steps := rapid.IntRange(1, 3000).Draw(t, "steps")
		q := rapid.SliceOfN(rapid.Float64Range(0.001, 0.999), 1, 6).Draw(t, "quantiles")
		wellFormed(t, Project(p, now, Options{Steps: steps, Quantiles: q}), steps)
	})
}

func TestOptions(t *testing.T) {
	s := tides(1, 5*time.Minute, 3*288)
	p := fold(s)
	if d := Project(p, p.End, Options{Horizon: 90 * 24 * time.Hour, Quantiles: []float64{0.9, 2, 0.5, 0.9, 0}}); len(d.Paths[0]) != 14*288 || !cmp.Equal(d.Quantiles, []float64{0.5, 0.9}) {
		t.Errorf("%d steps of quantiles %v", len(d.Paths[0]), d.Quantiles)
	}
	if d := Project(p, p.End, Options{}); !cmp.Equal(d.Quantiles, []float64{0.1, 0.5, 0.9, 0.95, 0.99}) {
		t.Errorf("default quantiles %v", d.Quantiles)
	}
}

// On tides that repeat but for noise the band holds what it says, and the middle is about as good as knowing the tide.
func TestCoverageAndError(t *testing.T) {
	t.Parallel()
	const step, perDay = 15 * time.Minute, 96
	var sum Skill
	seasonal, ours := 0.0, 0.0
	for seed := range uint64(14) {
		known := (15 + int(seed%7)) * perDay // each weekday twice
		s := tides(seed, step, known+perDay)
		now := s.Time(known)
		d := Project(fold(head(s, known)), now, Options{})
		sum = sum.Add(Score(&d, s, now, s.End()))
		ours += score.MAE(s.Values[known:], d.Paths[1])
		seasonal += score.MAE(s.Values[known:], s.Values[known-7*perDay:known-6*perDay])
	}
	if c := sum.Coverage90(); math.Abs(c-0.9) > 0.05 {
		t.Errorf("the 0.9 quantile held %.3f of the steps", c)
	}
	if ours > 0.95*seasonal {
		t.Errorf("error %v, last week repeated %v: want clearly less", ours, seasonal)
	}
	if w := sum.WQL(); !(w > 0 && w < 0.08) {
		t.Errorf("WQL %v", w)
	}
}

func TestScore(t *testing.T) {
	start := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	d := Tide{Start: start, Step: time.Hour, Quantiles: []float64{0.5, 0.9}, Paths: [][]float64{{10, 10, 10, 10}, {20, 20, 20, 20}}}
	actual := series.Series{Start: start, Step: time.Hour, Values: []float64{10, 30, nan, 5}}
	got := Score(&d, actual, start, start.Add(3*time.Hour))
	// Losses, doubled: step 0: 0 + 0.1·10·2 = 2; step 1: 20 + 0.9·10·2 = 38.
	want := Skill{Steps: 2, Paths: 2, Loss: 40, Load: 40, Under90: 1, AbsoluteError: 20}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got.WQL() != 0.5 || got.Coverage90() != 0.5 || !math.IsNaN(Skill{}.WQL()) || !math.IsNaN(Skill{}.Coverage90()) {
		t.Errorf("WQL %v, coverage %v", got.WQL(), got.Coverage90())
	}
	twice := got.Add(got)
	if twice.WQL() != 0.5 || twice.Steps != 4 {
		t.Errorf("the sum of two: %+v", twice)
	}
}
