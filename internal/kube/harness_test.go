package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/fence"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
)

// gvrKruise is a kind of DaemonSets that is none of Kubernetes' own.
var gvrKruise = schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "daemonsets"}

// world is a cluster on fake clients.
type world struct {
	*Cluster
	rooms
	clock *kubetest.Clock
	core  *fake.Clientset
	dyn   *fakedynamic.FakeDynamicClient
	// version is the resourceVersion given out last.
	version atomic.Int64
}

// newWorld starts a cluster that holds the objects: those of Kubernetes, and those of ours.
func newWorld(t testing.TB, objects ...metav1.Object) *world {
	t.Helper()
	return newWorldWith(t, watch.Options{}, objects...)
}

// newWorldWith is newWorld with some options of its own.
func newWorldWith(t testing.TB, o watch.Options, objects ...metav1.Object) *world {
	t.Helper()
	return newWorldServing(t, o, nil, objects...)
}

// newWorldServing is newWorldWith with kinds of the typed client that not every API server has, by group and version.
// The fake's kinds are set before anything asks for it: it has no lock.
func newWorldServing(t testing.TB, o watch.Options, serves map[string][]metav1.APIResource,
	objects ...metav1.Object) *world {
	t.Helper()
	core, ours := sortOut(t, objects)
	w := &world{clock: &kubetest.Clock{Time: kubetest.Now}, core: fake.NewClientset(core...)}
	w.version.Store(1000)
	kinds := map[schema.GroupVersionResource]string{object.GVRTopologies: "NodeResourceTopologyList",
		object.GVRScaledObjects: "ScaledObjectList",
		object.GVRCronHPAs:      "CronHorizontalPodAutoscalerList",
		object.GVRVPAs:          "VerticalPodAutoscalerList",
		gvrKruise:               "DaemonSetList", facts.DeviceClasses: "DeviceClassList",
		facts.ResourceSlices: "ResourceSliceList",
		facts.ResourceClaims: "ResourceClaimList", facts.ClaimTemplates: "ResourceClaimTemplateList"}
	resources := map[string][]metav1.APIResource{
		object.GVRTopologies.GroupVersion().String():    {{Name: object.GVRTopologies.Resource}},
		facts.ResourceSlices.GroupVersion().String():    {{Name: facts.ResourceSlices.Resource}},
		object.GVRScaledObjects.GroupVersion().String(): {{Name: object.GVRScaledObjects.Resource}},
		object.GVRCronHPAs.GroupVersion().String():      {{Name: object.GVRCronHPAs.Resource}},
		object.GVRVPAs.GroupVersion().String():          {{Name: object.GVRVPAs.Resource}},
		gvrKruise.GroupVersion().String(): {{Name: gvrKruise.Resource, Kind: "DaemonSet"},
			{Name: gvrKruise.Resource + "/status", Kind: "DaemonSet"}},
	}
	for _, a := range adapter.All() {
		kinds[a.Resource()] = a.Kind().Kind + "List"
		v := a.Resource().GroupVersion().String()
		resources[v] = append(resources[v], metav1.APIResource{Name: a.Resource().Resource})
	}
	for _, r := range object.OwnResources() {
		kinds[r.GVR] = r.Kind + "List"
		v := r.GVR.GroupVersion().String()
		resources[v] = append(resources[v], metav1.APIResource{Name: r.GVR.Resource})
	}
	for version, list := range serves {
		resources[version] = append(resources[version], list...)
	}
	for version, list := range resources {
		d := w.core.Discovery().(*fakediscovery.FakeDiscovery)
		d.Resources = append(d.Resources, &metav1.APIResourceList{GroupVersion: version, APIResources: list})
	}
	w.core.PrependReactor("create", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if _, ok := serves[a.GetResource().GroupVersion().String()]; ok {
			o := a.(clienttesting.CreateAction).GetObject().(metav1.Object)
			o.SetUID(kubetest.UID(a.GetResource().Resource, o.GetName()))
		}
		return false, nil, nil
	})
	w.dyn = fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, ours...)
	w.dyn.PrependReactor("*", "*", w.serve)
	o.Namespace, o.Identity, o.Clock, o.Log, o.SeeWithin = kubetest.Namespace, "test", w.clock,
		slog.New(slog.DiscardHandler), 50*time.Millisecond
	o, err := o.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	w.Cluster = newCluster(w.core, w.core, w.dyn, o, fence.New(o.Identity),
		func(ctx context.Context, e *policyv1.Eviction) error {
			return w.core.PolicyV1().Evictions(e.Namespace).Evict(ctx, e) // the fake has no REST client
		})
	w.rooms = w.Cluster.in
	t.Cleanup(func() { w.checkRights(t) })
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.lead(leadership.Held{Epoch: 7, Lease: kubetest.Lease})
	return w
}

// lead makes the cluster the leader.
func (w *world) lead(l leadership.Held) { w.Term.Take(l, w.clock.Now()) }

// serve does what the API server does and the fake does not: every new object gets a UID, and every write a new resourceVersion.
func (w *world) serve(a clienttesting.Action) (bool, runtime.Object, error) {
	if x, ok := a.(clienttesting.CreateAction); ok && (a.GetVerb() == "create" || a.GetVerb() == "update") {
		u := x.GetObject().(*unstructured.Unstructured)
		if u.GetUID() == "" {
			u.SetUID(kubetest.UID(u.GetKind(), u.GetName()))
		}
		u.SetResourceVersion(fmt.Sprint(w.version.Add(1)))
	}
	return false, nil, nil
}

// sortOut sorts objects by the client that holds them.
func sortOut(t testing.TB, objects []metav1.Object) (core, ours []runtime.Object) {
	t.Helper()
	for _, o := range objects {
		if gvr, ok := gvrOf(o); ok {
			u, err := object.Encode(gvr, o)
			if err != nil {
				t.Fatal(err)
			}
			ours = append(ours, u)
			continue
		}
		if u, ok := o.(*unstructured.Unstructured); ok {
			ours = append(ours, u)
			continue
		}
		core = append(core, o.(runtime.Object))
	}
	return core, ours
}

func gvrOf(o metav1.Object) (schema.GroupVersionResource, bool) {
	switch o.(type) {
	case *v1alpha1.ElasticService:
		return object.GVRServices, true
	case *v1alpha1.CapacityPool:
		return object.GVRPools, true
	case *v1alpha1.CapacityQuota:
		return object.GVRQuotas, true
	case *v1alpha1.Loan:
		return object.GVRLoans, true
	case *v1alpha1.NodeShare:
		return object.GVRShares, true
	case *v1alpha1.ElasticJob:
		return object.GVRJobs, true
	case *v1alpha1.FestivalPlan:
		return object.GVRFestivals, true
	}
	return schema.GroupVersionResource{}, false
}

func (w *world) snapshot(t testing.TB) *fleet.Snapshot {
	t.Helper()
	s, err := w.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
