package watch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/springtide/springtide/lab/judge"
)

// pause is how long (by the wall) a watch that broke waits before the next list. An informer's back-off grows to half a
// minute, in which hours of a replayed day would pass unseen.
const pause = 300 * time.Millisecond

// state says that a watch is in step, or that it broke.
type state struct {
	watch  string
	broken bool
}

// watched is one kind that is listed and watched. Its objects are converted at once, and no object is kept here.
type watched struct {
	name string
	// kind is an object of the kind that convert makes, for lists; nil for kinds of which none is kept.
	kind    any
	list    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
	convert func(runtime.Object) any // nil for what the judge does not care for
}

// run lists and watches until ctx ends.
func (w *watched) run(ctx context.Context, facts chan<- any) {
	for ctx.Err() == nil {
		// A watch ends by its server's wish too, every few minutes; what was missed between two of them is in the list.
		if err := w.once(ctx, facts); err != nil {
			send(ctx, facts, state{w.name, true})
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func send(ctx context.Context, facts chan<- any, fact any) {
	select {
	case facts <- fact:
	case <-ctx.Done():
	}
}

func (w *watched) once(ctx context.Context, facts chan<- any) error {
	all, err := w.list(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	items, err := meta.ExtractList(all)
	if err != nil {
		return err
	}
	whole := judge.Whole{Kind: w.kind}
	for _, item := range items {
		if o := w.convert(item); o != nil {
			whole.Objects = append(whole.Objects, o)
		}
	}
	if w.kind != nil {
		send(ctx, facts, whole)
	}
	list, err := meta.ListAccessor(all)
	if err != nil {
		return err
	}
	send(ctx, facts, state{w.name, false})
	stream, err := w.watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), AllowWatchBookmarks: true})
	if err != nil {
		return err
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			o := w.convert(event.Object)
			if o != nil && event.Type == watch.Deleted {
				o = judge.Gone{Object: o}
			}
			if o != nil {
				send(ctx, facts, o)
			}
		case watch.Error:
			return fmt.Errorf("watch %s: %v", w.name, event.Object)
		}
	}
	return fmt.Errorf("watch %s: it ended", w.name)
}

// watchCount is the number of watches; the judge is blind until each is in step.
const watchCount = 10

// watches are all that the judge looks at.
func watches(core kubernetes.Interface, own dynamic.Interface, o Options) []*watched {
	out := []*watched{
		{
			name: "pods", kind: &judge.Pod{}, convert: pod,
			list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return core.CoreV1().Pods("").List(ctx, o)
			},
			watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return core.CoreV1().Pods("").Watch(ctx, o)
			},
		},
		{
			name: "nodes", kind: &judge.Node{}, convert: node,
			list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return core.CoreV1().Nodes().List(ctx, o)
			},
			watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return core.CoreV1().Nodes().Watch(ctx, o)
			},
		},
		{
			name: "deployments", kind: &judge.Deployment{}, convert: deployment,
			list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return core.AppsV1().Deployments("").List(ctx, o)
			},
			watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return core.AppsV1().Deployments("").Watch(ctx, o)
			},
		},
		{
			name: "events", convert: event, // events that are listed are old ones, and fall out of the warnings soon
			list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return core.CoreV1().Events("").List(ctx, warnings(o))
			},
			watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return core.CoreV1().Events("").Watch(ctx, warnings(o))
			},
		},
		{
			name: "lease", convert: leaseOf,
			list: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
				opts.FieldSelector = fields.OneTermEqualSelector("metadata.name", o.Lease).String()
				return core.CoordinationV1().Leases(o.Namespace).List(ctx, opts)
			},
			watch: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
				opts.FieldSelector = fields.OneTermEqualSelector("metadata.name", o.Lease).String()
				return core.CoordinationV1().Leases(o.Namespace).Watch(ctx, opts)
			},
		},
	}
	for _, k := range []struct {
		resource schema.GroupVersionResource
		kind     any
		convert  func(*unstructured.Unstructured) any
	}{
		{springtide("loans"), &judge.Loan{}, loan},
		{springtide("nodeshares"), &judge.Share{}, share},
		{springtide("capacitypools"), &judge.Pool{}, pool},
		{springtide("elasticservices"), &judge.Service{}, service},
		{schema.GroupVersionResource{Group: "topology.node.k8s.io", Version: "v1alpha2", Resource: "noderesourcetopologies"}, &judge.Topology{}, topology},
	} {
		client := own.Resource(k.resource)
		out = append(out, &watched{
			name: k.resource.Resource, kind: k.kind,
			convert: func(o runtime.Object) any {
				if u, ok := o.(*unstructured.Unstructured); ok {
					return k.convert(u)
				}
				return nil
			},
			list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
			watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return client.Watch(ctx, o) },
		})
	}
	return out
}

// warnings asks for events that say that something is wrong.
func warnings(o metav1.ListOptions) metav1.ListOptions {
	o.FieldSelector = fields.OneTermEqualSelector("type", corev1.EventTypeWarning).String()
	return o
}

func springtide(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "springtide.dev", Version: "v1alpha1", Resource: resource}
}
