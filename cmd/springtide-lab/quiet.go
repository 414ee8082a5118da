package main

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
)

// batchPeriod is how long (by the wall) an event waits for further events before a controller handles them together. Hundreds of pods become ready
// in one moment of the virtual day. Without the wait the controllers of ReplicaSets and Deployments write a status for each pod: half of all
// writes to the API server. A controller follows a new spec without delay.
const batchPeriod = 50 * time.Millisecond

// batchedPods delivers the events of pods in batches.
type batchedPods struct {
	coreinformers.PodInformer
	batches *batches
}

func (b batchedPods) Informer() cache.SharedIndexInformer {
	return batchedInformer{SharedIndexInformer: b.PodInformer.Informer(), batches: b.batches}
}

// batchedReplicaSets delivers the events of ReplicaSets in batches.
type batchedReplicaSets struct {
	appsinformers.ReplicaSetInformer
	batches *batches
}

func (b batchedReplicaSets) Informer() cache.SharedIndexInformer {
	return batchedInformer{SharedIndexInformer: b.ReplicaSetInformer.Informer(), batches: b.batches}
}

type batchedInformer struct {
	cache.SharedIndexInformer
	batches *batches
}

func (i batchedInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(o any, first bool) { i.batches.add(func() { h.OnAdd(o, first) }) },
		UpdateFunc: func(old, now any) { i.batches.add(func() { h.OnUpdate(old, now) }) },
		DeleteFunc: func(o any) { i.batches.add(func() { h.OnDelete(o) }) },
	})
}

// batches holds events back, in order, until the period is over.
type batches struct {
	mu      sync.Mutex
	waiting []func()
	poke    chan struct{}
}

func newBatches(ctx context.Context) *batches {
	b := &batches{poke: make(chan struct{}, 1)}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-b.poke:
			}
			time.Sleep(batchPeriod)
			b.mu.Lock()
			all := b.waiting
			b.waiting = nil
			b.mu.Unlock()
			for _, deliver := range all {
				deliver()
			}
		}
	}()
	return b
}

func (b *batches) add(deliver func()) {
	b.mu.Lock()
	b.waiting = append(b.waiting, deliver)
	b.mu.Unlock()
	select {
	case b.poke <- struct{}{}:
	default:
	}
}

// warner is a client that writes events of type Warning only. Normal events, two for each pod, would be a tenth of the API server's writes.
type warner struct{ kubernetes.Interface }

func (c warner) CoreV1() typedcore.CoreV1Interface { return warnerCore{c.Interface.CoreV1()} }

type warnerCore struct{ typedcore.CoreV1Interface }

func (c warnerCore) Events(namespace string) typedcore.EventInterface {
	return warnerEvents{c.CoreV1Interface.Events(namespace)}
}

type warnerEvents struct{ typedcore.EventInterface }

func (e warnerEvents) CreateWithEventNamespace(event *corev1.Event) (*corev1.Event, error) {
	if event.Type == corev1.EventTypeNormal {
		return event, nil
	}
	return e.EventInterface.CreateWithEventNamespace(event) //nolint:staticcheck // what the recorders call
}

func (e warnerEvents) PatchWithEventNamespace(event *corev1.Event, data []byte) (*corev1.Event, error) {
	if event.Type == corev1.EventTypeNormal {
		return event, nil
	}
	return e.EventInterface.PatchWithEventNamespace(event, data) //nolint:staticcheck // what the recorders call
}
