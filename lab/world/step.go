package world

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/springtide/springtide/lab/model"
)

const (
	// settleCap is how long (by the wall) the world waits for controllers and control plane before it goes on and says
	// what it waited for. Busy machines take seconds; a minute means that a component hangs.
	settleCap = time.Minute
	// recheck is the pause between the two looks that must both find the control plane quiet after a write: a watch
	// event takes a few milliseconds.
	recheck = 5 * time.Millisecond
	// look is how often the world looks again when no event came.
	look = 20 * time.Millisecond
	// gather is the pause between an event and the look that it asks for.
	gather = 2 * time.Millisecond
	// failuresBorne is the number of steps in a row whose writes may fail. A busy API server times out now and then, and what was not
	// written is written in the next step.
	failuresBorne = 10
)

// Run plays until the end of the world's time, and returns what it came to. It may be called once.
func (w *World) Run(ctx context.Context) (*model.Report, error) {
	w.began, w.paced = time.Now(), time.Now()
	for now := w.start; now.Before(w.end); now = w.clock.Now() {
		if err := w.settle(ctx); err != nil {
			return nil, err
		}
		if err := w.pace(ctx); err != nil {
			return nil, err
		}
		if err := w.step(ctx, now, now.Add(Step)); err != nil {
			return nil, fmt.Errorf("at %s: %w", now.Format(time.RFC3339), err)
		}
		if w.options.OnStep != nil {
			w.options.OnStep(w)
		}
		select {
		case err := <-w.failed:
			return nil, err
		default:
		}
	}
	if err := w.awaitRules(); err != nil {
		return nil, err
	}
	if _, err := w.Judge(); err != nil {
		return nil, err
	}
	report := w.Report()
	return &report, nil
}

// step moves the clock and brings the world to the new time: the stretch that passed is accounted and exported, pods, jobs and node
// sides do what they would have done by now. Then the controllers whose time has come are let go.
func (w *World) step(ctx context.Context, from, to time.Time) error {
	w.clock.Advance(to)
	begin := time.Now()
	lap := func(d *time.Duration) {
		now := time.Now()
		*d += now.Sub(begin)
		begin = now
	}
	if from.Equal(w.counted) {
		if err := w.beginAccount(); err != nil {
			return err
		}
	}
	if err := w.account(from, to.Sub(from)); err != nil {
		return err
	}
	lap(&w.spent.Model)
	if err := w.playFaults(ctx, to); err != nil {
		return err
	}
	if err := w.act(ctx, to); err != nil {
		return err
	}
	lap(&w.spent.Writes)
	if err := w.awaitRules(); err != nil {
		return err
	}
	lap(&w.spent.Rules)
	w.export()
	if err := w.scrape(to); err != nil {
		return err
	}
	if to.Equal(to.Truncate(time.Minute)) {
		if err := w.observe(ctx, to); err != nil {
			return err
		}
	}
	lap(&w.spent.Scrape)
	w.tellTruth(to)
	w.clock.Release()
	return nil
}

// act lets pods, jobs and node sides do what they would have done by now.
func (w *World) act(ctx context.Context, now time.Time) error {
	if w.stalled() {
		return nil
	}
	writes := w.followNotices(now)
	writes = append(writes, w.lifecycle(now)...)
	work, err := w.work(now)
	if err != nil {
		return err
	}
	writes = append(writes, work...)
	writes = append(writes, w.nodeSides(now)...)
	if len(writes) == 0 {
		return nil
	}
	w.wrote = true
	w.spent.Written += len(writes)
	err = apply(ctx, writes)
	if err == nil || ctx.Err() != nil {
		w.failures = 0
		return ctx.Err()
	}
	w.failures++
	w.log.Warn("some writes failed; the next step writes them again", "err", err)
	if w.failures >= failuresBorne {
		return err
	}
	return nil
}

// SetSpeed changes the greatest number of virtual seconds in a second. It is for OnStep.
func (w *World) SetSpeed(speed float64) { w.options.Speed = speed }

// paceMemory is the wall time over which the pace is held: a step in which Prometheus evaluates its rules takes three times as long as another,
// and the others make up for it.
const paceMemory = time.Second

// pace holds the world back to its speed. More than a second that was lost is not made up for: a day that was slow in places is slow, never too
// fast elsewhere.
func (w *World) pace(ctx context.Context) error {
	due := w.paced.Add(time.Duration(float64(Step) / w.options.Speed))
	if wait := time.Until(due); wait > 0 {
		w.spent.Idle += wait
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	w.paced = due
	if oldest := time.Now().Add(-paceMemory); due.Before(oldest) {
		w.paced = oldest
	}
	return ctx.Err()
}

// settle waits until every controller is parked and the control plane is quiet. After a write, two looks must find it
// so. During an outage the lab waits for no controller.
func (w *World) settle(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, settleCap)
	defer cancel()
	for confirmed := false; !w.clock.Outage(); {
		begin := time.Now()
		wrote, err := w.clock.AwaitParked(limit)
		w.spent.Parking += time.Since(begin)
		if err != nil {
			w.goOn(ctx, "controllers at work", fmt.Sprint(w.clock.Working()))
			return ctx.Err()
		}
		begin = time.Now()
		w.wrote = w.wrote || wrote
		reason := w.table.pending()
		if reason == "" && (confirmed || !w.wrote) {
			w.wrote = false
			return nil
		}
		confirmed = reason == ""
		err = w.awaitEvent(limit, confirmed)
		w.spent.Settling += time.Since(begin)
		if err != nil {
			if limit.Err() == nil {
				return err
			}
			w.goOn(ctx, "pending", reason)
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// goOn says why the world waits no longer.
func (w *World) goOn(ctx context.Context, key, what string) {
	if ctx.Err() == nil {
		w.log.Warn("going on without waiting longer", "waited", settleCap, key, what)
	}
}

// awaitEvent waits for the next event of the watches, or a moment. A part of the control plane that died is an error: what it owes never comes.
func (w *World) awaitEvent(ctx context.Context, quiet bool) error {
	if quiet {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-w.died:
			return w.partDied(ctx, err)
		case <-time.After(recheck):
			return nil
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-w.died:
		return w.partDied(ctx, err)
	case <-w.table.changed:
		time.Sleep(gather) // a look goes over all pods, and events come by the hundred
	case <-time.After(look):
	}
	return nil
}

// settleFirst is settle at the start, where giving up would leave half a fleet.
func (w *World) settleFirst(ctx context.Context) error {
	logged := time.Now()
	for {
		reason := w.table.pending()
		if reason == "" {
			return nil
		}
		if time.Since(logged) > 5*time.Second {
			logged = time.Now()
			w.options.Progress("waiting: " + reason)
		}
		if err := w.awaitEvent(ctx, false); err != nil {
			return errors.Join(err, errors.New(reason))
		}
	}
}
