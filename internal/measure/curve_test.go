package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

const ms = time.Millisecond

// The closed forms of M/M/1 give every figure: of 20 ms on one worker, P(T > t) is e^(−(1−ρ)t/20 ms).
func TestTheCurveOfOneWorker(t *testing.T) {
	pool := Station{Cores: 4, CPUSeconds: 0.01, Workers: 1, ServiceTime: 0.02}
	cold := pool
	cold.Cold = Cold{Factor: 2, For: time.Minute}
	for _, tc := range []struct {
		name    string
		station Station
		moment  Moment
		rate    float64 // of two pods
		limit   time.Duration
		want    float64
	}{
		{"half of its worker busy, an eighth of its cores", pool, Moment{}, 50, 100 * ms, math.Exp(-2.5)},
		{"a release makes it slower by 30 %: ρ is 0.65 of 26 ms", pool, Moment{Slower: 1.3}, 50, 100 * ms,
			math.Exp(-0.35 * 100 / 26)},
		{"80 of 100 ms are the dependency's", pool, Moment{Dependency: 80 * ms}, 50, 100 * ms, math.Exp(-0.5)},
		{"all of the time is the dependency's", pool, Moment{Dependency: 120 * ms}, 1, 100 * ms, 1},
		// One pod of two is worth half a one: 75 a second are its knee, and at 37.5 both are half busy. A third of the
		// requests is its, at 40 ms.
		{"one pod is cold", cold, Moment{Cold: 1}, 37.5, 100 * ms, 2.0/3*math.Exp(-2.5) + 1.0/3*math.Exp(-1.25)},
		{"both are cold", cold, Moment{Cold: 2}, 25, 100 * ms, math.Exp(-1.25)},
		{"more are cold than there are", cold, Moment{Cold: 9}, 25, 100 * ms, math.Exp(-1.25)},
	} {
		o := tc.station.StepAt(tc.moment, &Queue{}, tc.rate, 2, Step)
		near(t, tc.name, o.Exceeding(tc.limit), tc.want, 1e-9)
		if tc.want < 1 {
			near(t, tc.name+": its own quantile", o.Latency(1-tc.want).Seconds(), tc.limit.Seconds(), 1e-6)
		}
	}
	o := pool.Step(&Queue{}, 50, 2, Step)
	near(t, "cores of a pod whose worker is half busy", o.CPU, 0.25, 1e-12)
	near(t, "utilisation of the request", o.Utilisation, 1.0/16, 1e-12)
	o = pool.StepAt(Moment{Slower: 1.3}, &Queue{}, 50, 2, Step)
	near(t, "cores after a slower release", o.CPU, 0.325, 1e-12)
	o = cold.StepAt(Moment{Cold: 1}, &Queue{}, 37.5, 2, Step)
	near(t, "cores while a pod is cold: 25 requests at 10 ms and 12.5 at 20", o.UsedCores(), 0.5, 1e-12)
}

// Pauses against the queue itself, request by request: a pause after each N arrivals shifts all that has not left yet.
func TestPausesAgainstSimulation(t *testing.T) {
	const n = 300_000
	for _, tc := range []struct {
		c     int
		busy  float64 // of the workers, pauses counted
		every int
		pause float64 // service times
		off   float64 // one worker: what waits when the pause begins is added to all of it
	}{{1, 0.3, 400, 8, 0.13}, {4, 0.5, 1000, 10, 0.08}, {4, 0.7, 2000, 20, 0.08}, {8, 0.8, 4000, 12, 0.08}} {
		s := Station{Cores: tc.c, CPUSeconds: 1, Pauses: Pauses{Every: float64(tc.every), For: time.Duration(tc.pause * 1e9)}}
		nominal, _ := s.rates(Moment{}, 1)
		rate := tc.busy * nominal
		r := rand.New(rand.NewPCG(7, uint64(tc.c)))
		free := make([]float64, tc.c)
		type stay struct{ came, done float64 }
		var in []stay
		var times []float64
		now := 0.0
		for i := range n {
			now += r.ExpFloat64() / rate
			in = slices.DeleteFunc(in, func(x stay) bool {
				if x.done <= now {
					times = append(times, x.done-x.came)
				}
				return x.done <= now
			})
			if i%tc.every == tc.every-1 {
				for k := range free {
					free[k] = max(free[k], now) + tc.pause
				}
				for k := range in {
					in[k].done += tc.pause
				}
			}
			first := 0
			for k := range free {
				if free[k] < free[first] {
					first = k
				}
			}
			free[first] = max(now, free[first]) + r.ExpFloat64()
			in = append(in, stay{now, free[first]})
		}
		slices.Sort(times)
		o := s.Step(&Queue{}, rate, 1, Step)
		for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
			want := times[int(q*float64(len(times)))]
			got := o.Latency(q).Seconds()
			if math.Abs(got/want-1) > tc.off {
				t.Errorf("c = %d, %v busy: the formula's q%v is %.3f, the simulation's %.3f", tc.c, tc.busy, q, got, want)
			}
		}
	}
}

