package portrait

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/springtide/springtide/series"
)

// Questions about a shape use quarters of an hour where a finer step would show no more.
const fiveMinutes, quarter = 5 * time.Minute, 15 * time.Minute

// made folds a load that is a function of the time in days since a Monday, with noise of a given size.
func made(days float64, step time.Duration, noise float64, f func(d float64) float64) Portrait {
	r := rand.New(rand.NewPCG(3, 11))
	s := series.New(monday, step, int(days*float64(day)/float64(step)))
	for i := range s.Values {
		s.Values[i] = max(0, 100*f(float64(i)*float64(step)/float64(day))*math.Exp(noise*r.NormFloat64()))
	}
	return Fold(Portrait{}, Batch{Load: s}, Options{Step: step})
}

func wave(d, periodsADay, size float64) float64 { return 1 + size*math.Sin(2*math.Pi*d*periodsADay) }

// spike is 1 in the first share of each period of so many hours.
func spike(d, hours, share float64) float64 {
	if math.Mod(d*24, hours) < share*hours {
		return 1
	}
	return 0
}

func weekend(d float64) bool { return math.Mod(d, 7) >= 5 }

func TestPeriodsFoundFromTheData(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		days  float64
		step  time.Duration
		noise float64
		f     func(d float64) float64
		want  []time.Duration
	}{
		{"a day", 14, fiveMinutes, 0.05, func(d float64) float64 { return wave(d, 1, 0.5) }, []time.Duration{day}},
		{"a day of two days and a quarter, at the end of which a look is taken at the latest", 2.25, fiveMinutes, 0.05, func(d float64) float64 { return wave(d, 1, 0.5) }, []time.Duration{day}},
		{"a day of hours", 14, time.Hour, 0.1, func(d float64) float64 { return wave(d, 1, 0.5) }, []time.Duration{day}},
		{"half days alone", 14, quarter, 0.05, func(d float64) float64 { return wave(d, 2, 0.5) }, []time.Duration{12 * time.Hour}},
		{"thirds of a day", 14, quarter, 0.05, func(d float64) float64 { return wave(d, 3, 0.5) }, []time.Duration{8 * time.Hour}},
		{"half days and days", 14, quarter, 0.05, func(d float64) float64 { return wave(d, 1, 0.4) + 0.4*math.Sin(4*math.Pi*d) },
			[]time.Duration{12 * time.Hour, day}},
		{"a batch each five hours", 14, fiveMinutes, 0.05, func(d float64) float64 { return 1 + spike(d, 5, 0.2) }, []time.Duration{5 * time.Hour}},
		{"a spike a day", 14, fiveMinutes, 0.05, func(d float64) float64 { return 1 + 5*spike(d, 24, 1.0/24) }, []time.Duration{day}},
		{"a day and a week", 21, quarter, 0.05, func(d float64) float64 {
			if weekend(d) {
				return 0.5 * wave(d, 1, 0.5)
			}
			return wave(d, 1, 0.5)
		}, []time.Duration{day, week}},
		{"noise", 14, quarter, 0.3, func(float64) float64 { return 1 }, nil},
		{"a constant", 14, quarter, 0, func(float64) float64 { return 1 }, nil},
		{"nothing", 14, quarter, 0, func(float64) float64 { return 0 }, nil},
		{"a line", 14, quarter, 0.02, func(d float64) float64 { return 1 + d/10 }, nil},
		{"a ripple that moves no replica", 14, quarter, 0.001, func(d float64) float64 { return wave(d, 1, 0.005) }, nil},
		{"too young", 1, quarter, 0.05, func(d float64) float64 { return wave(d, 1, 0.5) }, nil},
		{"a step of a day", 40, day, 0.05, func(d float64) float64 { return wave(d, 1.0/7, 0.5) }, nil},
		{"a load test and an outage", 14, quarter, 0.05, func(d float64) float64 {
			switch {
			case d >= 8.5 && d < 8.6:
				return 5 * wave(d, 1, 0.5)
			case d >= 10.2 && d < 10.3:
				return 0
			}
			return wave(d, 1, 0.5)
		}, []time.Duration{day}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := made(tt.days, tt.step, tt.noise, tt.f)
			var got []time.Duration
			for _, x := range p.Shape.Periods {
				got = append(got, x.Length)
				if !(x.Strength > 0) || x.Strength > 1 || !(x.Swing > 0) {
					t.Errorf("period %v has strength %v and swing %v", x.Length, x.Strength, x.Swing)
				}
			}
			if len(got) != len(tt.want) {
				t.Fatalf("found %v, want %v", p.Shape.Periods, tt.want)
			}
			for i, w := range tt.want {
				if (got[i] - w).Abs() > w/50 {
					t.Errorf("found %v, want %v", got, tt.want)
				}
			}
		})
	}
}

