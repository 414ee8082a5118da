package protocol

import (
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

func TestDoorResize(t *testing.T) {
	small, large := fleet.Resources{CPU: 1000, Memory: fleet.GiB}, fleet.Resources{CPU: 2000, Memory: fleet.GiB}
	for _, c := range []struct {
		name string
		bend func(s *fleet.Service, f *fleet.Snapshot, a *planner.Resize)
		want string
	}{
		{"as decided", func(*fleet.Service, *fleet.Snapshot, *planner.Resize) {}, ""},
		{"the template, as decided", func(s *fleet.Service, _ *fleet.Snapshot, a *planner.Resize) {
			s.RequestsMode, a.By, a.Pods = fleet.RequestsRecreate, fleet.RequestsRecreate, nil
		}, ""},
		{"the service is gone", func(s *fleet.Service, _ *fleet.Snapshot, _ *planner.Resize) { s.ID = "shop/other" }, "the service is gone"},
		{"blocked", func(s *fleet.Service, _ *fleet.Snapshot, _ *planner.Resize) {
			s.Blocked = fleet.Problem{Reason: "HPAFound", Message: "x"}
		}, "blocked: HPAFound"},
		{"observed only", func(s *fleet.Service, _ *fleet.Snapshot, _ *planner.Resize) { s.Mode = fleet.Observe }, "mode is Observe"},
		{"paused", func(s *fleet.Service, _ *fleet.Snapshot, _ *planner.Resize) { s.Pause = fleet.PauseAll }, "paused: All"},
		{"paused one way", func(s *fleet.Service, _ *fleet.Snapshot, _ *planner.Resize) { s.Pause = fleet.PauseOut }, "paused: Out"},
		{"not paused, and said so", func(s *fleet.Service, _ *fleet.Snapshot, _ *planner.Resize) { s.Pause = fleet.PauseNone }, ""},
		{"an autoscaler of requests came", func(s *fleet.Service, _ *fleet.Snapshot, _ *planner.Resize) { s.VPA = "vpa" }, "VerticalPodAutoscaler vpa"},
		{"only recommended by now", func(s *fleet.Service, _ *fleet.Snapshot, _ *planner.Resize) { s.RequestsMode = fleet.RequestsRecommend }, "under mode Recommend"},
		{"the target is gone", func(s *fleet.Service, _ *fleet.Snapshot, _ *planner.Resize) { s.TargetFound = false }, "the target is"},
		{"another target", func(s *fleet.Service, _ *fleet.Snapshot, _ *planner.Resize) { s.Target.Name = "pay" }, "the target is Deployment shop/pay"},
		{"another kind", func(s *fleet.Service, _ *fleet.Snapshot, _ *planner.Resize) { s.TargetKind = "StatefulSet" }, "the target is StatefulSet"},
		{"the template changed", func(s *fleet.Service, _ *fleet.Snapshot, a *planner.Resize) {
			s.RequestsMode, a.By, a.Pods, s.Template = fleet.RequestsRecreate, fleet.RequestsRecreate, nil, large
		}, "the template requests"},
		{"the template changed, and pods are resized in place", func(s *fleet.Service, _ *fleet.Snapshot, _ *planner.Resize) { s.Template = large }, ""},
		{"pods ask for more than the template, by a LimitRange", func(s *fleet.Service, _ *fleet.Snapshot, a *planner.Resize) {
			s.RequestsMode, a.By, a.Pods, s.Request = fleet.RequestsRecreate, fleet.RequestsRecreate, nil, large
		}, ""},
		{"a pod is gone", func(_ *fleet.Service, f *fleet.Snapshot, _ *planner.Resize) { f.Pods[0].ID = "p9" }, "changed"},
		{"a pod is ending", func(_ *fleet.Service, f *fleet.Snapshot, _ *planner.Resize) { f.Pods[0].Deleting = true }, "changed"},
		{"a pod of another service", func(_ *fleet.Service, f *fleet.Snapshot, _ *planner.Resize) { f.Pods[0].Service = "shop/pay" }, "changed"},
		{"a pod of another size", func(_ *fleet.Service, f *fleet.Snapshot, _ *planner.Resize) { f.Pods[0].Requests = large }, "changed"},
	} {
		f := doorFacts()
		s := &f.Services[0]
		s.RequestsMode, s.Request, s.Template, f.Pods[0].Requests = fleet.RequestsInPlace, small, small, small
		a := planner.Resize{Service: "shop/cart", Target: s.Target, Kind: s.TargetKind, By: fleet.RequestsInPlace, From: small, To: large,
			Pods: []planner.PodRef{{Name: f.Pods[0].Name, ID: f.Pods[0].ID}}}
		c.bend(s, f, &a)
		expect(t, c.name, judge(NewDoor(f).CheckResize(&a)), c.want)
	}
}

func TestDoorGiveBack(t *testing.T) {
	for _, c := range []struct {
		name string
		hpas []fleet.AdoptedHPA
		want string
	}{
		{"as decided", []fleet.AdoptedHPA{{ID: "h0", Own: 9}, {ID: "h1", Own: 2}}, ""},
		{"the first of them", []fleet.AdoptedHPA{{ID: "h1", Own: 2}, {ID: "h0", Own: 9}}, ""},
		{"gone, or asked for again", []fleet.AdoptedHPA{{ID: "h0", Own: 2}}, "is gone"},
		{"none is left", nil, "is gone"},
		{"its owner's minimum changed", []fleet.AdoptedHPA{{ID: "h1", Own: 3}}, "its owner's minReplicas are 3, not 2"},
	} {
		f := doorFacts()
		f.Orphans = c.hpas
		expect(t, c.name, judge(NewDoor(f).CheckGiveBack(&planner.GiveBack{ID: "h1", From: 5, To: 2})), c.want)
	}
}

// To the same number is neither in nor out: each bound is taken at its edge.
func TestDoorAtTheEdges(t *testing.T) {
	scale := func(pause fleet.Pause, to int32) string {
		f := doorFacts()
		f.Services[0].Pause = pause
		return judge(NewDoor(f).CheckScale(&planner.Scale{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", By: fleet.ByScale, From: 3, To: to}))
	}
	expect(t, "none is a number of replicas", scale("", 0), "")
	expect(t, "less than none is not", scale("", -1), "make no sense")
	expect(t, "in, paused inwards", scale(fleet.PauseIn, 2), "paused: In")
	expect(t, "in, paused outwards", scale(fleet.PauseOut, 2), "")
	expect(t, "out, paused outwards", scale(fleet.PauseOut, 4), "paused: Out")
	expect(t, "out, paused inwards", scale(fleet.PauseIn, 4), "")
	expect(t, "the same, paused inwards", scale(fleet.PauseIn, 3), "")

	floor := func(to int32) string {
		f := doorFacts()
		f.Services[0].Actuation, f.Services[0].HPA = fleet.ByHPAFloor, &fleet.HPAFacts{Name: "hpa", Min: 2, Max: 9}
		return judge(NewDoor(f).CheckScale(&planner.Scale{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "hpa"}, By: fleet.ByHPAFloor, From: 2, To: to}))
	}
	expect(t, "a floor at the maximum", floor(9), "")
	expect(t, "a floor beyond it", floor(10), "exceeds maxReplicas 9")

	job := func(to int32) string {
		return judge(NewDoor(doorFacts()).CheckJobScale(&planner.JobScale{Job: "train/bert", Role: "worker", Kind: "Job", Workload: fleet.Name{Namespace: "train", Name: "bert"}, From: 4, To: to}))
	}
	expect(t, "none of a job", job(0), "")
	expect(t, "less than none of a job", job(-1), "outside of 0..8")
	expect(t, "all of a job", job(8), "")
	other := doorFacts()
	other.Jobs[0].Members[0].Kind = "Deployment"
	expect(t, "a job of another kind", judge(NewDoor(other).CheckJobScale(&planner.JobScale{Job: "train/bert", Role: "worker", Kind: "Job", Workload: fleet.Name{Namespace: "train", Name: "bert"}, From: 4, To: 5})), "no longer Job")

	unmark := func(bend func(s *fleet.Service, p *fleet.Pod)) string {
		f := doorFacts()
		f.Pods[0].LeavesAt, f.Services[0].Desired.Value = fleet.KnownAt(int32(1), doorTime), 1
		bend(&f.Services[0], &f.Pods[0])
		f.Services[0].Pods = []fleet.Pod{f.Pods[0]}
		return judge(NewDoor(f).CheckUnmark(&planner.Unmark{Service: "shop/cart", Pod: planner.PodRef{Name: fleet.Name{Namespace: "shop", Name: "cart-a"}, ID: "p1"}, Passed: true}))
	}
	expect(t, "unmark of a blocked service", unmark(func(s *fleet.Service, _ *fleet.Pod) { s.Blocked = fleet.Problem{Reason: "HPAFound", Message: "x"} }), "not ours")
	expect(t, "unmark of a pod of another name", unmark(func(_ *fleet.Service, p *fleet.Pod) { p.Name.Name = "cart-b" }), "the pod left")
	expect(t, "unmark of another pod of the name", unmark(func(_ *fleet.Service, p *fleet.Pod) { p.ID = "p9" }), "the pod left")
	expect(t, "unmark of a service that is gone", unmark(func(s *fleet.Service, _ *fleet.Pod) { s.ID = "shop/gone" }), "the service is gone")
}
