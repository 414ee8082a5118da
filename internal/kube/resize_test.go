package kube

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

// fitted is shop whose service has its requests changed by a mode.
func fitted(mode string, more ...metav1.Object) []metav1.Object {
	objects := append(kubetest.Shop(), more...)
	for _, o := range objects {
		if s, ok := o.(*v1alpha1.ElasticService); ok {
			s.Spec.RequestsMode = mode
		}
	}
	return objects
}

func resizeCart(by fleet.RequestsMode, pods ...planner.PodRef) planner.Resize {
	from := fleet.Resources{CPU: 2000, Memory: 2 * fleet.GiB, Pods: 1}
	to := from
	to.Memory = 3 * fleet.GiB
	return planner.Resize{Service: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Kind: "Deployment", By: by, From: from, To: to, Pods: pods}
}

func TestApplyResizesTheTemplate(t *testing.T) {
	w := newWorld(t, fitted("Recreate")...)
	plan := planner.Plan{LeaderEpoch: 7, Resizes: []planner.Resize{resizeCart(fleet.RequestsRecreate)}}
	if r := w.do(t, plan); r[0].Outcome != loop.Done {
		t.Fatalf("%+v", r)
	}
	d, err := w.core.AppsV1().Deployments("shop").Get(t.Context(), "cart", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := d.Spec.Template.Spec.Containers
	if len(got) != 1 || got[0].Resources.Requests.Memory().Value() != 3<<30 || got[0].Resources.Requests.Cpu().MilliValue() != 2000 {
		t.Errorf("containers = %+v", got)
	}
	if r := w.do(t, plan); r[0].Outcome != loop.Stale {
		t.Errorf("the same change again: %+v", r)
	}
}

func TestApplyResizesPodsInPlace(t *testing.T) {
	w := newWorld(t, fitted("InPlace")...)
	ref := planner.PodRef{Name: fleet.Name{Namespace: "shop", Name: "cart-b"},
		ID: fleet.UID(kubetest.UID("Pod", "cart-b"))}
	if r := w.do(t, planner.Plan{LeaderEpoch: 7, Resizes: []planner.Resize{resizeCart(fleet.RequestsInPlace, ref)}}); r[0].Outcome != loop.Done {
		t.Fatalf("%+v", r)
	}
	for name, want := range map[string]int64{"cart-a": 2 << 30, "cart-b": 3 << 30} {
		p, err := w.core.CoreV1().Pods("shop").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Spec.Containers[0].Resources.Requests.Memory().Value(); got != want {
			t.Errorf("%s requests %d, want %d", name, got, want)
		}
	}
}

// A change since the plan keeps requests as they are.
func TestResizeStopsAtTheDoor(t *testing.T) {
	vpa := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
		"metadata": map[string]any{"namespace": "shop", "name": "cart-vpa", "uid": "v"},
		"spec":     map[string]any{"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"}}}}
	for name, c := range map[string]struct {
		objects []metav1.Object
		change  func(*planner.Resize)
		want    string
	}{
		"a VPA":         {fitted("Recreate", vpa), nil, "VerticalPodAutoscaler cart-vpa targets the workload"},
		"another mode":  {fitted("Recommend"), nil, "requests are under mode Recommend now"},
		"other amounts": {fitted("Recreate"), func(r *planner.Resize) { r.From.CPU = 1000 }, "the template requests cpu=2 memory=2Gi now"},
		"a pod is gone": {fitted("InPlace"), func(r *planner.Resize) {
			r.By, r.Pods = fleet.RequestsInPlace, []planner.PodRef{{Name: fleet.Name{Namespace: "shop", Name: "cart-z"}, ID: "z"}}
		}, "pod shop/cart-z changed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.objects...)
			a := resizeCart(fleet.RequestsRecreate)
			if c.change != nil {
				c.change(&a)
			}
			rec := w.recordWrites()
			r := w.do(t, planner.Plan{LeaderEpoch: 7, Resizes: []planner.Resize{a}})
			if r[0].Outcome != loop.Stale || !strings.Contains(r[0].Message, c.want) || len(rec.without("events")) > 0 {
				t.Errorf("%+v, writes %v; want %q", r, rec.list, c.want)
			}
		})
	}
}

func TestReportRecommendation(t *testing.T) {
	r := newReported(t, fitted("Recreate")...)
	p := portrait.Portrait{Version: portrait.Version, Advice: portrait.Recommendation{Days: 3.5,
		CPU:    fleet.KnownAt(portrait.Bounds{Lower: 0.2, Target: 0.5001, Upper: 1}, kubetest.Now),
		Memory: fleet.KnownAt(portrait.Bounds{Lower: 1 << 30, Target: 3 << 30, Upper: 4 << 30}, kubetest.Now)}}
	_, events := r.cycle(t, func(rep *loop.Report) {
		rep.Portraits["shop/cart"] = p
		a := resizeCart(fleet.RequestsRecreate)
		a.Why = reason.Said("3.5 days ask for it")
		rep.Plan.Resizes = []planner.Resize{a}
		rep.Receipt.Results = []loop.Result{{Action: planner.ActionResize, Subject: "shop/cart", Outcome: loop.Done}}
	})
	s := objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status.Recommendation
	if s == nil || *s.CPUMillicores != (v1alpha1.RequestBounds{Current: 2000, Lower: 200, Target: 501, Upper: 1000}) ||
		*s.MemoryBytes != (v1alpha1.RequestBounds{Current: 2 << 30, Lower: 1 << 30, Target: 3 << 30, Upper: 4 << 30}) ||
		s.HistoryHours != 84 || convert.TimeOf(s.AppliedTime) != kubetest.Now || !strings.HasPrefix(s.Note,
		"memory alone is applied") {
		t.Errorf("recommendation = %+v", s)
	}
	want := "Normal Resized Deployment shop/cart from cpu=2 memory=2Gi to cpu=2 memory=3Gi: 3.5 days ask for it"
	if len(events) == 0 || events[0] != want {
		t.Errorf("events %q, want %q", events, want)
	}
	// A resize that is held back says by what, and the time of the last change stays and is read back.
	r.clock.Time = kubetest.Now.Add(10 * time.Minute)
	r.cycle(t, func(rep *loop.Report) {
		rep.Portraits["shop/cart"] = p
		rep.Plan.Withheld = []planner.Withheld{{Subject: planner.Subject{Kind: "requests", Name: "shop/cart"},
			By: planner.PausedBy(fleet.PauseAll, nil)}}
	})
	s = objectNow[v1alpha1.ElasticService](t, r.world, object.GVRServices, "shop/cart").Status.Recommendation
	if convert.TimeOf(s.AppliedTime) != kubetest.Now || !strings.HasPrefix(s.Note, "a change waits: spec.pause is All; ") {
		t.Errorf("recommendation = %+v", s)
	}
	if got := r.snapshot(t).Service("shop/cart").Resized; !got.OK || got.Value != kubetest.Now {
		t.Errorf("read back: %+v", got)
	}
}
