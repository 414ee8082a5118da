package signal

import (
	"math"
	"testing"
	"time"
)

// A sample is fresh at its bound and aged behind it; a stamp from the future is as wrong as a negative value.
func TestJudge(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	ages := Ages{Fresh: FreshFor(time.Minute), LastGood: LastGood}
	for _, c := range []struct {
		age   time.Duration
		valid bool
		want  State
	}{
		{0, true, Fresh},
		{150 * time.Second, true, Fresh},
		{151 * time.Second, true, Aged},
		{5 * time.Minute, true, Aged},
		{5*time.Minute + 1, true, Absent},
		{-150 * time.Second, true, Fresh},
		{-151 * time.Second, true, Absent},
		{0, false, Absent},
	} {
		if got := ages.Judge(c.valid, now.Add(-c.age), now); got != c.want {
			t.Errorf("%s old, valid %t: %d, want %d", c.age, c.valid, got, c.want)
		}
	}
}

// A sample that counts as missing at reading is no older than one that is fresh at the decision, and both follow the window of the rates.
func TestAgesFollowTheWindow(t *testing.T) {
	for window, want := range map[time.Duration][4]time.Duration{ // fresh, missing, late; stale history of such steps
		0:                {150 * time.Second, 2 * time.Minute, 0, 15 * time.Minute},
		time.Minute:      {150 * time.Second, 2 * time.Minute, 0, 15 * time.Minute},
		4 * time.Minute:  {270 * time.Second, 4 * time.Minute, 135 * time.Second, 15 * time.Minute},
		10 * time.Minute: {630 * time.Second, 10 * time.Minute, 405 * time.Second, 30 * time.Minute},
	} {
		if got := [4]time.Duration{FreshFor(window), MissingAfter(window), LateBy(window), StaleHistory(window)}; got != want {
			t.Errorf("window %s: %v, want %v", window, got, want)
		}
	}
}

func TestSound(t *testing.T) {
	for v, want := range map[float64]bool{0: true, 1: true, -1: false, math.Inf(1): false, math.Inf(-1): false} {
		if Sound(v) != want {
			t.Errorf("%v: %t", v, !want)
		}
	}
	if Sound(math.NaN()) {
		t.Error("NaN is no load")
	}
}
