//go:build plane

package kube

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/kube/election"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/fence"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/portrait/model"
	"github.com/springtide/springtide/reason"
)

// app makes a Deployment of ready pods on a machine of its own, with an ElasticService on it; bend changes both first.
func (p *plane) app(t *testing.T, id string, replicas int32, actuation string,
	bend ...func(*appsv1.Deployment, *v1alpha1.ElasticService)) fleet.ServiceID {
	t.Helper()
	ctx := t.Context()
	n := kubetest.Node("m-"+id, nil)
	n.ObjectMeta = metav1.ObjectMeta{Name: n.Name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}
	n.Status.Capacity = n.Status.Allocatable
	if _, err := p.core.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: id}}
	d.Spec.Replicas = &replicas
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": id}}
	d.Spec.Template = kubetest.Template("1")
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	d.Spec.Template.Spec.Containers[0].Image = "none"
	s := kubetest.Service(id)
	s.Namespace, s.Spec.Actuation = "default", actuation
	for _, f := range bend {
		f(d, s)
	}
	if _, err := p.core.AppsV1().Deployments("default").Create(ctx, d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.create(t, object.GVRServices, s)
	svc := fleet.ServiceID("default/" + id)
	until(t, "pods that are bound", func() bool {
		got := p.snapshot(t).Service(svc)
		if got == nil || len(got.Pods) != int(replicas) {
			return false
		}
		for i := range got.Pods {
			if got.Pods[i].NodeName == "" {
				return false
			}
			p.run(t, &got.Pods[i])
		}
		return got.Ready() == replicas
	})
	return svc
}

