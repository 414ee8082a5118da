package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// TestDemandToNotice: the first recall that was carried out for pods that wait counts, from the first of them on, and no other recall counts.
func TestDemandToNotice(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := func(ago time.Duration) fleet.Pod {
		return fleet.Pod{ID: fleet.UID(ago.String()), Unschedulable: true, UnschedulableSince: fleet.KnownAt(at.Add(-ago), at)}
	}
	s := &fleet.Snapshot{At: at, Services: []fleet.Service{{ID: "shop/cart", Pods: []fleet.Pod{pod(time.Second), pod(3 * time.Second), {}}}}}
	plan, r := &planner.Plan{}, &Receipt{}
	for id, x := range map[fleet.LoanID]struct {
		claimant fleet.ServiceID
		became   Outcome
	}{"a": {"shop/cart", Done}, "b": {"shop/cart", Stale}, "c": {"", Done}} {
		plan.Moves = append(plan.Moves, planner.Move{Kind: planner.MoveRecall, Before: fleet.Loan{ID: id, From: "web"}, After: fleet.Loan{ID: id, Claimant: x.claimant}})
		r.Results = append(r.Results, Result{Action: planner.ActionMove, Subject: string(id), Outcome: x.became})
	}
	m.demands(s, plan, r)
	s.At = at.Add(time.Minute)
	m.demands(s, plan, r) // one more recall for the same pods
	want := `# HELP springtide_demand_notice_seconds Time from the scheduler's word that a pod waits for room to the cycle that recalls a parcel for it, by pool.
# TYPE springtide_demand_notice_seconds histogram
`
	for _, le := range []string{"0.25", "0.5", "1", "2"} {
		want += fmt.Sprintf("springtide_demand_notice_seconds_bucket{pool=%q,le=%q} 0\n", "web", le)
	}
	for _, le := range []string{"5", "10", "15", "30", "60", "120", "300", "600", "+Inf"} {
		want += fmt.Sprintf("springtide_demand_notice_seconds_bucket{pool=%q,le=%q} 1\n", "web", le)
	}
	want += "springtide_demand_notice_seconds_sum{pool=\"web\"} 3\nspringtide_demand_notice_seconds_count{pool=\"web\"} 1\n"
	if err := testutil.CollectAndCompare(m.demanded, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
