package upstreamtest

import (
	"slices"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	autoscaling "k8s.io/api/autoscaling/v2"
	_ "k8s.io/kubernetes/pkg/controller/podautoscaler"
	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
)

// scaleEvent is upstream's timestampedScaleEvent, which it does not export.
type scaleEvent struct {
	change int32
	at     time.Time
	_      bool
}

// The two functions of the HorizontalPodAutoscaler that apply policies. They are not exported either.
//
//go:linkname upstreamUp k8s.io/kubernetes/pkg/controller/podautoscaler.calculateScaleUpLimitWithScalingRules
func upstreamUp(current int32, up, down []scaleEvent, rules *autoscaling.HPAScalingRules) int32

//go:linkname upstreamDown k8s.io/kubernetes/pkg/controller/podautoscaler.calculateScaleDownLimitWithBehaviors
func upstreamDown(current int32, up, down []scaleEvent, rules *autoscaling.HPAScalingRules) int32

// drawRules draws policies as upstream and as Springtide have them.
func drawRules(t *rapid.T) (*autoscaling.HPAScalingRules, fleet.ScalingRules) {
	selected := rapid.SampledFrom([]autoscaling.ScalingPolicySelect{autoscaling.MaxChangePolicySelect,
		autoscaling.MinChangePolicySelect,
		autoscaling.DisabledPolicySelect}).Draw(t, "select")
	theirs := &autoscaling.HPAScalingRules{SelectPolicy: &selected}
	ours := fleet.ScalingRules{Select: fleet.PolicySelect(selected), Stabilization: fleet.Says(time.Duration(0))}
	for range rapid.IntRange(1, 4).Draw(t, "policies") {
		p := autoscaling.HPAScalingPolicy{Value: rapid.Int32Range(1, 150).Draw(t, "value"),
			PeriodSeconds: rapid.SampledFrom([]int32{15, 60, 300, 1800}).Draw(t, "period")}
		policy := fleet.ScalingPolicy{Pods: p.Value, Period: time.Duration(p.PeriodSeconds) * time.Second}
		p.Type = autoscaling.PodsScalingPolicy
		if rapid.Bool().Draw(t, "percent") {
			p.Type = autoscaling.PercentScalingPolicy
			policy.Pods, policy.Percent = 0, p.Value
		}
		theirs.Policies, ours.Policies = append(theirs.Policies, p), append(ours.Policies, policy)
	}
	return theirs, ours
}

// drawPast draws sizes of the past, a change at a time, as upstream's events and as Springtide's decisions. Ages keep
// some seconds away
// from every period, since upstream reads the wall clock.
func drawPast(t *rapid.T, now time.Time, current int32) (up, down []scaleEvent, past []hpa.Decision) {
	ages := []time.Duration{5 * time.Second, 10 * time.Second, 25 * time.Second, 50 * time.Second, 2 * time.Minute,
		4 * time.Minute,
		10 * time.Minute, 25 * time.Minute, 45 * time.Minute}
	size := current // from now back
	for _, age := range ages {
		at := now.Add(-age)
		before := max(1, size+rapid.Int32Range(-20, 20).Draw(t, "change"))
		switch {
		case before < size:
			up = append(up, scaleEvent{change: size - before, at: at})
		case before > size:
			down = append(down, scaleEvent{change: before - size, at: at})
		}
		past = append(past, hpa.Decision{At: at, From: before, Replicas: size})
		size = before
	}
	slices.Reverse(past)
	return up, down, past
}

// TestScaleUpPoliciesAsUpstream: a demand without end is cut to what upstream's policies leave.
func TestScaleUpPoliciesAsUpstream(t *testing.T) {
	moved, disabled := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		current := rapid.Int32Range(1, 300).Draw(t, "current")
		theirs, ours := drawRules(t)
		up, down, past := drawPast(t, now, current)
		want := max(current, upstreamUp(current, up, down, theirs))
		svc := &fleet.Service{TargetFound: true, Desired: fleet.KnownAt(current, now), Max: 1_000_000,
			Metrics: []fleet.Metric{{Name: "queue", Type: fleet.MetricQuery, Target: 1}}, Behavior: fleet.Behavior{Up: ours}}
		live := hpa.Live{Signals: map[string]fleet.Known[float64]{"queue": fleet.KnownAt(900_000.0, now)}}
		tg := hpa.Ask(svc, portrait.Portrait{Signal: portrait.CPU}, forecast.Tide{}, live, now,
			hpa.Options{History: past}).Within(hpa.Bounds{})
		if tg.Replicas != want {
			t.Fatalf("from %d to %d, upstream to %d (%s)", current, tg.Replicas, want, tg.Why())
		}
		switch {
		case ours.Select == fleet.SelectDisabled:
			disabled++
		case want > current:
			moved++
		}
	})
	if moved == 0 || disabled == 0 {
		t.Errorf("%d inputs grew and %d were disabled: the comparison says nothing", moved, disabled)
	}
}

// TestScaleDownPoliciesAsUpstream: an agreement to one replica is eased to what upstream's policies leave.
func TestScaleDownPoliciesAsUpstream(t *testing.T) {
	moved, disabled := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		current := rapid.Int32Range(1, 300).Draw(t, "current")
		theirs, ours := drawRules(t)
		up, down, past := drawPast(t, now, current)
		want := min(current, max(1, upstreamDown(current, up, down, theirs)))
		svc, live := atRest(now, current)
		svc.Behavior.Down = ours
		p := portrait.Portrait{Signal: portrait.Requests, CPUPerLoad: fleet.KnownAt(0.02, now),
			CPUIdle: fleet.KnownAt(0.0, now)}
		tg := hpa.Ask(svc, p, calm(now), live, now, hpa.Options{History: past,
			WatchedSince: now.Add(-time.Hour)}).Within(hpa.Bounds{})
		if tg.Replicas != want {
			t.Fatalf("from %d to %d, upstream to %d (%s)", current, tg.Replicas, want, tg.Why())
		}
		switch {
		case ours.Select == fleet.SelectDisabled:
			disabled++
		case want < current:
			moved++
		}
	})
	if moved == 0 || disabled == 0 {
		t.Errorf("%d inputs shrank and %d were disabled: the comparison says nothing", moved, disabled)
	}
}

// atRest is a service of which every signal is fresh and asks for one replica.
func atRest(now time.Time, current int32) (*fleet.Service, hpa.Live) {
	svc := &fleet.Service{TargetFound: true, Desired: fleet.KnownAt(current, now), Min: 1, Max: 1_000_000,
		Request: fleet.Resources{CPU: 1000}}
	started, name := now.Add(-time.Hour), fleet.Name{Namespace: "shop", Name: "cart"}
	svc.Pods = []fleet.Pod{{Name: name, Class: fleet.PodOnline, Requests: svc.Request, Phase: fleet.PodRunning,
		Ready: true, CurrentRevision: true,
		Created: started, Started: fleet.KnownAt(started, started), ReadySince: fleet.KnownAt(started, started)}}
	return svc, hpa.Live{Load: fleet.KnownAt(1.0, now),
		CPU: map[fleet.Name]fleet.Known[fleet.MilliCPU]{name: fleet.KnownAt(fleet.MilliCPU(10), now)}}
}

// calm is a tide that asks for one replica.
func calm(now time.Time) forecast.Tide {
	path := make([]float64, 2*288)
	for i := range path {
		path[i] = 1
	}
	return forecast.Tide{Signal: portrait.Requests, Made: now, Start: now, Step: 5 * time.Minute,
		Quantiles: []float64{0.5, 0.95}, Paths: [][]float64{path, path},
		Model: "seasonal", Trusted: true}
}
