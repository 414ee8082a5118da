package kube

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// sight is a condition on a mirror: a write of ours that must become visible.
type sight func() bool

// sees is the sight of an object at a version or a later one. An object that is gone, or that was made again under the
// same name, is later too.
func (m *mirror[T]) sees(namespace, name string, uid types.UID, version string) sight {
	return func() bool {
		t, ok := m.get(namespace, name)
		if !ok {
			// Not there yet, or there no more: an object that was just created must appear, but one that vanished again meanwhile
			// would be waited for until the limit. That costs a second and no correctness.
			return false
		}
		if t.GetUID() != uid {
			return true
		}
		c, err := resourceversion.CompareResourceVersion(t.GetResourceVersion(), version)
		return err != nil || c >= 0
	}
}

// misses is the sight of an object's absence, or of its deletion having begun.
func (m *mirror[T]) misses(namespace, name string, uid types.UID) sight {
	return func() bool {
		t, ok := m.get(namespace, name)
		return !ok || t.GetUID() != uid || t.GetDeletionTimestamp() != nil
	}
}

// sightPoll is how often unseen writes are looked for. Watch events arrive within a few milliseconds of their write.
const sightPoll = 2 * time.Millisecond

// sights are writes that must become visible before their writer is done.
type sights struct {
	sightsMu sync.Mutex
	waiting  []sight
}

func (s *sights) see(one sight) {
	s.sightsMu.Lock()
	defer s.sightsMu.Unlock()
	s.waiting = append(s.waiting, one)
}

// await waits until the watches brought every write back. The limit is a bound on patience alone: a write that is not seen yet shows as
// a conflict at worst when it is planned again.
func (s *sights) await(ctx context.Context, within time.Duration, log *slog.Logger) {
	limit := time.Now().Add(within)
	for {
		var unseen []sight
		for _, one := range s.waiting {
			if !one() {
				unseen = append(unseen, one)
			}
		}
		s.waiting = unseen
		if len(unseen) == 0 {
			return
		}
		if time.Now().After(limit) {
			log.Warn("writes were not seen in time", "writes", len(unseen), "within", within)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sightPoll):
		}
	}
}
