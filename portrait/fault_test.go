package portrait

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/series"
)

// faultDays is the history into which faults are put: four weeks, so that each time of the week has three others to be judged by.
// faultStep is a slot of the weekly profile, of which a finer step would show no more.
const (
	faultDays = 28
	faultStep = 15 * time.Minute
	faultDay  = int(day / faultStep)
)

// withFault is the history of a normal service, bent over a stretch of days.
func withFault(from, to float64, f func(y, share float64) float64) series.Series {
	s := load(1, faultStep, faultDays*faultDay)
	first, end := from*float64(faultDay), to*float64(faultDay)
	for i := int(first); i < int(end); i++ {
		s.Values[i] = f(s.Values[i], (float64(i)-first)/(end-first))
	}
	return s
}

// faultCosts gives a load what it costs. Where a fault took load away, the service went on running and its metric was wrong: CPU is what
// the load of a normal day costs.
func faultCosts(s series.Series) Batch {
	b := Batch{Load: s, CPU: series.New(s.Start, s.Step, s.Len()), Ready: series.New(s.Start, s.Step, s.Len()), Memory: series.New(s.Start, s.Step, s.Len())}
	clean := load(1, s.Step, s.Len())
	for i, y := range s.Values {
		y = max(y, clean.Values[i])
		if !(y < 1e300) {
			y = clean.Values[i]
		}
		b.CPU.Values[i], b.Ready.Values[i], b.Memory.Values[i] = 0.004*y+2, 10, 2e9
	}
	return b
}

// A bad day must not become the portrait of a normal day. Each fault is held against the portrait of the same history without it: the
// profile of the week in the worst slot (as a log ratio), the seasons, the class, the level of a usual day and the price of a request.
// naive is how far a plain mean of the four weeks is thrown off in its worst slot; it shows that the fault is one.
func TestFaultsAreNoNormalDay(t *testing.T) {
	t.Parallel()
	normal := Fold(Portrait{}, faultCosts(load(1, faultStep, faultDays*faultDay)), Options{})
	constant := func(v float64) func(y, share float64) float64 { return func(float64, float64) float64 { return v } }
	times := func(k float64) func(y, share float64) float64 { return func(y, _ float64) float64 { return k * y } }
	for name, c := range map[string]struct {
		s series.Series
		// profile is the tolerance in the worst slot of the week, noise that of the usual miss as a ratio.
		profile, noise, naive float64
	}{
		"an outage of five hours":        {withFault(24.4, 24.6, constant(0)), 0.1, 1.3, 0.25},
		"a trickle for five hours":       {withFault(24.4, 24.6, times(0.01)), 0.1, 1.3, 0.25},
		"a metric that died for a day":   {withFault(24, 25, constant(nan)), 0.1, 1.3, 0},
		"a load test of two hours":       {withFault(24.4, 24.5, times(6)), 0.15, 1.5, 0.8},
		"a festival day":                 {withFault(24, 25, times(3)), 0.3, 1.5, 0.4},
		"a flash crowd":                  {withFault(24.6, 24.65, func(y, share float64) float64 { return y * (1 + 9*(1-share)) }), 0.15, 1.5, 0.7},
		"counter resets":                 {withFault(24.4, 24.45, times(-1)), 0.1, 1.3, 0.5},
		"a value too large to be a load": {withFault(24.4, 24.42, constant(1e305)), 0.1, 1.3, 10},
		"a value too small to be one":    {withFault(24.4, 24.42, constant(1e-300)), 0.1, 1.3, 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			p := Fold(Portrait{}, faultCosts(c.s), Options{})
			worst := 0.0
			for i, v := range p.Learned.Week.Slots {
				worst = max(worst, math.Abs(v-normal.Learned.Week.Slots[i]))
			}
			if worst > c.profile {
				t.Errorf("the profile of the week is %.2f off", worst)
			}
			if n := naiveMiss(c.s); n < c.naive {
				t.Errorf("a plain mean is %.2f off: the fault is none", n)
			}
			if r := p.Noise / normal.Noise; r > c.noise || r < 1/c.noise {
				t.Errorf("noise is %.2f times the normal", r)
			}
			if p.Shape.Class != Tidal || !p.Shape.Shift.At.IsZero() || len(p.Shape.Periods) != len(normal.Shape.Periods) {
				t.Errorf("class %s, shift %v, periods %v", p.Shape.Class, p.Shape.Shift, p.Shape.Periods)
			}
			usual := slices.Clone(knownOf(p.Shape.Days.Values))
			if r := median(usual) / median(slices.Clone(knownOf(normal.Shape.Days.Values))); math.Abs(r-1) > 0.05 {
				t.Errorf("the usual day is %.2f times the normal", r)
			}
			if math.Abs(p.CPUPerLoad.Value/0.004-1) > 0.02 || math.Abs(p.CPUIdle.Value-0.2) > 0.02 {
				t.Errorf("cost %v, idle %v", p.CPUPerLoad.Value, p.CPUIdle.Value)
			}
		})
	}
}

// naiveMiss is how far the mean by the time of the week is thrown off by a fault in its worst slot, as a log ratio.
func naiveMiss(s series.Series) float64 {
	clean := load(1, s.Step, s.Len())
	perWeek := int(week / s.Step)
	worst := 0.0
	for slot := range perWeek {
		sum, want := 0.0, 0.0
		for i := slot; i < s.Len(); i += perWeek {
			if y := s.Values[i]; !math.IsNaN(y) {
				sum, want = sum+y, want+clean.Values[i]
			}
		}
		if sum > 0 {
			worst = max(worst, math.Abs(math.Log(sum/want)))
		}
	}
	return worst
}
