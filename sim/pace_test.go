package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/sim/scenario"
)

// cyclesOf plays a service of steady load, which doubles at a time, and returns when the loop ran in the second quarter of the first hour.
func cyclesOf(t *testing.T, flood time.Time) []time.Duration {
	t.Helper()
	b := tinyAfter(2*24*time.Hour+scenario.WarmUp, 20, 1, func(at time.Time) float64 {
		if at.Before(flood) {
			return 20
		}
		return 40
	})
	var out []time.Duration
	prepared(t, b, Row{Policy: Springtide, Lender: LendNone, Target: 95, Knob: KnobAvailability, Default: true},
		func(w *World, _ *Past) {
			w.journal = func(*loop.Record) {
				if after := w.now.Sub(begin); after >= 15*time.Minute && after < 30*time.Minute {
					out = append(out, after)
				}
			}
		})
	return out
}

// Plans are made every 60 s, on the minute, and a load that stays as it is brings none in between.
func TestThePaceOfPlans(t *testing.T) {
	var want []time.Duration
	for at := 15 * time.Minute; at < 30*time.Minute; at += 60 * time.Second {
		want = append(want, at)
	}
	if got := cyclesOf(t, begin.Add(24*time.Hour)); !slices.Equal(got, want) {
		t.Errorf("plans at %s, want %s", got, want)
	}
}

// A flood is answered by the next step once a sample has shown it, and not by the next plan: played from 20:00 to 20:15, seen a sample's age of 15 s later.
func TestThePaceOfTheReactivePart(t *testing.T) {
	got := cyclesOf(t, begin.Add(20*time.Minute))
	if at, found := slices.BinarySearch(got, 20*time.Minute); !found || at+1 == len(got) || got[at+1] != 20*time.Minute+30*time.Second {
		t.Errorf("the loop runs at %s, want 20m30s next after a flood at 20m0s", got)
	}
}
