package object

import (
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Header is what every mirrored object keeps of its metadata. It implements metav1.Object, which informers index by,
// through a trimmed ObjectMeta: labels, annotations and managed fields are gone once the facts were made of them.
type Header struct{ metav1.ObjectMeta }

// HeaderOf trims the metadata of an object.
func HeaderOf(o metav1.Object) Header {
	return Header{metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		Generation: o.GetGeneration(), CreationTimestamp: o.GetCreationTimestamp(),
		DeletionTimestamp: o.GetDeletionTimestamp(),
	}}
}

// Older orders headers by age; equal ages (stamps are whole seconds) by name, so that all controllers agree on who came
// first.
func (h *Header) Older(o *Header) bool {
	if !h.CreationTimestamp.Equal(&o.CreationTimestamp) {
		return h.CreationTimestamp.Before(&o.CreationTimestamp)
	}
	if h.Namespace != o.Namespace {
		return h.Namespace < o.Namespace
	}
	return h.Name < o.Name
}

// Mirror is an informer whose objects became facts of type T on arrival. A nil mirror is empty and in step: it stands
// for a kind that the cluster does not have.
type Mirror[T metav1.Object] struct {
	kind     string
	Informer cache.SharedIndexInformer
}

// NewMirror makes an informer convert every R that arrives. The conversion must not fail: what cannot be read becomes
// facts that say so.
func NewMirror[R any, T metav1.Object](kind string, informer cache.SharedIndexInformer, convert func(R) T) *Mirror[T] {
	// The error is that of an informer that runs already, which a new one does not.
	if err := informer.SetTransform(func(obj any) (any, error) {
		if raw, ok := obj.(R); ok {
			return convert(raw), nil
		}
		// Facts pass through a second time after a relist, and tombstones carry facts.
		return obj, nil
	}); err != nil {
		panic(fmt.Sprintf("mirror of %s: %v", kind, err))
	}
	return &Mirror[T]{kind: kind, Informer: informer}
}

// All lists the facts in no particular order.
func (m *Mirror[T]) All() []T {
	if m == nil {
		return nil
	}
	objs := m.Informer.GetStore().List()
	out := make([]T, 0, len(objs))
	for _, o := range objs {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// Get finds one object by namespace and name.
func (m *Mirror[T]) Get(namespace, name string) (T, bool) {
	var none T
	if m == nil {
		return none, false
	}
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	obj, ok, err := m.Informer.GetStore().GetByKey(key)
	if err != nil || !ok {
		return none, false
	}
	t, ok := obj.(T)
	return t, ok
}

// Synced reports whether everything was read once.
func (m *Mirror[T]) Synced() bool { return m == nil || m.Informer.HasSynced() }

// Name is the name of the kind.
func (m *Mirror[T]) Name() string { return m.kind }

// Run watches until stop is closed.
func (m *Mirror[T]) Run(stop <-chan struct{}) { m.Informer.Run(stop) }

// OnChange calls f with the facts before and after each change; before is the zero T when the object appeared, after
// when it went.
func (m *Mirror[T]) OnChange(f func(before, after T)) error {
	var none T
	_, err := m.Informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if t, ok := obj.(T); ok {
				f(none, t)
			}
		},
		UpdateFunc: func(was, is any) {
			b, okB := was.(T)
			a, okA := is.(T)
			if okA && okB {
				f(b, a)
			}
		},
		DeleteFunc: func(obj any) {
			if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tomb.Obj
			}
			if t, ok := obj.(T); ok {
				f(t, none)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", m.kind, err)
	}
	return nil
}

// Count adds one to n whenever the mirror holds something else than before.
func (m *Mirror[T]) Count(n *atomic.Int64) {
	if err := m.OnChange(func(T, T) { n.Add(1) }); err != nil { // of an informer that has stopped
		panic(err)
	}
}

// Watched is a mirror of any kind.
type Watched interface {
	Name() string
	Count(n *atomic.Int64)
	Synced() bool
	Run(stop <-chan struct{})
}
