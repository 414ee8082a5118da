package kube

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/facts"
)

// The resources of our own kinds.
var (
	gvrServices  = v1alpha1.GroupVersion.WithResource("elasticservices")
	gvrPools     = v1alpha1.GroupVersion.WithResource("capacitypools")
	gvrQuotas    = v1alpha1.GroupVersion.WithResource("capacityquotas")
	gvrLoans     = v1alpha1.GroupVersion.WithResource("loans")
	gvrShares    = v1alpha1.GroupVersion.WithResource("nodeshares")
	gvrJobs      = v1alpha1.GroupVersion.WithResource("elasticjobs")
	gvrFestivals = v1alpha1.GroupVersion.WithResource("festivalplans")
)

// The resources of others that are read where their CRDs are installed.
var (
	gvrTopologies    = facts.Topologies
	gvrVPAs          = schema.GroupVersionResource{Group: "autoscaling.k8s.io", Version: "v1", Resource: "verticalpodautoscalers"}
	gvrScaledObjects = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
	gvrCronHPAs      = schema.GroupVersionResource{Group: "autoscaling.alibabacloud.com", Version: "v1beta1", Resource: "cronhorizontalpodautoscalers"}
)

// ownResource is a resource of ours with the kind of its objects.
type ownResource struct {
	gvr  schema.GroupVersionResource
	kind string
}

// ownResources lists our kinds.
func ownResources() []ownResource {
	return []ownResource{
		{gvrServices, "ElasticService"},
		{gvrPools, "CapacityPool"},
		{gvrQuotas, "CapacityQuota"},
		{gvrLoans, "Loan"},
		{gvrShares, "NodeShare"},
		{gvrJobs, "ElasticJob"},
		{gvrFestivals, "FestivalPlan"},
	}
}

func kindOf(gvr schema.GroupVersionResource) string {
	for _, r := range ownResources() {
		if r.gvr == gvr {
			return r.kind
		}
	}
	panic("not a kind of ours: " + gvr.String())
}

// own is one object of our API: as it was read, to start writes from, and the facts made of it once, for snapshots.
type own[A, F any] struct {
	header
	// api is shared: it is copied before it is changed.
	api   *A
	facts F
	// unreadable is set when the object does not have the shape of its type. The API server refuses such objects, so this is a newer
	// API meeting an older controller; no snapshot is made then, since an unread Loan would look like an idle node.
	unreadable error
}

// newOwn makes the conversion of one of our kinds: decode, then compute the facts.
func newOwn[A, F any](gvr schema.GroupVersionResource, facts func(*A) F) func(*unstructured.Unstructured) *own[A, F] {
	return func(u *unstructured.Unstructured) *own[A, F] {
		o := &own[A, F]{header: headerOf(u), api: new(A)}
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o.api); err != nil {
			o.unreadable = fmt.Errorf("read %s %s/%s: %w", kindOf(gvr), u.GetNamespace(), u.GetName(), err)
			return o
		}
		o.facts = facts(o.api)
		return o
	}
}

// encode turns an object of ours into the form that the dynamic client sends.
func encode(gvr schema.GroupVersionResource, obj metav1.Object) (*unstructured.Unstructured, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("write %s %s: %w", kindOf(gvr), obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: m}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kindOf(gvr)))
	// A zero creation time is written as null, which the server would take for a value.
	if ts := obj.GetCreationTimestamp(); ts.IsZero() {
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	}
	return u, nil
}

// decode is the way back, for the answers of writes.
func decode[A any](u *unstructured.Unstructured) (*A, error) {
	a := new(A)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, a); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return a, nil
}

// firstUnreadable finds the object of a kind that could not be read, the first by name.
func firstUnreadable[A, F any](list []*own[A, F]) error {
	var found *own[A, F]
	for _, o := range list {
		if o.unreadable != nil && (found == nil || o.unreadable.Error() < found.unreadable.Error()) {
			found = o
		}
	}
	if found == nil {
		return nil
	}
	return found.unreadable
}
