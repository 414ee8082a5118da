package capacity

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// E. Wilson's intervals as published for 95 % (two-sided): R. Newcombe, "Two-sided confidence intervals for the single
// proportion", Statistics in Medicine 17, 1998, table I, method 3.
func TestWilson(t *testing.T) {
	const z = 1.959964
	for _, tt := range []struct{ held, n, low, high float64 }{
		{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718},
	} {
		low, high := wilson(tt.held, tt.n, -z), wilson(tt.held, tt.n, z)
		if math.Abs(low-tt.low) > 6e-5 || math.Abs(high-tt.high) > 6e-5 {
			t.Errorf("%v of %v: %.4f to %.4f, want %v to %v", tt.held, tt.n, low, high, tt.low, tt.high)
		}
	}
}

// The fit is the one that the max-min formula gives (R. Barlow and others, Statistical Inference under Order
// Restrictions, 1972): the share at i is the least over a ≤ i of the greatest over b ≥ i of the mean from a to b.
// None of its edges rises with load, and the share lies between them.
func TestMoreLoadNeverHoldsInMoreMinutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Level
		for k := range rapid.IntRange(1, 12).Draw(t, "bins") {
			b := bin{Key: 3 * k}
			for c := range b.N {
				b.N[c] = float64(rapid.IntRange(0, 50).Draw(t, "n"))
			}
			b.N[0]++
			l.Bins = append(l.Bins, b)
		}
		curve := l.Curve()
		for i, p := range curve {
			want := math.Inf(1)
			for a := 0; a <= i; a++ {
				top := 0.0
				for b := i; b < len(l.Bins); b++ {
					var pool bin
					for k := a; k <= b; k++ {
						pool.add(&l.Bins[k])
					}
					top = max(top, pool.held()/pool.all())
				}
				want = min(want, top)
			}
			if math.Abs(p.Share-want) > 1e-12 {
				t.Fatalf("bin %d: share %v, want %v", i, p.Share, want)
			}
			if !(p.Low <= p.Share && p.Share <= p.High+1e-12 && p.Low >= 0 && p.High <= 1) {
				t.Fatalf("bin %d: %+v", i, p)
			}
			if q := curve[max(i-1, 0)]; p.Share > q.Share || p.Low > q.Low || p.High > q.High {
				t.Fatalf("bin %d rises: %+v after %+v", i, p, q)
			}
		}
	})
}

// The load that is said to hold does: of services whose share of minutes falls over load as is known, at most one in
// ten has a lower edge at the objective where the truth is below it. An edge is of 95 %, and the best of many pools
// is taken.
func TestTheBandIsHonest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const runs, objective = 400, 0.99
	above, below := 0, 0
	for range runs {
		knee, width := keyOf(100)-4+r.IntN(8), 1+6*r.Float64()
		var l Level
		truth := 0.0
		for key := keyOf(100) - 20; key < keyOf(100)+10; key++ {
			broken := 1 / (1 + math.Exp(-(float64(key)-float64(knee))/width*2))
			if 1-broken >= objective {
				truth = loadOf(key + 1)
			}
			b := bin{Key: key}
			for range 100 {
				if r.Float64() < broken {
					b.N[heldCells]++
				} else {
					b.N[heldCells-1]++
				}
			}
			l.Bins = append(l.Bins, b)
		}
		shown := 0.0
		for _, p := range l.Curve() {
			if p.Low >= objective {
				shown = p.Load
			}
		}
		if shown > truth {
			above++
		}
		if _, high := l.band(objective); high < truth/ratio {
			below++
		}
	}
	if above > runs/10 || below > runs/20 {
		t.Errorf("of %d services %d are shown to hold where they do not, %d to break where they hold", runs, above, below)
	}
}

// Bins stay in the order of load, as many minutes as came, and at most so many.
func TestBinsStayInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var bins []bin
		loads := rapid.SliceOfN(rapid.Float64Range(0.5, 5), 60, 300).Draw(t, "loads")
		for _, load := range loads {
			bins = count(bins, load, 0)
		}
		n := 0.0
		for i := range bins {
			n += bins[i].all()
			if i > 0 && bins[i].Key <= bins[i-1].Key {
				t.Fatalf("bin %d follows bin %d", bins[i].Key, bins[i-1].Key)
			}
		}
		if n != float64(len(loads)) || len(bins) > mostBins {
			t.Fatalf("%v of %d minutes in %d bins", n, len(loads), len(bins))
		}
		if top := slices.Max(loads); bins[len(bins)-1].Key != keyOf(top) {
			t.Fatalf("the largest load %v is in bin %d", top, bins[len(bins)-1].Key)
		}
	})
}

// Whatever comes in, what comes out is a number in its bounds: no more than 1.1 times the load that was seen, unless it
// is on its way down to that.
func TestWhateverComesIn(t *testing.T) {
	odd := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e-300, 1e300, math.MaxFloat64})
	number := rapid.OneOf(odd, rapid.Float64Range(0.5, 2), rapid.Float64Range(0.9, 1.1))
	rapid.Check(t, func(t *rapid.T) {
		l := Level{Name: "errors"}
		at := monday
		terms := Terms{Limit: 1, Objective: rapid.SampledFrom([]float64{0.9, 0.99, 0.9995}).Draw(t, "objective"),
			Rule: rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "rule")}
		for range rapid.IntRange(1, 60).Draw(t, "stretches") {
			m := Minute{Load: number.Draw(t, "load"), Value: number.Draw(t, "value"), CPU: number.Draw(t, "cpu"),
				Apart: Apart(rapid.IntRange(0, 200).Draw(t, "apart"))}
			if m.Apart > 31 {
				m.Apart = 0
			}
			for range rapid.SampledFrom([]int{1, 3, 60, 600}).Draw(t, "n") {
				at = at.Add(time.Minute)
				m.At = at
				before := l.InForce
				l.Observe(m, terms)
				if l.InForce > before && l.InForce > 1.1*l.seen() && l.InForce > terms.Rule && !l.spell.on() && before > 0 {
					t.Fatalf("%v in force, %v seen", l.InForce, l.seen())
				}
			}
			e := l.Capacity(terms.Objective)
			if bad := sane(e); bad != "" {
				t.Fatalf("%s: %+v", bad, e)
			}
			l.NotByLoad()
			if len(l.Bins) > mostBins {
				t.Fatalf("%d bins", len(l.Bins))
			}
			b, _ := Set{l}.MarshalBinary()
			var s Set
			if err := s.UnmarshalBinary(b); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The capacity of a settled service rises by no more than a tenth in any day.
func TestRisesSlowly(t *testing.T) {
	w := newWorld(1, queue{1, 0.010}, 0.5, 0.99)
	var hours []float64
	for range 20 * 24 {
		w.days(1.0 / 24)
		hours = append(hours, max(w.level.InForce, w.terms.Rule))
		if n := len(hours); n > 24 && hours[n-1] > 1.1001*hours[n-25] {
			t.Fatalf("hour %d: %v, a day before %v", n, hours[n-1], hours[n-25])
		}
	}
	if last := hours[len(hours)-1]; last < 1.3*hours[0] {
		t.Errorf("it rose from %v to %v only", hours[0], last)
	}
}
