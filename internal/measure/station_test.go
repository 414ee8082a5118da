package measure

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// plain is a station with round numbers.
func plain(cores int) *Station {
	return &Station{Cores: cores, CPUSeconds: 0.01, Idle: 0.02, SLO: fleet.Levels(fleet.Latency(0.99,
		100*time.Millisecond))}
}

// load is the rate that keeps the cores of n pods busy to the share rho.
func load(s *Station, n int, rho float64) float64 { return rho * float64(n*s.Cores) / s.CPUSeconds }

func TestABacklogCarriesOverAndDrains(t *testing.T) {
	s, q := plain(4), &Queue{}
	step := func(rho float64) Outcome { return s.Step(q, load(s, 10, rho), 10, Step) }
	if o := step(0.5); o.Violated || o.Wait != 0 || math.Abs(o.Utilisation-0.5) > 1e-9 {
		t.Errorf("at half load: %+v", o)
	}
	// Half as much again as can be served: at the end 7.5 s of work wait, all cores are busy.
	o := step(1.5)
	near(t, "wait", o.Wait.Seconds(), 7.5, 1e-6)
	near(t, "utilisation", o.Utilisation, 1, 1e-9)
	if !o.Violated || o.Dropped != 0 {
		t.Errorf("at one and a half: %+v", o)
	}
	if l := o.Latency(0.5).Seconds(); l < 7.5 {
		t.Errorf("half of the requests took less than %v s, although all waited 7.5 s", l)
	}
	// At half load 7.5 s of work drain in a step, to the end: it began with a wait, so it violates; the next does not.
	if o := step(0.5); !o.Violated || math.Abs(o.Utilisation-1) > 1e-9 {
		t.Errorf("while draining: %+v", o)
	}
	if o := step(0.5); o.Violated {
		t.Errorf("after draining: %+v", o)
	}
}

func TestPatienceEnds(t *testing.T) {
	s, q := plain(4), &Queue{}
	var dropped float64
	for range 20 {
		o := s.Step(q, load(s, 10, 2), 10, Step)
		if o.Wait > Patience {
			t.Fatalf("requests wait %s", o.Wait)
		}
		dropped = o.Dropped / o.Rate
	}
	near(t, "at twice the capacity the dropped share tends to", dropped, 0.5, 0.1)

	o := s.Step(&Queue{}, 100, 0, Step)
	if !o.Violated || o.Served != 0 || o.CPU != 0 || o.Exceeding(time.Hour) != 1 || o.Latency(0.5) != Patience {
		t.Errorf("without a ready pod: %+v", o)
	}
	if o := s.Step(&Queue{}, 0, 0, Step); o.Violated {
		t.Error("a service without load and pods violates its SLO")
	}
}

func TestAUtilisationSLO(t *testing.T) {
	s := plain(4)
	s.SLO = fleet.Levels(fleet.CPU(0.85))
	for rho, want := range map[float64]bool{0.82: false, 0.84: true, 1.2: true} {
		if o := s.Step(&Queue{}, load(s, 10, rho), 10, Step); o.Violated != want {
			t.Errorf("%.0f %% busy and 2 %% idle: violated is %v", 100*rho, o.Violated)
		}
	}
}

// A pod that bursts serves more than its own cores could and is judged by them all the same: its usage shows what it would need.
func TestAPodMayBurst(t *testing.T) {
	s := plain(4)
	s.SLO, s.Burst = fleet.Levels(fleet.CPU(0.85)), 2
	o := s.Step(&Queue{}, load(s, 10, 1.5), 10, Step)
	if !o.Violated || o.Wait != 0 || o.Dropped != 0 {
		t.Errorf("at one and a half of its cores: %+v", o)
	}
	near(t, "cores", o.CPU, 4*1.52, 1e-9)
	if o := s.Step(&Queue{}, load(s, 10, 3), 10, Step); o.Wait == 0 || o.CPU != 8 {
		t.Errorf("beyond its burst: %+v", o)
	}
}

// A replica carries its capacity and no more.
func TestCapacityIsWhereTheSLOEnds(t *testing.T) {
	for _, slo := range []fleet.SLO{fleet.Levels(fleet.CPU(0.85)), fleet.Levels(fleet.Latency(0.99,
		50*time.Millisecond))} {
		s := plain(8)
		s.SLO = slo
		for factor, want := range map[float64]bool{0.999: false, 1.001: true} {
			if o := s.Step(&Queue{}, 10*s.Capacity()*factor, 10, Step); o.Violated != want {
				t.Errorf("%+v at %v of its capacity: violated is %v", slo, factor, o.Violated)
			}
		}
	}
}

