package loop

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// A job is judged by its first estimate, once, when its gang runs; one that goes away is not.
func TestWaitsAreJudged(t *testing.T) {
	t0 := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	r := prometheus.NewRegistry()
	m, w := NewMetrics(r), newWaits()
	in := func(at time.Time) *planner.Input {
		return &planner.Input{Snapshot: &fleet.Snapshot{At: at}, Options: planner.DefaultOptions()}
	}
	look := func(at time.Time) *planner.Outlook {
		p := in(at)
		w.ahead(p)
		return p.Outlook
	}
	estimate := func(job fleet.JobID, kind string, from, to time.Duration) planner.ETA {
		return planner.ETA{Job: job, Kind: kind, Earliest: t0.Add(from), Latest: t0.Add(to)}
	}
	gang := func(job fleet.JobID, p fleet.GangPhase) planner.GangView {
		return planner.GangView{Job: job, Gang: fleet.Gang{Phase: p}}
	}
	if look(t0) != nil {
		t.Error("nobody waits, and the week ahead is reckoned")
	}
	w.judge(&planner.Plan{At: t0, ETAs: []planner.ETA{estimate("a", planner.WaitsForOutlook, 0, 0), estimate("b", planner.WaitsForTide, time.Hour, 2*time.Hour)}}, m)
	first := look(t0)
	if first == nil || look(t0.Add(14*time.Minute)) != first || look(t0.Add(15*time.Minute)) == first {
		t.Error("the week ahead is not reckoned every quarter of an hour")
	}
	w.judge(&planner.Plan{At: t0, ETAs: []planner.ETA{estimate("a", planner.WaitsForTide, time.Hour, 2*time.Hour), estimate("b", planner.WaitsForTide, 3*time.Hour, 4*time.Hour),
		estimate("c", planner.WaitsForTide, 0, 0)}}, m)
	for range 2 {
		w.judge(&planner.Plan{At: t0.Add(90 * time.Minute), Gangs: []planner.GangView{gang("a", fleet.GangForming), gang("b", fleet.GangWhole)}}, m)
	}
	w.judge(&planner.Plan{At: t0.Add(121 * time.Minute), Gangs: []planner.GangView{gang("a", fleet.GangWhole), gang("c", fleet.GangWhole)}}, m)
	want := `
# HELP springtide_job_eta_total Jobs that waited and began, by how that compares with the band that was first reported: Early, Within, Late.
# TYPE springtide_job_eta_total counter
springtide_job_eta_total{verdict="Late"} 1
springtide_job_eta_total{verdict="Within"} 1
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "springtide_job_eta_total"); err != nil {
		t.Error(err)
	}
}