// The strength of a season in noise is the share of the variance that it has: half, where a wave of variance 0.5 a² meets noise of as much.
func TestStrengthIsAShareOfTheVariance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := series.New(monday, fiveMinutes, 10*288)
	for i := range s.Values {
		s.Values[i] = 100 + 10*math.Sin(2*math.Pi*float64(i)/288) + math.Sqrt(50)*r.NormFloat64()
	}
	p := Fold(Portrait{}, Batch{Load: s}, Options{})
	// Nine other days leave a ninth of the noise in the mean: 1 - (0.5·10/9)/1 = 0.44.
	if len(p.Shape.Periods) != 1 || math.Abs(p.Shape.Periods[0].Strength-0.44) > 0.04 {
		t.Errorf("found %v, want one season of strength 0.44", p.Shape.Periods)
	}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	leaps := rand.New(rand.NewPCG(5, 5))
	walk, at := rand.New(rand.NewPCG(6, 6)), 0.0
	tests := []struct {
		want  Class
		days  float64
		noise float64
		f     func(d float64) float64
	}{
		{New, 1, 0.05, func(d float64) float64 { return wave(d, 1, 0.5) }},
		{Steady, 10, 0.03, func(float64) float64 { return 1 }},
		{Steady, 10, 0, func(float64) float64 { return 0 }},
		{Tidal, 10, 0.05, func(d float64) float64 { return wave(d, 1, 0.5) }},
		{Tidal, 10, 0.05, func(d float64) float64 { return 1 + 5*spike(d, 24, 1.0/24) }},
		{Bursty, 10, 0.05, func(float64) float64 {
			if leaps.Float64() < 0.02 {
				return 4
			}
			return 1
		}},
		{Unpredictable, 10, 0.02, func(float64) float64 {
			at = 0.998*at + 0.03*walk.NormFloat64()
			return math.Exp(at)
		}},
	}
	seen := map[Class]bool{}
	for _, tt := range tests {
		seen[tt.want] = true
		if s := made(tt.days, fiveMinutes, tt.noise, tt.f).Shape; s.Class != tt.want {
			t.Errorf("class %s, want %s: burst %.2f, spread %.2f, peak %.2f, periods %v", s.Class, tt.want, s.Burst, s.Spread, s.PeakToMean, s.Periods)
		}
	}
	for _, c := range Classes() {
		if !seen[c] {
			t.Errorf("class %s is never tried", c)
		}
	}
}

func TestShift(t *testing.T) {
	t.Parallel()
	tide := func(d float64) float64 {
		if weekend(d) {
			return 0.5 * wave(d, 1, 0.5)
		}
		return wave(d, 1, 0.5)
	}
	tests := []struct {
		name  string
		days  float64
		f     func(d float64) float64
		at    float64 // days after the start; 0 for none
		ratio float64
	}{
		{"a tide with weekends", 21, tide, 0, 0},
		{"a young tide with a weekend", 9, tide, 0, 0},
		{"noise", 21, func(float64) float64 { return 1 }, 0, 0},
		{"a rise by a half", 21, func(d float64) float64 {
			if d >= 18 {
				return 1.5 * tide(d)
			}
			return tide(d)
		}, 18, 1.5},
		{"a fall by a third, a day ago", 21, func(d float64) float64 {
			if d >= 19.5 {
				return 0.67 * tide(d)
			}
			return tide(d)
		}, 19.5, 0.67},
		{"a rise while young", 12, func(d float64) float64 {
			if d >= 6 {
				return 2 * wave(d, 1, 0.5)
			}
			return wave(d, 1, 0.5)
		}, 6, 2},
		{"an outage of three hours", 21, func(d float64) float64 {
			if d >= 18 && d < 18.125 {
				return 0
			}
			return tide(d)
		}, 0, 0},
		{"one festival day", 21, func(d float64) float64 {
			if d >= 17 && d < 18 {
				return 2 * tide(d)
			}
			return tide(d)
		}, 0, 0},
		{"a change too small for a word", 21, func(d float64) float64 {
			if d >= 18 {
				return 1.1 * tide(d)
			}
			return tide(d)
		}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := made(tt.days, quarter, 0.05, tt.f)
			s := p.Shape.Shift
			if tt.at == 0 {
				if !s.At.IsZero() || p.Quality.Note != "" {
					t.Errorf("found %v (score %.1f), note %q; want nothing", s, s.Score, p.Quality.Note)
				}
				return
			}
			if off := s.At.Sub(monday.Add(time.Duration(tt.at * float64(day)))); off.Abs() > shiftBlock || math.Abs(s.Ratio/tt.ratio-1) > 0.05 {
				t.Errorf("found %v, %v off, ratio %.2f; want %.2f", s.At, off, s.Ratio, tt.ratio)
			}
			if p.End.Sub(s.At) < shiftDoubt && p.Quality.Note != s.String() {
				t.Errorf("note %q, want %q", p.Quality.Note, s.String())
			}
		})
	}
}

// A change is reported while a day of the old level is in sight, dated where it was, and then no more.
func TestShiftIsForgotten(t *testing.T) {
	t.Parallel()
	const perDay = int(day / quarter)
	s := series.New(monday, quarter, 40*perDay)
	for i := range s.Values {
		d := float64(i) / float64(perDay)
		s.Values[i] = 100 * wave(d, 1, 0.5)
		if d >= 15 {
			s.Values[i] *= 2
		}
	}
	var p Portrait
	for d := 1; d <= 40; d++ {
		p = Fold(p, Batch{Load: part(s, 0, d*perDay)}, Options{})
		found := !p.Shape.Shift.At.IsZero()
		if want := d >= 16 && d <= 24; found != want {
			t.Fatalf("day %d: found %v, want %v (%+v)", d, found, want, p.Shape.Shift)
		}
		if off := p.Shape.Shift.At.Sub(monday.Add(15 * day)).Abs(); found && off > shiftBlock {
			t.Fatalf("day %d: dated %v", d, p.Shape.Shift.At)
		}
	}
}

func BenchmarkLook(b *testing.B) {
	p := made(21, fiveMinutes, 0.05, func(d float64) float64 { return wave(d, 1, 0.5) })
	b.ReportAllocs()
	for b.Loop() {
		p.Shape.At = time.Time{}
		p.look()
	}
}
