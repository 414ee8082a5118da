package sim

import (
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/sim/scenario"
)

// returnsAt is when the tide comes back on the day of the run: each day of history it stayed away until the evening.
var returnsAt = begin.Add(15*time.Hour + 30*time.Minute)

// wrongEbb is a load that falls each afternoon within a quarter of an hour, and on the day of the run is back a quarter
// after its scale-in.
func wrongEbb(at time.Time) float64 {
	const high, low = 20, 8
	h := float64(at.Hour()) + float64(at.Minute())/60
	switch {
	case !at.Before(returnsAt) && at.Before(returnsAt.Add(2*time.Hour)):
		return high
	case h < 6, h >= 16:
		return low
	case h < 15:
		return high
	case h < 15.25:
		return high - (high-low)*(h-15)/0.25
	}
	return low
}

// standbyRun is what came of the wrong scale-in.
type standbyRun struct {
	lowest   int           // ready replicas before the tide is back
	decided  time.Duration // from the tide's return until something is done about it
	ready    time.Duration // and until all replicas serve that did before
	broken   int           // ticks in which the SLO did not hold
	mostHeld int           // replicas that were held in standby
}

func playWrongEbb(t *testing.T, standby time.Duration, faults scenario.Faults) standbyRun {
	t.Helper()
	b := tiny(6, 18, wrongEbb)
	b.Services[0].Spec.Standby = config.Duration(standby)
	b.Faults = faults
	r := standbyRun{lowest: 1 << 30}
	before, asked := 0, int32(0)
	watched(t, b, Row{Policy: Springtide, Lender: LendNone}, func(w *World) {
		s := &w.services[0]
		r.mostHeld = max(r.mostHeld, s.standing)
		switch since := w.now.Sub(returnsAt); {
		case w.now.Before(begin.Add(15 * time.Hour)):
			before = s.ready
		case since < 0:
			r.lowest, asked = min(r.lowest, s.ready), s.desired-int32(s.standing)
		case r.ready > 0 || since > time.Hour:
		default:
			if r.decided == 0 && s.desired-int32(s.standing) > asked {
				r.decided = since + tick
			}
			if s.broken > 0 {
				r.broken++
			}
			if s.ready >= before*9/10 {
				r.ready = since + tick
			}
		}
	})
	t.Logf("standby %s: %+v", standby, r)
	return r
}

// A scale-in that was wrong costs a start-up in the plain form, and one cycle in the staged form. The moment at which
// the tide is seen to be back is the same.
func TestWrongScaleIn(t *testing.T) {
	plain, staged := playWrongEbb(t, 0, scenario.Faults{}), playWrongEbb(t, 30*time.Minute, scenario.Faults{})
	startUp := 3 * time.Minute
	switch {
	case plain.lowest > 14 || staged.lowest > 14:
		t.Fatalf("there was no scale-in to be wrong: %d and %d replicas left", plain.lowest, staged.lowest)
	case plain.mostHeld > 0 || staged.mostHeld < 5:
		t.Fatalf("%d and %d replicas stood by", plain.mostHeld, staged.mostHeld)
	}
	if cost := plain.ready - plain.decided; cost < startUp {
		t.Errorf("plain: all serve %s after the decision, sooner than a start-up", cost)
	}
	if cost := staged.ready - staged.decided; cost > tick {
		t.Errorf("staged: all serve %s after the decision, later than one cycle", cost)
	}
	if staged.broken >= plain.broken {
		t.Errorf("the SLO is broken for %d ticks staged, %d plain", staged.broken, plain.broken)
	}
}

// Whatever goes wrong (crashes between writes, leaders that change, a freeze, missing metrics, machines that go), no
// pod stands by for longer than its time and what held it, and nothing that holds without a standby breaks.
func TestStandbySeedsBreakNothing(t *testing.T) {
	seeds := uint64(24)
	if testing.Short() || raceEnabled {
		seeds = 4
	}
	stood := 0
	for seed := uint64(1); seed <= seeds; seed++ {
		b := troubled(seed, 4, scenario.Faults{Random: 6, Quiet: config.Duration(90 * time.Minute)})
		for i := range b.Services {
			b.Services[i].Spec.Standby = config.Duration(10 * time.Minute)
		}
		longest := time.Duration(0)
		w := watched(t, b, whole, func(w *World) {
			for i := range w.services {
				stood = max(stood, w.services[i].standing)
			}
			for id := range w.pods {
				if p := &w.pods[id]; p.used && p.standby && !p.leaving {
					longest = max(longest, time.Duration(w.tick-p.left)*tick)
				}
			}
		})
		if longest > 3*time.Hour {
			t.Errorf("seed %d: a pod stood by for %s", seed, longest)
		}
		for id := range w.pods {
			if p := &w.pods[id]; p.used && p.standby && !p.leaving && time.Duration(w.tick-p.left)*tick > 30*time.Minute {
				t.Errorf("seed %d: after 90 quiet minutes pod %s has stood by for %s", seed, p.name,
					time.Duration(w.tick-p.left)*tick)
			}
		}
	}
	if stood == 0 {
		t.Error("no pod ever stood by: the test cannot fail")
	}
}
