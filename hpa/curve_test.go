package hpa

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// hours are the edges of some hours.
func hours(from time.Time, n int) (edges []time.Time) {
	for k := range n + 1 {
		edges = append(edges, from.Add(time.Duration(k)*time.Hour))
	}
	return edges
}

// mostOf is the curve of a world from its first edge on.
func mostOf(w *world, festivals []fleet.Festival, edges []time.Time) []int32 {
	return NewCurve(&w.svc, &w.p, &w.t, festivals, edges[0], edges[len(edges)-1]).Most(edges)
}

// A week repeats the last day of the tide, and shows windows, lifts and bounds where they are.
func TestWeek(t *testing.T) {
	w := calm(8)
	w.tide(200, 500) // an hour of 8 replicas (25 a replica), then 20 of them
	w.svc.Windows = []fleet.Window{{Name: "late", Schedule: "0 12 * * *", Duration: 2 * time.Hour, Zone: time.UTC, Min: 30}}
	from := noon.AddDate(0, 0, 1)
	festivals := []fleet.Festival{{ID: "sale", Start: from.Add(50 * time.Hour), End: from.Add(52 * time.Hour), Approved: true,
		Lifts: []fleet.Lift{{Service: w.svc.ID, Factor: 1.5}}}}
	got := mostOf(w, festivals, hours(from, 72))
	for k, n := range got {
		want := int32(20)
		switch {
		case k%24 < 2:
			want = 30
		case k == 50 || k == 51:
			want = 30 // 1.5 × 500 / 25
		}
		if n != want {
			t.Errorf("hour %d: %d replicas, want %d", k, n, want)
		}
	}
	w.svc.Max = 25
	if got := mostOf(w, festivals, hours(from, 72)); got[50] != 25 || got[0] != 25 {
		t.Errorf("the maximum bounds windows and lifts: %d and %d", got[0], got[50])
	}
	// Without a tide last week's peak stands in, and factors multiply it.
	w = calm(8)
	w.svc.Max = 100
	w.p.Peak, w.t.Paths = 300, nil
	if got := mostOf(w, festivals, hours(from, 72)); got[10] != 12 || got[50] != 18 {
		t.Errorf("%d and %d replicas, want the peak's 12 and a half more", got[10], got[50])
	}
}

// A step that is cut at the edge of a window has it on one side alone, on each of its days; what stands in for the load is the same hour's.
func TestWeekInUnequalSteps(t *testing.T) {
	w := calm(8)
	w.tide(200, 500)
	w.svc.Windows = []fleet.Window{{Name: "late", Schedule: "20 12 * * *", Duration: 70 * time.Minute, Zone: time.UTC, Min: 30}}
	var edges []time.Time
	for day := 1; day < 5; day++ {
		for _, minutes := range []time.Duration{0, 20, 60, 90, 120} {
			edges = append(edges, noon.AddDate(0, 0, day).Add(minutes*time.Minute))
		}
	}
	for k, n := range mostOf(w, nil, edges) {
		if want := []int32{20, 30, 30, 20, 20}[k%5]; n != want {
			t.Errorf("from %s: %d replicas, want %d", edges[k], n, want)
		}
	}
}

// Beyond a tide that spans a week the same day of the week stands in, and not the last one: a Sunday is no Monday.
func TestAWeekOfTideRepeatsByTheWeek(t *testing.T) {
	w := calm(8)
	w.tide(500)
	for i := range w.t.Paths {
		quiet, whole := w.t.Paths[i][0]/5, make([]float64, 7*288)
		for k := range whole {
			if whole[k] = w.t.Paths[i][0]; k/288 == 6 { // the Sunday after noon's Monday
				whole[k] = quiet
			}
		}
		w.t.Paths[i] = whole
	}
	got := mostOf(w, nil, hours(noon, 14*24))
	for day, want := range []int32{20, 20, 20, 20, 20, 20, 4, 20, 20, 20, 20, 20, 20, 4} {
		if n := got[24*day+12]; n != want {
			t.Errorf("day %d: %d replicas, want %d", day, n, want)
		}
	}
}

// A factor multiplies what stands in for a tide before the lift is in force, and not what runs under it: that has the
// crowd already, and would be multiplied again in each cycle.
func TestALiftMultipliesNoCrowdTwice(t *testing.T) {
	for from, want := range map[time.Duration]int32{time.Hour: 24, 0: 8, -time.Hour: 8} {
		w := calm(8)
		w.t.Paths = nil
		w.o.Festivals = []fleet.Festival{{ID: "sale", Start: noon.Add(from), End: noon.Add(3 * time.Hour), Approved: true,
			Lifts: []fleet.Lift{{Service: w.svc.ID, Factor: 3}}}}
		ahead := w.size().Ahead
		if at := int(2 * time.Hour / Standard().AheadStep); ahead[at] != want || ahead[len(ahead)-1] != 8 {
			t.Errorf("a lift that begins %s from now: %d replicas in two hours, want %d; %d after it",
				from, ahead[at], want, ahead[len(ahead)-1])
		}
	}
}

func TestPlanned(t *testing.T) {
	w := calm(8)
	sale := []fleet.Festival{{ID: "sale", Start: noon.Add(time.Hour), End: noon.Add(2 * time.Hour), Approved: true, Lifts: []fleet.Lift{{Service: w.svc.ID, Factor: 2}}}}
	planned := func(festivals []fleet.Festival, from, until time.Time) bool {
		return Planned(&w.svc, festivals, from, until)
	}
	week := noon.AddDate(0, 0, 7)
	if planned(nil, noon, week) || planned(sale, noon, noon.Add(time.Minute)) || planned(sale, noon.Add(3*time.Hour), week) || !planned(sale, noon, week) {
		t.Error("a plan counts where it is in force in time")
	}
	w.svc.Windows = []fleet.Window{{}}
	if !planned(nil, noon, week) {
		t.Error("windows count always")
	}
}

// After the deadline of a quota what runs beyond it is brought down, never below the minimum, and not by a controller that just started.
func TestDrain(t *testing.T) {
	w := calm(8)
	w.tide(200)
	w.within.Drain, w.within.QuotaWhy = 5, reason.Said("quota shop had to give back 3 cores")
	if tg := w.size(); tg.Replicas != 5 || tg.Limited != LimitedQuota || tg.Held != "" {
		t.Errorf("%d replicas (limited %q, held %q): %s", tg.Replicas, tg.Limited, tg.Held, tg.Why())
	}
	w.svc.Min = 6
	if tg := w.size(); tg.Replicas != 6 {
		t.Errorf("%d replicas, want the minimum 6: %s", tg.Replicas, tg.Why())
	}
	w.o.WatchedSince, w.o.Window = w.now.Add(-time.Minute), 5*time.Minute
	if tg := w.size(); tg.Replicas != 8 || tg.Held != HeldJustStarted {
		t.Errorf("%d replicas (held %q), want all 8: %s", tg.Replicas, tg.Held, tg.Why())
	}
}
