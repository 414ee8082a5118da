package planner

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// Each step of a want holds the most that a target asks for in it; beyond its tide, what it asks for now. The hours of the week repeat it.
func TestMost(t *testing.T) {
	w := weekAhead(t0, nil)
	if len(w.of) != daySteps+weekSteps || w.day != daySteps || len(w.parts) != daySteps+24 {
		t.Fatalf("%d steps, %d of the day, %d parts of a day", len(w.of), w.day, len(w.parts))
	}
	target := hpa.Target{Replicas: 4, AheadStep: 5 * time.Minute, Ahead: []int32{4, 9, 5, 6, 6, 6, 2}}
	got := mostInEach(&target, w.parts)
	want := make([]int32, daySteps+24)
	for k := range want {
		want[k] = 4
	}
	want[0], want[1], want[2], want[daySteps] = 9, 6, 2, 9
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	target.Ahead = make([]int32, 2*24*12)
	target.Ahead[24*12+1] = 50 // after the day that tenants hear of
	if got := mostInEach(&target, w.parts); slices.Max(got) != 4 {
		t.Errorf("two days: %v", got)
	}
}

// Steps begin on the clock and at the edges of slices, whatever the time is; a slice that opens all the time is not followed to its last edge.
func TestWeekAhead(t *testing.T) {
	kolkata, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	now := t0.Add(-9*time.Hour - 26*time.Minute + 7*time.Second) // 12:34:07
	evening := fleet.Tenant{Accepted: true, Slices: []fleet.Slice{{Window: fleet.Window{Schedule: "10 19 * * *", Duration: 4*time.Hour + 30*time.Minute, Zone: kolkata}}}}
	w := weekAhead(now, []fleet.Tenant{evening})
	cuts := 0
	for k, at := range w.edges {
		switch clock := at.UTC().Format("04:05"); {
		case k == 0 && at != now, k > 0 && !at.After(w.edges[k-1]):
			t.Fatalf("edge %d is %s", k, at)
		case clock == "40:00" || clock == "10:00": // 13:40 and 18:10
			cuts++
		case k > 0 && k <= w.day && clock != "00:00" && clock != "15:00" && clock != "30:00" && clock != "45:00", k > w.day && clock != "00:00":
			t.Errorf("edge %d is %s", k, at)
		}
	}
	end := w.edges[len(w.edges)-1]
	if cuts != 14 || w.edges[1].Sub(now) > quarter || end.Before(now.Add(7*24*time.Hour)) || end.After(now.Add(7*24*time.Hour+time.Hour)) {
		t.Errorf("%d edges of slices, the week from %s to %s", cuts, w.edges[1], end)
	}
	if d := w.edges[w.day].Sub(now); d > 24*time.Hour || d <= 23*time.Hour {
		t.Errorf("targets tell %s", d)
	}
	evening.Slices[0].Window.Schedule, evening.Slices[0].Window.Duration = "1-59/2 * * * *", 30*time.Second
	if n := len(weekAhead(now, []fleet.Tenant{evening}).of); n > mostCuts+daySteps+weekSteps+2 {
		t.Errorf("%d steps", n)
	}
}

// A slice and a window with the same edges are no shortage, at any time from which they are looked at, in all zones, today and in the week; a
// window that opens before the slice, or shuts after it, is.
func TestWindowsInSlices(t *testing.T) {
	for _, zone := range []string{"UTC", "Asia/Kolkata", "Asia/Kathmandu"} {
		z, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			window string
			length time.Duration
			short  int // how often in the week
		}{
			{"0 3 * * *", 4*time.Hour + 30*time.Minute, 0},
			{"50 2 * * *", 4*time.Hour + 40*time.Minute, 7},
			{"0 3 * * *", 4*time.Hour + 40*time.Minute, 7},
		} {
			for minute := range 15 {
				w := newWorld(6).service("web", 6, 0, 6, 20)
				w.s.At = t0.Add(-3*time.Hour + time.Duration(minute)*time.Minute + 13*time.Second)
				w.tenant("shop", "shop", 100).BorrowingLimit = fleet.KnownAt(cpu(0), t0)
				slice := fleet.Window{Name: "night", Schedule: "0 3 * * *", Duration: 4*time.Hour + 30*time.Minute, Zone: z}
				w.s.Tenants[0].Slices = []fleet.Slice{{Window: slice, Guarantee: cpu(160)}}
				w.s.Services[0].Windows = []fleet.Window{{Name: "night", Schedule: c.window, Duration: c.length, Zone: z, Min: 20}}
				got := made(w.input()).Division.Short
				if len(got) != c.short {
					t.Fatalf("%s, window %q for %s, seen at %s: %d shortages: %+v", zone, c.window, c.length, w.s.At, len(got), got)
				}
				for _, x := range got {
					if x.By.CPU != 60_000 || x.Until.Sub(x.From) > time.Hour {
						t.Errorf("%s, window %q for %s, seen at %s: %+v", zone, c.window, c.length, w.s.At, x)
					}
				}
			}
		}
	}
}
