package hpa

import (
	"slices"
	"time"
)

// Most is the most that a service asks for between two times from now: its target, and what its tide asks for. While
// a signal is missing it is no less
// than the pods that exist.
func (t *Target) Most(from, to time.Duration) int32 {
	var n int32
	if !t.DataFresh {
		n = t.Standing
	}
	if from <= 0 {
		n = max(n, t.now())
	}
	if t.AheadStep <= 0 || len(t.Ahead) == 0 {
		// No tide to look along: what runs now, or is wanted now, is all that is known, and it stays.
		return max(n, t.Replicas, t.Standing)
	}
	first, last := t.steps(from, to)
	for i := first; i <= last && i < len(t.Ahead); i++ {
		n = max(n, t.Ahead[i])
	}
	return n
}

// MostLikely is the most that a service asks for between two times from now if its tide comes as its median has it.
// Where that is not known, all that it
// may ask for is likely.
func (t *Target) MostLikely(from, to time.Duration) int32 {
	if len(t.Likely) == 0 {
		return t.Most(from, to)
	}
	first, last := t.steps(from, to)
	if last >= len(t.Likely) {
		return t.Most(from, to)
	}
	n := slices.Max(t.Likely[first : last+1])
	if from <= 0 {
		n = max(n, t.now())
	}
	return n
}

// now is what the service asks for now. Under HPAFloor the target is the floor; what the HPA adds to it is in Wanted.
func (t *Target) now() int32 { return max(t.Replicas, t.Wanted) }

// steps are the first and the last step of the day ahead between two times from now.
func (t *Target) steps(from, to time.Duration) (first, last int) {
	return int(max(from, 0) / t.AheadStep), int(to/t.AheadStep) + 1
}
