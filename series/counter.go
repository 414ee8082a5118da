package series

import "math"

// Rates turns a series of a counter's readings into its rate per second over each step, and counts its resets. A counter that fell
// was reset to zero in between: what it shows then is all that is known of the step, so the rate is a lower bound, as PromQL's rate has
// it. The first step, and every step next to a gap, is a gap.
func (s Series) Rates() (rates Series, resets int) {
	if s.Step <= 0 {
		return Series{}, 0
	}
	rates = New(s.Start, s.Step, len(s.Values))
	for i := 1; i < len(s.Values); i++ {
		before, now := s.Values[i-1], s.Values[i]
		if math.IsNaN(before) || math.IsNaN(now) {
			continue
		}
		if now < before {
			resets++
			before = 0
		}
		rates.Values[i] = (now - before) / s.Step.Seconds()
	}
	return rates, resets
}

// DropNegative returns s with its negative values turned into gaps, and their number: a rate below zero is a counter
// reset that was differenced away, not a load.
func (s Series) DropNegative() (clean Series, dropped int) {
	clean = Series{Start: s.Start, Step: s.Step, Values: make([]float64, len(s.Values))}
	for i, v := range s.Values {
		if v < 0 {
			v = math.NaN()
			dropped++
		}
		clean.Values[i] = v
	}
	return clean, dropped
}
