package world

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/springtide/springtide/api/v1alpha1"
)

// rewatch begins to watch, or begins again after the API server was away: what went meanwhile leaves the table.
func (w *World) rewatch(ctx context.Context) error {
	if w.stopWatch != nil {
		w.stopWatch()
	}
	w.table.mark(func() { w.table.fresh = map[types.UID]bool{} })
	watching, cancel := context.WithCancel(context.Background())
	giveUp := context.AfterFunc(ctx, cancel)
	stop, err := w.watch(watching)
	giveUp()
	w.stopWatch = func() { cancel(); stop() }
	if err != nil {
		w.stopWatch()
		return errors.Join(ctx.Err(), err)
	}
	w.table.sweep()
	return nil
}

// watch fills the table from the API server until ctx ends, and returns once it is complete. The function that it returns waits for the
// end of the watches.
func (w *World) watch(ctx context.Context) (func(), error) {
	core := informers.NewSharedInformerFactoryWithOptions(w.api.core, 0, informers.WithTransform(dropManagedFields))
	own := dynamicinformer.NewDynamicSharedInformerFactory(w.api.dynamic, 0)
	all := []cache.SharedIndexInformer{
		core.Core().V1().Pods().Informer(),
		core.Core().V1().Nodes().Informer(),
		core.Apps().V1().Deployments().Informer(),
		core.Batch().V1().Jobs().Informer(),
	}
	for resource, convert := range map[string]cache.TransformFunc{
		"loans":         typed[v1alpha1.Loan],
		"nodeshares":    typed[v1alpha1.NodeShare],
		"capacitypools": typed[v1alpha1.CapacityPool],
	} {
		informer := own.ForResource(v1alpha1.GroupVersion.WithResource(resource)).Informer()
		if err := informer.SetTransform(convert); err != nil {
			return func() {}, fmt.Errorf("watch %s: %w", resource, err)
		}
		all = append(all, informer)
	}
	synced := make([]cache.InformerSynced, len(all))
	for i, informer := range all {
		registered, err := informer.AddEventHandler(w.table.handler())
		if err != nil {
			return func() {}, fmt.Errorf("watch the cluster: %w", err)
		}
		synced[i] = registered.HasSynced
	}
	core.Start(ctx.Done())
	own.Start(ctx.Done())
	stop := func() { core.Shutdown(); own.Shutdown() }
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return stop, errors.New("watch the cluster: not in step")
	}
	return stop, nil
}

// handler takes the events of one kind over.
func (t *table) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    t.seen,
		UpdateFunc: func(_, now any) { t.seen(now) },
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			t.lost(object)
		},
	}
}

// dropManagedFields keeps the table small: no part of the lab reads them.
func dropManagedFields(object any) (any, error) {
	if o, err := meta.Accessor(object); err == nil {
		o.SetManagedFields(nil)
	}
	return object, nil
}

// typed turns an object of the product into its type as it arrives.
func typed[T any](object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil // a second pass over what was converted already
	}
	u.SetManagedFields(nil)
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return out, nil
}
