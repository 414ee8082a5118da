package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// stuckAfter is how long a leader may pass no step before it counts as stuck: five times the bound on the actions of a plan.
const stuckAfter = 5 * time.Minute

// health is the answer to the probes. The process is ready when it has read the cluster once, leader or not, so that a standby is no failure. It is
// alive unless it leads and is stuck.
type health struct {
	ready atomic.Bool
	// now is the wall clock.
	now func() time.Time
	// asks the API server for a sign of life. A leader that waits for an API server that is down is not stuck: a restart would not help it.
	asks func(ctx context.Context) error

	mu      sync.Mutex // guards what follows
	leads   bool
	stepped time.Time
}

func newHealth(now func() time.Time, asks func(ctx context.Context) error) *health {
	return &health{now: now, asks: asks}
}

func (h *health) setReady() { h.ready.Store(true) }

// lead says whether this process leads from now on. The time of its steps begins with the lead.
func (h *health) lead(leads bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leads, h.stepped = leads, h.now()
}

// leading reports whether this process leads.
func (h *health) leading() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leads
}

// step notes that the leader passed a step.
func (h *health) step() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stepped = h.now()
}

// alive reports why the process should be restarted, or nil.
func (h *health) alive(ctx context.Context) error {
	h.mu.Lock()
	still := h.now().Sub(h.stepped)
	leads := h.leads
	h.mu.Unlock()
	answers := func() bool { return h.asks(ctx) == nil }
	if !leads || still < stuckAfter || !answers() {
		return nil
	}
	return fmt.Errorf("the leader passed no step for %s while the API server answers", still.Truncate(time.Second))
}

// prepared reports that the process has not read the cluster yet, or nil.
func (h *health) prepared(context.Context) error {
	if !h.ready.Load() {
		return errors.New("the cluster has not been read yet")
	}
	return nil
}
