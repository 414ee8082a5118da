package hpa

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
)

// The tide of calm(8) has a median of 144/s and a p95 of 160/s now, and is set here to 250 and 400 later; a replica
// carries 25/s. As the service is sized 160/144 above its median now, it will be then: 250 × 1.111 / 25 = 11.1.
func TestLikely(t *testing.T) {
	later := func(w *world) {
		for k := range w.t.Paths[0] {
			if k >= 6 {
				w.t.Paths[0][k], w.t.Paths[1][k] = 250, 400
			}
		}
	}
	for _, c := range []struct {
		name        string
		change      func(*world)
		soon, later int32 // -1: none
	}{
		{"as expected", func(*world) {}, 7, 12},
		{"the load runs a tenth above its median", func(w *world) { w.steadily(158.4) }, 7, 13},
		{"a load far above is no more than the quantile's word", func(w *world) { w.steadily(2000) }, 7, 16},
		{"a load below lowers nothing", func(w *world) { w.steadily(72) }, 7, 12},
		{"its minimum stands", func(w *world) { w.svc.Min = 14 }, 14, 14},
		{"a window is certain", func(w *world) {
			w.svc.Windows = []fleet.Window{{Name: "day", Schedule: "0 13 * * *", Duration: time.Hour, Zone: time.UTC, Min: 3}}
		}, -1, -1},
		{"a plan is certain", func(w *world) {
			w.o.Festivals = []fleet.Festival{{ID: "sale", Approved: true, Start: w.now, End: w.now.Add(time.Hour), Lifts: []fleet.Lift{{Service: w.svc.ID, Factor: 2}}}}
		}, -1, -1},
		{"no trusted forecast", func(w *world) { w.t.Trusted = false }, -1, -1},
		{"no tide", func(w *world) { w.t = forecast.Tide{} }, -1, -1},
	} {
		w := calm(8)
		if len(w.t.Paths[0]) > 6 {
			later(w)
		}
		c.change(w)
		tg := w.size()
		soon, last := int32(-1), int32(-1)
		if n := len(tg.Likely); n > 0 {
			soon, last = tg.Likely[0], tg.Likely[n-1]
		}
		if soon != c.soon || last != c.later {
			t.Errorf("%s: likely %d, later %d, want %d and %d: %v of %v", c.name, soon, last, c.soon, c.later, tg.Likely, tg.Ahead[:min(len(tg.Ahead), len(tg.Likely))])
		}
		for k, n := range tg.Likely {
			if n > tg.Ahead[k] {
				t.Errorf("%s: %d are likely in step %d, more than the %d of the quantile", c.name, n, k, tg.Ahead[k])
			}
		}
		if len(tg.Likely) > 0 && slices.Max(tg.Likely) < 1 {
			t.Errorf("%s: nothing is likely", c.name)
		}
	}
}
