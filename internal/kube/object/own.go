package object

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
	GVRServices  = v1alpha1.GroupVersion.WithResource("elasticservices")
	GVRPools     = v1alpha1.GroupVersion.WithResource("capacitypools")
	GVRQuotas    = v1alpha1.GroupVersion.WithResource("capacityquotas")
	GVRLoans     = v1alpha1.GroupVersion.WithResource("loans")
	GVRShares    = v1alpha1.GroupVersion.WithResource("nodeshares")
	GVRJobs      = v1alpha1.GroupVersion.WithResource("elasticjobs")
	GVRFestivals = v1alpha1.GroupVersion.WithResource("festivalplans")
)

// The resources of others that are read where their CRDs are installed.
var (
	GVRTopologies = facts.Topologies
	GVRVPAs       = schema.GroupVersionResource{Group: "autoscaling.k8s.io", Version: "v1",
		Resource: "verticalpodautoscalers"}
	GVRScaledObjects = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
	GVRCronHPAs      = schema.GroupVersionResource{Group: "autoscaling.alibabacloud.com", Version: "v1beta1",
		Resource: "cronhorizontalpodautoscalers"}
)

// ownResource is a resource of ours with the kind of its objects.
type ownResource struct {
	GVR  schema.GroupVersionResource
	Kind string
}

// OwnResources lists our kinds.
func OwnResources() []ownResource {
	return []ownResource{
		{GVRServices, "ElasticService"},
		{GVRPools, "CapacityPool"},
		{GVRQuotas, "CapacityQuota"},
		{GVRLoans, "Loan"},
		{GVRShares, "NodeShare"},
		{GVRJobs, "ElasticJob"},
		{GVRFestivals, "FestivalPlan"},
	}
}

// KindOf is the kind of the objects of a resource of ours.
func KindOf(gvr schema.GroupVersionResource) string {
	for _, r := range OwnResources() {
		if r.GVR == gvr {
			return r.Kind
		}
	}
	panic("not a kind of ours: " + gvr.String())
}

// Own is one object of our API: as it was read, to start writes from, and the facts made of it once, for snapshots.
type Own[A, F any] struct {
	Header
	// API is shared: it is copied before it is changed.
	API   *A
	Facts F
	// Unreadable is set when the object does not have the shape of its type. The API server refuses such objects, so
	// this is a newer API meeting an older controller; no snapshot is made then, since an unread Loan would look like
	// an idle node.
	Unreadable error
}

// NewOwn makes the conversion of one of our kinds: decode, then compute the facts.
func NewOwn[A, F any](gvr schema.GroupVersionResource, facts func(*A) F) func(*unstructured.Unstructured) *Own[A, F] {
	return func(u *unstructured.Unstructured) *Own[A, F] {
		o := &Own[A, F]{Header: HeaderOf(u), API: new(A)}
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o.API); err != nil {
			o.Unreadable = fmt.Errorf("read %s %s/%s: %w", KindOf(gvr), u.GetNamespace(), u.GetName(), err)
			return o
		}
		o.Facts = facts(o.API)
		return o
	}
}

// Encode turns an object of ours into the form that the dynamic client sends.
func Encode(gvr schema.GroupVersionResource, obj metav1.Object) (*unstructured.Unstructured, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("write %s %s: %w", KindOf(gvr), obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: m}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(KindOf(gvr)))
	// A zero creation time is written as null, which the server would take for a value.
	if ts := obj.GetCreationTimestamp(); ts.IsZero() {
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	}
	return u, nil
}

// Decode is the way back, for the answers of writes.
func Decode[A any](u *unstructured.Unstructured) (*A, error) {
	a := new(A)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, a); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return a, nil
}

// FirstUnreadable finds the object of a kind that could not be read, the first by name.
func FirstUnreadable[A, F any](list []*Own[A, F]) error {
	var found *Own[A, F]
	for _, o := range list {
		if o.Unreadable != nil && (found == nil || o.Unreadable.Error() < found.Unreadable.Error()) {
			found = o
		}
	}
	if found == nil {
		return nil
	}
	return found.Unreadable
}
