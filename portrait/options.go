package portrait

import (
	"time"

	"github.com/springtide/springtide/portrait/model"
)

// Options tune folding. The zero value means the defaults.
type Options struct {
	// Step is the grid of a new portrait, 5 min by default: short enough for a burst to show, long enough for a week to fit into a few KB.
	// A portrait keeps the step that it began with; a first batch that is coarser sets its own.
	Step time.Duration
	// Cycle names the periods of a new portrait; the zero value means those of its step, a day and a week. A portrait with others cannot be
	// stored: [Unmarshal] refuses it.
	Cycle model.Cycle
	// Kin is what many services have taught together; nil where there is none. It has seen nothing at or after KinUntil, so that only later
	// values judge it.
	Kin      *model.Groups
	KinUntil time.Time
	// HoldFor is how long a fall that nothing confirms is held as a fault; 0 means [DefaultHoldFor].
	HoldFor time.Duration
	// Backfill says that the batch is history from before the portrait was made. A portrait without a season takes a fall to less than a tenth in it for the end of a
	// burst; in what comes later it may be a lie.
	Backfill bool
	// Room is memory to work in; nil takes new memory.
	Room *model.Room
}

// defaultStep is the grid of a portrait.
const defaultStep = 5 * time.Minute

func (o Options) step() time.Duration {
	if o.Step > 0 {
		return o.Step
	}
	return defaultStep
}

func (o Options) holdFor() time.Duration {
	if o.HoldFor > 0 {
		return o.HoldFor
	}
	return DefaultHoldFor
}
