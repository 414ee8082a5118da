package memorystore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// Decisions come back from a time on, the newest of a service alone where a bound is set, and not at all while the store is down.
func TestDecisions(t *testing.T) {
	ctx, t0, id := context.Background(), time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), fleet.ServiceID("shop/cart")
	for _, c := range []struct{ most, from, want int }{{0, 0, 5}, {0, 3, 2}, {0, 5, 0}, {2, 0, 2}, {2, 4, 1}} {
		s := Store{Most: c.most}
		for i := range 5 {
			if err := s.SaveDecisions(ctx, map[fleet.ServiceID][]hpa.Decision{id: {{At: t0.Add(time.Duration(i) * time.Minute)}}}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.LoadDecisions(ctx, t0.Add(time.Duration(c.from)*time.Minute))
		if err != nil || len(got[id]) != c.want || c.want > 0 && !got[id][c.want-1].At.Equal(t0.Add(4*time.Minute)) {
			t.Errorf("%+v: %v, %v", c, got[id], err)
		}
		down := errors.New("connection refused")
		s.Down = func() error { return down }
		if got, err := s.LoadDecisions(ctx, t0); len(got) > 0 || !errors.Is(err, down) {
			t.Errorf("%+v: while it is down: %v, %v", c, got, err)
		}
	}
}
