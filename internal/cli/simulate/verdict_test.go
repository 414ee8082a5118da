package simulate

import (
	"testing"

	"github.com/springtide/springtide/sim"
)

func TestVerdict(t *testing.T) {
	row := func(policy, lender string, target, cost float64, minutes int, byDefault bool) sim.Result {
		return sim.Result{Policy: policy, Lender: lender, Target: target, Default: byDefault, OnlineCoreHours: cost, SLOViolationMinutes: minutes, Classes: map[string]sim.Class{}}
	}
	hpa := row(sim.HPA, sim.LendNone, 60, 100, 97, true)
	ours := func(target, cost float64, minutes int, byDefault bool) sim.Result {
		return row(sim.Springtide, sim.LendNone, target, cost, minutes, byDefault)
	}
	for _, c := range []struct {
		name          string
		rows          []sim.Result
		verdict, hint string
	}{
		{"better", []sim.Result{hpa, ours(95, 91, 20, true), ours(99, 100, 12, false)}, "at HPA's cost: 12 SLO minutes instead of 97; 9 % cheaper by default, with 20 SLO minutes instead of 97.", ""},
		{"ends below", []sim.Result{hpa, ours(95, 80, 1, true)}, "Springtide's curve does not reach HPA's cost of 100 core-hours: its dearest target costs 80 and leaves 1 SLO minute; 20 % cheaper by default, with 1 SLO minute instead of 97.", ""},
		{"begins above, and another target is not better", []sim.Result{hpa, ours(95, 130, 5, true), ours(80, 120, 30, false)},
			"Springtide's curve does not reach HPA's cost of 100 core-hours: its cheapest target costs 120 and leaves 30 SLO minutes; 30 % dearer by default, with 5 SLO minutes instead of 97.",
			"On this fleet no spec.forecast.quantile that was played beats HPA in both minutes and cost. The rows show what " +
				"each minute costs."},
		{"another target is better", []sim.Result{hpa, ours(95, 130, 5, true), ours(90, 99, 50, false), ours(80, 70, 96, false)},
			"at HPA's cost: 49 SLO minutes instead of 97; 30 % dearer by default, with 5 SLO minutes instead of 97.",
			"On this fleet the default does not beat HPA. spec.forecast.quantile: \"0.9\" does: 50 SLO minutes and 99 " +
				"core-hours, HPA has 97 and 100."},
		{"no sweep", []sim.Result{hpa, ours(95, 130, 5, true)},
			"Springtide's curve does not reach HPA's cost of 100 core-hours: its cheapest target costs 130 and leaves 5 SLO minutes; 30 % dearer by default, with 5 SLO minutes instead of 97.",
			"On this fleet the default does not beat HPA. Play --policies springtide,hpa to see which spec.forecast.quantile " +
				"would."},
		{"HPA was not played", []sim.Result{ours(95, 80, 1, true)}, "", ""},
	} {
		if got := fleetVerdict(c.rows); got != c.verdict {
			t.Errorf("%s: %q, want %q", c.name, got, c.verdict)
		}
		if got := hint(c.rows); got != c.hint {
			t.Errorf("%s: the hint is %q, want %q", c.name, got, c.hint)
		}
	}
}
