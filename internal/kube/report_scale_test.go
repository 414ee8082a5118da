package kube

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
)

// A scale-out is told when its pods are ready, or after three minutes: one write says both. The first one, and a scale-in, are told at once.
func TestAScaleOutIsToldWithItsPods(t *testing.T) {
	const status = "update elasticservices/status cart"
	r := newReported(t, shop()...)
	var more int32 // replicas beyond the pods that are ready
	var grown int  // ready pods that came
	cycle := func(after time.Duration, scaled bool) bool {
		t.Helper()
		r.clock.now = t0.Add(after)
		written, _ := r.cycle(t, func(rep *loop.Report) {
			svc := &rep.Snapshot.Services[0]
			i := slices.IndexFunc(svc.Pods, func(p fleet.Pod) bool { return p.Ready })
			for range grown {
				svc.Pods = append(svc.Pods, svc.Pods[i])
			}
			to := svc.Ready() - int32(grown) + more
			rep.Plan.Targets[0].Replicas, svc.Desired = to, fleet.KnownAt(to, rep.Snapshot.At)
			if scaled {
				rep.Receipt.Results = []loop.Result{{Action: "Scale", Subject: "shop/cart", Outcome: loop.Done}}
			}
		})
		return slices.Contains(written, status)
	}
	told := func() time.Time {
		return timeOf(object[v1alpha1.ElasticService](t, r.world, gvrServices, "shop/cart").Status.LastScaleTime)
	}
	more = 2
	if !cycle(0, true) {
		t.Fatal("the first scale-out was not told at once")
	}
	grown = 2
	cycle(time.Minute, false)
	more = 4
	if cycle(20*time.Minute, true) || cycle(21*time.Minute, false) || cycle(22*time.Minute, false) {
		t.Error("a scale-out was told while its pods start")
	}
	grown = 4
	if !cycle(22*time.Minute+30*time.Second, false) || !told().Equal(t0.Add(20*time.Minute)) {
		t.Errorf("with its pods ready the scale-out was not told, or as of %v", told())
	}
	more = 6
	cycle(40*time.Minute, true)
	if !cycle(43*time.Minute, false) || !told().Equal(t0.Add(40*time.Minute)) {
		t.Errorf("after three minutes the scale-out was not told, or as of %v", told())
	}
	more = 3
	if !cycle(60*time.Minute, true) || !told().Equal(t0.Add(60*time.Minute)) {
		t.Errorf("a scale-in was not told at once, but as of %v", told())
	}
}
