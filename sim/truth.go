package sim

import "math"

// goodByDefault is the share of minutes that must be good where no objective says so.
const goodByDefault = 0.995

// trueTarget is the CPU utilisation at which a minute of a service's present curve is good with the objective's
// probability, were its load known: every step of it must be, and the load of each is off the minute's by the jitter.
func (s *service) trueTarget(jitter float64) float64 {
	each := math.Pow(s.objective(), 1/float64(perMinute))
	spare := math.Exp(-jitter * math.Sqrt2 * math.Erfinv(2*each-1))
	return spare * s.carries * s.CPUAt(s.moment) / float64(s.Cores)
}
