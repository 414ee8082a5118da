package target

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Scale is what the scale subresource of an object says.
type Scale struct {
	Replicas int32
	// Selector finds the pods; nil where the Scale names none. Text is its text.
	Selector labels.Selector
	Text     string
	// Version is the resourceVersion of the object.
	Version string
}

// ReadScale reads a Scale. A selector that is empty, or that cannot be read, selects nothing: an empty one would select
// every pod of the namespace.
func ReadScale(u *unstructured.Unstructured) (Scale, error) {
	var s autoscalingv1.Scale
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
		return Scale{}, fmt.Errorf("read the Scale of %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	out := Scale{Replicas: s.Spec.Replicas, Text: s.Status.Selector, Version: s.ResourceVersion}
	if selector, err := labels.Parse(s.Status.Selector); err == nil && !selector.Empty() {
		out.Selector = selector
	}
	return out, nil
}
