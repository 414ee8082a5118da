package hpa

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// The days ahead are sized as they will be when they have come: along the median by a forecast as sure as today's of the coming hour, which asks
// for what the service's own quantile asks for now; windows and plans are those of the time, and the tide's last day repeats.
func TestExpected(t *testing.T) {
	w := calm(8)
	w.tide(200, 500) // at p95; the median is a tenth lower
	steps := Steps{N: 4 * 60, Of: 15 * time.Minute}
	look := func(festivals ...fleet.Festival) (out [][]int32) {
		c := NewCurve(&w.svc, &w.p, &w.t, festivals, noon, noon.Add(time.Duration(steps.N)*steps.Of))
		for _, q := range []float64{0.1, 0.5, 0.95} {
			out = append(out, c.Expected(q, steps))
		}
		return out
	}
	// The coming hour's p95 lies 200/180 above its median.
	got := look()
	for k, want := range map[int][3]int32{0: {8, 8, 9}, 3: {8, 8, 9}, 4: {20, 20, 23}, 95: {20, 20, 23}, 200: {20, 20, 23}} {
		if have := [3]int32{got[0][k], got[1][k], got[2][k]}; have != want {
			t.Errorf("step %d: %v replicas, want %v", k, have, want)
		}
	}
	w.svc.Windows = []fleet.Window{{Name: "late", Schedule: "0 18 * * *", Duration: time.Hour, Zone: time.UTC, Min: 30}}
	got = look(fleet.Festival{ID: "sale", Start: noon.Add(30 * time.Hour), End: noon.Add(31 * time.Hour), Approved: true, Lifts: []fleet.Lift{{Service: w.svc.ID, Floor: 38}}})
	if got[0][24] != 30 || got[1][23] != 20 || got[1][120] != 38 || got[1][124] != 20 {
		t.Errorf("window %d, before it %d, festival %d, after it %d", got[0][24], got[1][23], got[1][120], got[1][124])
	}
	// An unforeseeable load is no room: the peak and the running replicas stand in.
	w = calm(8)
	w.p.Peak, w.t.Paths = 300, nil
	if got := look(); slices.Min(got[0]) != 12 || slices.Max(got[2]) != 12 {
		t.Errorf("without a tide %d to %d replicas, want the peak's 12", slices.Min(got[0]), slices.Max(got[2]))
	}
}
