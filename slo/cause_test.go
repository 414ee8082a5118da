package slo

import (
	"math"
	"testing"

	"github.com/springtide/springtide/reason"
)

func TestCauseOf(t *testing.T) {
	// Ten replicas are needed.
	short := Facts{Load: 1000, Carries: 100, Ready: 8, Wanted: 10, Foreseen: 8}
	with := func(f func(*Facts)) Facts {
		x := short
		f(&x)
		return x
	}
	for _, c := range []struct {
		name  string
		facts Facts
		want  Cause
	}{
		{"enough ready", with(func(f *Facts) { f.Ready = 10 }), Service},
		{"enough ready, under a full quota", with(func(f *Facts) { f.Ready, f.Limited = 10, reason.Quota }), Service},
		{"more wanted than the load needs", with(func(f *Facts) { f.Ready, f.Wanted = 10, 14 }), Service},
		{"asked for as the load was there", short, Forecast},
		{"asked for in time", with(func(f *Facts) { f.Foreseen = 10 }), StartUp},
		{"not known what was asked for", with(func(f *Facts) { f.Foreseen = -1 }), Forecast},
		{"waits for a recall", with(func(f *Facts) { f.Waiting, f.Recalling = 2, true }), Lending},
		{"waits, and nothing is lent", with(func(f *Facts) { f.Waiting = 2 }), Room},
		{"a recall for others", with(func(f *Facts) { f.Recalling = true }), Forecast},
		{"waits under a full quota", with(func(f *Facts) { f.Waiting, f.Limited = 1, reason.Quota }), Room},
		{"cut by quota", with(func(f *Facts) { f.Limited = reason.Quota }), Quota},
		{"cut by quota, and not wanted anyway", with(func(f *Facts) { f.Wanted, f.Limited = 8, reason.Quota }), Forecast},
		{"cut by room", with(func(f *Facts) { f.Limited = reason.PoolRoom }), Room},
		{"cut by the maximum", with(func(f *Facts) { f.Limited = reason.MaxReplicas }), Bounds},
		{"cut by the rate of growth", with(func(f *Facts) { f.Limited = reason.Rate }), Forecast},
		{"paused", with(func(f *Facts) { f.Held = reason.Paused }), Bounds},
		{"stabilisation holds only falls", with(func(f *Facts) { f.Held = reason.Stabilisation }), Forecast},
		{"only observed", with(func(f *Facts) { f.Unsized, f.Foreseen = true, 10 }), Bounds},
		{"only observed, and without a machine", with(func(f *Facts) { f.Unsized, f.Waiting = true, 1 }), Room},
		{"a load that is not known, and all that was wanted", Facts{Ready: 4, Wanted: 4}, Service},
		{"a load that is not known, and less than was wanted", Facts{Ready: 4, Wanted: 5, Foreseen: 5}, StartUp},
		{"no number", Facts{Load: math.NaN(), Carries: 100, Ready: 4, Wanted: 5, Foreseen: 4}, Forecast},
		{"a load of exactly what is ready", with(func(f *Facts) { f.Load, f.Ready = 800, 8 }), Service},
		{"nothing ready at no load", Facts{Carries: 100, Wanted: 1, Foreseen: 1}, StartUp},
	} {
		if got := CauseOf(c.facts); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCausesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Causes() {
		if c.String() == "" || seen[c.String()] {
			t.Errorf("cause %d is called %q", c, c)
		}
		seen[c.String()] = true
	}
	if NoCause.String() != "" || len(seen) != 8 {
		t.Errorf("%d causes", len(seen))
	}
}
