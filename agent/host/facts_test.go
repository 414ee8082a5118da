package host

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

// kruise is a kind of DaemonSets that configuration adds.
var kruise = facts.Kind{APIVersion: "apps.kruise.io/v1alpha1", Kind: "DaemonSet"}

// watches are the agent's, once they have read some objects.
func watches(t *testing.T, objects []runtime.Object, ours ...runtime.Object) *Cluster {
	t.Helper()
	core := fake.NewClientset(objects...)
	core.Discovery().(*fakediscovery.FakeDiscovery).Resources = []*metav1.APIResourceList{
		{GroupVersion: kruise.APIVersion, APIResources: []metav1.APIResource{{Name: "daemonsets", Kind: kruise.Kind}}}}
	dyn := fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		sharesResource: "NodeShareList", poolsResource: "CapacityPoolList",
		{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "daemonsets"}: "DaemonSetList"}, ours...)
	c := NewCluster(core, dyn, "m", "springtide-system", kruise, facts.Kind{APIVersion: "not.installed/v1", Kind: "DaemonSet"})
	go c.Run(t.Context())
	eventually(t, "the watches", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.Synced() && c.daemons[kruise] != nil && c.daemons[kruise].HasSynced()
	})
	return c
}

// watchesShow is what the agent's watches show of some objects.
func watchesShow(t *testing.T, objects []runtime.Object, ours ...runtime.Object) *Facts {
	t.Helper()
	f := watches(t, objects, ours...).Facts(time.Now())
	if f == nil {
		t.Fatal("the watches show no node")
	}
	return f
}

// TestWitnessesAreIdentitiesAlone: of DaemonSets, of an added kind too, only the identity is kept, and a change of anything else brings no cycle forward.
func TestWitnessesAreIdentitiesAlone(t *testing.T) {
	other := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": "large"}}}
	other.SetAPIVersion(kruise.APIVersion)
	other.SetKind(kruise.Kind)
	other.SetNamespace("ops")
	other.SetName("log")
	other.SetUID("log-uid")
	plain := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "cni", UID: "cni-uid", Labels: map[string]string{"a": "b"}}}
	c := watches(t, []runtime.Object{machine("m-uid"), plain}, other)
	for _, o := range append(c.daemonSets.GetStore().List(), c.daemons[kruise].GetStore().List()...) {
		was, ok := o.(*metav1.PartialObjectMetadata)
		if !ok || was.UID == "" || was.Labels != nil {
			t.Fatalf("kept: %+v", o)
		}
		is := was.DeepCopy()
		is.ResourceVersion = "later"
		again := is.DeepCopy()
		again.UID = "made-again"
		if !onlyBeats(was, is) || onlyBeats(is, again) {
			t.Errorf("%s: a later version is news, or one that was made again is none", was.Name)
		}
	}
}

func machine(uid types.UID) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: uid}}
}

