package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Ranks (n+1)·q of n samples: of 9 the 0.9 quantile is the 9th, the median the 5th, and what lies outside of the ranks is the end.
func TestQuantileOf(t *testing.T) {
	nine := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}
	for _, tt := range []struct {
		of   []float64
		q    float64
		want float64
	}{
		{nine, 0.5, 5}, {nine, 0.9, 9}, {nine, 0.1, 1}, {nine, 0.25, 2.5}, {nine, 0.99, 9}, {nine, 0.01, 1}, {[]float64{7}, 0.9, 7}, {[]float64{2, 4}, 0.5, 3},
	} {
		if got := quantileOf(tt.of, tt.q); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("quantile %g of %v is %g, want %g", tt.q, tt.of, got, tt.want)
		}
	}
	if !math.IsNaN(quantileOf(nil, 0.5)) {
		t.Error("of no values there is no quantile")
	}
}

func TestSpreadOfWindows(t *testing.T) {
	h := newHistory(History{}, 0, 100, 0)
	for i := range 40 {
		y := float64(i)
		if i == 38 {
			y = math.NaN()
		}
		h.push(y, y)
	}
	var w [windowsOf][]float64
	h.spread(40, 8, &w)
	if want := []float64{36, 37, 39}; !slices.Equal(w[0], want) {
		t.Errorf("the last half of a period is %v, want %v", w[0], want)
	}
	if len(w[1]) != 39 || w[1][0] != 0 {
		t.Errorf("the last seven periods are %v", w[1])
	}
	if h.spread(3, 8, &w); len(w[0]) != 3 || w[0][2] != 2 {
		t.Errorf("what came after the origin was looked at: %v", w)
	}
}

func TestMixturesAreShares(t *testing.T) {
	if grid[0] != (mixture{}) {
		t.Fatalf("the grid begins with %v, want the blend alone", grid[0])
	}
	rapid.Check(t, func(t *rapid.T) {
		var s Spread
		n := rapid.IntRange(0, 40).Draw(t, "n")
		number := rapid.OneOf(rapid.Float64Range(0, 100), rapid.Just(0.0), rapid.Just(math.NaN()))
		for range n {
			var blend [len(spreadAt)]float64
			var w windowCuts
			for c := range blend {
				blend[c] = rapid.Float64Range(0, 100).Draw(t, "blend")
				for e := range w[c] {
					w[c][e] = number.Draw(t, "window")
				}
			}
			s.learn(rapid.Float64Range(0, 1e6).Draw(t, "y"), rapid.Float64Range(0.1, 10).Draw(t, "level"), spreadMemory, &blend, &w)
		}
		for _, m := range s.mixtures([]float64{0.01, 0.5, 0.7, 0.9, 0.999}) {
			sum := 0.0
			for _, w := range m {
				if !(w >= 0) {
					t.Fatalf("weight %g", w)
				}
				sum += w
			}
			if sum > 1+1e-9 || n < firstWeighing && sum != 0 {
				t.Fatalf("after %d values the windows have %g of the say", n, sum)
			}
		}
	})
}

// A mixture of nothing is nothing, and windows without values say nothing.
func TestMixtureOf(t *testing.T) {
	none := [windowsOf]float64{math.NaN(), math.NaN()}
	if got := (mixture{0.5, 0.5}).of(3, &none); got != 3 {
		t.Errorf("without windows the blend's 3 became %g", got)
	}
	if got := (mixture{0, 0.5}).of(math.Inf(1), &[windowsOf]float64{1, 2}); !math.IsInf(got, 1) {
		t.Errorf("infinity mixed to %g", got)
	}
	if got := (mixture{0, 1}).of(math.Inf(1), &[windowsOf]float64{1, 2}); got != 2 {
		t.Errorf("a window alone says %g", got)
	}
	if got := (mixture{0.5, 0.25}).of(8, &[windowsOf]float64{4, 12}); got != 0.25*8+0.5*4+0.25*12 {
		t.Errorf("mixed to %g", got)
	}
}

// Load that has a level and a noise without a clock moves to twice the level for good: two days later the 0.9 path must lie near what the
// noise asks for, not where the misses of the shift would have it, and the blend alone would.
func TestPathsForgetAShift(t *testing.T) {
	s := NewState(15 * time.Minute)
	l := s.Open(nil, 0, nil, 16*96)
	r := rand.New(rand.NewPCG(3, 4))
	level := 100.0
	for i := range 15 * 96 {
		if i == 12*96 {
			level = 220
		}
		l.Observe(level * math.Exp(0.05*r.NormFloat64()))
	}
	mixed := l.Project(1, 48, []float64{0.5, 0.9})[1][47]
	for k := range l.Blocks {
		l.Blocks[k].Band.Spread = Spread{}
	}
	alone := l.Project(1, 48, []float64{0.5, 0.9})[1][47]
	ideal := 220 * math.Exp(0.05*1.2816)
	if !(mixed > 0.95*ideal && mixed < 1.25*ideal) {
		t.Errorf("0.9 path at %.0f, the noise alone asks for %.0f", mixed, ideal)
	}
	if !(alone > 1.2*mixed) {
		t.Errorf("the blend alone is at %.0f, mixed %.0f: nothing was won", alone, mixed)
	}
}