func TestIdlePodsUseALittle(t *testing.T) {
	s := plain(4)
	near(t, "cores of an idle pod", s.Step(&Queue{}, 0, 3, Step).CPU, 0.08, 1e-12)
	near(t, "cores of a full pod", s.Step(&Queue{}, load(s, 3, 1), 3, Step).CPU, 4, 1e-12)
	o := s.Step(&Queue{}, load(s, 3, 0.5), 3, Step)
	near(t, "cores of three half-full pods", o.UsedCores(), 3*4*0.52, 1e-9)
}

func TestLatenciesAgreeWithExceeding(t *testing.T) {
	s := plain(8)
	for _, rho := range []float64{0.1, 0.8, 0.95, 1.3} {
		o := s.Step(&Queue{}, load(s, 5, rho), 5, Step)
		l := o.Latencies()
		for i, b := range Bounds {
			near(t, "share up to a bound", l.UpTo[i], 1-o.Exceeding(time.Duration(b*float64(time.Second))), 1e-6)
		}
	}
	// One server at half load: the mean time in the system is s/(1−ρ), the median s·ln2/(1−ρ) = 13.9 ms, between 10 and 25 ms.
	s = plain(1)
	o := s.Step(&Queue{}, load(s, 5, 0.5), 5, Step)
	l := o.Latencies()
	mean := s.CPUSeconds
	near(t, "mean", l.Mean, mean/0.5, 1e-9)
	at10, at25 := 1-math.Exp(-0.5*0.010/mean), 1-math.Exp(-0.5*0.025/mean)
	near(t, "median as a histogram shows it", l.Quantile(0.5), 0.010+0.015*(0.5-at10)/(at25-at10), 1e-9)
	if none := (&Latencies{}).Quantile(0.5); !math.IsNaN(none) {
		t.Errorf("the median of nothing is %v", none)
	}
	if far := (&Latencies{Mean: 60}).Quantile(0.5); far != 10 {
		t.Errorf("a quantile beyond the last bound is %v, want 10 as PromQL has it", far)
	}
}

// Requests are served, dropped or still waiting: none appears, none vanishes; and more pods never hurt.
func TestRequestsAreConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, q := plain(4), &Queue{}
		var in, out float64
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			rate := rapid.Float64Range(0, 20_000).Draw(t, "rate")
			ready := rapid.IntRange(0, 30).Draw(t, "ready")
			more := *q
			m := s.Step(&more, rate, ready+1, Step)
			o := s.Step(q, rate, ready, Step)
			in += rate * 15
			out += (o.Served + o.Dropped) * 15
			if diff := in - out - q.backlog; math.Abs(diff) > 1e-6*max(1, in) || q.backlog < 0 {
				t.Fatalf("%v requests came, %v went, %v wait", in, out, q.backlog)
			}
			if o.Utilisation < 0 || o.Utilisation > 1+1e-9 || o.CPU > float64(s.Cores) {
				t.Fatalf("utilisation %v, cores %v", o.Utilisation, o.CPU)
			}
			if m.Violated && !o.Violated {
				t.Fatal("another pod broke the SLO")
			}
		}
	})
}

// With two levels the tighter one is what a replica carries, and one that is broken breaks the step.
func TestTheTighterLevelCounts(t *testing.T) {
	latency, cpu := fleet.Latency(0.99, 100*time.Millisecond), fleet.CPU(0.4)
	of := func(levels ...fleet.Level) *Station {
		return &Station{Cores: 8, CPUSeconds: 0.01, Idle: 0.02, SLO: fleet.Levels(levels...)}
	}
	both, one, other := of(latency, cpu), of(latency), of(cpu)
	near(t, "capacity", both.Capacity(), min(one.Capacity(), other.Capacity()), 1e-9)
	if !(other.Capacity() < one.Capacity()) {
		t.Fatalf("CPU carries %v and the latency %v: the test is of a tighter CPU level", other.Capacity(), one.Capacity())
	}
	load := (one.Capacity() + other.Capacity()) / 2
	for name, v := range map[string]struct {
		s    *Station
		want bool
	}{"both": {both, true}, "latency": {one, false}, "cpu": {other, true}} {
		var q Queue
		if o := v.s.Step(&q, load, 1, 15*time.Second); o.Violated != v.want {
			t.Errorf("%s: violated is %v", name, o.Violated)
		}
	}
}
