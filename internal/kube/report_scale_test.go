package kube

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
)

// The status shows a scale when its pods are ready or gone, or after five minutes, also where more follow. The first one shows at once.
func TestAScaleShowsWithItsPods(t *testing.T) {
	const status = "update elasticservices/status cart"
	r := newReported(t, kubetest.Shop()...)
	var more int32 // replicas beyond the pods that are ready
	var grown int  // ready pods that came
	cycle := func(after time.Duration, scaled bool) bool {
		t.Helper()
		r.clock.Time = kubetest.Now.Add(after)
		written, _ := r.cycle(t, func(rep *loop.Report) {
			svc := &rep.Snapshot.Services[0]
			i := slices.IndexFunc(svc.Pods, func(p fleet.Pod) bool { return p.Ready && p.CurrentRevision })
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
	shown := func() time.Time {
		return convert.TimeOf(objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices,
			"shop/cart").Status.LastScaleTime)
	}
	more = 2
	if !cycle(0, true) {
		t.Fatal("the first scale-out does not show at once")
	}
	grown = 2
	cycle(time.Minute, false)
	more = 4
	if cycle(20*time.Minute, true) || cycle(21*time.Minute, false) || cycle(22*time.Minute, false) {
		t.Error("a scale-out shows while its pods start")
	}
	grown = 4
	if !cycle(22*time.Minute+30*time.Second, false) || !shown().Equal(kubetest.Now.Add(20*time.Minute)) {
		t.Errorf("with its pods ready the scale-out does not show, or as of %v", shown())
	}
	more = 6
	cycle(40*time.Minute, true)
	if cycle(44*time.Minute, false) || !cycle(45*time.Minute, false) || !shown().Equal(kubetest.Now.Add(40*time.Minute)) {
		t.Errorf("the scale-out does not show after five minutes, or as of %v", shown())
	}
	more = 2
	if cycle(60*time.Minute, true) {
		t.Error("a scale-in shows while its pods leave")
	}
	grown = 2
	if !cycle(61*time.Minute, false) || !shown().Equal(kubetest.Now.Add(60*time.Minute)) {
		t.Errorf("with its pods gone the scale-in does not show, or as of %v", shown())
	}
	for i := range 5 {
		more = 4 + int32(i)
		if cycle(time.Duration(80+i)*time.Minute, true) {
			t.Error("a climb shows with each of its steps")
		}
	}
	if more = 9; !cycle(85*time.Minute, true) || !shown().Equal(kubetest.Now.Add(85*time.Minute)) {
		t.Errorf("a climb does not show after five minutes, or as of %v", shown())
	}
}

// A scale by one replica to and fro shows within two hours, in one write. A larger change, or one with other news,
// shows at once; how much one step may add or take is no news.
func TestASmallScaleShowsWithinTwoHours(t *testing.T) {
	const status = "update elasticservices/status cart"
	r := newReported(t, kubetest.Shop()...)
	cycle := func(after time.Duration, to int32, scaled bool, change func(*hpa.Target)) bool {
		t.Helper()
		r.clock.Time = kubetest.Now.Add(after)
		written, _ := r.cycle(t, func(rep *loop.Report) {
			svc, target := &rep.Snapshot.Services[0], &rep.Plan.Targets[0]
			target.Replicas, svc.Desired = to, fleet.KnownAt(to, rep.Snapshot.At)
			if scaled {
				rep.Receipt.Results = []loop.Result{{Action: "Scale", Subject: "shop/cart", Outcome: loop.Done}}
			}
			if change != nil {
				change(target)
			}
		})
		return slices.Contains(written, status)
	}
	ready := r.snapshot(t).Services[0].Ready()
	shown := func() (int32, time.Time) {
		s := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status
		return s.DesiredReplicas, convert.TimeOf(s.LastScaleTime)
	}
	rate := func(target *hpa.Target) { target.Limited = hpa.LimitedRate }
	if !cycle(0, ready, true, nil) {
		t.Fatal("the first scale does not show at once")
	}
	for i, to := range []int32{ready - 1, ready, ready - 1} {
		if cycle(time.Duration(20+3*i)*time.Minute, to, true, rate) {
			t.Errorf("scale %d by one replica shows at once", i)
		}
	}
	for after := 30 * time.Minute; after < 140*time.Minute; after += 10 * time.Minute {
		if cycle(after, ready-1, false, nil) {
			t.Errorf("a small scale shows after %v", after-20*time.Minute)
		}
	}
	if !cycle(140*time.Minute, ready-1, false, nil) {
		t.Error("a small scale does not show within two hours")
	}
	if n, at := shown(); n != ready-1 || !at.Equal(kubetest.Now.Add(26*time.Minute)) {
		t.Errorf("the status shows %d replicas, scaled at %v", n, at)
	}
	if !cycle(160*time.Minute, ready+3, true, func(target *hpa.Target) { target.Limited = hpa.LimitedQuota }) {
		t.Error("a scale with other news waits")
	}
	if !cycle(180*time.Minute, ready-1, true, rate) {
		t.Error("a large scale-in waits")
	}
}
