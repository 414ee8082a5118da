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
