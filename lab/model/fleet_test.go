package model

import (
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/lab/traces"
)

const testCores = 9600 // 150 machines of 64 cores

func testFleet(t testing.TB, n int, change func(*traces.Source)) *Fleet {
	t.Helper()
	sources, err := traces.Services(n, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sources {
		if change != nil {
			change(&sources[i])
		}
	}
	f, err := NewFleet(sources, Spec{OnlineCores: testCores, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTheScalingRule(t *testing.T) {
	f := testFleet(t, 40, nil)
	sizes := map[Size]int{}
	pods := 0
	for _, s := range f.Services {
		sizes[s.Size]++
		pods += s.Static
		peak := 0.0
		for _, v := range s.Source.History().Since(traces.ReplayStart().Add(-7 * 24 * time.Hour)).Values {
			if !math.IsNaN(v) {
				peak = max(peak, v*s.Scale)
			}
		}
		if got := int(math.Ceil(peak * 1.2 / s.Capacity)); got != s.Static {
			t.Errorf("%s: ⌈%.1f × 1.2 / %.2f⌉ = %d, but Static is %d", s.Name, peak, s.Capacity, got, s.Static)
		}
		if s.Request.CPU.Cores() != float64(s.Cores) || s.Static < 2 || s.StartUp < 20*time.Second || s.StartUp > 120*time.Second {
			t.Errorf("%s: request %s, static %d, start-up %s", s.Name, s.Request, s.Static, s.StartUp)
		}
		if i := f.Find(s.Name); f.Services[i] != s {
			t.Errorf("%s: found at %d", s.Name, i)
		}
	}
	if sizes[Large] != 4 || sizes[Medium] != 12 || sizes[Small] != 24 {
		t.Errorf("sizes are %v, want 4 large, 12 medium, 24 small", sizes)
	}
	t.Logf("%d static pods, %.0f of %.0f cores", pods, f.StaticCores(), testCores*DefaultShare)
	if got := f.StaticCores(); got > testCores*DefaultShare || got < testCores*DefaultShare-16 {
		t.Errorf("static provisioning requests %.0f cores, want all but a pod's rest of %.0f", got, testCores*DefaultShare)
	}
	if f.Find(fleet.Name{Name: "nobody"}) != -1 {
		t.Error("found a service that is not there")
	}
}

func TestCapacityIsWhereTheSLOBreaks(t *testing.T) {
	for _, s := range testFleet(t, 40, nil).Services {
		for factor, want := range map[float64]bool{0.999: false, 1.001: true} {
			if o := s.Step(&Queue{}, 10*s.Capacity*factor, 10, Step); o.Violated != want {
				t.Errorf("%s at %v of its capacity: violated is %v (utilisation %.3f)", s.Name, factor, o.Violated, o.Utilisation)
			}
		}
	}
}

func TestJitterIsOfTheStepAndKeepsTheMean(t *testing.T) {
	f := testFleet(t, 10, nil)
	s := f.Services[0]
	at := traces.ReplayStart()
	if s.rate(1, at) != s.rate(1, at.Add(14*time.Second)) || s.rate(1, at) == s.rate(1, at.Add(Step)) {
		t.Error("the load must hold for a step and move with the next")
	}
	sum, n := 0.0, 20_000
	for i := range n {
		sum += s.rate(1, at.Add(time.Duration(i)*Step)) / s.Scale / float64(n)
	}
	near(t, "mean", sum, 1, 0.002)
}

func TestTheReplayDecidesNothing(t *testing.T) {
	f := testFleet(t, 40, nil)
	altered := testFleet(t, 40, func(s *traces.Source) {
		for i := s.Load.Index(traces.ReplayStart()); i < s.Load.Len(); i++ {
			s.Load.Values[i] *= 100
		}
	})
	for i, s := range f.Services {
		a := altered.Services[i]
		if a.Name != s.Name || a.Scale != s.Scale || a.Static != s.Static || a.Cores != s.Cores || a.StartUp != s.StartUp || a.Capacity != s.Capacity {
			t.Errorf("%s changed with its replay", s.Name)
		}
		was, is := s.History(traces.ReplayStart()), a.History(traces.ReplayStart())
		for k := range was {
			for j, v := range was[k].Series.Values {
				if math.Float64bits(v) != math.Float64bits(is[k].Series.Values[j]) {
					t.Fatalf("%s: %v: value %d was %v, is %v", s.Name, was[k].Labels, j, v, is[k].Series.Values[j])
				}
			}
		}
	}
	if f.Rates(traces.ReplayStart().Add(-time.Minute))[0] != altered.Rates(traces.ReplayStart().Add(-time.Minute))[0] {
		t.Error("the last minute of the history changed")
	}
	if f.Rates(traces.ReplayStart())[0] == altered.Rates(traces.ReplayStart())[0] {
		t.Error("the replay did not change, so the test shows nothing")
	}
}

func TestStartUpsAreTheirs(t *testing.T) {
	s := testFleet(t, 10, nil).Services[0]
	if first := s.StartUpOf("a"); first != s.StartUpOf("a") || first == s.StartUpOf("b") {
		t.Error("the start-up time must depend on the pod, and on nothing else")
	}
	below, n := 0, 4000
	sum := 0.0
	for i := range n {
		d := s.StartUpOf(string(rune('a' + i)))
		if d < s.StartUp {
			below++
		}
		l := math.Log(float64(d) / float64(s.StartUp))
		sum += l * l / float64(n)
	}
	near(t, "share below the median", float64(below)/float64(n), 0.5, 0.03)
	near(t, "σ", math.Sqrt(sum), 0.3, 0.02)
}

func TestNormalIsNormal(t *testing.T) {
	const n = 200_000
	var m, v, beyond float64
	for i := range uint64(n) {
		z := normal(i)
		m, v = m+z/n, v+z*z/n
		if z > 1.6449 {
			beyond += 1.0 / n
		}
	}
	near(t, "mean", m, 0, 0.01)
	near(t, "variance", v, 1, 0.02)
	near(t, "beyond the 95th percentile", beyond, 0.05, 0.003)
}

func TestNewFleetRefusesNonsense(t *testing.T) {
	sources, err := traces.Services(5, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Spec{{}, {OnlineCores: 100, Share: 1.5}, {OnlineCores: 10}, {OnlineCores: math.NaN()}} {
		if _, err := NewFleet(sources, s); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
	if _, err := NewFleet(nil, Spec{OnlineCores: 100}); err == nil {
		t.Error("a fleet of nothing was accepted")
	}
}
