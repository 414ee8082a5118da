package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/sim/scenario"
)

// slowed is a fleet of one service at a constant load of 16 replicas, with a p99 under a second of requests of 100 ms.
func slowed(curve scenario.Curve) *scenario.Built {
	b := tinyAfter(24*time.Hour+scenario.WarmUp, 10, 4, func(time.Time) float64 { return 16 })
	curve.ServiceTime = config.Duration(100 * time.Millisecond)
	for i := range b.Services {
		o := &b.Services[i]
		before, spec := o.Capacity(), *o.Spec
		spec.SLO, spec.Curve = scenario.SLO{Latency: config.Duration(time.Second), Quantile: 0.99}, curve
		o.Become(&spec)
		for k := range o.Load.Values {
			o.Load.Values[k] *= o.Capacity() / before
		}
		o.Static = 20
	}
	return b
}

// A release moves the knee: what was enough is not any more, for the fixed replicas until the end, and foresight
// starts the rest in time.
func TestAReleaseMovesTheKnee(t *testing.T) {
	b := slowed(scenario.Curve{Releases: []scenario.Release{{At: begin.Add(time.Hour), Factor: 1.5}}})
	fixed := play(t, b, Row{Policy: Static, Lender: LendNone, Target: 120, Knob: KnobHeadroom, Default: true})
	if fixed.SLOViolationMinutes != 180 {
		t.Errorf("static provisioning breaks %d minutes, want the last 180 of 240", fixed.SLOViolationMinutes)
	}
	before := slowed(scenario.Curve{})
	oracle, calm := play(t, b, Row{Policy: Oracle, Lender: LendOracle}), play(t, before, Row{Policy: Oracle,
		Lender: LendOracle})
	if ratio := oracle.OnlineCoreHours / calm.OnlineCoreHours; oracle.SLOViolationMinutes != 0 || ratio < 1.3 ||
		ratio > 1.5 {
		t.Errorf("the oracle breaks %d minutes at %v times the cost", oracle.SLOViolationMinutes, ratio)
	}
}

// While a dependency takes longer than the limit, each policy breaks these minutes alike, and foresight adds no
// replica for them.
func TestNoReplicaHelpsASlowDependency(t *testing.T) {
	slow := scenario.Slow{Window: scenario.Window{Start: "0 1 * * *", For: config.Duration(time.Hour)},
		Time: config.Duration(2 * time.Second)}
	b := slowed(scenario.Curve{Dependency: scenario.Dependency{Slow: []scenario.Slow{slow}}})
	calm := slowed(scenario.Curve{})
	for _, r := range []Row{{Policy: Oracle, Lender: LendOracle}, {Policy: Static, Lender: LendNone, Target: 120,
		Knob: KnobHeadroom, Default: true}} {
		got, without := play(t, b, r), play(t, calm, r)
		if got.SLOViolationMinutes-without.SLOViolationMinutes != 60 || got.OnlineCoreHours != without.OnlineCoreHours {
			t.Errorf("%s: %d minutes and %v core-hours, %d and %v without", r.Policy, got.SLOViolationMinutes,
				got.OnlineCoreHours,
				without.SLOViolationMinutes, without.OnlineCoreHours)
		}
	}
}

// Pods that became ready count as cold for a time, and those that run for long do not.
func TestYoungPodsAreCold(t *testing.T) {
	b := slowed(scenario.Curve{Cold: scenario.Cold{Factor: 2, For: config.Duration(5 * time.Minute)}})
	b.Jitter = 0
	grows := begin.Add(time.Hour)
	var seen []int
	prepared(t, b, Row{Policy: Static, Lender: LendNone, Target: 120, Knob: KnobHeadroom, Default: true}, func(w *World,
		_ *Past) {
		w.watch = func() {
			s := &w.services[0]
			if !w.now.Before(grows) {
				s.Static = 24
			}
			if n := s.moment.Cold; len(seen) == 0 || seen[len(seen)-1] != n {
				seen = append(seen, n)
			}
		}
	})
	if !slices.Contains(seen, 4) || seen[0] != 0 || seen[len(seen)-1] != 0 {
		t.Errorf("cold pods over time: %v", seen)
	}
}

