package clock

import (
	"context"
	"testing"
	"time"
)

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestAnchorsAt(t *testing.T) {
	// Two wall seconds carried eight virtual minutes; then the clock stood for ten seconds.
	anchors := Anchors{
		{Wall: at("2026-01-01T00:00:00Z"), Virtual: at("2025-06-02T00:00:00Z")},
		{Wall: at("2026-01-01T00:00:02Z"), Virtual: at("2025-06-02T00:08:00Z")},
		{Wall: at("2026-01-01T00:00:12Z"), Virtual: at("2025-06-02T00:08:00Z")},
		{Wall: at("2026-01-01T00:00:13Z"), Virtual: at("2025-06-02T00:08:15Z")},
	}
	for _, c := range []struct{ name, stamp, want string }{
		{"before the first anchor", "2025-12-31T00:00:00Z", "2025-06-02T00:00:00Z"},
		{"a stamp with a fraction is exact", "2026-01-01T00:00:00.25Z", "2025-06-02T00:01:00Z"},
		{"a whole second stands for its middle", "2026-01-01T00:00:01Z", "2025-06-02T00:06:00Z"},
		{"while the clock stood", "2026-01-01T00:00:07Z", "2025-06-02T00:08:00Z"},
		{"after the last anchor", "2026-01-02T00:00:00Z", "2025-06-02T00:08:15Z"},
	} {
		if got := anchors.At(at(c.stamp)); !got.Equal(at(c.want)) {
			t.Errorf("%s: At(%s) = %v, want %s", c.name, c.stamp, got, c.want)
		}
	}
	if got := (Anchors{}).At(at("2026-01-01T00:00:00Z")); !got.Equal(at("2026-01-01T00:00:00Z")) {
		t.Errorf("without anchors a stamp must stay as it is, got %v", got)
	}
	if got := anchors.At(time.Time{}); !got.IsZero() {
		t.Errorf("no stamp must stay no stamp, got %v", got)
	}
}

func TestWallWakes(t *testing.T) {
	w := NewWall()
	w.Wake() // while no caller is parked
	w.Wake() // twice says no more than once
	far := time.Now().Add(time.Hour)
	if err := w.Park(t.Context(), far, false); err != nil {
		t.Fatalf("a remembered wake must end the park: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Park(ctx, far, false); err == nil {
		t.Fatal("the wake was used up: only the context may end this park")
	}
	if err := w.Park(t.Context(), time.Now().Add(-time.Hour), true); err != nil {
		t.Fatalf("a time that has passed must end the park: %v", err)
	}
	stamp := at("2026-01-01T00:00:00Z")
	if got := w.At(stamp); got != stamp {
		t.Errorf("At(%v) = %v, want it unchanged", stamp, got)
	}
}
