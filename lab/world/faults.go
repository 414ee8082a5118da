package world

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/springtide/springtide/lab/plane"
)

// Target is something that can be taken down on purpose.
type Target string

// The targets of faults.
const (
	Controller Target = "controller" // killed, all of them
	APIServer  Target = "apiserver"
	Prometheus Target = "prometheus" // its API: it goes on scraping, as a partition does
)

// Fault takes something down at a time after the world's start, for a while. What was down needs time by the wall to come back, during
// which virtual time runs on; an outage costs what it costs.
type Fault struct {
	What    Target
	At, For time.Duration
}

// outage is a fault that is played.
type outage struct {
	Fault
	down   bool
	mended chan error // set while it is being mended
	over   bool
}

// playFaults begins and ends outages.
func (w *World) playFaults(ctx context.Context, now time.Time) error {
	for _, o := range w.outages {
		since := now.Sub(w.start)
		switch {
		case o.over:
		case !o.down && since >= o.At:
			w.log.Info("taken down on purpose", "target", o.What, "for", o.For)
			o.down = true
			if err := w.takeDown(o.What); err != nil {
				return err
			}
		case o.down && o.mended == nil && since >= o.At+o.For:
			o.mended = make(chan error, 1)
			go func() { o.mended <- w.mend(ctx, o.What) }()
		case o.mended != nil:
			select {
			case err := <-o.mended:
				if err != nil {
					return fmt.Errorf("bring %s back: %w", o.What, err)
				}
				o.over = true
				w.log.Info("back again", "target", o.What)
				if err := w.resume(ctx, o.What); err != nil {
					return err
				}
			default:
			}
		}
	}
	return nil
}

// takeDown takes a target down. While the API server or Prometheus is away nobody is waited for; a killed controller is forgotten by the
// clock as its process ends.
func (w *World) takeDown(t Target) error {
	switch t {
	case Controller:
		var errs []error
		for i := range w.controllers {
			errs = append(errs, w.KillController(i))
		}
		return errors.Join(errs...)
	case APIServer:
		w.clock.SetOutage(true)
		w.apiDown = true
		return w.plane.StopComponent(plane.APIServer)
	case Prometheus:
		w.clock.SetOutage(true)
		return w.exporters.prom.StopServing()
	}
	return fmt.Errorf("no such target: %q", t)
}

// mend starts a target again and returns once it answers. It runs beside the world.
func (w *World) mend(ctx context.Context, t Target) error {
	switch t {
	case Controller:
		for i := range w.controllers {
			if err := w.StartController(i); err != nil {
				return err
			}
		}
		return w.awaitLeader(ctx)
	case APIServer:
		return w.plane.StartComponent(ctx, plane.APIServer)
	case Prometheus:
		return w.exporters.prom.ServeAgain()
	}
	return nil
}

// resume ends the outage in the world's own goroutine. The watches are made anew: left to themselves they would come back after up to
// half a minute, in which the table would be old without saying so.
func (w *World) resume(ctx context.Context, t Target) error {
	if t == APIServer {
		if err := w.rewatch(ctx); err != nil {
			return err
		}
		w.apiDown = false
	}
	down := false
	for _, o := range w.outages {
		down = down || o.down && !o.over && o.What != Controller
	}
	w.clock.SetOutage(down)
	return nil
}
