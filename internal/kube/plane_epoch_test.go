//go:build plane

package kube

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/election"
	"github.com/springtide/springtide/internal/kube/fence"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// leadUntil lets a process lead until stop is called.
func (p *plane) leadUntil(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	leading, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- p.Lead(ctx, func(ctx context.Context, _ int64) error {
			close(leading)
			<-ctx.Done()
			return nil
		})
	}()
	select {
	case <-leading:
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(45 * time.Second):
		t.Fatal("nobody leads")
	}
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the end of the leadership: %v", err)
		}
	}
}

// scale scales a service by one, and says what came of it.
func (p *plane) scale(t *testing.T, svc fleet.ServiceID) loop.Result {
	t.Helper()
	var last loop.Result
	for range 5 {
		s := p.snapshot(t).Service(svc)
		r := p.apply(t, planner.Plan{Raises: []planner.Scale{{Service: svc, Target: s.Target, Kind: s.TargetKind, By: s.Actuation, From: s.Desired.Value, To: s.Desired.Value + 1}}})
		if last = r.Results[0]; !strings.Contains(last.Message, lostRace) && !strings.Contains(last.Message, "replicas are") {
			break
		}
	}
	return last
}

func (p *plane) stampTarget(t *testing.T, id, text string) {
	t.Helper()
	note := any(text)
	if text == "" {
		note = nil
	}
	body := object.MergePatch(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{v1alpha1.AnnotationLeaderEpoch: note}}})
	d, err := p.core.AppsV1().Deployments("default").Patch(t.Context(), id, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the watch to see the annotation", func() bool {
		w, ok := p.Deployments.Get("default", id)
		return ok && w.Leader == leadership.StampOn(d)
	})
}

// TestPlaneBeyondBelief writes the largest numbers that the API server takes into each kind that carries an epoch: the leader counts as before, its own
// writes put the numbers right, and each is named. Larger ones are refused.
func TestPlaneBeyondBelief(t *testing.T) {
	p := newPlane(t)
	id := "beyond-" + rand.String(5)
	s := kubetest.Service(id)
	s.Namespace = "default"
	p.create(t, object.GVRServices, s)
	p.machineOf(t, id, "web")
	l := kubetest.Loan("l-"+id, "n-"+id, "", 2, 0)
	p.create(t, object.GVRLoans, l)
	share := kubetest.NodeShare("n-"+id, l.Name, "web-"+id, "batch-"+id, 1, false, 1)
	share.Spec.LeaderEpoch = 0
	p.create(t, object.GVRShares, share)
	set := func(gvr schema.GroupVersionResource, namespace, name, part string, epoch int64) error {
		body := fmt.Appendf(nil, `{%q:{"leaderEpoch":%d}}`, part, epoch)
		sub := []string{"status"}
		if part == "spec" {
			sub = nil
		}
		_, err := p.dyn.Resource(gvr).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{}, sub...)
		return err
	}
	objects := []struct {
		gvr                   schema.GroupVersionResource
		namespace, name, part string
	}{{object.GVRServices, "default", id, "status"}, {object.GVRPools, "", "web-" + id, "status"}, {object.GVRLoans,
		"", l.Name, "status"}, {object.GVRShares, "", "n-" + id, "spec"}}
	for _, o := range objects {
		for _, epoch := range []int64{-1, v1alpha1.MaxEpoch + 1, 1 << 62, 1<<63 - 1} {
			if err := set(o.gvr, o.namespace, o.name, o.part, epoch); !apierrors.IsInvalid(err) {
				t.Errorf("%s with epoch %d: %v", o.gvr.Resource, epoch, err)
			}
		}
		if err := set(o.gvr, o.namespace, o.name, o.part, v1alpha1.MaxEpoch); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // each leader, and the next one
		lead := newPlane(t)
		stop := lead.leadUntil(t)
		epoch := lead.Leads().Epoch
		if epoch > v1alpha1.EpochSpan {
			t.Fatalf("the leader took epoch %d", epoch)
		}
		for _, o := range objects[1:] {
			u, err := p.dyn.Resource(o.gvr).Namespace(o.namespace).Get(t.Context(), o.name, metav1.GetOptions{})
			if err != nil || election.EpochOn(u) != epoch {
				t.Errorf("%s %s carries epoch %d and the leader is of %d, %v", o.gvr.Resource, o.name, election.EpochOn(u),
					epoch, err)
			}
		}
		stop()
	}
	until(t, "events that name the numbers", func() bool {
		named := map[string]bool{}
		list, err := p.core.CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" +
			catalog.EventNotBelieved.Reason()})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			named[list.Items[i].InvolvedObject.Name] = true
		}
		return named["web-"+id] && named[l.Name] && named["n-"+id]
	})
}

