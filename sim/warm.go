package sim

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/springtide/springtide/internal/loop"
)

// warm is what a loop has learned of the history before a run. It is the same for every row, so it is learned once, by the loop's first
// cycle on a fleet of its own, and each row begins as after a restart.
type warm struct {
	once sync.Once
	kept kept
	err  error
}

// learned returns what a row begins with. Portraits are values that nobody writes into, so rows share them.
func (s *Shared) learned(ctx context.Context) (kept, error) {
	w := &s.warm
	w.once.Do(func() {
		c := newController(NewWorld(s.past.b, s.rates), controllerOptions{}, nil)
		c.w.begin()
		o := c.options()
		o.Save = 0
		l := loop.New((&leadership{controller: c}).ports(), o)
		if _, err := l.Cycle(ctx); err != nil {
			w.err = fmt.Errorf("learn the history: %w", err)
		}
		// Summaries are what operators read before they switch a service on: nobody does here, so none is made anew.
		for id, sum := range c.kept.summaries {
			sum.Made = s.past.b.End().Add(365 * 24 * time.Hour)
			c.kept.summaries[id] = sum
		}
		w.kept = kept{portraits: c.kept.portraits, summaries: c.kept.summaries}
	})
	return kept{portraits: maps.Clone(w.kept.portraits), summaries: maps.Clone(w.kept.summaries)}, w.err
}
