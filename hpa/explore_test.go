package hpa

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// night is a service at a load of 80/s of a day that peaks at 400/s in six hours, with all of its budget left: 36
// a replica are known to hold, and that many were seen.
func night() *world {
	w := calm(8)
	w.svc.SLO.Explore = true
	carries(&w.p, p99, 0.2, 36)
	w.live.Budget = fleet.KnownAt(1.0, w.now)
	w.load(80)
	w.tide(80, 80, 80, 80, 80, 80, 400)
	return w
}

// A service explores in quiet hours alone, with a budget, and where its operator lets it; by one step of 5 %, and no
// more than a replica's CPU carries. The hours ahead are sized by what is known.
func TestExplore(t *testing.T) {
	known := func() Target { w := night(); w.svc.SLO.Explore = false; return w.size() }()
	for name, tt := range map[string]struct {
		change   func(*world)
		explores bool
	}{
		"quiet":         {func(*world) {}, true},
		"not allowed":   {func(w *world) { w.svc.SLO.Explore = false }, false},
		"budget":        {func(w *world) { w.live.Budget = fleet.KnownAt(0.75, w.now) }, false},
		"none known":    {func(w *world) { w.live.Budget = fleet.Known[float64]{} }, false},
		"at the peak":   {func(w *world) { w.load(80); w.tide(80) }, false},
		"skill lost":    {func(w *world) { w.t.SkillLost = true }, false},
		"plan":          {func(w *world) { w.svc.Windows = []fleet.Window{{Name: "sale", Min: 3}} }, false},
		"broken lately": {func(w *world) { w.p.Capacity.Of(p99).Broke = w.now.Add(-time.Hour) }, false},
		"by the CPU": {func(w *world) {
			w.svc.SLO = fleet.Levels(append(w.svc.SLO.Levels, fleet.CPU(0.7))...)
			w.svc.SLO.Explore = true
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := night()
			tt.change(w)
			got := w.size()
			explores := strings.Contains(got.Why().Text(), "explores")
			if explores != tt.explores {
				t.Fatalf("%t: %s", explores, got.Why().Text())
			}
			if !explores {
				return
			}
			if step := got.CapacityPerReplica / known.CapacityPerReplica; math.Abs(step-1.05) > 0.01 {
				t.Errorf("a step of %v", step)
			}
			if got.Ahead[30*60/5/5] != known.Ahead[30*60/5/5] {
				t.Errorf("the hours ahead are sized for %d, without exploring for %d", got.Ahead, known.Ahead)
			}
		})
	}
}
