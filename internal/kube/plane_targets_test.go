//go:build plane

package kube

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/target"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// defineScaled makes a kind, with a scale subresource of these paths or, where there are none, without one.
func (p *plane) defineScaled(t *testing.T, gvr schema.GroupVersionResource, kind string, scale map[string]any) {
	t.Helper()
	subresources := map[string]any{"status": map[string]any{}}
	if scale != nil {
		subresources["scale"] = scale
	}
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": gvr.Resource + "." + gvr.Group,
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for a test"}},
		"spec": map[string]any{
			"group": gvr.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "plural": gvr.Resource, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{"name": gvr.Version, "served": true, "storage": true, "subresources": subresources,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
					"properties": map[string]any{"spec": open, "status": open}}}}}}}}
	p.tolerate(t, func() error {
		_, err := p.dyn.Resource(gvrDefinitions).Create(t.Context(), u, metav1.CreateOptions{})
		return err
	})
	until(t, kind+" to be served", func() bool {
		_, problem, err := target.Find(p.core.Discovery(), gvr.GroupVersion().String(), kind)
		return err == nil && problem.Reason != "KindNotInstalled"
	})
}

// grant applies the ClusterRole that doctor prints.
func (p *plane) grant(t *testing.T, gvr schema.GroupVersionResource) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(target.ClusterRole(gvr)), &u.Object); err != nil {
		t.Fatal(err)
	}
	p.tolerate(t, func() error {
		_, err := p.dyn.Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1",
			Resource: "clusterroles"}).Create(t.Context(), u, metav1.CreateOptions{})
		return err
	})
}

// replica makes a ready pod with labels.
func (p *plane) replica(t *testing.T, name, node string, labels map[string]string, ready bool) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels},
		Spec: kubetest.Template("1").Spec}
	pod.Spec.Containers[0].Image, pod.Spec.NodeName = "none", node
	made, err := p.core.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ready {
		p.run(t, &fleet.Pod{Name: fleet.Name{Namespace: "default", Name: made.Name}})
	}
}

// custom makes an object of a kind with its status.
func (p *plane) custom(t *testing.T, gvr schema.GroupVersionResource, kind, name string, spec, status map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": gvr.GroupVersion().String(), "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": spec}}
	client := p.dyn.Resource(gvr).Namespace("default")
	made, err := client.Create(t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Object["status"] = status
	if _, err := client.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// service puts an ElasticService on a target and waits until it is read, with this reason of a refusal.
func (p *plane) service(t *testing.T, ref v1alpha1.TargetRef, refused string) *fleet.Service {
	t.Helper()
	s := kubetest.Service(ref.Name)
	s.Namespace, s.Spec.TargetRef = "default", ref
	p.create(t, object.GVRServices, s)
	return p.judged(t, ref.Name, refused)
}

// judged waits until a service is refused for a reason, or accepted where that is empty.
func (p *plane) judged(t *testing.T, name, refused string) (svc *fleet.Service) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() && svc != nil {
			t.Logf("service %s was last: blocked %q, %d pods", name, svc.Blocked, len(svc.Pods))
		}
	})
	until(t, fmt.Sprintf("service %s to be judged %q", name, refused), func() bool {
		p.RefreshTargets(t.Context())
		svc = p.snapshot(t).Service(fleet.ServiceID("default/" + name))
		return svc != nil && svc.Blocked.Reason == refused
	})
	return svc
}

// sized waits until the size of a target is as it should be, in the API and in the snapshot.
func (p *plane) sized(t *testing.T, gvr schema.GroupVersionResource, name string, want int64,
	field ...string) *unstructured.Unstructured {
	t.Helper()
	u, err := p.dyn.Resource(gvr).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := unstructured.NestedInt64(u.Object, field...); err != nil || got != want {
		t.Fatalf("%s of %s is %d, %v, want %d", strings.Join(field, "."), name, got, err, want)
	}
	if got := p.snapshot(t).Service(fleet.ServiceID("default/" + name)).Desired; !got.OK || int64(got.Value) != want {
		t.Fatalf("the next snapshot says %+v replicas of %s, want %d", got, name, want)
	}
	return u
}

