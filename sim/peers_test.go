package sim

import (
	"math"
	"testing"
	"time"

	"github.com/springtide/springtide/sim/scenario"
)

// first is a world with one service at the start of the scored time.
func first(b *scenario.Built) *World {
	w := NewWorld(b, NewRates(b))
	for w.now.Before(begin) {
		w.step(nil)
	}
	return w
}

// PHPA's line through the last six counts, two thirds of a sync ahead.
func TestTheLine(t *testing.T) {
	w := first(tiny(4, 1, tide(5, 10)))
	count := int32(0)
	line := byLine(1, func(*World, int, int32) int32 { count += 3; return count })
	var got []int32
	for range 8 {
		got = append(got, line(w, 0, 1))
	}
	// A step of 3 a sync is 2 in ten seconds; a single count has no line.
	for i, n := range got {
		want := int32(3*(i+1) + 2)
		if i == 0 {
			want = 3
		}
		if n != want {
			t.Errorf("after %d counts %d, want %d", i+1, n, want)
		}
	}
}

// A metric that asks for more and more ends where the fleet does.
func TestTheMost(t *testing.T) {
	w := first(tiny(4, 1, tide(5, 10)))
	f := newFrame(w, []ask{func(_ *World, _ int, current int32) int32 { return 2 * current }}, nil)
	for range 10 {
		w.step([]Policy{f})
	}
	if n := w.services[0].desired; n != 4*8 {
		t.Errorf("%d replicas of 8 cores on four machines of 64", n)
	}
}

// The schedule of this hour is last week's hour, and not what this week brings.
func TestTheSchedule(t *testing.T) {
	b := tiny(12, 3, func(at time.Time) float64 {
		if at.Before(begin) {
			return float64(at.Hour() + 5)
		}
		return 40
	})
	w := first(b)
	for hour := range 3 {
		now := begin.Add(time.Duration(hour)*time.Hour + 7*time.Minute)
		w.now = now
		// (hour + 5) replicas at 0.85, at a target of 0.5.
		if n, want := byLastWeek(NewPast(b), 0.5)(w, 0, 1), int32(math.Ceil(float64(hour+5)*0.85/0.5-1e-9)); n != want {
			t.Errorf("at %s the floor is %d, want %d", now, n, want)
		}
	}
}

// Crane's DSP finds the day, and asks for what the next hour will need; without a period it is silent.
func TestTheFilter(t *testing.T) {
	b := tiny(12, 20, tide(6, 40))
	p := NewPast(b)
	for _, hour := range []int{1, 9, 17} {
		now := begin.Add(time.Duration(hour) * time.Hour)
		want := 0.0
		for at := now; at.Before(now.Add(time.Hour)); at = at.Add(time.Minute) {
			want = max(want, b.Services[0].Load.At(at))
		}
		if got := p.crane(0, now); math.Abs(got/want-1) > 0.25 {
			t.Errorf("at %d o'clock the next hour needs %.1f cores, DSP says %.1f", hour, want, got)
		}
	}
	if v := NewPast(tiny(12, 2, func(time.Time) float64 { return 7 })).crane(0, begin.Add(time.Hour)); !math.IsNaN(v) {
		t.Errorf("a constant has a period, and DSP says %v", v)
	}
}

// Both that use our forecaster know the flood before it comes: AWS from 300 s before its hour on, AHPA 180 s ahead.
func TestTheForecasts(t *testing.T) {
	b := tiny(12, 20, tide(6, 40))
	w := first(b)
	p := NewPast(b)
	at := begin.Add(16 * time.Hour)
	for name, a := range map[string]ask{"aws": byAWS(p, 0.85), "ahpa": byAHPA(p, 0.85)} {
		w.now = at
		if n, want := a(w, 0, 1), tide(6, 40)(at); float64(n) < 0.85*want || float64(n) > 1.3*want {
			t.Errorf("%s asks for %d replicas at four, %.1f are needed", name, n, want)
		}
	}
	aws := byAWS(p, 0.85)
	w.now = at.Add(-6 * time.Minute)
	early := aws(w, 0, 1)
	w.now = at.Add(-5 * time.Minute)
	if n := aws(w, 0, 1); n <= early {
		t.Errorf("five minutes before four the floor is %d, a minute before that %d", n, early)
	}
}

