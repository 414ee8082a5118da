package clock

import (
	"context"
	"time"
)

// Wall is the clock of a user's cluster: real time, in which API stamps already are.
type Wall struct {
	wake chan struct{}
}

// NewWall returns the wall clock.
func NewWall() *Wall { return &Wall{wake: make(chan struct{}, 1)} }

// Now is the time.
func (w *Wall) Now() time.Time { return time.Now().UTC() }

// At returns the stamp as it is.
func (w *Wall) At(apiTimestamp time.Time) time.Time { return apiTimestamp }

// Park sleeps until the given time or the next Wake. A Wake without a parked caller ends the next Park at once, so that
// nothing that happened during a cycle is slept over.
func (w *Wall) Park(ctx context.Context, until time.Time, _ bool) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	case <-w.wake:
	}
	return nil
}

// Wake ends the running Park, or the next one, early. It never blocks.
func (w *Wall) Wake() {
	select {
	case w.wake <- struct{}{}:
	default: // one token says it all
	}
}