// TestSidesFollowTheController: a pod is of the system by an object that only the cluster's operators can make, and by nothing that it says of itself,
// as the controller reads it. So both wait for the same pods.
func TestSidesFollowTheController(t *testing.T) {
	daemons := func(namespace, name string) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name + "-uid")}}
	}
	other := &unstructured.Unstructured{}
	other.SetAPIVersion(kruise.APIVersion)
	other.SetKind(kruise.Kind)
	other.SetNamespace("ops")
	other.SetName("log")
	other.SetUID("log-uid")
	objects := []runtime.Object{machine("m-uid"), daemons("ops", "cni"), daemons("train", "own"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "train", Labels: map[string]string{v1alpha1.LabelTenant: "true"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}}}
	const daemonSet = "apps/v1 DaemonSet"
	type spec struct {
		name, namespace    string
		class              fleet.PodClass
		side               shape.Side
		level              shape.Class
		cpu                string // an amount, the name of an extended resource, or nothing
		annotations        map[string]string
		tolerates          bool
		kind, owner, ofUID string
	}
	pods := []spec{
		{name: "plain", class: fleet.PodOnline, side: shape.OnlineSide, level: shape.Shared, cpu: "100m"},
		{name: "tolerates-the-holder", class: fleet.PodOffline, side: shape.OfflineSide, level: shape.Shared, cpu: "100m", tolerates: true},
		{name: "besteffort", class: fleet.PodOnline, side: shape.OverlapSide, level: shape.Reclaimed},
		{name: "besteffort-of-offline", class: fleet.PodOffline, side: shape.OfflineSide, level: shape.Reclaimed, tolerates: true},
		{name: "calls-itself-system", class: fleet.PodOnline, side: shape.OnlineSide, level: shape.Shared, cpu: "100m", annotations: map[string]string{shape.AnnotationClass: "system"}},
		{name: "reclaimed-by-annotation", class: fleet.PodOnline, side: shape.OverlapSide, level: shape.Reclaimed, cpu: "100m", annotations: map[string]string{shape.AnnotationClass: "reclaimed"}},
		{name: "requests-idle-capacity", class: fleet.PodOnline, side: shape.OverlapSide, level: shape.Reclaimed, cpu: v1alpha1.ResourceReclaimedCPU},

		{name: "daemon", class: fleet.PodSystem, side: shape.SystemSide, level: shape.System, kind: daemonSet, owner: "cni", ofUID: "cni-uid"},
		{name: "daemon-that-tolerates-the-holder", class: fleet.PodSystem, side: shape.SystemSide, level: shape.System, kind: daemonSet, owner: "cni", ofUID: "cni-uid", tolerates: true},
		{name: "daemon-of-an-added-kind", class: fleet.PodSystem, side: shape.SystemSide, level: shape.System, kind: kruise.APIVersion + " DaemonSet", owner: "log", ofUID: "log-uid"},
		{name: "daemon-of-another-kind", class: fleet.PodOnline, side: shape.OnlineSide, level: shape.Shared, cpu: "1", kind: "not.installed/v1 DaemonSet", owner: "cni", ofUID: "cni-uid"},
		{name: "daemon-that-is-not-there", class: fleet.PodOnline, side: shape.OnlineSide, level: shape.Shared, cpu: "1", kind: daemonSet, owner: "gone", ofUID: "gone-uid"},
		{name: "daemon-made-again", class: fleet.PodOnline, side: shape.OnlineSide, level: shape.Shared, cpu: "1", kind: daemonSet, owner: "cni", ofUID: "old-uid"},
		{name: "daemon-of-another-namespace", namespace: "shop", class: fleet.PodOnline, side: shape.OnlineSide, level: shape.Shared, cpu: "1", kind: daemonSet, owner: "cni", ofUID: "cni-uid"},
		{name: "daemon-of-a-tenant", namespace: "train", class: fleet.PodOffline, side: shape.OfflineSide, level: shape.Shared, cpu: "1", kind: daemonSet, owner: "own", ofUID: "own-uid"},
		{name: "static", class: fleet.PodSystem, side: shape.SystemSide, level: shape.System, kind: "v1 Node", owner: "m", ofUID: "m-uid",
			annotations: map[string]string{corev1.MirrorPodAnnotationKey: "static-hash"}},
		{name: "static-of-an-earlier-machine", class: fleet.PodOnline, side: shape.OnlineSide, level: shape.Shared, cpu: "1", kind: "v1 Node", owner: "m", ofUID: "old-uid",
			annotations: map[string]string{corev1.MirrorPodAnnotationKey: "hash"}},
		{name: "node-without-the-annotation", class: fleet.PodOnline, side: shape.OnlineSide, level: shape.Shared, cpu: "1", kind: "v1 Node", owner: "m", ofUID: "m-uid"},
		{name: "annotation-of-a-tenant", namespace: "train", class: fleet.PodOffline, side: shape.OfflineSide, level: shape.Shared, cpu: "1",
			annotations: map[string]string{corev1.MirrorPodAnnotationKey: "plain-uid"}},
	}
	for _, s := range pods {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: s.namespace, UID: types.UID(s.name + "-uid"), Annotations: s.annotations},
			Spec: corev1.PodSpec{NodeName: "m", Containers: []corev1.Container{{Name: "c"}}}}
		if s.namespace == "" {
			p.Namespace = "ops"
		}
		switch s.cpu {
		case "":
		case v1alpha1.ResourceReclaimedCPU:
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{v1alpha1.ResourceReclaimedCPU: resource.MustParse("2000")}
		default:
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(s.cpu)}
		}
		if s.tolerates {
			p.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpExists}}
		}
		if s.owner != "" {
			yes := true
			version, kind, _ := strings.Cut(s.kind, " ")
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: s.owner, UID: types.UID(s.ofUID), Controller: &yes}}
		}
		objects = append(objects, p)
	}
	f := watchesShow(t, objects, other)
	got := map[string]PodFacts{}
	for _, p := range f.Pods {
		got[p.Name] = p
	}
	for _, s := range pods {
		p := got[s.name]
		if p.Class != s.class || p.Side != s.side || p.Level != s.level {
			t.Errorf("%s: %s, %s, %s, want %s, %s, %s", s.name, p.Class, p.Side, p.Level, s.class, s.side, s.level)
		}
		// A static pod's cgroup has the kubelet's own id; no other pod may name the cgroup that counts as its own.
		want := s.name + "-uid"
		if s.name == "static" {
			want = "static-hash"
		}
		if p.UID != want {
			t.Errorf("%s counts by the cgroup of %q, want %q", s.name, p.UID, want)
		}
	}
}

// TestShareOfAnEarlierMachine: a share that was written for a machine of the same name says nothing of this one.
func TestShareOfAnEarlierMachine(t *testing.T) {
	for uid, want := range map[string]bool{"m-uid": true, "earlier-uid": false, "": false} {
		share := v1alpha1.NodeShare{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeShare"}, ObjectMeta: metav1.ObjectMeta{Name: "m"},
			Spec: v1alpha1.NodeShareSpec{NodeUID: uid, Parcels: []v1alpha1.ShareParcel{{Cells: []int32{2, 3}, Holder: "batch", LoanName: "l", LoanUID: "u", Epoch: 1}}}}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&share)
		if err != nil {
			t.Fatal(err)
		}
		if f := watchesShow(t, []runtime.Object{machine("m-uid")}, &unstructured.Unstructured{Object: object}); (f.Share != nil) != want {
			t.Errorf("a share of machine %q counts on m-uid: %v, want %v", uid, f.Share != nil, want)
		}
	}
}
