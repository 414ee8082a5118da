package kube

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/reason"
)

// A gang's state is reported once, and a new leader reads it back: neither a restart nor a new leader gives it more
// time.
func TestReportGang(t *testing.T) {
	r := newReported(t, kubetest.ElasticJob("bert"), kubetest.BatchJob("bert", 4))
	r.clock.Time = kubetest.Now
	back := fleet.Gang{Phase: fleet.GangBackedOff, Since: kubetest.Now, RetryAt: kubetest.Now.Add(2 * time.Minute),
		Tries: 2, Ran: true}
	gang := func(rep *loop.Report) {
		rep.Plan.At = kubetest.Now
		rep.Plan.Gangs = []planner.GangView{{Job: "train/bert", Gang: back, Note: reason.Said("its gang did not run")}}
	}
	_, events := r.cycle(t, gang)
	if diff := cmp.Diff([]string{"Warning GangRolledBack its gang did not run"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	s := objectNow[v1alpha1.ElasticJob](t, r.world, object.GVRJobs, "train/bert").Status
	if !slices.Contains(kubetest.Said(s.Conditions), "GangWhole=False/BackedOff") {
		t.Errorf("conditions %v", kubetest.Said(s.Conditions))
	}
	if got := r.snapshot(t).Job("train/bert").Gang; got != back {
		t.Errorf("read back %+v, want %+v", got, back)
	}
	if _, events = r.cycle(t, gang); len(events) > 0 {
		t.Errorf("told again: %v", events)
	}
	r.clock.Time = kubetest.Now.Add(time.Minute)
	r.cycle(t, func(rep *loop.Report) {
		rep.Plan.Gangs = []planner.GangView{{Job: "train/bert", Gang: fleet.Gang{Phase: fleet.GangWhole,
			Since: kubetest.Now}}}
	})
	s = objectNow[v1alpha1.ElasticJob](t, r.world, object.GVRJobs, "train/bert").Status
	if !slices.Contains(kubetest.Said(s.Conditions), "GangWhole=True/Whole") || s.Gang.Tries != 0 {
		t.Errorf("%v, %+v", kubetest.Said(s.Conditions), s.Gang)
	}
	eta := planner.ETA{Job: "train/bert", Earliest: kubetest.Now.Add(time.Hour),
		Expected: kubetest.Now.Add(2 * time.Hour), Members: 4, Kind: planner.WaitsForTide, Why: reason.Said("the ebb")}
	written, _ := r.cycle(t, func(rep *loop.Report) { rep.Plan.ETAs = []planner.ETA{eta} })
	s = objectNow[v1alpha1.ElasticJob](t, r.world, object.GVRJobs, "train/bert").Status
	if e := s.ETA; len(written) != 1 || e == nil || !convert.TimeOf(e.Expected).Equal(eta.Expected) ||
		e.Latest != nil || e.Members != 4 || e.Reason != "Tide" || e.Why != "the ebb" {
		t.Errorf("ETA %+v after %v", s.ETA, written)
	}
	r.cycle(t, nil)
	if s = objectNow[v1alpha1.ElasticJob](t, r.world, object.GVRJobs, "train/bert").Status; s.Gang != nil {
		t.Errorf("a job without a minimum has no gang: %+v", s.Gang)
	}
}
