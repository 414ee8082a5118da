package hpa

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
)

// tolerances are the parts by which usage may miss its target before a reactive part speaks: below it and above it.
type tolerances struct{ down, up float64 }

func tolerancesOf(svc *fleet.Service, usual float64) tolerances {
	return tolerances{down: svc.Behavior.Down.Tolerance.Or(usual), up: svc.Behavior.Up.Tolerance.Or(usual)}
}

// within reports whether a ratio of usage to target lies in the tolerances.
func (t tolerances) within(ratio float64) bool { return 1-t.down <= ratio && ratio <= 1+t.up }

// countAt is the replica count at the beginning of a period that ends now: what the first decision inside of it was
// taken at. That is
// upstream's current count without what was added, and with what was taken, within the period.
func (z *sizer) countAt(current int32, period time.Duration) int32 {
	start, first := current, time.Time{}
	for _, h := range z.o.History {
		if !h.At.After(z.now.Add(-period)) || h.At.After(z.now) {
			continue
		}
		if first.IsZero() || h.At.Before(first) || (h.At.Equal(first) && h.From < start) {
			start, first = h.From, h.At
		}
	}
	return start
}

// mostNow is how far a scale-out may go now: what the operator's policies leave (upstream's
// calculateScaleUpLimitWithScalingRules), else
// the larger of twice as many and four more than at the start of the rate window (upstream's default policies).
func (z *sizer) mostNow(current int32) int32 {
	rules, d := &z.svc.Behavior.Up, z.o.Defaults
	if !rules.Bound() {
		start := float64(z.countAt(current, d.RateWindow))
		return max(current, ceil(start*d.RateFactor), ceil(start+float64(d.RatePods)))
	}
	most := z.chosen(rules, current, func(start float64, p *fleet.ScalingPolicy) float64 {
		return math.Ceil(start*(1+float64(p.Percent)/100)) + float64(p.Pods)
	}, +1)
	return max(current, most)
}

// leastByRules is how far a scale-in may go now by the operator's policies (upstream's
// calculateScaleDownLimitWithBehaviors).
func (z *sizer) leastByRules(current int32) int32 {
	least := z.chosen(&z.svc.Behavior.Down, current, func(start float64, p *fleet.ScalingPolicy) float64 {
		return math.Floor(start*(1-float64(p.Percent)/100)) - float64(p.Pods)
	}, -1)
	return min(current, max(least, 0))
}

// chosen is the count that the selected policy allows. way is +1 where the largest change is the largest count, -1
// where it is the
// smallest.
func (z *sizer) chosen(rules *fleet.ScalingRules, current int32,
	allows func(start float64, p *fleet.ScalingPolicy) float64, way float64) int32 {
	if rules.Select == fleet.SelectDisabled {
		return current
	}
	if rules.Select == fleet.SelectMin {
		way = -way
	}
	out := math.Inf(int(-way))
	for i := range rules.Policies {
		p := &rules.Policies[i]
		n := allows(float64(z.countAt(current, p.Period)), p)
		if way > 0 {
			out = max(out, n)
		} else {
			out = min(out, n)
		}
	}
	return int32(min(max(out, 0), math.MaxInt32))
}

// settled is what a scale-out may take of what is wanted: the smallest ask of its stabilization window, at least what
// runs and what the
// operator meant. Without a window, which is the default, it is all.
func (z *sizer) settled(want, meant int32) int32 {
	window := z.svc.Behavior.Up.Stabilization.Or(0)
	if window <= 0 || want <= z.held {
		return want
	}
	least := want
	for _, h := range z.o.History {
		if h.At.After(z.now.Add(-window)) {
			least = min(least, h.Replicas)
		}
	}
	return max(least, z.held, min(meant, want))
}
