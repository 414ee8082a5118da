package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/springtide/springtide/sim/scenario"
)

// Static provisioning of a load that is what the last week's peak was: nothing is violated, and it costs what it asks for. Above its capacity
// every minute is violated.
func TestTheAccount(t *testing.T) {
	b := tiny(4, 2, func(at time.Time) float64 {
		if !at.Before(begin.Add(time.Hour)) {
			return 13 // of twelve replicas
		}
		return 10
	})
	r := play(t, b, Row{Policy: Static, Lender: LendNone, Target: 120, Knob: KnobHeadroom})
	if r.SLOViolationMinutes != 60 || r.Classes[Calm].SLOViolationMinutes != 60 || r.Classes[Calm].ServiceWeeks != 2.0/24/7 {
		t.Errorf("%d minutes violated, want the 60 of the second hour: %+v", r.SLOViolationMinutes, r.Classes)
	}
	if want := 12.0 * 8 * 2; math.Abs(r.OnlineCoreHours-want) > 1e-6 {
		t.Errorf("%v core-hours, want %v", r.OnlineCoreHours, want)
	}
	// 10 and 13 replicas' worth of load at 0.85 × 8 cores each, on 4 machines of 64.
	if want := (10.0 + 13) / 2 * 0.85 * 8 / 256; math.Abs(r.MeanUtilisation-want) > 1e-6 {
		t.Errorf("utilisation %v, want %v", r.MeanUtilisation, want)
	}
}

// An hour, and a moment, hold their own ticks: what offline uses in the first tick of the next one is the next one's.
func TestHoursHoldTheirOwnTicks(t *testing.T) {
	b := tiny(2, 3, tide(4, 6))
	w := NewWorld(b, NewRates(b))
	j := &w.jobs[0]
	for k := range 2*perHour + 1 {
		w.tick = w.scored + k
		j.busy, w.offlineHeld = 0, 0
		if k == perHour {
			j.busy, w.offlineHeld = 3, 48
		}
		w.acc.tick(w)
		// 48 cores in one of the ticks of the second hour.
		if want := 48 / float64(perHour); k == perHour && w.acc.peak != 0 || k == 2*perHour && w.acc.peak != want {
			t.Errorf("after %d ticks the fullest hour is %v, want %v", k, w.acc.peak, want)
		}
	}
	const first = int(perHour / momentTicks)
	for i, m := range w.acc.moments {
		if (m.Lent > 0) != (i == first) || (m.Used > 0) != (i == first) {
			t.Errorf("moment %d: %+v", i, m)
		}
	}
}

// A doubled load is answered by the HPA within its metric's time and a start-up, and given back only after its window.
func TestTheFrame(t *testing.T) {
	step := begin.Add(time.Hour)
	b := tiny(10, 3, func(at time.Time) float64 {
		if !at.Before(step) && at.Before(step.Add(time.Hour)) {
			return 20
		}
		return 10
	})
	var first, ready, back time.Time
	watched(t, b, Row{Policy: HPA, Lender: LendNone, Target: 60, Knob: KnobUtilisation}, func(w *World) {
		s := &w.services[0]
		if err := w.sound(); err != nil {
			t.Fatalf("%s: %v", w.now, err)
		}
		if w.now.Before(begin) {
			return
		}
		if w.now.Before(step) {
			if s.desired < 14 || s.desired > 16 { // 10 × 0.85 / 0.6 = 14.2, and a tenth of tolerance
				t.Fatalf("%s: %d replicas for a load of ten at 0.85", w.now, s.desired)
			}
			return
		}
		if first.IsZero() && s.desired > 16 {
			first = w.now
		}
		if ready.IsZero() && s.ready >= 26 {
			ready = w.now
		}
		if back.IsZero() && w.now.After(step.Add(time.Hour)) && s.desired < 26 {
			back = w.now
		}
	})
	if d := first.Sub(step); d < tick || d > 4*tick {
		t.Errorf("the first answer came after %s", d)
	}
	if d := ready.Sub(step); d < 3*time.Minute || d > 5*time.Minute {
		t.Errorf("enough replicas were ready after %s", d)
	}
	if d := back.Sub(step.Add(time.Hour)); d < 5*time.Minute || d > 6*time.Minute {
		t.Errorf("replicas went after %s, not after the window", d)
	}
}

