package sim

import (
	"testing"
	"time"
)

// Katalyst's tide moves a machine each ten seconds (tide.go's loop), so three in two ticks: 100 of them take 1,000 s.
func TestThePaceOfTheTide(t *testing.T) {
	w := first(tiny(120, 1, tide(5, 10)))
	l, took := &tidal{}, 0
	for ; w.borrowed < 100; took++ {
		l.Decide(w)
		if want := (took + 1) * 15 / 10; w.borrowed != want {
			t.Fatalf("after %d ticks %d machines are lent, want %d", took+1, w.borrowed, want)
		}
	}
	if got := time.Duration(took) * tick; got < 1000*time.Second || got > 1015*time.Second {
		t.Errorf("100 machines took %s", got)
	}
}

// Volcano's revocable zone is open from 22 to 6 o'clock; then each job loses one pod a minute.
func TestTheZone(t *testing.T) {
	w := first(tiny(4, 1, tide(1, 2)))
	open := func(at time.Duration) bool {
		w.now = begin.Add(at)
		tdm{}.Decide(w)
		return w.machines[0].toOffline
	}
	for at, want := range map[time.Duration]bool{22*time.Hour - tick: false, 22 * time.Hour: true, 6*time.Hour - tick: true, 6 * time.Hour: false, 12 * time.Hour: false} {
		if open(at) != want {
			t.Errorf("at %s the zone is open: %v", at, !want)
		}
	}
	open(23 * time.Hour)
	guests := func() (out [2]int) {
		for i := range w.jobs {
			out[i] = len(w.jobs[i].members)
		}
		return out
	}
	for had := guests(); w.tick%perMinute != 0; w.tick++ {
		if open(7 * time.Hour); guests() != had {
			t.Fatalf("%v became %v within a minute", had, guests())
		}
	}
	for range 3 {
		had := guests()
		for range perMinute {
			open(7 * time.Hour)
			w.tick++
		}
		if got := guests(); had[0] == 0 || had[1] == 0 || got != [2]int{had[0] - 1, had[1] - 1} {
			t.Fatalf("in a minute %v became %v", had, got)
		}
	}
}
