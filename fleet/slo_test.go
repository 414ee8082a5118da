package fleet_test

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

func TestLatencyNames(t *testing.T) {
	for quantile, want := range map[float64]string{
		0.5: "latency-p50", 0.99: "latency-p99", 0.999: "latency-p99.9", 0.9999: "latency-p99.99", 0.29: "latency-p29",
		99.95 / 100: "latency-p99.95",
	} {
		if got := fleet.LatencyName(quantile); got != want {
			t.Errorf("the latency at %v is %q, want %q", quantile, got, want)
		}
	}
}

func TestLevelsOfAnSLO(t *testing.T) {
	both := fleet.Levels(fleet.Latency(0.5, 20*time.Millisecond), fleet.Latency(0.999, 1500*time.Millisecond),
		fleet.Latency(0.99, 250*time.Millisecond),
		fleet.CPU(0.7))
	for _, v := range []struct {
		name     string
		slo      fleet.SLO
		cpu      float64
		quantile float64
		limit    time.Duration
	}{
		{name: "nothing"},
		{name: "CPU alone", slo: fleet.Levels(fleet.CPU(0.7)), cpu: 0.7},
		{name: "a latency alone", slo: fleet.Levels(fleet.Latency(0.99, time.Second)), quantile: 0.99, limit: time.Second},
		{name: "several: the highest quantile, wherever it stands", slo: both, cpu: 0.7, quantile: 0.999,
			limit: 1500 * time.Millisecond},
		{name: "memory is not CPU", slo: fleet.Levels(fleet.Level{Kind: fleet.LevelUtilization,
			Name: fleet.LevelNameMemory, Limit: 0.9})},
	} {
		t.Run(v.name, func(t *testing.T) {
			if got := v.slo.CPULimit(); got != v.cpu {
				t.Errorf("the CPU limit is %v, want %v", got, v.cpu)
			}
			if q, l := v.slo.LatencyQuantile(), v.slo.LatencyLimit(); q != v.quantile || l != v.limit {
				t.Errorf("the tightest latency is p%v under %v, want p%v under %v", q, l, v.quantile, v.limit)
			}
		})
	}
	if l := both.Level("latency-p99"); l == nil || l.Duration() != 250*time.Millisecond ||
		l.Source.Preset != fleet.PresetOTel {
		t.Errorf("latency-p99 is %+v", l)
	}
	if l := both.Level("latency-p98"); l != nil {
		t.Errorf("a level that is not stated is %+v", l)
	}
}

// Every duration that an operator can write comes back whole: seconds are floats.
func TestLatencyLimitsAreWholeNanoseconds(t *testing.T) {
	for _, d := range []time.Duration{1, 100 * time.Microsecond, 250 * time.Millisecond, 333 * time.Millisecond,
		10*time.Minute + 7*time.Millisecond} {
		if l := fleet.Latency(0.99, d); l.Duration() != d {
			t.Errorf("%v comes back as %v", d, l.Duration())
		}
	}
}
