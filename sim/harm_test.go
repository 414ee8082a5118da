package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/sim/scenario"
)

// decides is a policy of a test.
type decides func(w *World)

func (d decides) Decide(w *World) { d(w) }

// Decisions that look at nothing are the same with and without lending: the harm is then exactly what the violations differ by.
func TestHarmIsWhatLendingAdds(t *testing.T) {
	flood := begin.Add(time.Hour)
	loads := func(at time.Time) float64 {
		if at.Before(flood) || !at.Before(flood.Add(30*time.Minute)) {
			return 6
		}
		return 12
	}
	// A machine is lent from one time to another, the one with the fewest or the one with the most online pods.
	minutes := func(from, to time.Duration, full bool) Result {
		b := tiny(2, 2, loads)
		w := NewWorld(b, Share(b).rates)
		for !w.over() {
			w.step([]Policy{decides(func(w *World) {
				s := &w.services[0]
				if s.desired = 8; !w.now.Before(flood) {
					s.desired = 14
				}
				switch {
				case w.now.Equal(flood.Add(from)):
					n := w.emptiest()
					if full {
						n = 1 - n
					}
					w.handOver(n)
				case w.now.Equal(flood.Add(to)):
					w.takeBack(w.fewestOffline())
				}
			})})
		}
		return w.result(Row{})
	}
	alone := minutes(-100*time.Hour, -100*time.Hour, false)
	if alone.HarmMinutes != 0 || alone.SLOViolationMinutes == 0 {
		t.Fatalf("without lending, %d of %d minutes are harm", alone.HarmMinutes, alone.SLOViolationMinutes)
	}
	for _, c := range []struct {
		name     string
		from, to time.Duration
		full     bool
	}{
		{"back too late", -30 * time.Minute, 15 * time.Second, false},
		{"back a minute too late", -30 * time.Minute, time.Minute, false},
		{"back much too late", -30 * time.Minute, 7 * time.Minute, false},
		{"taken from under pods", -30 * time.Minute, -10 * time.Minute, true},
		{"taken from under pods, and back late", -10 * time.Minute, 5 * time.Minute, true},
		{"taken from under pods that start", time.Minute, 3 * time.Minute, true},
	} {
		lent := minutes(c.from, c.to, c.full)
		if added := lent.SLOViolationMinutes - alone.SLOViolationMinutes; lent.HarmMinutes != added || added == 0 {
			t.Errorf("%s: %d minutes more, of which %d are harm", c.name, added, lent.HarmMinutes)
		}
	}
}

// On fleets so small that each machine tells, most of what lending adds is harm, also while a machine is on its way to offline, or home and still closed.
// In a single fleet the two differ by minutes either way, since a loop that sees another load for a moment decides otherwise later: 84 of 114 on 40 of them.
func TestHarmOfSmallFleets(t *testing.T) {
	long(t)
	added, harm := 0, 0
	for seed := range uint64(24) {
		const machines = 3
		r := rand.New(rand.NewPCG(seed+1, 9))
		floods := map[int64]bool{}
		for at := begin.Unix()/60 + 40; at < begin.Unix()/60+12*60; at += int64(52 + r.IntN(40)) {
			for k := range int64(12) {
				floods[at+k] = true
			}
		}
		b := tinyAfter(50*time.Hour, machines, 12, func(at time.Time) float64 {
			if floods[at.Unix()/60] {
				return machines * 8 * 0.8
			}
			return machines * 8 * 0.25
		})
		b.Services[0].Static, b.Services[0].Burst = machines*7, 1 // what pods burst makes loads of their own
		b.Fleet.Lending.MinimumTerm /= 6
		b.Fleet.Lending.LowPercent, b.Fleet.Lending.HighPercent = 1, 3
		lent, alone := play(t, b, whole), play(t, b, Row{Policy: Springtide, Lender: LendNone, Target: 95,
			Knob: KnobAvailability, Default: true})
		added, harm = added+lent.SLOViolationMinutes-alone.SLOViolationMinutes, harm+lent.HarmMinutes
	}
	if harm == 0 || harm > added || 2*harm < added {
		t.Errorf("lending adds %d minutes, of which %d are harm", added, harm)
	}
}

// A borrower that is recalled before its announced term got too long a term: by an unforeseen crowd.
func TestTermsBroken(t *testing.T) {
	long(t)
	crowd := scenario.Faults{Quiet: config.Duration(time.Hour), List: []scenario.Fault{
		{Kind: scenario.FlashCrowd, After: config.Duration(time.Hour), For: config.Duration(30 * time.Minute), Share: 1, Factor: 3}}}
	if got := play(t, troubled(2, 3, crowd), whole); got.TermsBroken == 0 {
		t.Error("no term was broken by a flash crowd")
	}
	if calm := play(t, troubled(2, 3, scenario.Faults{}), whole); calm.Moves == 0 || calm.TermsBroken != 0 {
		t.Errorf("%d moves, %d terms broken on a day as foreseen", calm.Moves, calm.TermsBroken)
	}
}
