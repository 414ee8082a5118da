package hpa

import (
	"testing"
	"time"

	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

// A service whose load fell in a way that nothing confirms keeps its replicas, whatever its signals say now; then it goes down by a tenth in a
// stabilisation window.
func TestAFallInDoubt(t *testing.T) {
	for _, c := range []struct {
		name          string
		hold          portrait.Doubt
		run, want     int32
		held, limited reason.Code
	}{
		{"no doubt", portrait.Doubt{}, 30, 4, "", ""},
		{"held", portrait.Doubt{Since: noon.Add(-time.Hour), Top: 400}, 30, 30, HeldFall, ""},
		{"eased", portrait.Doubt{Since: noon.Add(-3 * time.Hour), Top: 400, Eased: true}, 30, 27, "", LimitedDoubt},
		{"eased, few replicas", portrait.Doubt{Since: noon.Add(-3 * time.Hour), Top: 400, Eased: true}, 6, 5, "", LimitedDoubt},
	} {
		w := falling(c.run, 4)
		w.p.Doubt = c.hold
		if tg := w.size(); tg.Replicas != c.want || tg.Held != c.held || tg.Limited != c.limited {
			t.Errorf("%s: %d held %q limited %q, want %d %q %q: %s", c.name, tg.Replicas, tg.Held, tg.Limited, c.want, c.held,
				c.limited, tg.Why())
		}
	}
	// Replicas that left within the window count.
	w := falling(27, 4)
	w.p.Doubt = portrait.Doubt{Since: noon.Add(-3 * time.Hour), Top: 400, Eased: true}
	w.o.History = append(w.o.History, Decision{At: noon.Add(-4 * time.Minute), Replicas: 4, From: 30})
	if tg := w.size(); tg.Replicas != 27 {
		t.Errorf("three of thirty left four minutes ago: %d, want 27: %s", tg.Replicas, tg.Why())
	}
	// More is given at once.
	w = calm(8)
	w.p.Doubt = portrait.Doubt{Since: noon.Add(-time.Hour), Top: 400}
	w.tide(400)
	if tg := w.size(); tg.Replicas <= 8 {
		t.Errorf("a held fall keeps a service from growing: %s", tg.Why())
	}
}