// Sized by the true curve, a service of a loose limit costs less than by the fixed rule, and one of a tight limit,
// which the rule breaks at its every peak, keeps it.
func TestSizedByTheTrueCurve(t *testing.T) {
	for _, tc := range []struct {
		limit   time.Duration
		cheaper float64 // at most this part of the rule's core-hours
		breaks  int     // at least so many minutes of the rule's
	}{{3 * time.Second, 0.8, 0}, {466 * time.Millisecond, 10, 30}} {
		b := tinyAfter(7*24*time.Hour+scenario.WarmUp, 20, 24, tide(6, 20))
		o := &b.Services[0]
		before, spec := o.Capacity(), *o.Spec
		spec.SLO = scenario.SLO{Latency: config.Duration(tc.limit), Quantile: 0.99,
			Objective: scenario.Objective{GoodMinutes: 0.99}}
		spec.Curve = scenario.Curve{ServiceTime: config.Duration(100 * time.Millisecond)}
		o.Become(&spec)
		for k := range o.Load.Values {
			o.Load.Values[k] *= o.Capacity() / before
		}
		b.Jitter = 0.03
		row := Row{Policy: Springtide, Lender: LendNone, Target: 95, Knob: KnobAvailability, Default: true,
			Capacity: CapacityRule}
		rule := play(t, b, row)
		row.Capacity = CapacityTrue
		truth := play(t, b, row)
		few := 24 * 60 / 100 // by its objective
		if truth.OnlineCoreHours > tc.cheaper*rule.OnlineCoreHours || rule.SLOViolationMinutes < tc.breaks ||
			truth.SLOViolationMinutes > few {
			t.Errorf("limit %s: the rule breaks %d minutes in %.0f core-hours, the true curve %d in %.0f", tc.limit,
				rule.SLOViolationMinutes,
				rule.OnlineCoreHours, truth.SLOViolationMinutes, truth.OnlineCoreHours)
		}
	}
}

// The loop learns from the values of the history what a replica carries: no more than it truly does, and not far
// below. Rows that are given their capacity learn none.
func TestHistoryTeachesWhatAReplicaCarries(t *testing.T) {
	b := tinyAfter(14*24*time.Hour+scenario.WarmUp, 20, 2, tide(6, 20))
	o := &b.Services[0]
	before, spec := o.Capacity(), *o.Spec
	spec.SLO = scenario.SLO{Latency: config.Duration(600 * time.Millisecond), Quantile: 0.99, Errors: 0.01,
		Objective: scenario.Objective{GoodMinutes: 0.99}}
	spec.Curve = scenario.Curve{ServiceTime: config.Duration(100 * time.Millisecond)}
	o.Become(&spec)
	for k := range o.Load.Values {
		o.Load.Values[k] *= o.Capacity() / before
	}
	o.Static = 20 // its peak is its limit: some minutes break
	b.Jitter = 0.03
	shared := Share(b)
	portraits, _, err := shared.learned(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := portraits[o.ID()]
	w := NewWorld(b, shared.rates)
	truth := w.services[0].trueTarget(b.Jitter) * float64(o.Cores) / o.CPUSeconds
	l := p.Capacity.Of(fleet.LatencyName(0.99))
	if l == nil || p.Capacity.Of(fleet.LevelNameErrors) == nil {
		t.Fatalf("levels of the portrait: %v", p.Capacity)
	}
	if e := l.Capacity(0.99); e.Load > 1.05*truth || e.Load < 0.85*truth {
		t.Errorf("learned %+v, and %v is the truth of %v without jitter", e, truth, o.Capacity())
	}
	for _, given := range []Capacity{CapacityRule, CapacityTrue} {
		row := Row{Policy: Springtide, Lender: LendNone, Target: 95, Knob: KnobAvailability, Default: true, Capacity: given}
		c := newController(NewWorld(b, shared.rates), *row.controller(b), nil)
		c.Portraits = map[fleet.ServiceID]portrait.Portrait{o.ID(): p}
		c.forget()
		if c.w.learns || c.Portraits[o.ID()].Capacity != nil || len(c.levels(0, begin.Add(-time.Hour), 60).Of) > 0 {
			t.Errorf("the row %q learns", given)
		}
	}
}
