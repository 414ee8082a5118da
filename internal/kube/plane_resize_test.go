//go:build plane

package kube

import (
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
)

// setRequestsMode changes the spec of a service as its operator would.
func (p *plane) setRequestsMode(t *testing.T, id, mode string) {
	t.Helper()
	body := []byte(`{"spec":{"requestsMode":"` + mode + `"}}`)
	if _, err := p.dyn.Resource(object.GVRServices).Namespace("default").Patch(t.Context(), id,
		"application/merge-patch+json", body, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the mode", func() bool {
		s := p.snapshot(t).Service(fleet.ServiceID("default/" + id))
		return s != nil && s.RequestsMode == fleet.RequestsMode(mode)
	})
}

func (p *plane) resizeOf(t *testing.T, svc fleet.ServiceID, memory fleet.Bytes, pods ...planner.PodRef) planner.Resize {
	s := p.snapshot(t).Service(svc)
	r := planner.Resize{Service: svc, Target: s.Target, Kind: s.TargetKind, By: s.RequestsMode, From: s.Request, Pods: pods}
	if s.RequestsMode == fleet.RequestsRecreate {
		r.From = s.Template
	}
	r.To = r.From
	r.To.Memory = memory
	return r
}

// TestPlaneResize changes requests with the controller's own rights: in place the pod stays the same pod, by the template it is replaced.
func TestPlaneResize(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	id := "fit-" + rand.String(5)
	svc := p.app(t, id, 2, "Scale")
	if s := p.snapshot(t).Service(svc); s.RequestsMode != fleet.RequestsRecommend {
		t.Fatalf("the default is %s", s.RequestsMode)
	}

	p.setRequestsMode(t, id, "InPlace")
	first := p.snapshot(t).Service(svc).Pods[0]
	ref := planner.PodRef{Name: first.Name, ID: first.ID}
	p.must(t, planner.Plan{Resizes: []planner.Resize{p.resizeOf(t, svc, 3*fleet.GiB, ref)}})
	s := p.snapshot(t).Service(svc)
	if s.Pods[0].ID != first.ID || s.Pods[0].Requests.Memory != 3*fleet.GiB || s.Pods[1].Requests.Memory != 2*fleet.GiB {
		t.Errorf("in place: %+v", s.Pods)
	}

	p.setRequestsMode(t, id, "Recreate")
	change := p.resizeOf(t, svc, 4*fleet.GiB)
	until(t, "the change to be refused without the right to templates", func() bool {
		r := p.apply(t, planner.Plan{Resizes: []planner.Resize{change}}).Results[0]
		return r.Outcome == loop.Failed && strings.Contains(r.Message, "bind the ClusterRole springtide-templates in their namespace")
	})
	p.tolerate(t, func() error {
		_, err := p.core.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "springtide-templates"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "springtide-templates"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "springtide-controller",
				Namespace: kubetest.Namespace}}}, metav1.CreateOptions{})
		return err
	})
	until(t, "the change with the right", func() bool {
		return p.apply(t, planner.Plan{Resizes: []planner.Resize{change}}).Results[0].Outcome == loop.Done
	})
	if got := p.snapshot(t).Service(svc).Template.Memory; got != 4*fleet.GiB {
		t.Fatalf("the next snapshot says %d bytes", got)
	}
	until(t, "the rollout to begin", func() bool {
		for _, pod := range p.snapshot(t).Service(svc).Pods {
			if pod.CurrentRevision && pod.Requests.Memory == 4*fleet.GiB {
				return true
			}
		}
		return false
	})
	if r := p.apply(t, planner.Plan{Resizes: []planner.Resize{change}}); r.Count(loop.Stale) != 1 {
		t.Errorf("the same change again: %+v", r.Results)
	}

	// The API server's bounds take what is reported, and refuse what makes no sense.
	rep := &loop.Report{Snapshot: p.snapshot(t), Plan: &planner.Plan{}, Receipt: &loop.Receipt{Results: []loop.Result{{Action: planner.ActionResize, Subject: string(svc), Outcome: loop.Done}}},
		Portraits: map[fleet.ServiceID]portrait.Portrait{svc: {Advice: portrait.Recommendation{Days: 8,
			CPU:    fleet.KnownAt(portrait.Bounds{Lower: 0.025, Target: 0.1, Upper: 1000}, time.Now()),
			Memory: fleet.KnownAt(portrait.Bounds{Lower: 1e8, Target: 2e8, Upper: 1e12}, time.Now())}}}}
	if err := p.Report(t.Context(), rep); err != nil {
		t.Fatal(err)
	}
	until(t, "the time of the change", func() bool { return p.snapshot(t).Service(svc).Resized.OK })
}
