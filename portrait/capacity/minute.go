package capacity

import (
	"math"
	"time"
)

// Minute is one observation of a level. A sample over a longer step counts as one minute.
type Minute struct {
	At time.Time
	// Load is per ready replica: requests a second, or cores where no requests are counted.
	Load float64
	// Value is that of the level, in the unit of its limit.
	Value float64
	// CPU is the cores that a ready replica used; NaN where it is not known.
	CPU float64
	// Apart says why the minute tells nothing of steady replicas; 0 for a minute that teaches.
	Apart Apart
}

// Apart says why a minute is kept apart.
type Apart uint8

// The reasons to keep a minute apart. One minute may have several.
const (
	Young     Apart = 1 << iota // replicas that just became ready still warm up
	RollOver                    // replicas of two revisions serve
	Throttled                   // the CPU limit held replicas back
	Borrowed                    // replicas ran on a borrowed machine
	HeldFall                    // the load fell in a way that no other source confirmed
	aparts    = 5
)

// Terms are what is asked of a level.
type Terms struct {
	// Limit is what the value must not exceed.
	Limit float64
	// Objective is the share of minutes in which it must not, within (0, 1).
	Objective float64
	// Rule is the load that a replica is sized for while no capacity is known; 0 where that is unknown too. The first
	// capacity rises from there.
	Rule float64
}

func (t Terms) sound() bool {
	return t.Limit >= 0 && !math.IsInf(t.Limit, 0) && t.Objective > 0 && t.Objective < 1
}

// teaches reports whether the numbers of a minute can be a load and a value.
func (m *Minute) teaches() bool {
	return m.Load > 1/hugest && m.Load < hugest && m.Value >= 0 && m.Value < hugest
}

// hugest bounds numbers so that sums of them stay numbers.
const hugest = 1e30
