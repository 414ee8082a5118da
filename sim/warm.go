package sim

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
)

// warm is what a loop has learned of the history before a run. It is the same for every row, so it is learned once, by the loop's first
// cycle on a fleet of its own, and each row begins as after a restart.
type warm struct {
	once      sync.Once
	portraits map[fleet.ServiceID]portrait.Portrait
	summaries map[fleet.ServiceID]loop.Summary
	err       error
}

// learned returns what a row begins with. Portraits are values that are never written into, so rows share them.
func (s *Shared) learned(ctx context.Context) (map[fleet.ServiceID]portrait.Portrait, map[fleet.ServiceID]loop.Summary, error) {
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
		// Operators read summaries before they switch a service on. The simulator has none, so none is made again.
		for id, sum := range c.Summaries {
			sum.Made = s.past.b.End().Add(365 * 24 * time.Hour)
			c.Summaries[id] = sum
		}
		w.portraits, w.summaries = c.Portraits, c.Summaries
	})
	return maps.Clone(w.portraits), maps.Clone(w.summaries), w.err
}
