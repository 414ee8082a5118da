package hpa

import (
	"time"

	"github.com/springtide/springtide/fleet"
)

// mostStarts bounds how many starts of one window are looked at: more than one an hour for a quarter. A window that starts more often is
// open so often that another one meets it at one of its own starts.
const mostStarts = 2200

// Meet finds the first moment from a time on, within a year, at which both windows are open. A window that cannot be read meets none.
func Meet(a, b *fleet.Window, from time.Time) (time.Time, bool) {
	if a.Zone == nil || b.Zone == nil {
		return time.Time{}, false
	}
	sa, errA := ParseSchedule(a.Schedule)
	sb, errB := ParseSchedule(b.Schedule)
	if errA != nil || errB != nil {
		return time.Time{}, false
	}
	// Two windows that meet begin to do so at a start of one of them.
	x, okX := firstStartWithin(sa, a, sb, b, from)
	y, okY := firstStartWithin(sb, b, sa, a, from)
	if okX && (!okY || x.Before(y)) {
		return x, true
	}
	return y, okY
}

// firstStartWithin is the first start of a window at which another one is open.
func firstStartWithin(s Schedule, w *fleet.Window, other Schedule, o *fleet.Window, from time.Time) (time.Time, bool) {
	end := from.AddDate(1, 0, 0)
	at := s.Next(from.Add(-time.Second), w.Zone)
	for range mostStarts {
		if at.IsZero() || at.After(end) {
			return time.Time{}, false
		}
		if start := other.Next(at.Add(-o.Duration), o.Zone); !start.IsZero() && !start.After(at) {
			return at, true
		}
		at = s.Next(at, w.Zone)
	}
	return time.Time{}, false
}
