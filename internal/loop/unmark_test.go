package loop

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

func TestDoorUnmark(t *testing.T) {
	for _, c := range []struct {
		name string
		bend func(svc *fleet.Service, p *fleet.Pod)
		want string
	}{
		{"as decided", func(*fleet.Service, *fleet.Pod) {}, ""},
		{"it goes after all", func(_ *fleet.Service, p *fleet.Pod) { p.Deleting = true }, "left"},
		{"unmarked", func(_ *fleet.Service, p *fleet.Pod) { p.LeavesAt.OK = false }, "no mark"},
		{"too many are there", func(svc *fleet.Service, _ *fleet.Pod) { svc.Desired.Value = 0 }, "still shrinks"},
		{"more are asked for", func(svc *fleet.Service, _ *fleet.Pod) { svc.Desired.Value = 2 }, "2 are asked for now"},
		{"observed only", func(svc *fleet.Service, _ *fleet.Pod) { svc.Mode = fleet.Observe }, "not ours"},
		{"another's pod", func(_ *fleet.Service, p *fleet.Pod) { p.Service = "shop/pay" }, "left"},
	} {
		s := doorFacts()
		p, svc := &s.Pods[0], &s.Services[0]
		p.LeavesAt, svc.Desired.Value = fleet.KnownAt(int32(1), doorTime), 1
		c.bend(svc, p)
		svc.Pods = []fleet.Pod{*p}
		u := planner.Unmark{Service: "shop/cart", Pod: planner.PodRef{Name: p.Name, ID: p.ID}, Passed: true}
		expect(t, c.name, judge(NewDoor(s).CheckUnmark(&u)), c.want)
	}
}

// Only what was unmarked, and had been passed over, counts.
func TestLeaversThatStayedAreCounted(t *testing.T) {
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
	m.observe(&fleet.Snapshot{}, plan, r, nil, nil, newTimer(func() {}), nil, nil)
	if n := testutil.ToFloat64(m.stayed); n != 1 {
		t.Errorf("%v leavers stayed, want 1", n)
	}
}
