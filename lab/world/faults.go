package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/springtide/springtide/lab/plane"
)

// Target is something that can be taken down on purpose.
type Target string

// The targets of faults.
const (
	Controller Target = "controller" // killed, all of them
	APIServer  Target = "apiserver"
	Etcd       Target = "etcd"       // the API server stands, and answers nothing that it does not have in memory
	Prometheus Target = "prometheus" // its API: it goes on scraping, as a partition does
)

// Fault takes something down at a time after the world's start, for a while. A target needs wall time to come back,
// during which virtual time runs on; an outage costs what it costs.
type Fault struct {
	What    Target
	At, For time.Duration
}

// afterOutage is how long (by the wall) after an outage a controller may still end for it: a lease that no component could renew lasts for 15 s.
const afterOutage = 20 * time.Second

// TakeDown takes something down with the next step, for a while. It is for OnStep.
func (w *World) TakeDown(what Target, span time.Duration) {
	w.outages = append(w.outages, &outage{Fault: Fault{What: what, At: w.clock.Now().Sub(w.start), For: span}})
}

// Down names what was taken down and is not back; a controller counts from the moment at which it ended until one leads. It is for OnStep.
func (w *World) Down() []Target {
	var out []Target
	for _, o := range w.outages {
		if !o.over && (o.down || o.At <= w.clock.Now().Sub(w.start)) {
			out = append(out, o.What)
		}
	}
	if len(w.controllers) > 0 && !w.clock.Led() && !slices.Contains(out, Controller) {
		out = append(out, Controller)
	}
	return out
}

// stalled reports whether the API server can write nothing.
func (w *World) stalled() bool {
	return slices.ContainsFunc(w.outages, func(o *outage) bool { return o.down && !o.over && (o.What == APIServer || o.What == Etcd) })
}

// outage is a fault that is played.
type outage struct {
	Fault
	down     bool
	repaired chan error // set while it is being repaired
	over     bool
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
		case o.down && o.repaired == nil && since >= o.At+o.For:
			o.repaired = make(chan error, 1)
			go func() { o.repaired <- w.repair(ctx, o.What) }()
		case o.repaired != nil:
			select {
			case err := <-o.repaired:
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
	return w.startAgain(ctx)
}

// startAgain does what a kubelet does for what ended: controllers and parts of the control plane that lost their lease in an outage.
func (w *World) startAgain(ctx context.Context) error {
	if w.stalled() {
		w.excused.Store(time.Now().Add(afterOutage).UnixNano())
		return nil
	}
	for w.inOutage() {
		select {
		case err := <-w.died:
			if err := w.partDied(ctx, err); err != nil {
				return err
			}
			continue
		default:
		}
		break
	}
	for i, c := range w.controllers {
		if c.ended.Swap(false) {
			w.log.Info("a controller lost its lease in the outage, and is started again", "controller", c.id)
			if err := w.StartController(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// partDied starts a part of the control plane again that ended for an outage; any other end is an error.
func (w *World) partDied(ctx context.Context, err error) error {
	if !w.inOutage() {
		return err
	}
	w.log.Info("a part of the control plane ended in the outage, and is started again", "err", err)
	return w.plane.StartDead(ctx)
}

// inOutage reports whether a process may end for an outage that is, or just was.
func (w *World) inOutage() bool { return time.Now().UnixNano() < w.excused.Load() }

// takeDown takes a target down. While the API server or Prometheus is away the lab waits for no controller; a killed
// controller is forgotten by the clock as its process ends.
func (w *World) takeDown(t Target) error {
	switch t {
	case Controller:
		var errs []error
		for i := range w.controllers {
			errs = append(errs, w.KillController(i))
		}
		return errors.Join(errs...)
	case APIServer, Etcd:
		w.clock.SetOutage(true)
		w.excused.Store(time.Now().Add(afterOutage).UnixNano())
		return w.plane.StopComponent(componentOf[t])
	case Prometheus:
		w.clock.SetOutage(true)
		return w.exporters.prom.StopServing()
	}
	return fmt.Errorf("no such target: %q", t)
}

// componentOf is the part of the control plane that a target is.
var componentOf = map[Target]string{APIServer: plane.APIServer, Etcd: plane.Etcd}

// repair starts a target again and returns once it answers. It runs next to the world.
func (w *World) repair(ctx context.Context, t Target) error {
	switch t {
	case Controller:
		for i := range w.controllers {
			if err := w.StartController(i); err != nil {
				return err
			}
		}
		return w.awaitLeader(ctx)
	case APIServer, Etcd:
		return w.plane.StartComponent(ctx, componentOf[t])
	case Prometheus:
		return w.exporters.prom.ServeAgain()
	}
	return nil
}

// resume ends the outage in the world's own goroutine. The watches are made again: left to themselves they would come
// back after up to half a minute, in which the table would be old without saying so.
func (w *World) resume(ctx context.Context, t Target) error {
	if (t == APIServer || t == Etcd) && !w.stalled() {
		if err := w.rewatch(ctx); err != nil {
			return err
		}
	}
	down := false
	for _, o := range w.outages {
		down = down || o.down && !o.over && o.What != Controller
	}
	w.clock.SetOutage(down)
	return nil
}
