package portrait

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/series"
)

// tideOf is a week of a daily tide in steps of five minutes, at each of which f says what is seen of it.
func tideOf(days int, f func(i int, v float64) float64) series.Series {
	s := series.New(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), 5*time.Minute, days*288)
	for i := range s.Values {
		s.Values[i] = f(i, 100*(1.2+math.Sin(2*math.Pi*float64(i)/288)))
	}
	return s
}

func TestFollow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x := tideOf(7, func(_ int, v float64) float64 { return v * (1 + 0.05*r.NormFloat64()) })
	for _, c := range []struct {
		name    string
		y       series.Series
		ratio   float64
		least   float64 // of the fit
		refused string
	}{
		{"follows exactly", tideOf(7, func(i int, _ float64) float64 { return 0.4 * x.Values[i] }), 0.4, 0.999, ""},
		{"follows with noise", tideOf(7, func(_ int, v float64) float64 { return 0.4 * v * (1 + 0.1*r.NormFloat64()) }), 0.4, 0.9, ""},
		{"a tenth of the hours is broken", tideOf(7, func(i int, v float64) float64 {
			if i/12%10 == 0 {
				return 40 * v
			}
			return 0.4 * v
		}), 0.4, 0, "the other explains"},
		{"a few hours are broken", tideOf(7, func(i int, v float64) float64 {
			if i/12 == 50 {
				return 4 * v
			}
			return 0.4 * v
		}), 0.4, 0.85, ""},
		{"ten minutes later", tideOf(7, func(i int, _ float64) float64 { return 0.4 * 100 * (1.2 + math.Sin(2*math.Pi*float64(i-2)/288)) }), 0.4, 0.9, ""},
		{"a tide of its own", tideOf(7, func(i int, _ float64) float64 { return 40 * (1.2 + math.Sin(2*math.Pi*float64(i)/288+2)) }), 0, 0, "the other explains"},
		{"flat", tideOf(7, func(int, float64) float64 { return 40 * (1 + 0.01*r.NormFloat64()) }), 0, 0, "the other explains 0 %"},
		{"idle", tideOf(7, func(int, float64) float64 { return 0 }), 0, 0, "it is idle"},
		{"two days", tideOf(2, func(_ int, v float64) float64 { return v }), 0, 0, "48 hours of history in common"},
		{"gaps", tideOf(7, func(i int, v float64) float64 {
			if i%288 > 100 {
				return math.NaN()
			}
			return v
		}), 0, 0, "56 hours of history in common"},
		{"nothing", series.Series{}, 0, 0, "0 hours"},
	} {
		got := Follow(x, c.y)
		if (c.refused == "") != (got.Refused == "") || !strings.HasPrefix(got.Refused, c.refused) {
			t.Errorf("%s: refused %q, want %q…", c.name, got.Refused, c.refused)
		}
		if c.ratio > 0 && math.Abs(got.Ratio/c.ratio-1) > 0.02 || got.Fit < c.least {
			t.Errorf("%s: ratio %.3f with a fit of %.2f, want %.3f and at least %.2f", c.name, got.Ratio, got.Fit, c.ratio, c.least)
		}
	}
}
