package hpa

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The size of a quantile is that of a service which states the quantile.
func TestAtQuantilesIsWhatAServiceOfTheQuantileAsksFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		w.latency(time.Millisecond) // the latency's part is bounded by the others, and is no part of what is compared
		w.o.Quantiles = []float64{0.5, 0.8, 0.95, 0.999}
		got := w.size().AtQuantiles
		for i, q := range w.o.Quantiles {
			v := *w
			v.o.Quantiles, v.svc.Quantile = nil, q
			tg := v.size()
			z := newSizer(&v.svc, &v.p, &v.t, &v.live, v.now, v.o)
			b := z.bounds(v.now, v.now.Add(1))
			if want := min(max(tg.Wanted, b.least), b.most); got[i] != want {
				t.Fatalf("at %v: %d, want %d: %s", q, got[i], want, tg.Why())
			}
			if tg.AtQuantiles != nil {
				t.Fatal("said though it was not asked")
			}
		}
	})
	// A drawn world seldom has a tide that decides: in this one it does.
	w := calm(8)
	w.tide(1000)
	w.o.Quantiles = []float64{0.5, 0.95}
	if got := w.size().AtQuantiles; got[0] >= got[1] {
		t.Errorf("no quantile makes a difference: %d", got)
	}
}