// run plays the kubelet: the pod is ready.
func (p *plane) run(t *testing.T, pod *fleet.Pod) {
	t.Helper()
	if pod.Ready {
		return
	}
	body := object.MergePatch(map[string]any{"status": corev1.PodStatus{Phase: corev1.PodRunning,
		StartTime: kubetest.Ptr(metav1.Now()),
		Conditions: []corev1.PodCondition{kubetest.Ready(metav1.Now()), {Type: corev1.PodScheduled,
			Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}}})
	if _, err := p.core.CoreV1().Pods(pod.Name.Namespace).Patch(t.Context(), pod.Name.Name,
		types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

func TestPlaneScale(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	id := "app-" + rand.String(5)
	svc := p.app(t, id, 5, "Scale")
	s := p.snapshot(t).Service(svc)
	// The pods that leave are the last two by name; without their cost the ReplicaSet would choose by age and spread.
	var victims []planner.PodRef
	for _, pod := range s.Pods[3:] {
		victims = append(victims, planner.PodRef{Name: pod.Name, ID: pod.ID})
	}
	lower := planner.Scale{Service: svc, Target: s.Target, Kind: s.TargetKind, By: s.Actuation, From: 5, To: 3, Version: s.Version, Victims: victims}
	p.must(t, planner.Plan{Lowers: []planner.Scale{lower}})
	if got := p.snapshot(t).Service(svc).Desired.Value; got != 3 {
		t.Fatalf("the next snapshot says %d replicas", got)
	}
	until(t, "the victims to leave", func() bool {
		now := p.snapshot(t)
		for _, l := range victims {
			if pod := find(now, l.ID); pod != nil && !pod.Deleting {
				return false
			}
		}
		return true
	})
	for _, stays := range s.Pods[:3] {
		if pod := find(p.snapshot(t), stays.ID); pod == nil || pod.Deleting {
			t.Errorf("pod %s left in the place of a victim", stays.Name)
		}
	}
	// The same plan again is stale: replicas are no longer those it started from.
	if r := p.apply(t, planner.Plan{Lowers: []planner.Scale{lower}}); r.Count(loop.Stale) != 1 {
		t.Fatalf("a scale from replicas that are no more: %+v", r.Results)
	}

	// Another client takes spec.replicas from us; it shows once we are known to have scaled.
	u, err := p.dyn.Resource(object.GVRServices).Namespace("default").Get(t.Context(), id, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	es, err := object.Decode[v1alpha1.ElasticService](u)
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	es.Status.LastScaleTime = &now
	if err := p.putStatus(t, object.GVRServices, es); err != nil {
		t.Fatal(err)
	}
	until(t, "our own write to be no foreign one", func() bool { return p.snapshot(t).Service(svc).ForeignWriter == "" })
	if _, err := p.core.AppsV1().Deployments("default").Patch(t.Context(), id, types.MergePatchType, []byte(`{"spec":{"replicas":4}}`),
		metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	until(t, "the foreign writer", func() bool { return p.snapshot(t).Service(svc).ForeignWriter == "somebody" })
	p.must(t, planner.Plan{Raises: []planner.Scale{{Service: svc, Target: s.Target, Kind: s.TargetKind, By: s.Actuation, From: 4, To: 6}}})
	if got := p.snapshot(t).Service(svc); got.ForeignWriter != "" || got.Desired.Value != 6 {
		t.Errorf("after our write: foreign writer %q, %d replicas", got.ForeignWriter, got.Desired.Value)
	}
}

// TestPlaneContested: a GitOps controller applies spec.replicas with force after each of our writes. After the third time it counts as a fight,
// status and snapshot say so, and when it no longer writes replicas the fight is over at once.
func TestPlaneContested(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	id := "gitops-" + rand.String(5)
	svc := p.app(t, id, 4, "Scale")
	// Stamps of the API server are whole seconds.
	apart := func() { time.Sleep(1100 * time.Millisecond) }
	gitops := func(replicas *int32) {
		t.Helper()
		apart()
		spec := applyapps.DeploymentSpec()
		spec.Replicas = replicas
		if _, err := p.core.AppsV1().Deployments("default").Apply(t.Context(), applyapps.Deployment(id, "default").WithSpec(spec),
			metav1.ApplyOptions{FieldManager: "argocd-controller", Force: true}); err != nil {
			t.Fatal(err)
		}
		apart()
	}
	four := int32(4)
	for round := int32(1); round <= 3; round++ {
		s := p.snapshot(t)
		if got := s.Service(svc); got.Contested(s.At) {
			t.Fatalf("before round %d it is a fight already: %+v", round, got.Takeovers)
		}
		target := s.Service(svc)
		plan := planner.Plan{Raises: []planner.Scale{{Service: svc, Target: target.Target, Kind: target.TargetKind, By: target.Actuation, From: 4, To: 6}},
			Targets: []hpa.Target{{Service: svc, Replicas: 6, DataFresh: true}}}
		p.must(t, plan)
		results := []loop.Result{{Action: planner.ActionScale, Subject: string(svc), Outcome: loop.Done}}
		if err := p.Report(t.Context(), &loop.Report{Snapshot: s, Plan: &plan, Receipt: &loop.Receipt{Results: results}}); err != nil {
			t.Fatal(err)
		}
		gitops(&four)
		until(t, "the takeover", func() bool {
			now := p.snapshot(t).Service(svc)
			return now.ForeignWriter == "argocd-controller" && now.Takeovers.Count == round
		})
		// The counts survive this process: it is in the status with the next report.
		s = p.snapshot(t)
		if err := p.Report(t.Context(), &loop.Report{Snapshot: s, Plan: &planner.Plan{}, Receipt: &loop.Receipt{}}); err != nil {
			t.Fatal(err)
		}
		until(t, "the count in the status", func() bool {
			u, err := p.dyn.Resource(object.GVRServices).Namespace("default").Get(t.Context(), id, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			es, err := object.Decode[v1alpha1.ElasticService](u)
			return err == nil && es.Status.Takeovers != nil && es.Status.Takeovers.Count == round && es.Status.Takeovers.Manager == "argocd-controller"
		})
	}
	s := p.snapshot(t)
	if got := s.Service(svc); !got.Contested(s.At) || got.Contested(s.At.Add(2*time.Hour)) {
		t.Errorf("after three rounds it is no fight, or one for ever: %+v", got.Takeovers)
	}
	gitops(nil) // replicas are gone from its manifest
	until(t, "the end of the fight", func() bool { s := p.snapshot(t); return !s.Service(svc).Contested(s.At) })
}

// TestPlaneFloorContested: a GitOps controller applies minReplicas with force after each of our writes. After the third time it counts as a fight, and what
// is given back is what it wrote last.
func TestPlaneFloorContested(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	id := "gitfloor-" + rand.String(5)
	svc := p.app(t, id, 2, "HPAFloor")
	h := kubetest.Autoscaler(id, id)
	h.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: id}
	if _, err := p.core.AutoscalingV2().HorizontalPodAutoscalers("default").Create(t.Context(), h, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the HPA", func() bool { x := p.snapshot(t).Service(svc); return x.HPA != nil && !x.Blocked.Any() })
	for round := int32(1); round <= 3; round++ {
		s := p.snapshot(t)
		if got := s.Service(svc); got.Contested(s.At) {
			t.Fatalf("before round %d it is a fight already: %+v", round, got.Takeovers)
		}
		plan := planner.Plan{Raises: []planner.Scale{{Service: svc, Target: fleet.Name{Namespace: "default", Name: id}, Kind: "HorizontalPodAutoscaler",
			By: fleet.ByHPAFloor, From: s.Service(svc).HPA.Min, To: 12}}, Targets: []hpa.Target{{Service: svc, Replicas: 12, DataFresh: true}}}
		p.must(t, plan)
		if err := p.Report(t.Context(), &loop.Report{Snapshot: s, Plan: &plan, Receipt: &loop.Receipt{Results: []loop.Result{{Action: planner.ActionScale, Subject: string(svc), Outcome: loop.Done}}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond) // stamps of the API server are whole seconds
		body := fmt.Sprintf(`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":%q},"spec":{"minReplicas":%d}}`, id, 3+round)
		if _, err := p.core.AutoscalingV2().HorizontalPodAutoscalers("default").Patch(t.Context(), id, types.ApplyPatchType, []byte(body),
			metav1.PatchOptions{FieldManager: "argocd-controller", Force: kubetest.Ptr(true)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond)
		until(t, "the takeover", func() bool {
			now := p.snapshot(t).Service(svc)
			return now.ForeignWriter == "argocd-controller" && now.Takeovers.Count == round
		})
		s = p.snapshot(t)
		if err := p.Report(t.Context(), &loop.Report{Snapshot: s, Plan: &planner.Plan{}, Receipt: &loop.Receipt{}}); err != nil {
			t.Fatal(err)
		}
		until(t, "the count in the snapshot", func() bool { return p.snapshot(t).Service(svc).Takeovers.Count == round })
	}
	if s := p.snapshot(t); !s.Service(svc).Contested(s.At) {
		t.Errorf("after three rounds it is no fight: %+v", s.Service(svc).Takeovers)
	}
	if err := p.GiveBack(t.Context(), fleet.Name{Namespace: "default", Name: id}); err != nil {
		t.Fatal(err)
	}
	got, err := p.core.AutoscalingV2().HorizontalPodAutoscalers("default").Get(t.Context(), id, metav1.GetOptions{})
	if err != nil || *got.Spec.MinReplicas != 6 || len(got.Annotations) != 0 {
		t.Errorf("given back: minReplicas %d, annotations %v (%v); want the 6 that its owner wrote last", *got.Spec.MinReplicas, got.Annotations, err)
	}
}

// TestPlaneSetToZero: what kubectl scale sets to 0 after one of our writes stays there, and is scaled again once another number was set.
func TestPlaneSetToZero(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	id := "off-" + rand.String(5)
	svc := p.app(t, id, 2, "Scale")
	s := p.snapshot(t)
	raise := func(from int32) planner.Plan {
		target := s.Service(svc)
		return planner.Plan{Raises: []planner.Scale{{Service: svc, Target: target.Target, Kind: target.TargetKind, By: target.Actuation, From: from, To: 4}}}
	}
	scale := func(n string) {
		if _, err := p.core.AppsV1().Deployments("default").Patch(t.Context(), id, types.MergePatchType, []byte(`{"spec":{"replicas":`+n+`}}`),
			metav1.PatchOptions{FieldManager: "kubectl"}, "scale"); err != nil {
			t.Fatal(err)
		}
	}
	p.must(t, raise(2))
	scale("0")
	until(t, "the 0 of another writer", func() bool { return p.snapshot(t).Service(svc).SetToZero != "" }) // a patch of the scale subresource names no manager
	if r := p.apply(t, raise(0)); r.Count(loop.Stale) != 1 || p.snapshot(t).Service(svc).Desired.Value != 0 {
		t.Fatalf("a target that its owner set to 0 was scaled: %+v", r.Results)
	}
	scale("1")
	until(t, "another number", func() bool { return p.snapshot(t).Service(svc).SetToZero == "" })
	p.must(t, raise(1))
}

func TestPlaneFloor(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	id := "hpa-" + rand.String(5)
	svc := p.app(t, id, 2, "HPAFloor")
	h := kubetest.Autoscaler(id, id)
	h.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: id}
	if _, err := p.core.AutoscalingV2().HorizontalPodAutoscalers("default").Create(t.Context(), h, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the HPA", func() bool { x := p.snapshot(t).Service(svc); return x.HPA != nil && !x.Blocked.Any() })
	floor := func(from, to int32) planner.Scale {
		return planner.Scale{Service: svc, Target: fleet.Name{Namespace: "default", Name: id}, Kind: "HorizontalPodAutoscaler",
			By: fleet.ByHPAFloor, From: from, To: to}
	}
	p.must(t, planner.Plan{Raises: []planner.Scale{floor(3, 9)}})
	if got := p.snapshot(t).Service(svc).HPA.Min; got != 9 {
		t.Fatalf("minReplicas = %d, want 9", got)
	}
	// A floor below the user's own minimum stops there.
	p.must(t, planner.Plan{Lowers: []planner.Scale{floor(9, 1)}})
	if got := p.snapshot(t).Service(svc).HPA.Min; got != 3 {
		t.Fatalf("minReplicas = %d, want the user's 3", got)
	}
	p.must(t, planner.Plan{Raises: []planner.Scale{floor(3, 12)}})
	if err := p.GiveBack(t.Context(), fleet.Name{Namespace: "default", Name: id}); err != nil {
		t.Fatal(err)
	}
	got, err := p.core.AutoscalingV2().HorizontalPodAutoscalers("default").Get(t.Context(), id, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *got.Spec.MinReplicas != 3 || len(got.Annotations) != 0 {
		t.Errorf("given back: minReplicas %d, annotations %v", *got.Spec.MinReplicas, got.Annotations)
	}
	for _, e := range got.ManagedFields {
		if e.Manager == v1alpha1.FieldManager {
			t.Errorf("given back, and %s still owns %s", e.Manager, e.FieldsV1.GetRawBytes())
		}
	}
}

func TestPlaneJobAndFiller(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	id := "job-" + rand.String(5)
	p.app(t, id, 1, "Scale")
	j := kubetest.BatchJob(id, 2)
	j.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: id}
	j.Status.Active = 0
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	j.Spec.Template.Spec.Containers[0].Image = "none"
	if _, err := p.core.BatchV1().Jobs("default").Create(t.Context(), j, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e := kubetest.ElasticJob(id)
	e.Namespace = "default"
	p.create(t, object.GVRJobs, e)
	job := fleet.JobID("default/" + id)
	until(t, "the job", func() bool {
		x := p.snapshot(t).Job(job)
		return x != nil && !x.Blocked.Any() && x.Members[0].Active == 2
	})
	resize := planner.JobScale{Job: job, Role: "worker", Workload: fleet.Name{Namespace: "default", Name: id}, Kind: "Job", From: 2, To: 5}
	p.must(t, planner.Plan{Jobs: []planner.JobScale{resize}})
	if got := p.snapshot(t).Job(job).Members[0].Desired; got != 5 {
		t.Errorf("parallelism = %d, want 5", got)
	}
	if r := p.apply(t, planner.Plan{Jobs: []planner.JobScale{resize}}); r.Count(loop.Stale) != 1 {
		t.Errorf("a resize from a parallelism that is no more: %+v", r.Results)
	}

	filler := planner.Filler{Name: "filler-" + id, Node: "m-" + id, Room: fleet.Resources{CPU: 4000, Memory: 8 * fleet.GiB}, Purpose: "KeptSocket"}
	p.must(t, planner.Plan{Fillers: []planner.Filler{filler}})
	var held *fleet.Pod
	until(t, "the filler to be bound", func() bool {
		s := p.snapshot(t)
		for i := range s.Pods {
			if s.Pods[i].Name.Name == filler.Name {
				held = &s.Pods[i]
			}
		}
		return held.NodeName != ""
	})
	if held.Class != fleet.PodFiller || held.HoldsOn != filler.Node || held.NodeName != filler.Node || held.Requests.CPU != 4000 || held.Priority != 900000000 {
		t.Errorf("filler = %+v", held)
	}
	filler.Delete, filler.ID = true, held.ID
	p.must(t, planner.Plan{Fillers: []planner.Filler{filler}})
	if pod := find(p.snapshot(t), held.ID); pod != nil && !pod.Deleting {
		t.Errorf("the filler is still there: %+v", pod)
	}
}

// TestPlaneTwoLeaders moves the lease between two controllers: the second one's epoch is higher, and the first one's writes are refused.
func TestPlaneTwoLeaders(t *testing.T) {
	first, second := newPlane(t), newPlane(t)
	ctx, stop := context.WithCancel(t.Context())
	epochs := make(chan int64, 2)
	ended := make(chan error, 2)
	go func() {
		ended <- first.Lead(ctx, func(ctx context.Context, epoch int64) error { epochs <- epoch; <-ctx.Done(); return nil })
	}()
	e1 := <-epochs
	id := rand.String(5)
	first.create(t, object.GVRPools, kubetest.Pool("p-"+id, "Online", map[string]string{"pool": id}))
	write := func(p *plane, epoch int64) error {
		u, err := p.dyn.Resource(object.GVRPools).Get(t.Context(), "p-"+id, metav1.GetOptions{})
		if err != nil {
			return err
		}
		x, err := object.Decode[v1alpha1.CapacityPool](u)
		if err != nil {
			return err
		}
		x.Status.LeaderEpoch = epoch
		_, err = object.PutStatus(t.Context(), p.rooms.Dyn, object.GVRPools, x)
		return err
	}
	if err := write(first, e1); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	lease, err := first.core.CoordinationV1().Leases(kubetest.Namespace).Get(t.Context(), fence.LeaseName,
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if by := lease.Spec.HolderIdentity; by != nil && *by != "" {
		t.Errorf("a leader that stopped still holds the lease as %s: the next one would wait until it expires", *by)
	}
	ctx2, stop2 := context.WithCancel(t.Context())
	go func() {
		ended <- second.Lead(ctx2, func(ctx context.Context, epoch int64) error { epochs <- epoch; <-ctx.Done(); return nil })
	}()
	e2 := <-epochs
	if e2 <= e1 {
		t.Fatalf("the second leader's epoch is %d after %d", e2, e1)
	}
	if err := write(second, e2); err != nil {
		t.Fatal(err)
	}
	var fenced *fence.RefusedError
	if err := write(first, e1); !errors.As(err, &fenced) {
		t.Errorf("a write of the leader before: %v", err)
	}
	// The same without the fence, as a leader that believes in its lease: the API server refuses it, and that ends the belief.
	// A look at the lease meanwhile ends it too, and then it is believed once more.
	until(t, "the API server to refuse the epoch", func() bool {
		first.Fence.Stand(time.Minute)
		first.Fence.Renew(first.Fence.Now(), &resourcelock.LeaderElectionRecord{HolderIdentity: first.Options.Identity})
		err := write(first, e1)
		if errors.As(err, &fenced) {
			return false
		}
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "leaderEpoch must not fall") {
			t.Fatalf("a write of the leader before: %v", err)
		}
		return true
	})
	if err := write(first, e2); !errors.As(err, &fenced) {
		t.Errorf("a write after the API server refused the epoch: %v", err)
	}
	stop2()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// TestPlaneReport writes every status once: the API server's bounds and CEL rules take them.
func TestPlaneReport(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	id := "rep-" + rand.String(5)
	svc := p.app(t, id, 2, "Scale")
	p.create(t, object.GVRPools, kubetest.Pool("p-"+id, "Online", map[string]string{"none": id}))
	q := &v1alpha1.CapacityQuota{ObjectMeta: metav1.ObjectMeta{Name: "q-" + id}}
	q.Spec.NamespaceSelector = v1alpha1.Selector{MatchLabels: map[string]string{"none": id}}
	p.create(t, object.GVRQuotas, q)
	j := kubetest.ElasticJob(id)
	j.Namespace = "default"
	p.create(t, object.GVRJobs, j)
	f := &v1alpha1.FestivalPlan{ObjectMeta: metav1.ObjectMeta{Name: "f-" + id}}
	f.Spec = kubetest.Festival(time.Now(), time.Now().Add(time.Hour), v1alpha1.FestivalLift{Namespace: "default",
		Service:  id,
		Replicas: kubetest.Ptr(int32(3))})
	p.create(t, object.GVRFestivals, f)
	p.create(t, object.GVRLoans, kubetest.Loan("l-"+id, "n-"+id, "", 0, 0))
	until(t, "the objects", func() bool {
		s := p.snapshot(t)
		return s.Service(svc) != nil && s.Pool(fleet.PoolID("p-"+id)) != nil && s.Job(fleet.JobID("default/"+id)) != nil && s.Loan(fleet.LoanID("l-"+id)) != nil && len(s.Festivals) > 0 && len(s.Tenants) > 0
	})
	long := strings.Repeat("a sentence that does not end ", 200)
	s := p.snapshot(t)
	rep := &loop.Report{Snapshot: s, Plan: &planner.Plan{}, Receipt: &loop.Receipt{Results: []loop.Result{{Action: planner.ActionScale, Subject: string(svc), Outcome: loop.Done}}},
		Portraits: map[fleet.ServiceID]portrait.Portrait{svc: {Signal: portrait.CPU, Step: 5 * time.Minute, Learned: model.State{Cycle: model.CycleOf(5 * time.Minute)},
			Record: portrait.Record{Skill: portrait.Skill{Lost: true}, Horizons: []portrait.Horizon{{Ahead: 15 * time.Minute, Judged: 1, Miss: 99, Covered: 1},
				{Ahead: time.Hour, Judged: 1}, {Ahead: 24 * time.Hour, Judged: 1}}},
			Quality: portrait.Quality{Note: long, Points: 10_000}}},
		Tides:     map[fleet.ServiceID]forecast.Tide{svc: {Model: "blend", Note: long}},
		Summaries: map[fleet.ServiceID]loop.Summary{svc: {From: time.Now().Add(-time.Hour), To: time.Now(), Verdict: long}}}
	for i := range s.Services {
		rep.Plan.Targets = append(rep.Plan.Targets,
			hpa.Target{Service: s.Services[i].ID, Replicas: 4, Limited: hpa.LimitedQuota,
				Notes: []reason.Reason{reason.Said(long)}, Missing: []hpa.Missing{{Kind: hpa.MissingMetric, Name: long}}})
	}
	if err := p.Report(t.Context(), rep); err != nil {
		t.Fatal(err)
	}
	for gvr, name := range map[schema.GroupVersionResource]string{object.GVRServices: "default/" + id,
		object.GVRPools: "p-" + id, object.GVRQuotas: "q-" + id, object.GVRJobs: "default/" + id,
		object.GVRFestivals: "f-" + id, object.GVRLoans: "l-" + id} {
		n := fleet.ParseName(name)
		u, err := p.dyn.Resource(gvr).Namespace(n.Namespace).Get(t.Context(), n.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if list, _, _ := unstructured.NestedSlice(u.Object, "status",
			"conditions"); len(list) == 0 || election.EpochOn(u) != p.Leads().Epoch {
			t.Errorf("%s %s: %d conditions, epoch %d", gvr.Resource, name, len(list), election.EpochOn(u))
		}
		if list, _, err := unstructured.NestedSlice(u.Object, "status", "portrait",
			"accuracy"); gvr == object.GVRServices && (len(list) != 3 || err != nil) {
			t.Errorf("accuracy %v (%v), want three horizons", list, err)
		}
	}
	// The fullest ledger, of owners with the longest names.
	now := time.Now().UTC().Truncate(time.Second)
	ledger := fleet.Ledger{}.ChargeRecalls(now, 3)
	for i := range fleet.MaxLedgerOwners {
		ledger = ledger.Charge(now, fmt.Sprintf("service %s/%0253d", strings.Repeat("n", 63), i), 2)
	}
	until(t, "the pool's status", func() bool {
		o, ok := p.Pools.Get("", "p-"+id)
		if !ok {
			return false
		}
		next := *o.API
		next.Status.Disruptions = facts.LedgerStatus(&ledger)
		_, err := object.PutStatus(t.Context(), p.rooms.Dyn, object.GVRPools, &next)
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	until(t, "the ledger", func() bool { return reflect.DeepEqual(p.snapshot(t).Pool(fleet.PoolID("p-"+id)).Ledger, ledger) })
	until(t, "the event", func() bool {
		list, err := p.core.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + id + ",involvedObject.kind=ElasticJob"})
		return err == nil && len(list.Items) == 1 && list.Items[0].Reason == "WorkloadNotFound"
	})
}

// TestPlaneOldPlanIsStale: a plan that was made under a leadership that ended is stale at the door.
func TestPlaneOldPlanIsStale(t *testing.T) {
	p := newPlane(t)
	lead(t, p)
	svc := p.app(t, "old-"+rand.String(5), 1, "Scale")
	s := p.snapshot(t).Service(svc)
	plan := planner.Plan{LeaderEpoch: p.Leads().Epoch - 1, Raises: []planner.Scale{{Service: svc, Target: s.Target,
		Kind: s.TargetKind, By: s.Actuation, From: 1, To: 2}}}
	r, err := p.Apply(t.Context(), &plan)
	if err != nil || r.Count(loop.Stale) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
