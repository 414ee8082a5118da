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

func TestJobMetrics(t *testing.T) {
	now := time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC)
	r := prometheus.NewPedanticRegistry()
	m := NewMetrics(r)
	plan := &planner.Plan{At: now,
		Gangs: []planner.GangView{{Gang: fleet.Gang{Phase: fleet.GangBackedOff}}, {Gang: fleet.Gang{Phase: fleet.GangWaiting}}},
		ETAs: []planner.ETA{
			{Job: "train/bert", Kind: planner.WaitsForTide, Earliest: now.Add(time.Hour), Expected: now.Add(2 * time.Hour)}, // its end lies beyond the week
			{Job: "train/gpt", Kind: planner.WaitsForTide, Earliest: now.Add(-time.Minute), Expected: now, Latest: now.Add(time.Minute)},
			{Job: "train/huge", Kind: planner.WaitsForSize},
		}}
	var p page
	m.jobs(&p, plan)
	m.board.show(p)
	want := `# HELP springtide_job_eta_seconds How long from now until a waiting job is expected to begin: the bounds of its band and the middle. A bound beyond the week ahead is left out.
# TYPE springtide_job_eta_seconds gauge
springtide_job_eta_seconds{bound="earliest",job="bert",namespace="train"} 3600
springtide_job_eta_seconds{bound="earliest",job="gpt",namespace="train"} 0
springtide_job_eta_seconds{bound="expected",job="bert",namespace="train"} 7200
springtide_job_eta_seconds{bound="expected",job="gpt",namespace="train"} 0
springtide_job_eta_seconds{bound="latest",job="gpt",namespace="train"} 60
# HELP springtide_job_gangs Jobs with a minimum that works as a whole, by how it stands (Waiting, Forming, Whole, BackedOff).
# TYPE springtide_job_gangs gauge
springtide_job_gangs{phase="BackedOff"} 1
springtide_job_gangs{phase="Forming"} 0
springtide_job_gangs{phase="Waiting"} 1
springtide_job_gangs{phase="Whole"} 0
# HELP springtide_jobs_waiting Jobs that wait to begin, by what they wait for (Tide, StableRoom, Quota, QuotaRoom, Size, Room, Unforeseen, BackedOff).
# TYPE springtide_jobs_waiting gauge
springtide_jobs_waiting{reason="BackedOff"} 0
springtide_jobs_waiting{reason="Quota"} 0
springtide_jobs_waiting{reason="QuotaRoom"} 0
springtide_jobs_waiting{reason="Room"} 0
springtide_jobs_waiting{reason="Size"} 1
springtide_jobs_waiting{reason="StableRoom"} 0
springtide_jobs_waiting{reason="Tide"} 2
springtide_jobs_waiting{reason="Unforeseen"} 0
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "springtide_job_eta_seconds", "springtide_job_gangs", "springtide_jobs_waiting"); err != nil {
		t.Error(err)
	}
}
