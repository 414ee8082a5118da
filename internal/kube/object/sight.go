package object

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Sight is a condition on a mirror: a write of ours that must become visible.
type Sight func() bool

// Sees is the sight of an object at a version or a later one. An object that is gone, or that was made again under the
// same name, is later too.
func (m *Mirror[T]) Sees(namespace, name string, uid types.UID, version string) Sight {
	return func() bool {
		t, ok := m.Get(namespace, name)
		if !ok {
			// Not there yet, or there no more: an object that was just created must appear, but one that vanished again
			// meanwhile would be waited for until the limit. That costs a second and no correctness.
			return false
		}
		if t.GetUID() != uid {
			return true
		}
		c, err := resourceversion.CompareResourceVersion(t.GetResourceVersion(), version)
		return err != nil || c >= 0
	}
}

// Misses is the sight of an object's absence, or of its deletion having begun.
func (m *Mirror[T]) Misses(namespace, name string, uid types.UID) Sight {
	return func() bool {
		t, ok := m.Get(namespace, name)
		return !ok || t.GetUID() != uid || t.GetDeletionTimestamp() != nil
	}
}

// SightPoll is how often unseen writes are looked for. Watch events arrive within a few milliseconds of their write.
const SightPoll = 2 * time.Millisecond

// Sights are writes that must become visible before their writer is done.
type Sights struct {
	SightsMu sync.Mutex
	waiting  []Sight
}

// See adds a write that must become visible.
func (s *Sights) See(one Sight) {
	s.SightsMu.Lock()
	defer s.SightsMu.Unlock()
	s.waiting = append(s.waiting, one)
}

// Await waits until the watches brought every write back. The limit is a bound on patience alone: a write that is not
// seen yet shows as a conflict at worst when it is planned again.
func (s *Sights) Await(ctx context.Context, within time.Duration, log *slog.Logger) {
	limit := time.Now().Add(within)
	for {
		var unseen []Sight
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
		case <-time.After(SightPoll):
		}
	}
}
