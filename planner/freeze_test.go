package planner

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// A phase of an approved festival plan that freezes holds a scale-in while it lasts, as a window of change does.
func TestFestivalFreezes(t *testing.T) {
	for name, c := range map[string]struct {
		approved   bool
		start, end time.Duration
		held       string
	}{
		"in force": {true, -time.Hour, time.Hour,
			"change window sale until 2026-03-02 23:00 UTC: phase peak of the festival plan"},
		"not approved": {false, -time.Hour, time.Hour, ""},
		"over":         {true, -time.Hour, 0, ""},
		"to come":      {true, time.Second, time.Hour, ""},
	} {
		w := newWorld(6).service("web", 12, 0, 6, 20)
		w.s.Festivals = []fleet.Festival{{ID: "sale", Approved: c.approved, Start: t0.Add(-time.Hour), End: t0.Add(time.Hour),
			Freezes: []fleet.Freeze{{Phase: "peak", Start: t0.Add(c.start), End: t0.Add(c.end)}}}}
		p, held := made(w.input()), ""
		if len(p.Withheld) > 0 {
			held = p.Withheld[0].By.Text()
		}
		if held != c.held || (len(p.Lowers) == 0) != (c.held != "") {
			t.Errorf("%s: %d services lowered, held by %q", name, len(p.Lowers), held)
		}
	}
}
