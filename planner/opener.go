package planner

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// WindowOpen reports whether a window is open at a time. A schedule that cannot be read is never open: acceptance refuses it by name.
func WindowOpen(w fleet.Window, at time.Time) bool { return newOpener().open(w, at) }

// opener answers whether windows are open, for many times in one plan: schedules are read once, and the last start is remembered, which
// answers for all times up to the end of its window.
type opener struct{ seen map[fleet.Window]*opening }

type opening struct {
	schedule hpa.Schedule
	err      error
	// start is the first start after from.
	from, start time.Time
}

func newOpener() *opener { return &opener{seen: map[fleet.Window]*opening{}} }

func (o *opener) open(w fleet.Window, at time.Time) bool {
	if w.Zone == nil || w.Duration <= 0 {
		return false
	}
	x := o.seen[w]
	if x == nil {
		x = &opening{}
		x.schedule, x.err = hpa.ParseSchedule(w.Schedule)
		o.seen[w] = x
	}
	if x.err != nil {
		return false
	}
	from := at.Add(-w.Duration)
	if x.from.IsZero() || from.Before(x.from) || (!x.start.IsZero() && !from.Before(x.start)) {
		x.from, x.start = from, x.schedule.Next(from, w.Zone)
	}
	return !x.start.IsZero() && !x.start.After(at)
}