// A lender behind a policy's name picks those lines alone.
func TestRowsOfOneLender(t *testing.T) {
	rows, err := Rows(tiny(1, 1, tide(1, 1)), []string{"hpa+none", "springtide+springtide", Oracle})
	if err != nil || len(rows) != len(utilisations)+2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if want := map[string]string{HPA: LendNone, Springtide: LendSpringtide, Oracle: LendOracle}[r.Policy]; r.Lender != want {
			t.Errorf("%s is played with lender %s", r.Policy, r.Lender)
		}
	}
}

// everyRow are policies and lenders that see no future.
func everyRow(t *testing.T, b *scenario.Built) []Row {
	t.Helper()
	rows, err := Rows(b, Policies()[:10])
	if err != nil {
		t.Fatal(err)
	}
	var out []Row
	for _, r := range rows {
		if r.Default {
			out = append(out, r)
		}
	}
	return out
}

// The same row gives the same bytes, and the books agree at every tick.
func TestDeterminism(t *testing.T) {
	long(t)
	b := tiny(12, 1, tide(6, 40), tide(3, 20))
	b.Jitter = 0.03
	for _, r := range everyRow(t, b) {
		var texts [2][]byte
		for i := range texts {
			w := watched(t, b, r, func(w *World) {
				if w.tick%7 != 0 {
					return
				}
				if err := w.sound(); err != nil {
					t.Fatalf("%s with %s at %s: %v", r.Policy, r.Lender, w.now, err)
				}
			})
			text, err := json.Marshal(w.result(r))
			if err != nil {
				t.Fatal(err)
			}
			texts[i] = text
		}
		if !bytes.Equal(texts[0], texts[1]) {
			t.Errorf("%s with %s:\n%s\n%s", r.Policy, r.Lender, texts[0], texts[1])
		}
	}
}

// Rows and seeds that are played at once come to what they come to one by one, and in order.
func TestSimulateAtOnce(t *testing.T) {
	b := tinyAfter(3*24*time.Hour, 12, 1, tide(6, 40), tide(3, 20))
	rows, err := Rows(b, []string{Static, CronHPA, DSP, AHPA, Reactive, Oracle})
	if err != nil {
		t.Fatal(err)
	}
	got, broken, err := Simulate(context.Background(), b, rows, nil)
	if err != nil || broken != nil {
		t.Fatal(broken, err)
	}
	for i, r := range rows {
		want := play(t, b, r)
		got[i].Took = 0
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("%s at %v: %+v, alone %+v", r.Policy, r.Target, got[i], want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Simulate(ctx, b, rows, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was stopped ends with %v", err)
	}
}

// Pods burst into what is there: the backlog of a flood on a full fleet is worked off with no more cores than it has, and cores that offline pods hold are
// none of them; without lending these would be.
func TestBurstsHaveNoMoreThanThereIs(t *testing.T) {
	b := tiny(4, 4, func(at time.Time) float64 {
		switch since := at.Sub(begin); {
		case since < 0:
			return 20
		case since < 40*time.Minute:
			return 60
		case since < time.Hour:
			return 400
		case since < 2*time.Hour:
			return 150
		}
		return 20
	})
	row := Row{Policy: HPA, Lender: LendNone, Target: 60, Knob: KnobUtilisation}
	if out := play(t, b, row); out.PeakUtilisation < 0.99 || out.PeakUtilisation > 1+1e-9 {
		t.Errorf("%v of the fleet are used in the fullest hour", out.PeakUtilisation)
	}
	w := prepared(t, b, row, func(*World, *Past) {})
	s := &w.services[0]
	free := int32(4*64 - s.ready*s.Cores)
	s.rate = (float64(s.ready*s.Cores) + float64(free)/2) / s.CPUSeconds
	for _, c := range []struct {
		guests int32
		part   float64
	}{{0, 1}, {free / 2, 1}, {free * 3 / 4, 0.5}, {free, 0}} {
		w.guests = c.guests
		if part, unlent := w.burst(); math.Abs(part-c.part) > 1e-9 || unlent != 1 {
			t.Errorf("%d of %d free cores are held: %v of the bursts are had, %v without lending", c.guests, free, part, unlent)
		}
	}
}
