package sim

import (
	"reflect"
	"testing"
	"time"

	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/series"
	"github.com/springtide/springtide/sim/scenario"
)

// A schedule of 24 floors a day: of the 60 minutes of this hour a week ago the 0.95 quantile, that is the 58th of them in order (the higher of its two
// neighbours), at 60 % of 8 cores. Yesterday's hour stands in only where there is no week.
func TestTheFloors(t *testing.T) {
	b := tiny(12, 3, func(time.Time) float64 { return 1 })
	for _, c := range []struct {
		ago  time.Duration
		want int32
	}{{7 * 24 * time.Hour, 580}, {24 * time.Hour, 580}} {
		o := &b.Services[0]
		for k := range o.Load.Values {
			o.Load.Values[k] = 0
		}
		if c.ago < 7*24*time.Hour {
			o.Load = o.Load.Since(begin.Add(-2 * 24 * time.Hour))
		}
		w := first(b)
		at := o.Load.Index(begin.Add(time.Hour - c.ago))
		for k := range 60 {
			o.Load.Values[at+k] = float64((k*7)%60+1) * 48 // shuffled: 7 and 60 have no divisor in common
		}
		f := played(w, NewPast(b), CronHPA)
		for minutes, want := range map[int]int32{59: 0, 60: c.want, 119: c.want, 120: 0} {
			w.now = begin.Add(time.Duration(minutes) * time.Minute)
			if got := f.floors[0](w, 0, 1); got != want {
				t.Errorf("%s ago, at minute %d: %d, want %d", c.ago, minutes, got, want)
			}
		}
	}
}

// flat is a tide whose step j is 48·(j+1) cores at the median, ten times that at 0.95 and a hundred times that at the ends: at 60 % of 8 cores
// 10·(j+1) replicas and so on.
func flat(start time.Time, step time.Duration, n int, factor float64) forecast.Tide {
	t := forecast.Tide{Start: start, Step: step, Quantiles: []float64{0.05, 0.5, 0.95, 0.99}, Paths: make([][]float64, 4)}
	for j := range n {
		for i, q := range []float64{0.1, 1, 10, 100} {
			t.Paths[i] = append(t.Paths[i], factor*q*48*float64(j+1))
		}
	}
	return t
}

// AWS: the forecast capacity of an hour stands 300 s (SchedulingBufferTime) before it and until it is over, at the
// median, of a forecast made again each 6 h; it never takes away before its hour ends. AHPA: the 0.95 quantile 180 s
// ahead (scaleUpForward), planned each hour.
func TestTheFloorsOfForecasts(t *testing.T) {
	w := first(tiny(60, 12, tide(5, 10)))
	p := NewPast(w.b)
	p.tides[madeAt{"aws", 0, begin}] = flat(begin, time.Hour, 48, 1)
	p.tides[madeAt{"aws", 0, begin.Add(6 * time.Hour)}] = flat(begin, time.Hour, 48, 0.5)
	p.tides[madeAt{"ahpa", 0, begin}] = flat(begin, 5*time.Minute, 288, 1)
	p.tides[madeAt{"ahpa", 0, begin.Add(time.Hour)}] = flat(begin, 5*time.Minute, 288, 0.5)
	for _, c := range []struct {
		policy string
		at     time.Duration
		want   int32
	}{
		{AWS, 54*time.Minute + 45*time.Second, 10}, {AWS, 55 * time.Minute, 20}, {AWS, 114 * time.Minute, 20}, {AWS, 115 * time.Minute, 30},
		{AWS, 5*time.Hour + 54*time.Minute, 60}, {AWS, 6 * time.Hour, 35}, // (6 + 1) × 10 × 0.5
		{AHPA, 0, 100}, {AHPA, 105 * time.Second, 100}, {AHPA, 120 * time.Second, 200}, {AHPA, 59 * time.Minute, 1300}, {AHPA, time.Hour, 650},
	} {
		w.now = begin.Add(c.at)
		f := played(w, p, c.policy)
		if got := f.floors[0](w, 0, 1); got != c.want {
			t.Errorf("%s at %s: %d, want %d", c.policy, c.at, got, c.want)
		}
		if len(f.metrics) != 1 || f.metrics[0](w, 0, 7) != byCPU(0.6)(w, 0, 7) {
			t.Errorf("%s is not joined with the reactive part", c.policy)
		}
	}
	w.now = begin.Add(3*time.Hour + 57*time.Minute)
	for k, v := range []float64{9, 9, 9, 9, 2} {
		p.tides[madeAt{"aws", 0, begin}].Paths[1][k] = 48 * v
	}
	if got := played(w, p, AWS).floors[0](w, 0, 1); got != 90 {
		t.Errorf("before an hour of less AWS holds %d, want 90", got)
	}
}