// An outage of some hours a week before the origin must not lift the forecast by what was missing then.
func TestNoCorrectionByAPastOutage(t *testing.T) {
	s := NewState(15 * time.Minute)
	l := s.Open(nil, 0, nil, 12*96)
	r := rand.New(rand.NewPCG(5, 6))
	load := func(i int) float64 {
		return 100 + 40*math.Sin(2*math.Pi*float64(i)/96) + r.NormFloat64()
	}
	const n = 11 * 96
	for i := range n {
		y := load(i)
		if back := n - i; back > 7*96-8 && back < 7*96+24 {
			y *= 0.6 // not so deep that the values are set aside
		}
		l.Observe(y)
	}
	o := l.from(n, 12)
	for i, d := range o.long[:2] { // the third is a whole day, of which the outage is a part
		if d := d.nearer; math.Abs(d) > 0.1 {
			t.Errorf("window %d stands %.2f above that of a week ago, which was an outage's", i, d)
		}
	}
}

// A load at or under half of its usual one is set aside a day later, unless a week earlier it was so too or it stayed
// so.
func TestReviewSetsOutagesAside(t *testing.T) {
	const day, days = 96, 18
	load := func(i int) float64 { return 100 + 40*math.Sin(2*math.Pi*float64(i)/day) }
	between := func(i int, from, to float64) bool { at := float64(i) / day; return at >= from && at < to }
	for _, c := range []struct {
		name string
		low  func(i int) bool
		gaps int
	}{
		{"half a day", func(i int) bool { return between(i, 13.2, 13.7) }, 48},
		{"two days are no outage", func(i int) bool { return between(i, 12, 14) }, 0},
		{"a habit of each week from the second time on", func(i int) bool { return between(i%(7*day), 2.2, 2.7) }, 0},
		{"a new level", func(i int) bool { return between(i, 13.2, days) }, 0},
		{"the last day cannot be judged yet", func(i int) bool { return between(i, 17.2, 17.7) }, 0},
	} {
		s := NewState(15 * time.Minute)
		l := s.Open(nil, 0, nil, days*day)
		for i := range days * day {
			y := load(i)
			if c.low(i) {
				y *= 0.3
			}
			l.Observe(y)
		}
		gaps := 0
		for _, y := range l.hist.raw[8*day:] {
			if math.IsNaN(y) {
				gaps++
			}
		}
		if math.Abs(float64(gaps-c.gaps)) > 2 {
			t.Errorf("%s: %d values are set aside, want %d", c.name, gaps, c.gaps)
		}
		if c.gaps > 0 {
			if p := l.Week.at(13*day+day*2/5, l.Cycle); !(p > math.Log(0.5)) { // the profile has forgotten it too
				t.Errorf("%s: the weekly profile stands at %.2f", c.name, p)
			}
		}
	}
}

// A series that knows nothing most of the time is most likely at nothing, not at a fraction of the least that it knows.
func TestMedianOfASparseSeriesIsNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	s := NewState(15 * time.Minute)
	l := s.Open(nil, 0, nil, 12*96)
	for range 12 * 96 {
		y := 0.0
		if r.Float64() < 0.3 {
			y = 1 + float64(r.IntN(3))
		}
		l.Observe(y)
	}
	paths := l.Project(1, 48, []float64{0.5, 0.9})
	for j := range paths[0] {
		if paths[0][j] != 0 || paths[1][j] < 0.5 {
			t.Fatalf("step %d: median %v, 0.9 path %v", j, paths[0][j], paths[1][j])
		}
	}
}

// The outermost paths may pass the most that was seen by a range and a half, the others by half of one.
func TestTopOfThePaths(t *testing.T) {
	l := learned(15*time.Minute, tide(14))
	b := l.limits()
	if got, want := b.top(0.5), b.most; got != want {
		t.Errorf("the median's top is %v, want %v", got, want)
	}
	if got, want := b.top(0.99), b.most+b.reach; math.Abs(got-want) > 1e-6*want {
		t.Errorf("the 0.99 quantile's top is %v, want %v", got, want)
	}
	if mid := b.top(0.95); !(mid > b.most && mid < b.most+b.reach) {
		t.Errorf("the 0.95 quantile's top is %v", mid)
	}
}
