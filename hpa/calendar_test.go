package hpa

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
)

// sale lifts a world's tide by a learned day that doubles it.
func sale(w *world) {
	w.t.Ordinary = w.t.Paths
	w.t.Paths = nil
	for _, p := range w.t.Ordinary {
		twice := slices.Clone(p)
		for j := range twice {
			twice[j] *= 2
		}
		w.t.Paths = append(w.t.Paths, twice)
	}
	w.t.Days = []forecast.LiftedDay{{Name: "11.11", From: noon.Add(-12 * time.Hour), To: noon.Add(12 * time.Hour), Factor: 2, Kin: true}}
}

// The calendar's expectation is sized for and named; a plan that says by a factor what the time is worth takes its
// place, while it lasts.
func TestPlanBeatsCalendar(t *testing.T) {
	plan := func(change func(*fleet.Festival)) *fleet.Festival {
		f := &fleet.Festival{ID: "spring", Start: noon, End: noon.Add(2 * time.Hour), Approved: true,
			Lifts: []fleet.Lift{{Service: "shop/cart", Factor: 1.5}}}
		change(f)
		return f
	}
	none := func(*fleet.Festival) {}
	tests := []struct {
		name          string
		plan          *fleet.Festival
		want, after   int32 // now, and at step 26: the plan is over, and the day is not
		namesCalendar bool
	}{
		// 160/s × 2 / 25 = 12.8.
		{"no plan", nil, 13, 13, true},
		// 160/s × 1.5 / 25 = 9.6, where both would be 19.2.
		{"a smaller factor", plan(none), 10, 13, false},
		{"a larger factor", plan(func(f *fleet.Festival) { f.Lifts[0].Factor = 3 }), 20, 13, false},
		{"no load more than ordinary", plan(func(f *fleet.Festival) { f.Lifts[0].Factor = 1 }), 8, 13, false},
		{"a floor says nothing of the load", plan(func(f *fleet.Festival) { f.Lifts[0] = fleet.Lift{Service: "shop/cart", Floor: 9} }), 13, 13, true},
		{"not approved", plan(func(f *fleet.Festival) { f.Approved = false }), 13, 13, true},
		{"of another service", plan(func(f *fleet.Festival) { f.Lifts[0].Service = "shop/other" }), 13, 13, true},
		{"all of the day", plan(func(f *fleet.Festival) { f.Start, f.End = noon.Add(-12*time.Hour), noon.Add(12*time.Hour) }), 10, 10, false},
	}
	for _, tt := range tests {
		w := calm(8)
		sale(w)
		if tt.plan != nil {
			w.o.Festivals = []fleet.Festival{*tt.plan}
		}
		tg := w.size()
		if tg.Replicas != tt.want || tg.Ahead[26] != tt.after {
			t.Errorf("%s: %d replicas and %d after the plan, want %d and %d: %s", tt.name, tg.Replicas, tg.Ahead[26], tt.want,
				tt.after, tg.Why())
		}
		if got := strings.Contains(part(t, tg, "forecast").Why.Text(),
			"with 11.11 (× 2, as kin saw)"); got != tt.namesCalendar {
			t.Errorf("%s: %q names the day: %v", tt.name, part(t, tg, "forecast").Why, got)
		}
	}
}

// The check of a plan compares with what would be without it: the calendar's day. Where it has to move the tide, it moves an ordinary day.
func TestFestivalCheckOnACalendarDay(t *testing.T) {
	w := calm(8)
	sale(w)
	check := func(start time.Time) HourRow {
		plan := fleet.Festival{ID: "f", Start: start, End: start.Add(time.Hour), Lifts: []fleet.Lift{{Service: w.svc.ID, Factor: 1.5}}}
		return FestivalCheck(plan, []fleet.Service{w.svc}, map[fleet.ServiceID]forecast.Tide{w.svc.ID: w.t},
			map[fleet.ServiceID]portrait.Portrait{w.svc.ID: w.p}, nil)[0]
	}
	for name, tt := range map[string]struct {
		at            time.Time
		without, with int64
	}{"within": {noon.Add(time.Hour), 13, 10}, "weeks later": {noon.AddDate(0, 0, 28), 7, 10}} {
		if r := check(tt.at); r.ReplicasWithout != tt.without || r.ReplicasWith != tt.with {
			t.Errorf("%s: %d without and %d with the plan, want %d and %d", name, r.ReplicasWithout, r.ReplicasWith, tt.without, tt.with)
		}
	}
}
