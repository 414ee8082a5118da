package scenario

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/measure"
)

// curved is a fleet of one service with an SLO and a curve.
func curved(t *testing.T, slo, curve string) *Scenario {
	t.Helper()
	return stranger(t, "name: c\nstart: 2026-05-29T00:00:00Z\ndays: 1\nhistory: 3d\nfleet: {nodes: 3}\n"+
		"services:\n- {name: one, trace: one.csv, cores: 4, slo: "+
		slo+", curve: "+curve+"}\n", nil)
}

const levels = "{latencies: [{quantile: 0.99, under: 200ms}, {quantile: 0.5, under: 40ms}], errors: 0.001, " +
	"objective: {goodMinutes: 0.999}}"

func TestAServiceHasItsCurve(t *testing.T) {
	b := build(t, curved(t, levels,
		"{serviceTime: 20ms, cpuTime: 5ms, parallel: 8, patience: 2s, "+
			"pauses: {every: 3000, for: 80ms}, cold: {factor: 2, for: 5m}}"))
	o := &b.Services[0]
	want := measure.Station{Cores: 4, CPUSeconds: 0.005, Workers: 8, ServiceTime: 0.02, Burst: 1,
		Patience: 2 * time.Second,
		Pauses:   measure.Pauses{Every: 3000, For: 80 * time.Millisecond},
		Cold:     measure.Cold{Factor: 2, For: 5 * time.Minute}}
	got := o.Station
	got.SLO = fleet.SLO{}
	if got.Cores != want.Cores || got.CPUSeconds != want.CPUSeconds || got.Workers != want.Workers ||
		got.ServiceTime != want.ServiceTime ||
		got.Burst != want.Burst || got.Patience != want.Patience || got.Pauses != want.Pauses || got.Cold != want.Cold {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	var names []string
	for _, l := range o.SLO.Levels {
		names = append(names, l.Name)
	}
	if list := strings.Join(names, " "); list != "latency-p50 latency-p99 errors" {
		t.Errorf("levels: %s", list)
	}
	if o.SLO.Objective != (fleet.Objective{GoodMinutes: 0.999, Over: 28 * 24 * time.Hour}) {
		t.Errorf("objective: %+v", o.SLO.Objective)
	}
	// The load is scaled to what a replica carries: last week's peak and a fifth fill the fleet.
	peak := 0.0
	for at := b.Start.Add(-3 * 24 * time.Hour); at.Before(b.RunStart()); at = at.Add(time.Minute) {
		if v := o.Load.At(at); v > peak {
			peak = v
		}
	}
	if n := int(math.Ceil(peak * Headroom / o.Capacity())); n != o.Static || o.Static != 12 {
		t.Errorf("static provisioning of %d, by its load %d", o.Static, n)
	}
}

// A service's state at the edges of the times at which it changes.
func TestMoments(t *testing.T) {
	b := build(t, curved(t, levels, `{serviceTime: 20ms, parallel: 4, dependency: {time: 10ms, slow: [
  {start: 0 9 * * *, for: 2h, time: 90ms}, {start: 0 10 * * *, for: 30m, time: 300ms},
  {start: 0 22 * * *, for: 1h, timeZone: Asia/Shanghai, time: 1ms}]},
  releases: [{at: 2026-05-29T12:00:00Z, factor: 1.3}, {at: 2026-05-29T18:00:00Z, factor: 0.9}]}`))
	o := &b.Services[0]
	for _, tc := range []struct {
		at     string
		ms     int
		slower float64
	}{
		{"08:59:45", 10, 0}, {"09:00:00", 90, 0}, {"10:00:00", 300, 0}, {"10:30:00", 90, 0}, {"11:00:00", 10, 0},
		{"11:59:45", 10, 0}, {"12:00:00", 10, 1.3}, {"14:00:00", 1, 1.3}, {"15:00:00", 10, 1.3}, {"18:00:00", 10, 0.9},
	} {
		at, err := time.Parse(time.DateTime, "2026-05-29 "+tc.at)
		if err != nil {
			t.Fatal(err)
		}
		if m := o.Moment(at); m.Dependency != time.Duration(tc.ms)*time.Millisecond || m.Slower != tc.slower {
			t.Errorf("%s: %+v", tc.at, m)
		}
	}
	usual := o.Capacity()
	if c := o.Carries(measure.Moment{Dependency: 300 * time.Millisecond}); c != usual {
		t.Errorf("a dependency beyond the limit: %v, want what is carried without it, %v", c, usual)
	}
	if c := o.Carries(measure.Moment{Slower: 1.3}); c > usual/1.3 {
		t.Errorf("30 %% slower: %v of %v", c, usual)
	}
}

func TestCurvesThatCannotBe(t *testing.T) {
	for _, tc := range []struct{ slo, curve, want string }{
		{levels, "{parallel: 3}", "curve.serviceTime: missing: write the mean time that a request is served"},
		{levels, "{}", "slo: latencies and errors need a curve: write curve.serviceTime"},
		{"{objective: {goodMinutes: 0.99}}", "{serviceTime: 10ms}",
			"slo: nothing is promised: write latencies, errors or utilisation"},
		{levels, "{serviceTime: 10ms, parallel: 8}",
			"curve.parallel: 8 workers would use 8 cores of 4: write fewer, or less cpuTime"},
		{levels, "{serviceTime: 10ms, pauses: {every: 10}}", "curve.pauses.for: 0s is out of bounds: write 1ms to 30s"},
		{levels, "{serviceTime: 10ms, releases: [{factor: 2}]}",
			"curve.releases[0].at: missing or not after the release before"},
		{levels, "{serviceTime: 10ms, dependency: {slow: [{start: daily, for: 1h}]}}", "curve.dependency.slow[0].start: "},
		{"{latencies: [{quantile: 0.9, under: 1s}, {quantile: 0.9, under: 2s}]}", "{serviceTime: 10ms}",
			"slo.latencies[1].quantile: latencies[0] bounds it already"},
		{"{latency: 1s, objective: {goodMinutes: 99.9}}", "{serviceTime: 10ms}",
			"slo.objective.goodMinutes: 99.9 is out of bounds"},
	} {
		_, err := Parse("s.yaml",
			[]byte("name: c\nservices:\n- {name: one, trace: s.yaml, cores: 4, slo: "+tc.slo+", curve: "+tc.curve+"}\n"))
		if err == nil || !strings.Contains(err.Error(), "services[0]."+tc.want) {
			t.Errorf("%s %s:\ngot  %v\nwant %s", tc.slo, tc.curve, err, tc.want)
		}
	}
	_, err := curved(t, "{latency: 30ms}", "{serviceTime: 20ms}").Build()
	if err == nil || !strings.Contains(err.Error(), "online/one-01: no number of replicas keeps its slo") {
		t.Errorf("got %v", err)
	}
}
