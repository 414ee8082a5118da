package slo

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// State is what is known of a level, or of all of them together.
type State uint8

// The states. An unknown one is neither good nor bad: no measurement is no proof.
const (
	Unknown State = iota
	Good
	Bad
)

// String is the state as metrics name it.
func (s State) String() string {
	switch s {
	case Good:
		return "good"
	case Bad:
		return "bad"
	}
	return "unknown"
}

// StateOf compares what was measured with a limit. It must not be exceeded; a value at the limit keeps it.
func StateOf(value fleet.Known[float64], limit float64) State {
	switch {
	case !value.OK || value.Value != value.Value: // NaN: a quantile of no requests
		return Unknown
	case value.Value > limit:
		return Bad
	}
	return Good
}

// Look is one look at a service, once a cycle.
type Look struct {
	At time.Time
	// Names are the levels that the service states, States what was seen of each.
	Names  []string
	States []State
	// Idle says that the service is known to have no load and no work that waits. A level that cannot be measured then
	// is kept: a latency of no requests breaks nothing.
	Idle bool
	// Cause is why a level is broken; see [CauseOf].
	Cause Cause
}

// Minute is the verdict on one minute.
type Minute struct {
	// At is its beginning.
	At time.Time
	// All is bad when any level is, and unknown when any other level is unknown: a minute is good only if the whole
	// promise is known to be kept.
	All    State
	Names  []string
	States []State
	// Cause is that of the first look that saw a broken level.
	Cause Cause
}

// Judge makes minutes out of looks. A level is bad in a minute when any look saw it broken, as in the measure
// sloViolationMinutes of lab and simulator. It is good when at least half of the looks, and none of them to the
// contrary, saw it kept. The zero Judge has seen nothing.
//
// A process that starts within a minute judges what is left of it: rates average over a minute at least, so that one
// look knows most of it.
type Judge struct {
	minute int64
	names  []string
	looks  int
	good   []int
	bad    []bool
	cause  Cause
}

// See takes a look in. It returns the minute before, whole, when the look is the first one of another minute. Looks
// must come in the order of time. When the levels change within a minute, the minute begins again with the new ones.
func (j *Judge) See(l Look) (Minute, bool) {
	minute := minuteOf(l.At)
	done, ok := Minute{}, false
	if j.looks > 0 && minute > j.minute {
		done, ok = j.verdict(), true
	}
	if j.looks == 0 || minute > j.minute || !slices.Equal(j.names, l.Names) {
		*j = Judge{minute: minute, names: slices.Clone(l.Names), good: make([]int, len(l.Names)), bad: make([]bool,
			len(l.Names))}
	}
	j.looks++
	for i, s := range l.States {
		switch {
		case s == Bad:
			j.bad[i] = true
			if j.cause == NoCause {
				j.cause = l.Cause
			}
		case s == Good || l.Idle:
			j.good[i]++
		}
	}
	return done, ok
}

func (j *Judge) verdict() Minute {
	m := Minute{At: timeOf(j.minute), Names: j.names, States: make([]State, len(j.names)), Cause: j.cause}
	for i := range m.States {
		switch {
		case j.bad[i]:
			m.States[i] = Bad
		case 2*j.good[i] >= j.looks:
			m.States[i] = Good
		}
	}
	m.All = together(m.States)
	return m
}

// together is the state of all levels.
func together(states []State) State {
	switch {
	case slices.Contains(states, Bad):
		return Bad
	case len(states) == 0 || slices.Contains(states, Unknown):
		return Unknown
	}
	return Good
}

// minuteOf counts minutes since 1970, in which hours and days of UTC begin.
func minuteOf(t time.Time) int64 { return floorDiv(t.Unix(), 60) }

func timeOf(minute int64) time.Time { return time.Unix(60*minute, 0).UTC() }

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return (a+1)/b - 1
	}
	return a / b
}
