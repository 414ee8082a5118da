package e2e

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/world"
)

// TestJudgedOutage takes the API server, etcd and Prometheus away, one after another and all at once, each time while
// one loan is Noticed and others are Lent. The judge's watches are cut too: what it cannot see is no finding. Manual
// changes afterwards, and while Prometheus is away, are found.
//
// Every act waits for a state, so that a busy machine plays the same acts later. By the wall the outages take half a minute, longer than a lease, but for
// the first one.
func TestJudgedOutage(t *testing.T) {
	o := small(20 * time.Hour)
	var acts []fault
	away := 0 * time.Minute
	for _, p := range []struct {
		name  string
		what  []world.Target
		span  time.Duration
		speed float64
		// during, when set, is done in the outage.
		during func(w *world.World, s *watcher)
	}{
		{name: "the API server, for less than a lease", what: []world.Target{world.APIServer}, span: time.Minute, speed: slow},
		{name: "the API server", what: []world.Target{world.APIServer}, span: 5 * time.Minute, speed: slow},
		{name: "etcd", what: []world.Target{world.Etcd}, span: 5 * time.Minute, speed: slow},
		{name: "Prometheus", what: []world.Target{world.Prometheus}, span: 20 * time.Minute, speed: slow * 4, during: func(_ *world.World, s *watcher) {
			s.scaleInByHand(t)
		}},
		{name: "the API server, etcd and Prometheus", what: []world.Target{world.APIServer, world.Etcd, world.Prometheus}, span: 5 * time.Minute, speed: slow},
	} {
		var recalled string
		away += p.span
		acts = append(acts,
			fault{name: "a loan is recalled", ready: calm(2), do: func(w *world.World, s *watcher) {
				w.SetSpeed(p.speed)
				recalled = s.recall(t)
			}},
			fault{name: p.name + " goes away", ready: func(_ *world.World, s *watcher) bool {
				return s.loans[recalled].Status.Phase == "Noticed" && s.in("Lent") > 0
			}, do: func(w *world.World, _ *watcher) {
				for _, what := range p.what {
					w.TakeDown(what, p.span)
				}
			}})
		if p.during != nil {
			acts[len(acts)-1].then = 8 * time.Minute // the source has to be away for 5 minutes before anything is a breach
			acts = append(acts, fault{name: "a hand, in the outage", ready: func(w *world.World, _ *watcher) bool { return len(w.Down()) > 0 }, do: p.during})
		}
		acts = append(acts, fault{name: p.name + " is back, and the loan comes home", ready: func(w *world.World, s *watcher) bool {
			l, there := s.loans[recalled]
			return len(w.Down()) == 0 && (!there || l.Status.Phase == "Returned")
		}, do: func(w *world.World, _ *watcher) { w.SetSpeed(slow * 30) }})
	}
	acts = append(acts,
		fault{name: "a loan is deleted while it is lent", ready: lent(1), do: func(_ *world.World, s *watcher) {
			l := s.someLoan(t, "Lent")
			s.expects("phase", l.Name, "it was deleted by hand after the outages")
			s.remove("loans", l.Name)
		}, then: 10 * time.Minute},
		fault{name: "all services want all they may", do: func(w *world.World, s *watcher) {
			s.apply("festivalplans", festival("flood", w.Now(), time.Hour, s.services(), 1))
		}, then: 20 * time.Minute})
	w, _ := playActs(t, o, acts)
	r, err := w.Judge()
	if err != nil || r == nil {
		t.Fatalf("no judgement: %v", err)
	}
	// The time in which controllers and schedulers came back is no outage, and not judged either.
	if still := r.To.Sub(r.From) - time.Duration(r.JudgedHours*float64(time.Hour)); still < away || r.JudgedHours < 0.5 {
		t.Errorf("the judge judged %.1f h and stood still for %s: the outages alone took %s", r.JudgedHours, still, away)
	}
}

// calm waits until so many parcels are lent and nothing is down.
func calm(n int) func(*world.World, *watcher) bool {
	return func(w *world.World, s *watcher) bool { return len(w.Down()) == 0 && s.in("Lent") >= n }
}

// recall asks for a loan that is lent, as an operator's drill does.
func (s *watcher) recall(t *testing.T) string {
	t.Helper()
	l := s.someLoan(t, "Lent")
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AnnotationRecall: "drill"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.dyn.Resource(v1alpha1.GroupVersion.WithResource("loans")).Patch(t.Context(), l.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	return l.Name
}

// scaleInByHand takes a replica of the largest service. Nothing may be scaled in while the source is away, so the judge has to find it.
func (s *watcher) scaleInByHand(t *testing.T) {
	t.Helper()
	var largest v1alpha1.ElasticService
	for _, v := range s.services() {
		if v.Status.Replicas > largest.Status.Replicas {
			largest = v
		}
	}
	deployments := s.core.AppsV1().Deployments(largest.Namespace)
	scale, err := deployments.GetScale(t.Context(), largest.Spec.TargetRef.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas--
	s.expects("source", largest.Spec.TargetRef.Name, "it was scaled in by hand while Prometheus was away")
	if _, err := deployments.UpdateScale(t.Context(), largest.Spec.TargetRef.Name, scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