// A collector adds a shoulder: under a limit that its pauses break, a high quantile holds at small loads alone, far
// from the knee of the queue. The median does not see them.
func TestPausesMakeAShoulder(t *testing.T) {
	s := Station{Cores: 8, CPUSeconds: 0.01, Pauses: Pauses{Every: 3000, For: 80 * ms}}
	capacity := func(q float64, limit time.Duration) float64 {
		s.SLO = fleet.Levels(fleet.Latency(q, limit))
		return s.Capacity() / 800
	}
	tight, loose, median := capacity(0.99, 60*ms), capacity(0.99, 250*ms), capacity(0.5, 60*ms)
	if tight > 0.7*loose || loose < 0.8 || median < 0.9 {
		t.Errorf("capacities: p99 under 60 ms %v, under 250 ms %v, the median under 60 ms %v of all cores", tight, loose,
			median)
	}
}

func TestCapacityOfAMoment(t *testing.T) {
	levels := fleet.Levels(fleet.Latency(0.9, 50*ms), fleet.Latency(0.99, 100*ms))
	s := Station{Cores: 4, CPUSeconds: 0.01, Workers: 1, ServiceTime: 0.02, SLO: levels}
	// M/M/1: q holds up to ρ = 1 − ln(1/(1−q))·s/limit: ln 10 × 0.4 = 0.921 and ln 100 × 0.2 = 0.921 alike.
	at := 1 - math.Log(10)*0.4
	for _, tc := range []struct {
		name   string
		change func(*Station)
		moment Moment
		want   float64
	}{
		{"as it is", func(*Station) {}, Moment{}, 50 * at},
		{"the tighter of two levels", func(s *Station) { s.SLO.Levels[1].Limit = 0.095 }, Moment{},
			50 * (1 - math.Log(100)*20/95)},
		{"a CPU level", func(s *Station) { s.SLO.Levels = append(s.SLO.Levels, fleet.CPU(0.005)) }, Moment{}, 2},
		{"slower", func(*Station) {}, Moment{Slower: 1.05}, 50/1.05 - math.Log(10)/0.05},
		{"a dependency that leaves time", func(s *Station) { s.SLO.Levels = s.SLO.Levels[:1] }, Moment{Dependency: ms},
			50 - math.Log(10)/0.049},
		{"a dependency that leaves none", func(*Station) {}, Moment{Dependency: 30 * ms}, 0},
		{"cold pods, which pass", func(s *Station) { s.Cold = Cold{Factor: 3, For: time.Minute} }, Moment{Cold: 1}, 50 * at},
		{"errors alone: all its workers", func(s *Station) { s.SLO = fleet.Levels(atMost(0.01)) }, Moment{}, 50},
	} {
		own := s
		own.SLO.Levels = slices.Clone(levels.Levels)
		tc.change(&own)
		near(t, tc.name, own.CapacityAt(tc.moment), tc.want, 1e-6)
		if tc.want == 0 || tc.moment.Cold > 0 {
			continue
		}
		for factor, broken := range map[float64]bool{0.999: false, 1.001: true} {
			if errors := own.SLO.Level(fleet.LevelNameErrors) != nil; errors {
				continue // TestErrorsBeginAboveSaturation
			}
			if o := own.StepAt(tc.moment, &Queue{}, 10*tc.want*factor, 10, Step); o.Violated != broken {
				t.Errorf("%s: at %v of its capacity the SLO is broken: %v", tc.name, factor, o.Violated)
			}
		}
	}
}

