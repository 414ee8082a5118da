package world

import (
	"testing"
	"time"

	"github.com/springtide/springtide/lab/model"
	"github.com/springtide/springtide/lab/traces"
)

// TestBeginAtThePeak: the tide turns where the world begins, and the whole length can be played from there.
func TestBeginAtThePeak(t *testing.T) {
	sources, err := traces.Services(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	f, err := model.NewFleet(sources, model.Spec{OnlineCores: 2000, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []time.Duration{24 * time.Hour, 47 * time.Hour} {
		w := &World{options: Options{Length: length, WarmUp: 30 * time.Minute}, fleet: f}
		w.begin(traces.ReplayStart())
		w.begin(w.peak())
		if w.end.After(traces.End()) {
			t.Errorf("%s from %s end after the traces", length, w.start)
		}
		if length == 24*time.Hour && !(w.demandAt(w.start) > w.demandAt(w.start.Add(3*time.Hour)) && w.demandAt(w.start) > w.demandAt(w.start.Add(-3*time.Hour))) {
			t.Errorf("at %s the demand is %.0f cores, three hours before and after %.0f and %.0f: no peak", w.start, w.demandAt(w.start),
				w.demandAt(w.start.Add(-3*time.Hour)), w.demandAt(w.start.Add(3*time.Hour)))
		}
	}
}
