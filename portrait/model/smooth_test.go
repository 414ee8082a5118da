package model

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// By hand, with a day of two steps and no week: the mean 10 and the days ±2 are the first components. Of the value 13 at phase 0 1 is new:
// level 10.5, day 2.25, and 0.25 of the error is left.
func TestSmootherByHand(t *testing.T) {
	s := newSmoother(smoother{}, Cycle{Short: 2}, []float64{12, 8, 12, 8})
	s.run(Smoothing{Level: 0.5, Day: 0.25, Error: 0.5}, []float64{13})
	// One step ahead, phase 1: 10.5 - 2 + 0.5·0.25. Two ahead, phase 0: 10.5 + 2.25 + 0.25·0.25.
	for i, want := range []float64{8.625, 12.8125} {
		if got := s.at(1, 1+i, 1, 0); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d steps ahead: %v, want %v", i+1, got, want)
		}
	}
	s.push(nan)
	if s.level[1] != 10.5 || s.rest[1] != 0.125 || s.dayAt(1) != -2 {
		t.Errorf("a gap moved level %v and day %v, or left %v of the error", s.level[1], s.dayAt(1), s.rest[1])
	}
}

// A daily and a weekly wave with noise: what was tuned misses little more than the noise, and less than the last day's phase does.
func TestTuneFindsTheWeek(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	c := CycleOf(time.Hour)
	wave := func(i int) float64 {
		return math.Sin(2*math.Pi*float64(i)/24) + 0.8*math.Sin(2*math.Pi*float64(i)/168)
	}
	x := make([]float64, 8*168)
	for i := range x {
		x[i] = wave(i) + 0.05*r.NormFloat64()
	}
	p := tune(c, Smoothing{}, x, 1)
	if p != tune(c, Smoothing{}, x, 1) {
		t.Error("the same values gave other parameters")
	}
	s := newSmoother(smoother{}, c, x)
	s.run(p, x)
	miss := 0.0
	for h := range 48 {
		miss += math.Abs(s.at(len(x), len(x)+h, periods(h+1, c.Short), periods(h+1, c.Long))-wave(len(x)+h)) / 48
	}
	if miss > 0.05 {
		t.Errorf("misses the wave by %v, more than the noise of 0.05", miss)
	}
}

func TestSmoothingThatExplodesIsNotUsable(t *testing.T) {
	for _, p := range []Smoothing{{}, {Level: 0.5, Day: 0.3, Week: 0.2}, {Level: -0.1, Day: 0.3}, {Level: 0.1, Error: 1}} {
		if p.usable() {
			t.Errorf("%+v is usable", p)
		}
	}
}

// Parameters are judged by their forecasts of the past, whatever was tried before them; none is judged to the end once
// it is worse than the best.
func TestExamIsOfForecasts(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	c := CycleOf(time.Hour)
	x := make([]float64, 4*168)
	for i := range x {
		if x[i] = math.Sin(2*math.Pi*float64(i)/24) + 0.3*r.NormFloat64(); i%50 == 7 {
			x[i] = nan
		}
	}
	e, used := newExam(c, x), newSmoother(smoother{}, c, x)
	for _, p := range []Smoothing{{Level: 0.1, Day: 0.2, Week: 0.1, Error: 0.5}, {Level: 0.3, Day: 0.1, Error: 0.9}, {Level: 0.01, Week: 0.3}} {
		fresh := newSmoother(smoother{}, c, x)
		fresh.run(p, x)
		sum, n := 0.0, 0.0
		for from := e.from; from < len(x); from += e.stride {
			for _, h := range e.ahead {
				if i := from - 1 + h; i < len(x) && !math.IsNaN(x[i]) {
					sum += math.Abs(x[i] - fresh.at(from, i, periods(h, c.Short), periods(h, c.Long)))
					n++
				}
			}
		}
		want := sum / n
		if got := e.loss(used, p, math.Inf(1)); math.Abs(got-want) > 1e-9 {
			t.Errorf("%+v misses %v, want %v of %v forecasts", p, got, want, n)
		}
		if got := e.loss(used, p, 0.9*want); !math.IsInf(got, 1) {
			t.Errorf("%+v misses %v, which is no better than %v", p, got, 0.9*want)
		}
	}
}

// Values that come one by one are taken in as those that come at once.
func TestSmootherGoesOn(t *testing.T) {
	c := Cycle{Short: 4, Long: 8}
	x := []float64{1, 2, 3, 4, 2, nan, 4, 5, 3, 4, 5, 6, 4, 5, 6, 7, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6}
	p := Smoothing{Level: 0.3, Day: 0.2, Week: 0.1, Error: 0.5}
	whole, pieces := newSmoother(smoother{}, c, x[:24]), newSmoother(smoother{}, c, x[:24])
	whole.run(p, x)
	pieces.run(p, x[:10])
	for _, v := range x[10:] {
		pieces.push(v)
	}
	for i := range 8 {
		k, kw := periods(i+1, c.Short), periods(i+1, c.Long)
		if a, b := whole.at(len(x), len(x)+i, k, kw), pieces.at(len(x), len(x)+i, k, kw); a != b {
			t.Errorf("%d steps ahead: %v at once, %v one by one", i+1, a, b)
		}
	}
}
