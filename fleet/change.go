package fleet

import "time"

// Change is a kind of action of Springtide's own will that windows of change bound.
type Change string

// The changes. Scale-out is none, and neither are recalls and deadlines that were announced.
const (
	ChangeMoves    Change = "Moves"    // loans that begin
	ChangeScaleIn  Change = "ScaleIn"  // replicas that a scale-in takes
	ChangeRecreate Change = "Recreate" // pods that a change of requests replaces
	ChangeResize   Change = "Resize"   // pods whose requests change in place
)

// Date is a day of the calendar; one of every year where Year is 0.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// Is reports whether a time lies on the day, by the wall clock of its own zone.
func (d Date) Is(t time.Time) bool {
	return t.Month() == d.Month && t.Day() == d.Day && (d.Year == 0 || t.Year() == d.Year)
}

// ChangeWindow bounds changes of one pool while it is open.
type ChangeWindow struct {
	Name, Reason string
	// Schedule is a five-field cron of its starts, in Zone. Once is the one start of a window without a schedule.
	Schedule string
	Zone     *time.Location
	Once     time.Time
	Duration time.Duration
	// Except are days on which it does not start.
	Except  []Date
	Changes []Change
	// Budget is the most of a change that goes on at a time.
	Budget ChangeBudget
	// Problem says why the window cannot be read; it counts as open then, since what it meant to hold is held.
	Problem string
}

// ChangeBudget is a number, or a share of what there is.
type ChangeBudget struct {
	Count int
	// Share is 0..1, and counts in place of Count where IsShare says so.
	Share   float64
	IsShare bool
}

// Of is the budget of a number of things; a share is rounded up, as in a PodDisruptionBudget.
func (b ChangeBudget) Of(n int) int {
	if b.IsShare {
		return portion(b.Share, n)
	}
	return b.Count
}

// Closed reports whether nothing of it may change.
func (b ChangeBudget) Closed() bool { return b.Of(1_000_000) == 0 }