// Katalyst's tide moves one machine in ten seconds, and gives back when a pod finds no room.
func TestTheTide(t *testing.T) {
	b := tiny(60, 2, func(at time.Time) float64 {
		if at.Before(begin.Add(time.Hour)) {
			return 20
		}
		return 200
	})
	borrowed, most := 0, 0
	w := watched(t, b, Row{Policy: HPA, Lender: LendTidal, Target: 60, Knob: KnobUtilisation, Default: true}, func(w *World) {
		if moved := w.borrowed - borrowed; moved > 2 || moved < -2 {
			t.Fatalf("%d machines moved in 15 s", moved)
		}
		borrowed = w.borrowed
		most = max(most, borrowed)
		if w.now.Equal(begin.Add(-scenario.WarmUp+5*time.Minute)) && borrowed > 31 {
			t.Errorf("%d machines are lent after five minutes", borrowed)
		}
	})
	if r := w.result(Row{}); most < 40 || borrowed > most-20 || r.HarmMinutes == 0 || r.WorkLostCoreHours == 0 {
		t.Errorf("%d machines were lent at most, %d at the end; %d harm minutes, %v core-hours lost", most, borrowed, r.HarmMinutes, r.WorkLostCoreHours)
	}
}

// Time division lends at night alone, and takes back slowly.
func TestTheNight(t *testing.T) {
	b := tiny(60, 12, tide(5, 20))
	evening, morning, noon := int32(0), int32(0), int32(0)
	watched(t, b, Row{Policy: Static, Lender: LendTDM, Target: 120, Knob: KnobHeadroom}, func(w *World) {
		switch w.now {
		case begin.Add(-10 * time.Minute):
			evening = w.offlineHeld
		case begin.Add(tdmTo*time.Hour + 10*time.Minute):
			morning = w.offlineHeld
		case begin.Add(11 * time.Hour):
			noon = w.offlineHeld
		}
	})
	// 24 cores a minute go: one pod of 16 and one of 8.
	if evening == 0 || morning < evening/2 || noon >= morning || noon > max(0, morning-4*60*24) {
		t.Errorf("offline holds %d cores at night, %d ten minutes after it, %d at eleven", evening, morning, noon)
	}
}

// An online pod that finds no room in the night has it as soon as enough guests are gone.
func TestTheNightPreempts(t *testing.T) {
	b := tiny(1, 2, tide(2, 3))
	w := NewWorld(b, Share(b).rates)
	most := int32(0)
	for !w.over() {
		w.step([]Policy{decides(func(w *World) {
			if w.services[0].desired = 2; w.now.After(begin.Add(30 * time.Minute)) {
				w.services[0].desired = 8
			}
		}), tdm{}})
		if w.now.Before(begin.Add(30 * time.Minute)) {
			most = max(most, w.offlineHeld)
		}
	}
	if s := &w.services[0]; most < 40 || s.waiting > 0 || s.ready != 8 {
		t.Errorf("%d cores of guests; then %d replicas wait and %d are ready", most, s.waiting, s.ready)
	}
}

// A replica that fits into no machine's free part brings a machine back, though the parts add up to enough for it.
func TestTheTideComesBackForWholeReplicas(t *testing.T) {
	b := tiny(3, 2, tide(2, 3))
	o := &b.Services[0]
	o.Cores, o.Spec.Cores, o.Static = 24, 24, 4
	w := NewWorld(b, Share(b).rates)
	for !w.over() {
		w.step([]Policy{decides(func(w *World) {
			if w.services[0].desired = 4; w.now.After(begin.Add(30 * time.Minute)) {
				w.services[0].desired = 5
			}
		}), &tidal{}})
	}
	if s := &w.services[0]; s.waiting > 0 || s.ready != 5 {
		t.Errorf("%d replicas wait and %d are ready", s.waiting, s.ready)
	}
}
