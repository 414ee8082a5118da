package hpa

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
)

// steadily says where the load of the last minutes stands.
func (w *world) steadily(v float64) { w.live.Steady = fleet.KnownAt(v, w.now.Add(-15*time.Second)) }

// The tide of calm(8) has a median of 144/s and a p95 of 160/s; a replica carries 25/s. Half of the squared distance of p95, in normal deviations,
// is the 0.8776 quantile: 144 + 16 × 0.3776/0.45 = 157.4, so that the load grows by 1.0933 within the lead.
func TestNowcast(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*world)
		part   int32 // of the nowcast; 0: none
		want   int32
	}{
		{"twice the median: 288 × 1.0933 / 25 = 12.6", func(w *world) { w.steadily(288) }, 13, 13},
		{"below the median the forecast stands", func(w *world) { w.steadily(72) }, 4, 8},
		{"a flood within the lead: no more than twice what is there", func(w *world) {
			w.steadily(144)
			w.t.Paths[0][0], w.t.Paths[1][0] = 14.4, 160
		}, 12, 12},
		{"the rate of the reactive parts bounds it: 2 × 8", func(w *world) { w.steadily(2000) }, 88, 16},
		{"unknown", func(*world) {}, 0, 8},
		{"too old", func(w *world) { w.live.Steady = fleet.KnownAt(288.0, w.now.Add(-4*time.Minute)) }, 0, 8},
		{"no number", func(w *world) { w.steadily(math.NaN()) }, 0, 8},
		{"negative", func(w *world) { w.steadily(-1) }, 0, 8},
		{"of another signal than the tide", func(w *world) { w.steadily(288); w.live.LoadSignal = portrait.CPU }, 0, 8},
		{"a tide that knows no spread", func(w *world) {
			w.steadily(288)
			w.t.Quantiles, w.t.Paths = w.t.Quantiles[:1], w.t.Paths[:1]
		}, 0, 8},
		{"a tide of nothing", func(w *world) { w.steadily(288); w.t.Paths[0][0] = 0 }, 0, 8},
		{"no tide", func(w *world) { w.steadily(288); w.t = forecast.Tide{} }, 0, 8},
	} {
		w := calm(8)
		c.change(w)
		tg := w.size()
		i := slices.IndexFunc(tg.Parts, func(p Part) bool { return p.String() == "nowcast" })
		switch {
		case i < 0 && c.part > 0:
			t.Errorf("%s: no nowcast", c.name)
		case i >= 0 && tg.Parts[i].Replicas.Value != c.part:
			t.Errorf("%s: the nowcast asks for %v (%s), want %d", c.name, tg.Parts[i].Replicas, tg.Parts[i].Why, c.part)
		}
		if tg.Replicas != c.want {
			t.Errorf("%s: %d replicas, want %d: %s", c.name, tg.Replicas, c.want, tg.Why())
		}
	}
}

// A load that outruns the tide keeps a service from scaling in, and one that cannot be seen is no reason to wait: the load itself is asked for.
func TestNowcastAndScaleIn(t *testing.T) {
	w := falling(8, 4)
	if tg := w.size(); tg.Replicas != 4 {
		t.Fatalf("without a nowcast: %s", tg.Why())
	}
	w.steadily(150) // 150 × 1.0933 / 25 = 6.6
	if tg := w.size(); tg.Replicas != 7 {
		t.Errorf("%d replicas, want 7: %s", tg.Replicas, tg.Why())
	}
}
