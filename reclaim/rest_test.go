package reclaim

import (
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

func TestRestGrowsAndIsForgotten(t *testing.T) {
	const term = 30 * time.Minute
	r := Rests{Least: 5 * time.Minute, Most: time.Hour}
	cancelled := fleet.Loan{Phase: fleet.Cancelled, Since: t0}
	returned := func(after time.Duration) fleet.Loan {
		return fleet.Loan{Phase: fleet.Returned, Since: t0.Add(time.Minute), CleanAt: t0, LentAt: t0.Add(-5 * time.Hour), FirstNotice: t0.Add(-5 * time.Hour).Add(after)}
	}
	for _, c := range []struct {
		name  string
		was   fleet.Rest
		loan  fleet.Loan
		turns int
		rest  time.Duration
	}{
		{"the first that is called off", fleet.Rest{}, cancelled, 1, 5 * time.Minute},
		{"the second", fleet.Rest{Turns: 1, Until: t0.Add(-time.Minute)}, cancelled, 2, 10 * time.Minute},
		{"the fourth", fleet.Rest{Turns: 3, Until: t0.Add(-time.Minute)}, cancelled, 4, 40 * time.Minute},
		{"the fifth: no longer than an hour", fleet.Rest{Turns: 4, Until: t0.Add(-time.Minute)}, cancelled, 5, time.Hour},
		{"the thousandth", fleet.Rest{Turns: 999, Until: t0}, cancelled, 1000, time.Hour},
		{"an hour of calm since", fleet.Rest{Turns: 4, Until: t0.Add(-time.Hour)}, cancelled, 5, time.Hour},
		{"more than an hour of calm since", fleet.Rest{Turns: 4, Until: t0.Add(-61 * time.Minute)}, cancelled, 1, 5 * time.Minute},
		{"recalled before its term", fleet.Rest{Turns: 1, Until: t0.Add(-time.Minute)}, returned(term - time.Second), 2, 10 * time.Minute},
		{"recalled after it", fleet.Rest{Turns: 4, Until: t0.Add(-time.Minute)}, returned(term), 0, 5 * time.Minute},
	} {
		got := r.After(c.was, &c.loan, term)
		if want := (fleet.Rest{Turns: c.turns, Until: t0.Add(c.rest)}); got != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}

func TestAMachineThatRestsIsNotOffered(t *testing.T) {
	s := fleetOf(2)
	s.Nodes[0].Share.Rest = fleet.Rest{Turns: 3, Until: t0.Add(time.Minute)}
	s.Nodes[1].Share.Rest = fleet.Rest{Turns: 3, Until: t0}
	take, pinned := Lendable(s, lendAsk(s, 1000, nil))
	if names(take) != "m01:Node " {
		t.Errorf("lent %q: the rest of m01 is over, that of m00 is not", names(take))
	}
	if len(pinned) != 1 || pinned[0].Node != "m00" || !strings.Contains(pinned[0].By.Text(), "not lent again until 2026-03-02T18:01:00Z: 3 cancelled or early-recalled loans in a row") {
		t.Errorf("m00 stays because it rests: %+v", pinned)
	}
}