// TestPlaneEpochsOfOthers plays targets that carry epochs of a counter that is no more: nothing of it keeps a service from being scaled. A larger epoch of
// the same Lease on the same object does, and is named.
func TestPlaneEpochsOfOthers(t *testing.T) {
	p := newPlane(t)
	stop := p.leadUntil(t)
	id := "epochs-" + rand.String(5)
	svc := p.app(t, id, 2, "Scale")
	if r := p.scale(t, svc); r.Outcome != loop.Done {
		t.Fatalf("%+v", r)
	}
	lease, uid := p.Leads().Lease, types.UID(p.snapshot(t).Service(svc).TargetUID)
	for name, text := range map[string]string{
		"a backup of a week ago": leadership.StampText(max(p.Leads().Epoch-5, 0), lease, uid),
		"another installation":   leadership.StampText(p.Leads().Epoch+19, "0a0a0a0a-0000-0000-0000-000000000000", uid),
		"a copied manifest": leadership.StampText(p.Leads().Epoch+19, lease,
			"0b0b0b0b-0000-0000-0000-000000000000"),
		"an older version":             fmt.Sprint(p.Leads().Epoch + 19),
		"2^63-1":                       leadership.StampText(1<<63-1, lease, uid),
		"2^62":                         leadership.StampText(1<<62, lease, uid),
		"-1":                           leadership.StampText(-1, lease, uid),
		"nothing of which it can read": "x/y/z/" + strings.Repeat("9", 1000),
	} {
		p.stampTarget(t, id, text)
		if r := p.scale(t, svc); r.Outcome != loop.Done {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// The same object made again from its manifest, as from Git.
	made, err := p.core.AppsV1().Deployments("default").Get(t.Context(), id, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.core.AppsV1().Deployments("default").Delete(t.Context(), id, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	again := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: id, Annotations: made.Annotations}, Spec: made.Spec}
	again.Annotations[v1alpha1.AnnotationLeaderEpoch] = leadership.StampText(p.Leads().Epoch+19, lease, uid)
	if made, err = p.core.AppsV1().Deployments("default").Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the watch to see it", func() bool {
		s := p.snapshot(t).Service(svc)
		return s.TargetUID == fleet.UID(made.UID) && s.Desired.OK
	})
	if r := p.scale(t, svc); r.Outcome != loop.Done {
		t.Errorf("made again: %+v", r)
	}
	// Written by hand: named, and not for longer than it stands there.
	able := func() *metav1.Condition {
		s := p.snapshot(t)
		if err := p.Report(t.Context(), &loop.Report{Snapshot: s, Plan: &planner.Plan{}, Receipt: &loop.Receipt{}}); err != nil {
			t.Fatal(err)
		}
		o, ok := p.Services.Get("default", id)
		if !ok {
			t.Fatal("the service is gone")
		}
		return meta.FindStatusCondition(o.API.Status.Conditions, catalog.ConditionAbleToScale)
	}
	p.stampTarget(t, id, leadership.StampText(p.Leads().Epoch+1, lease, made.UID))
	if r := p.scale(t, svc); r.Outcome != loop.Stale || !strings.Contains(r.Message, catalog.NewerLeader.Reason()) {
		t.Errorf("a larger epoch by hand: %+v", r)
	}
	if c := able(); c == nil || c.Status != metav1.ConditionFalse || c.Reason != catalog.NewerLeader.Reason() ||
		!strings.Contains(c.Message, "kubectl annotate deployment -n default "+id) {
		t.Errorf("the condition is %+v", c)
	}
	p.stampTarget(t, id, "")
	if r := p.scale(t, svc); r.Outcome != loop.Done {
		t.Errorf("once the annotation is gone: %+v", r)
	}
	if c := able(); c.Status != metav1.ConditionTrue {
		t.Errorf("once the annotation is gone the condition is %+v", c)
	}
	stop()

	// A new installation: the Lease is gone, the targets stay.
	if err := p.core.CoordinationV1().Leases(kubetest.Namespace).Delete(t.Context(), fence.LeaseName,
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.stampTarget(t, id, leadership.StampText(900_000, lease, made.UID))
	renewed := newPlane(t)
	stop = renewed.leadUntil(t)
	defer stop()
	if renewed.Leads().Lease == lease || renewed.Leads().Epoch > 800_000 {
		t.Fatalf("Lease %s, epoch %d: no new installation", renewed.Leads().Lease, renewed.Leads().Epoch)
	}
	if r := renewed.scale(t, svc); r.Outcome != loop.Done {
		t.Errorf("after a new installation: %+v", r)
	}
	// Its stamp holds for its own Lease.
	stamp := leadership.Stamp{Epoch: renewed.Leads().Epoch, Lease: renewed.Leads().Lease}
	if w, ok := renewed.Deployments.Get("default", id); !ok || w.Leader != stamp {
		t.Errorf("the target carries %+v", w.Leader)
	}
}

// TestPlaneTwoInstallations: of two installations in one cluster the one that works stays, the other one waits and says so, and takes over once the first
// one is gone. The targets carry the stamps of the first.
func TestPlaneTwoInstallations(t *testing.T) {
	p := newPlane(t)
	id := "two-" + rand.String(5)
	p.machineOf(t, id, "web") // a pool
	stop := p.leadUntil(t)
	svc := p.app(t, id+"-app", 2, "Scale")

	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("SPRINGTIDE_TEST_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := New(cfg, watch.Options{Namespace: "springtide-" + id, Identity: id, Clock: wallClock{},
		Log: slog.Default()})
	if err != nil {
		t.Fatal(err)
	}
	p.tolerate(t, func() error {
		_, err := p.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "springtide-" + id}}, metav1.CreateOptions{})
		return err
	})
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	q := &plane{Cluster: second, rooms: second.in, core: p.core, dyn: p.dyn}
	ctx, cancel := context.WithCancel(t.Context())
	leading, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- second.Lead(ctx, func(ctx context.Context, _ int64) error {
			close(leading)
			<-ctx.Done()
			return nil
		})
	}()
	until(t, "the event that names both", func() bool {
		list, err := p.core.CoreV1().Events("springtide-"+id).List(t.Context(),
			metav1.ListOptions{FieldSelector: "reason=" + catalog.EventAnotherInstallation.Reason()})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items) > 0 && strings.Contains(list.Items[0].Message, kubetest.Namespace)
	})
	if r := p.scale(t, svc); r.Outcome != loop.Done {
		t.Errorf("the first one: %+v", r)
	}
	select {
	case <-leading:
		t.Fatal("both lead")
	default:
	}
	stop()
	select {
	case <-leading:
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("the second one does not take over")
	}
	if r := q.scale(t, svc); r.Outcome != loop.Done {
		t.Errorf("the second one: %+v", r)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestPlaneAmountsBeyondBelief: a quota of more than any fleet has is refused where it is written.
func TestPlaneAmountsBeyondBelief(t *testing.T) {
	p := newPlane(t)
	for _, amount := range []string{"10P", "10000000000000000", "1e300", "9223372036854775807"} {
		q := &v1alpha1.CapacityQuota{ObjectMeta: metav1.ObjectMeta{Name: "q-" + rand.String(5)}}
		q.Spec.Guarantee.CPU = resource.MustParse(amount)
		u, err := object.Encode(object.GVRQuotas, q)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.dyn.Resource(object.GVRQuotas).Create(t.Context(), u,
			metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "at most 1G cores") {
			t.Errorf("%s cores: %v", amount, err)
		}
	}
}
