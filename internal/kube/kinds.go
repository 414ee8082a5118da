package kube

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/object"
)

const (
	// kindsEvery is how often the cluster is asked whether a kind that a job names has been installed, or removed. Operators are
	// installed by hand; within a minute is soon enough, and it costs one small call for each kind that is in use.
	kindsEvery = 30 * time.Second
	// firstRead bounds the wait for the first read of optional kinds at the start: a right that is missing on one of
	// them must not keep everything else down. A kind that was not read in time is refused as unread, never taken for
	// absent.
	firstRead = 10 * time.Second
)

// kindName names a kind as references do.
type kindName struct{ apiVersion, kind string }

func nameOfKind(ref *v1alpha1.TargetRef) kindName { return kindName{ref.APIVersion, ref.Kind} }

// kinds are the workloads of other operators. A kind is watched while an ElasticJob names it and the cluster has it:
// objects of other kinds are not read, and an operator that is not installed is not missed.
type kinds struct {
	mu      sync.Mutex
	watched map[kindName]*watchedKind
	wanted  chan struct{}
}

type watchedKind struct {
	*object.Mirror[*offlineFacts]
	stop context.CancelFunc
}

func newKinds() kinds {
	return kinds{watched: map[kindName]*watchedKind{}, wanted: make(chan struct{}, 1)}
}

// ask has the kinds looked through soon.
func (k *kinds) ask() {
	select {
	case k.wanted <- struct{}{}:
	default:
	}
}

// get finds the mirror of a kind; nil while it is not watched.
func (k *kinds) get(name kindName) *object.Mirror[*offlineFacts] {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w, ok := k.watched[name]; ok {
		return w.Mirror
	}
	return nil
}

// await waits for the first read of all kinds, within a limit.
func (k *kinds) await(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !k.synced() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k *kinds) synced() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.watched {
		if !w.Synced() {
			return false
		}
	}
	return true
}

// followKinds keeps the watches in step with what jobs name and what is installed, until ctx ends.
func (c *watcher) followKinds(ctx context.Context) {
	tick := time.NewTicker(kindsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.kinds.wanted:
		}
		c.refreshKinds(ctx)
	}
}

// refreshKinds starts and ends watches. A kind about which the cluster gives no answer stays as it is.
func (c *watcher) refreshKinds(ctx context.Context) {
	names := map[kindName]bool{}
	for _, j := range c.jobs.All() {
		for i := range j.Facts.Members {
			names[nameOfKind(&j.Facts.Members[i].WorkloadRef)] = true
		}
	}
	for _, ad := range adapter.All() {
		if ad.Kind() == adapter.KindBatchJob {
			continue // every cluster has it, and it is watched always
		}
		gvr := ad.Resource()
		name := kindName{ad.Kind().GroupVersion().String(), ad.Kind().Kind}
		if !names[name] {
			c.kinds.end(name)
			continue
		}
		have, err := c.serves(gvr.GroupVersion().String())
		switch {
		case err != nil:
			c.o.Log.Warn("a kind of workload cannot be looked for", "kind", gvr.Resource, "group", gvr.Group, "error", err)
		case slices.Contains(have, gvr.Resource):
			c.watchKind(ctx, name, ad)
		default:
			c.kinds.end(name)
		}
	}
}

func (c *watcher) watchKind(ctx context.Context, name kindName, ad adapter.Adapter) {
	c.kinds.mu.Lock()
	defer c.kinds.mu.Unlock()
	if _, ok := c.kinds.watched[name]; ok {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	m := object.NewMirror(ad.Resource().GroupResource().String(), newDynamicInformer(c.dyn, ad.Resource()), newForeignFacts(ad))
	m.Count(&c.changes)
	c.kinds.watched[name] = &watchedKind{Mirror: m, stop: stop}
	go m.Run(ctx.Done())
}

// end stops the watch of a kind, if there is one.
func (k *kinds) end(name kindName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w, ok := k.watched[name]; ok {
		w.stop()
		delete(k.watched, name)
	}
}