func atMost(share float64) fleet.Level {
	return fleet.Level{Kind: fleet.LevelErrors, Name: fleet.LevelNameErrors, Limit: share}
}

// A client that waits a second gives up once a second of work waits: from then on what exceeds the power fails.
func TestErrorsBeginAboveSaturation(t *testing.T) {
	s := Station{Cores: 4, CPUSeconds: 0.01, Patience: time.Second, SLO: fleet.Levels(atMost(0.25))}
	var q Queue
	step := func(rho float64) Outcome { return s.Step(&q, load(&s, 10, rho), 10, Step) }
	if o := step(0.99); o.Errors() != 0 || o.Violated {
		t.Errorf("below saturation: %+v", o)
	}
	// At 5/4 of the power 3.75 s of work are too many after 15 s, of which 1.25 s wait on (a second of the load): 2.5 of
	// 17.5 s fail.
	o := step(1.25)
	near(t, "errors of the first step", o.Errors(), 2.5/17.5, 1e-9)
	if o.Violated {
		t.Error("a seventh fails, and a quarter may")
	}
	o = step(1.25)
	near(t, "errors while it lasts", o.Errors(), 0.2, 1e-9)
	o = step(2)
	near(t, "errors at twice the power: 15 of 30 s, and 0.75 s less that wait longer", o.Errors(), (15-0.75)/(30-0.75),
		1e-9)
	if !o.Violated {
		t.Error("half fails, and a quarter may")
	}
}

// The curve is a distribution, and every change for the worse makes it no better.
func TestCurvesAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Station{Cores: rapid.IntRange(1, 16).Draw(t, "cores"), CPUSeconds: 0.01, Cold: Cold{Factor: 2, For: time.Minute}}
		if rapid.Bool().Draw(t, "pool") {
			s.Workers, s.ServiceTime = 2*s.Cores, 0.05
		}
		if rapid.Bool().Draw(t, "pauses") {
			s.Pauses = Pauses{Every: rapid.Float64Range(50, 1e5).Draw(t, "every"), For: time.Duration(rapid.IntRange(1,
				500).Draw(t, "pause")) * ms}
		}
		m := Moment{Dependency: time.Duration(rapid.IntRange(0, 50).Draw(t, "dependency")) * ms, Cold: rapid.IntRange(0,
			4).Draw(t, "cold")}
		rate := rapid.Float64Range(0.1, 8000).Draw(t, "rate")
		worse, other := m, rate
		switch rapid.IntRange(0, 3).Draw(t, "change") {
		case 0:
			other *= 1.2
		case 1:
			worse.Slower = 1.3
		case 2:
			worse.Dependency += 10 * ms
		case 3:
			worse.Cold++
		}
		o, w := s.StepAt(m, &Queue{}, rate, 5, Step), s.StepAt(worse, &Queue{}, other, 5, Step)
		before := 0.0
		for _, at := range []time.Duration{ms, 10 * ms, 30 * ms, 100 * ms, 300 * ms, time.Second, 5 * time.Second,
			time.Minute} {
			share, slower := 1-o.Exceeding(at), w.Exceeding(at)
			if share < before-1e-9 || share > 1+1e-9 {
				t.Fatalf("a share of %v keeps under %s, and %v under less", share, at, before)
			}
			if slower < 1-share-1e-9 {
				t.Fatalf("a share of %v exceeds %s, and %v when it is worse", 1-share, at, slower)
			}
			before = share
		}
	})
}
