package portrait

import (
	"math"
	"slices"
)

// Class is the kind of load that a service has. It says what can be expected of a forecast, and decides nothing by itself.
type Class string

// The classes, in the order in which they are tried.
const (
	// New is a service of less than two days.
	New Class = "new"
	// Steady is a load that hardly moves.
	Steady Class = "steady"
	// Tidal is a load that a season explains: its forecast can be relied on.
	Tidal Class = "tidal"
	// Bursty is a load that leaps above the hour before it, and at no time that a season would tell.
	Bursty Class = "bursty"
	// Unpredictable is any other: it moves, without a season and without leaps.
	Unpredictable Class = "unpredictable"
)

// Classes are all classes.
func Classes() []Class { return []Class{New, Steady, Tidal, Bursty, Unpredictable} }

const (
	// steadySpread is the largest (p95 - p5) / mean of a steady load: about a sixth to either side, so that one number of replicas, with the room
	// that sizing leaves, is right nearly always.
	steadySpread = 0.3
	// tidalStrength and tidalSwing are the least of a tide: its season explains half of what moves, and moves a fifth of the level, which is
	// two replicas in ten.
	tidalStrength, tidalSwing = 0.5, 0.2
	// burstyRatio is the least p99 over p50 of load over the median of the hour before: one step in a hundred doubles it.
	burstyRatio = 2
	// burstyPeak is the least peak over mean of a load whose bursts are rarer than one step in a hundred.
	burstyPeak = 4
)

// classify judges by the figures of the last look.
func (s *Shape) classify(ready bool) Class {
	best := Period{}
	for _, p := range s.Periods {
		if p.Swing >= tidalSwing && p.Strength > best.Strength {
			best = p
		}
	}
	leaps := s.Burst >= burstyRatio || s.PeakToMean >= burstyPeak
	switch {
	case !ready:
		return New
	case s.Spread <= steadySpread && !leaps:
		return Steady
	case best.Strength >= tidalStrength:
		return Tidal
	case leaps:
		return Bursty
	}
	return Unpredictable
}

// measure computes the spread and the bursts of values; an hour has w steps. A load that is nought all the time has
// neither.
func (s *Shape) measure(values []float64, w int) {
	s.Burst, s.Spread, s.PeakToMean = 0, 0, 0
	known := knownOf(values)
	if len(known) == 0 {
		return
	}
	m := mean(known)
	ratios := make([]float64, 0, len(values))
	hour := make([]float64, 0, w)
	for i := w; i < len(values); i++ {
		hour = hour[:0]
		for _, y := range values[i-w : i] {
			if !math.IsNaN(y) {
				hour = append(hour, y)
			}
		}
		// Next to nothing has no ratios: three requests after one are no burst.
		if base := median(hour); base > fallShare*m && !math.IsNaN(values[i]) {
			ratios = append(ratios, values[i]/base)
		}
	}
	slices.Sort(known)
	if m > 0 && !math.IsInf(m, 0) {
		s.Spread = (rank(known, 0.95) - rank(known, 0.05)) / m
		s.PeakToMean = known[len(known)-1] / m
	}
	slices.Sort(ratios)
	if usual := rank(ratios, 0.5); usual > 0 {
		s.Burst = rank(ratios, 0.99) / usual
	}
}
