package object

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/springtide/springtide/api/v1alpha1"
)

// PutStatus writes the status of one of our objects with the version that was read.
func PutStatus(ctx context.Context, dyn dynamic.Interface, gvr schema.GroupVersionResource,
	next metav1.Object) (*unstructured.Unstructured, error) {
	obj, err := Encode(gvr, next)
	if err != nil {
		return nil, err
	}
	got, err := dyn.Resource(gvr).Namespace(next.GetNamespace()).UpdateStatus(ctx, obj, UpdateOptions())
	if err != nil {
		return nil, fmt.Errorf("write the status of %s %s: %w", KindOf(gvr), next.GetName(), err)
	}
	return got, nil
}

// StaleError says that the facts moved on: nothing was written.
type StaleError struct{ err error }

// Error implements error.
func (e *StaleError) Error() string { return e.err.Error() }

// Unwrap gives the error that says so.
func (e *StaleError) Unwrap() error { return e.err }

// StaleOf makes a StaleError of an error.
func StaleOf(err error) error { return &StaleError{err} }

// Stale makes a StaleError of a sentence.
func Stale(format string, args ...any) error { return &StaleError{fmt.Errorf(format, args...)} }

// MergePatch encodes a JSON merge patch. It is built of maps and basic values, which always encode.
func MergePatch(body map[string]any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("a patch that does not encode: %v", err))
	}
	return b
}

// PatchOptions are those of every patch.
func PatchOptions() metav1.PatchOptions {
	return metav1.PatchOptions{FieldManager: v1alpha1.FieldManager}
}

// CreateOptions are those of every create.
func CreateOptions() metav1.CreateOptions {
	return metav1.CreateOptions{FieldManager: v1alpha1.FieldManager}
}

// UpdateOptions are those of every update.
func UpdateOptions() metav1.UpdateOptions {
	return metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager}
}
