package portrait

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/springtide/springtide/series"
)

func TestRippleLearnsTheSpreadWithinAStep(t *testing.T) {
	const step, deviation = 5 * time.Minute, 0.2
	r := rand.New(rand.NewPCG(1, 2))
	begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	b := Batch{Load: series.New(begin, step, 288)}
	for i := range b.Load.Values {
		b.Load.Values[i] = 100
		for k := range 5 {
			at := begin.Add(time.Duration(i)*step + time.Duration(k)*time.Minute)
			b.Moments = append(b.Moments, Moment{At: at, Load: 100 * math.Exp(deviation*r.NormFloat64())})
		}
	}
	whole := Fold(Portrait{}, b, Options{})
	if got := whole.Ripple.Deviation(); math.Abs(got-deviation) > 0.01 {
		t.Errorf("deviation %.3f, the moments have %.3f", got, deviation)
	}

	// Moments whose step has not come yet wait; those of a step that is folded already are passed over.
	var parts Portrait
	cut := begin.Add(100 * step)
	early, late := b, b
	early.Load, late.Load = series.Series{Start: begin, Step: step, Values: b.Load.Values[:100]}, series.Series{Start: cut, Step: step, Values: b.Load.Values[100:]}
	parts = Fold(Fold(parts, early, Options{}), late, Options{})
	if parts.Ripple != whole.Ripple {
		t.Errorf("in parts %v, at once %v", parts.Ripple, whole.Ripple)
	}
}

func TestRippleIsCareful(t *testing.T) {
	at := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	of := func(n int, load float64) (out []Moment) {
		for i := range n {
			out = append(out, Moment{At: at.Add(time.Duration(i) * time.Second), Load: load})
		}
		return out
	}
	for _, c := range []struct {
		name    string
		moments []Moment
		mean    float64
		want    float64
	}{
		{"too few to be believed", of(rippleLeast-1, 200), 100, 0},
		{"one burst counts as a factor of e", append(of(rippleLeast-1, 100), Moment{At: at.Add(time.Minute), Load: 300}), 100, 1 / math.Sqrt(rippleLeast)},
		{"moments that history contradicts teach nothing", of(rippleLeast, 1e9), 100, 0},
		{"twice the mean, all of them", of(rippleLeast, 200), 100, 0},
		{"a hundredth of the mean, all of them", of(rippleLeast, 1), 100, 0},
		{"no load says nothing of its ripple", of(rippleLeast, 0), 100, 0},
		{"a gap says nothing", of(rippleLeast, 200), math.NaN(), 0},
		{"no number says nothing", of(rippleLeast, math.NaN()), 100, 0},
		{"nor infinity", of(rippleLeast, math.Inf(1)), 100, 0},
		{"half of them a third more, the others a third less", append(of(rippleLeast/2, 100*4/3.), of(rippleLeast/2, 100*3/4.)...), 100, math.Log(4 / 3.)},
	} {
		var r Ripple
		if left := r.learn(c.moments, at, time.Hour, c.mean); len(left) > 0 {
			t.Errorf("%s: %d are left", c.name, len(left))
		}
		if got := r.Deviation(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