// Crane's metric is the largest forecast of the next 3,600 s, of a model made each 12 h, and passes through the HPA's tolerance.
func TestTheWindow(t *testing.T) {
	w := first(tiny(60, 13, tide(5, 10)))
	p := NewPast(w.b)
	for made, base := range map[time.Duration]float64{0: 48, 12 * time.Hour: 96} {
		s := series.New(begin.Add(made), time.Minute, 13*60)
		for k := range s.Values {
			s.Values[k] = base
		}
		s.Values[90] = 480
		p.cranes[madeAt{"crane", 0, begin.Add(made)}] = s
	}
	for minute, want := range map[int]int32{0: 10, 30: 10, 31: 100, 90: 100, 91: 10, 12*60 - 1: 10, 12 * 60: 20} {
		w.now = begin.Add(time.Duration(minute) * time.Minute)
		if got := played(w, p, DSP).metrics[1](w, 0, 10); got != want {
			t.Errorf("at minute %d Crane asks for %d, want %d", minute, got, want)
		}
	}
	w.now = begin
	if got := played(w, p, DSP).metrics[1](w, 0, 11); got != 11 {
		t.Errorf("within the tolerance Crane asks for %d", got)
	}
}

// How far forecasts look back: 15 days (Crane), 14 (AWS), 7 before the run (AHPA). Older samples change nothing, the
// oldest hour of them does. AWS forecasts 48 h by the hour, AHPA plans 24 h.
func TestTheHistories(t *testing.T) {
	long(t)
	const day = 24 * time.Hour
	at := begin.Add(-scenario.WarmUp)
	for _, c := range []struct {
		kind              string
		days              time.Duration
		refit, step, span time.Duration
	}{{"crane", 15, 12 * time.Hour, time.Minute, 0}, {"aws", 14, 6 * time.Hour, time.Hour, 2 * day}, {"ahpa", 7, time.Hour, 5 * time.Minute, day}} {
		made := at.Truncate(c.refit)
		forecastOf := func(spike time.Duration) [][]float64 {
			b := tinyAfter(20*day, 12, 1, tide(6, 40))
			if l := &b.Services[0].Load; spike != 0 {
				for i := range 60 {
					l.Values[l.Index(made.Add(spike))+i] *= 1.5
				}
			}
			p, key := NewPast(b), madeAt{c.kind, 0, made}
			p.crane(0, at)
			p.hourly(0, at, at)
			p.planned(0, at, at)
			if c.kind == "crane" {
				return [][]float64{p.cranes[key].Values}
			}
			got := p.tides[key]
			if end := got.Start.Add(time.Duration(len(got.Paths[0])) * got.Step); got.Step != c.step || end.Sub(made).Round(time.Hour) != c.span {
				t.Errorf("%s forecasts by %s from %s to %s, made at %s", c.kind, got.Step, got.Start, end, made)
			}
			return got.Paths
		}
		same, plain := reflect.DeepEqual, forecastOf(0)
		if len(plain) == 0 || len(plain[0]) == 0 || !same(plain, forecastOf(-c.days*day-2*time.Hour)) {
			t.Errorf("%s looks at what is older than %d days", c.kind, c.days)
		}
		if same(plain, forecastOf(-c.days*day)) {
			t.Errorf("%s does not look at the oldest hour of %d days", c.kind, c.days)
		}
	}
}
