package forecast

import (
	"testing"
	"time"
)

// Those that kin are learned from are never more than most, and all of few.
func TestStride(t *testing.T) {
	for _, tt := range []struct{ n, most, want int }{{0, 48, 1}, {1, 48, 1}, {48, 48, 1}, {49, 48, 2}, {96, 48, 2}, {97, 48, 3}} {
		if got := Stride(tt.n, tt.most); got != tt.want {
			t.Errorf("of %d, %d at most: every %dth, want every %dth", tt.n, tt.most, got, tt.want)
		}
	}
}

func TestHeld(t *testing.T) {
	for step, want := range map[time.Duration]int{5 * time.Minute: 1152, time.Hour: 96, 24 * time.Hour: 4, 7 * 24 * time.Hour: 1} {
		if got := Held(step); got != want {
			t.Errorf("%d steps of %v are held back, want %d", got, step, want)
		}
	}
}
