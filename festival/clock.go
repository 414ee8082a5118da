package festival

import (
	"time"

	"github.com/springtide/springtide/fleet"
)

// Clock is a time of the wall clock on a day that is counted from the first day of the festival itself.
type Clock struct{ Day, Hour, Minute int }

// at is the first moment at which the wall clock of the zone shows the time, or has passed it. So a time that the
// change of clocks leaves out is the moment of the change, and of one that comes twice the first counts.
func (c Clock) at(first fleet.Date, zone *time.Location) time.Time {
	wall := time.Date(first.Year, first.Month, first.Day+c.Day, c.Hour, c.Minute, 0, 0, time.UTC)
	_, before := wall.Add(-24 * time.Hour).In(zone).Zone()
	_, after := wall.Add(24 * time.Hour).In(zone).Zone()
	// The larger offset gives the earlier moment.
	earlier := wall.Add(-time.Duration(max(before, after)) * time.Second).In(zone)
	later := wall.Add(-time.Duration(min(before, after)) * time.Second).In(zone)
	switch {
	case shows(earlier, wall):
		return earlier.UTC()
	case shows(later, wall):
		return later.UTC()
	}
	_, change := earlier.ZoneBounds()
	return change.UTC()
}

// shows reports whether the wall clock shows a time, which is given as one of UTC.
func shows(t, wall time.Time) bool {
	return dateOf(t) == dateOf(wall) && t.Hour() == wall.Hour() && t.Minute() == wall.Minute()
}

func dateOf(t time.Time) fleet.Date {
	return fleet.Date{Year: t.Year(), Month: t.Month(), Day: t.Day()}
}
