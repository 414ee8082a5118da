package watch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/adapter"
	"github.com/springtide/springtide/internal/kube/object"
)

const (
	// kindsEvery is how often the cluster is asked whether a kind that a job names has been installed, or removed.
	// Operators are installed by hand; within a minute is soon enough, and it costs one small call for each kind that
	// is in use.
	kindsEvery = 30 * time.Second
	// firstRead bounds the wait for the first read of optional kinds at the start: a right that is missing on one of
	// them must not keep everything else down. A kind that was not read in time is refused as unread, never taken for
	// absent.
	firstRead = 10 * time.Second
)

// KindName names a kind as references do.
type KindName struct{ APIVersion, Kind string }

// NameOfKind is the kind that a reference names.
func NameOfKind(ref *v1alpha1.TargetRef) KindName { return KindName{ref.APIVersion, ref.Kind} }

// kinds are the workloads of other operators. A kind is watched while an ElasticJob names it and the cluster has it:
// objects of other kinds are not read, and an operator that is not installed is not missed.
type kinds struct {
	mu      sync.Mutex
	Watched map[KindName]*watchedKind
	wanted  chan struct{}
}

type watchedKind struct {
	*object.Mirror[*OfflineFacts]
	stop context.CancelFunc
}

func newKinds() kinds {
	return kinds{Watched: map[KindName]*watchedKind{}, wanted: make(chan struct{}, 1)}
}

// Ask has the kinds looked through soon.
func (k *kinds) Ask() {
	select {
	case k.wanted <- struct{}{}:
	default:
	}
}

// Get finds the mirror of a kind; nil while it is not watched.
func (k *kinds) Get(name KindName) *object.Mirror[*OfflineFacts] {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w, ok := k.Watched[name]; ok {
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
	for _, w := range k.Watched {
		if !w.Synced() {
			return false
		}
	}
	return true
}

// followKinds keeps the watches in step with what jobs name and what is installed, until ctx ends.
func (c *Watcher) followKinds(ctx context.Context) {
	tick := time.NewTicker(kindsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.Kinds.wanted:
		}
		c.RefreshKinds(ctx)
	}
}

// RefreshKinds starts and ends watches. A kind about which the cluster gives no answer stays as it is.
func (c *Watcher) RefreshKinds(ctx context.Context) {
	names := map[KindName]bool{}
	for _, j := range c.Jobs.All() {
		for i := range j.Facts.Members {
			names[NameOfKind(&j.Facts.Members[i].WorkloadRef)] = true
		}
	}
	for _, ad := range adapter.All() {
		if ad.Kind() == adapter.KindBatchJob {
			continue // every cluster has it, and it is watched always
		}
		gvr := ad.Resource()
		name := KindName{ad.Kind().GroupVersion().String(), ad.Kind().Kind}
		if !names[name] {
			c.Kinds.end(name)
			continue
		}
		have, err := c.Serves(gvr.GroupVersion().String())
		switch {
		case err != nil:
			c.Options.Log.Warn("a kind of workload cannot be looked for", "kind", gvr.Resource, "group", gvr.Group, "error", err)
		case slices.Contains(have, gvr.Resource):
			c.watchKind(ctx, name, ad)
		default:
			c.Kinds.end(name)
		}
	}
}

func (c *Watcher) watchKind(ctx context.Context, name KindName, ad adapter.Adapter) {
	c.Kinds.mu.Lock()
	defer c.Kinds.mu.Unlock()
	if _, ok := c.Kinds.Watched[name]; ok {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	m := object.NewMirror(ad.Resource().GroupResource().String(), newDynamicInformer(c.Dyn, ad.Resource()),
		newForeignFacts(ad))
	m.Count(&c.Changes)
	c.Kinds.Watched[name] = &watchedKind{Mirror: m, stop: stop}
	go m.Run(ctx.Done())
}

// end stops the watch of a kind, if there is one.
func (k *kinds) end(name KindName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w, ok := k.Watched[name]; ok {
		w.stop()
		delete(k.Watched, name)
	}
}

// Workload finds what a member names, or says why it cannot be had.
func (c *Watcher) Workload(namespace, role string, spec *v1alpha1.JobMember) (*OfflineFacts, fleet.Problem) {
	ref := &spec.WorkloadRef
	m := c.BatchJobs
	if ref.APIVersion != adapter.KindBatchJob.GroupVersion().String() {
		m = c.Kinds.Get(NameOfKind(ref))
		switch {
		case m == nil:
			return nil, catalog.KindNotInstalled.Of(role, ref.Kind, ref.APIVersion)
		case !m.Synced():
			return nil, catalog.KindNotRead.Of(role, m.Name())
		}
	}
	w, ok := m.Get(namespace, ref.Name)
	if !ok {
		return nil, catalog.WorkloadNotFound.Of(role, ref.Kind, namespace, ref.Name)
	}
	return w, fleet.Problem{}
}

// ChildOf finds the Job that carries the size of a part. A Job of that name with another owner is not it.
func (c *Watcher) ChildOf(w *OfflineFacts, p *adapter.Part) (*OfflineFacts, bool) {
	j, ok := c.BatchJobs.Get(w.Namespace, p.Child)
	return j, ok && j.Owner == w.UID
}