// TestPlaneTargets scales kinds of others by their scale subresource, with the rights of a ClusterRole that is
// aggregated.
func TestPlaneTargets(t *testing.T) {
	p := newPlane(t)
	id := rand.String(5)
	rollouts := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	boats := schema.GroupVersionResource{Group: "boats" + id + ".example.com", Version: "v1", Resource: "boats"}
	stones := schema.GroupVersionResource{Group: boats.Group, Version: "v1", Resource: "stones"}
	p.defineScaled(t, rollouts, "Rollout", map[string]any{"specReplicasPath": ".spec.replicas",
		"statusReplicasPath": ".status.HPAReplicas", "labelSelectorPath": ".status.selector"})
	p.defineScaled(t, boats, "Boat", map[string]any{"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
		"labelSelectorPath": ".status.pods"})
	p.defineScaled(t, stones, "Stone", nil)
	node := kubetest.Node("m-"+id, nil)
	node.ObjectMeta = metav1.ObjectMeta{Name: node.Name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}
	if _, err := p.core.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	// A Rollout in a canary: the stable and the newest revision serve, a third one is left over.
	rollout, app := "rolled-"+id, map[string]string{"app": "rolled-" + id}
	template := kubetest.Template("2")
	pods, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
	if err != nil {
		t.Fatal(err)
	}
	p.custom(t, rollouts, "Rollout", rollout, map[string]any{"replicas": int64(4), "template": pods},
		map[string]any{"selector": "app=" + app["app"], "HPAReplicas": int64(4), "currentPodHash": "new",
			"stableRS": "stable"})
	for i, hash := range []string{"stable", "stable", "new", "new", "old"} {
		p.replica(t, fmt.Sprintf("%s-%d", rollout, i), node.Name,
			map[string]string{"app": app["app"], target.LabelRolloutHash: hash}, i != 3)
	}
	p.replica(t, rollout+"-other", node.Name, map[string]string{"app": "other-" + id}, true)

	svc := p.service(t, v1alpha1.TargetRef{APIVersion: rollouts.GroupVersion().String(), Kind: "Rollout", Name: rollout},
		"RightsMissing")
	for _, part := range []string{"spec.targetRef.kind", "patch rollouts.argoproj.io/scale",
		"list rollouts.argoproj.io", "springtide doctor"} {
		if !strings.Contains(svc.Blocked.Message, part) {
			t.Errorf("%q is not in the refusal: %s", part, svc.Blocked.Message)
		}
	}
	p.grant(t, rollouts)
	svc = p.judged(t, rollout, "")
	if len(svc.Pods) != 5 || svc.AnyRevision || svc.Untemplated || svc.Request.CPU != 1000 || svc.Desired.Value != 4 {
		t.Errorf("%d pods, revision unknown %t, untemplated %t, %v each, %v replicas", len(svc.Pods), svc.AnyRevision,
			svc.Untemplated, svc.Request, svc.Desired)
	}
	until(t, "three pods of what is kept up to be ready", func() bool {
		return p.snapshot(t).Service(svc.ID).Ready() == 3
	})

	lead(t, p)
	scale := func(from, to int32) planner.Scale {
		svc := p.snapshot(t).Service(svc.ID)
		return planner.Scale{Service: svc.ID, Target: svc.Target, Kind: svc.TargetKind, By: svc.Actuation, From: from, To: to}
	}
	p.must(t, planner.Plan{Raises: []planner.Scale{scale(4, 6)}})
	u := p.sized(t, rollouts, rollout, 6, "spec", "replicas")
	if u.GetAnnotations()[v1alpha1.AnnotationLeaderEpoch] == "" {
		t.Error("the leader did not stamp its epoch on the Rollout")
	}
	p.must(t, planner.Plan{Lowers: []planner.Scale{scale(6, 5)}})
	p.sized(t, rollouts, rollout, 5, "spec", "replicas")
	// A plan that starts from a size that is no more writes nothing.
	if r := p.apply(t, planner.Plan{Lowers: []planner.Scale{scale(6, 3)}}); r.Count(loop.Stale) != 1 {
		t.Errorf("a scale from replicas that are no more: %+v", r.Results)
	}
	client := p.dyn.Resource(rollouts).Namespace("default")
	if _, err := client.Patch(t.Context(), rollout, types.MergePatchType, []byte(`{"spec":{"replicas":9}}`),
		metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
	until(t, "another one's size", func() bool { return p.snapshot(t).Service(svc.ID).Desired.Value == 9 })

	// A kind of our own that keeps its size elsewhere and has no pod template.
	boat := "boat-" + id
	p.grant(t, boats)
	p.custom(t, boats, "Boat", boat, map[string]any{"size": int64(2)}, map[string]any{"pods": "crew=" + boat})
	for i := range 2 {
		p.replica(t, fmt.Sprintf("%s-%d", boat, i), node.Name, map[string]string{"crew": boat}, true)
	}
	ref := v1alpha1.TargetRef{APIVersion: boats.GroupVersion().String(), Kind: "Boat", Name: boat}
	svc = p.service(t, ref, "")
	until(t, "the crew", func() bool { return p.snapshot(t).Service(svc.ID).Ready() == 2 })
	if svc = p.snapshot(t).Service(svc.ID); !svc.AnyRevision || svc.Untemplated || svc.Request.CPU != 1000 {
		t.Errorf("revision unknown %t, untemplated %t, %v each: its pods say what they request", svc.AnyRevision,
			svc.Untemplated, svc.Request)
	}
	p.must(t, planner.Plan{Raises: []planner.Scale{scale(2, 3)}})
	p.sized(t, boats, boat, 3, "spec", "size")
	p.must(t, planner.Plan{Lowers: []planner.Scale{scale(3, 2)}})
	p.sized(t, boats, boat, 2, "spec", "size")

	// The Scale of a LeaderWorkerSet counts leaders: a replica asks for what its whole group does.
	groups := schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}
	p.defineScaled(t, groups, "LeaderWorkerSet", map[string]any{"specReplicasPath": ".spec.replicas",
		"statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.hpaPodSelector"})
	p.grant(t, groups)
	llm := "llm-" + id
	p.custom(t, groups, "LeaderWorkerSet", llm, map[string]any{"replicas": int64(1),
		"leaderWorkerTemplate": map[string]any{"size": int64(3), "workerTemplate": pods}},
		map[string]any{"replicas": int64(1), "hpaPodSelector": target.LabelLeaderSet + "=" + llm + ",index=0"})
	for i := range 3 {
		p.replica(t, fmt.Sprintf("%s-0-%d", llm, i), node.Name,
			map[string]string{target.LabelLeaderSet: llm, "index": fmt.Sprint(i)}, true)
	}
	svc = p.service(t, v1alpha1.TargetRef{APIVersion: groups.GroupVersion().String(), Kind: "LeaderWorkerSet",
		Name: llm}, "")
	until(t, "the leader", func() bool { return p.snapshot(t).Service(svc.ID).Ready() == 1 })
	s := p.snapshot(t)
	svc = s.Service(svc.ID)
	ours := 0
	for i := range s.Pods {
		if s.Pods[i].Service == svc.ID {
			ours++
		}
	}
	if len(svc.Pods) != 1 || ours != 3 || svc.Workers.CPU != 4000 || svc.Workers.Pods != 2 ||
		svc.MeasuredAs() != (fleet.WorkloadName{Kind: "StatefulSet", Name: llm}) {
		t.Errorf("%d pods count, %d are of the service, the workers ask for %v, measured as %v", len(svc.Pods), ours,
			svc.Workers, svc.MeasuredAs())
	}
	p.must(t, planner.Plan{Raises: []planner.Scale{scale(1, 2)}})
	p.sized(t, groups, llm, 2, "spec", "replicas")

	// An object that is no target is refused with the reason.
	for kind, want := range map[string]string{"Stone": "NotScalable", "Ghost": "KindNotInstalled"} {
		ref := v1alpha1.TargetRef{APIVersion: stones.GroupVersion().String(), Kind: kind, Name: strings.ToLower(kind) +
			"-" + id}
		if svc := p.service(t, ref, want); !strings.Contains(svc.Blocked.Message, "spec.targetRef.kind") {
			t.Errorf("%s: %s", kind, svc.Blocked.Message)
		}
	}
	empty := "empty-" + id
	p.custom(t, boats, "Boat", empty, map[string]any{"size": int64(1)}, map[string]any{})
	ref.Name = empty
	p.service(t, ref, "SelectorMissing")
}
