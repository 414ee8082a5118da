package loop

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// Only what was unmarked, and had been passed over, counts.
func TestVictimsThatStayedAreCounted(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	plan := &planner.Plan{}
	r := &Receipt{}
	for name, c := range map[string]struct {
		passed bool
		became Outcome
	}{"a": {true, Done}, "b": {false, Done}, "c": {true, Stale}} {
		pod := planner.PodRef{Name: fleet.Name{Namespace: "shop", Name: name}}
		plan.Unmarks = append(plan.Unmarks, planner.Unmark{Pod: pod, Passed: c.passed})
		r.Results = append(r.Results, Result{Action: "Unmark", Subject: pod.Name.String(), Outcome: c.became})
	}
	m.observe(&fleet.Snapshot{}, plan, r, nil, nil, nil, newTimer(func() {}), nil, nil)
	if n := testutil.ToFloat64(m.stayed); n != 1 {
		t.Errorf("%v victims stayed, want 1", n)
	}
}
