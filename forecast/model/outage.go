package model

import "math"

const (
	// outageDrop is the fall, as a log ratio, below which a value is an outage rather than an ebb: under 15 % of both the last hours and
	// of the lowest value that the last days show at this time of day.
	outageDrop = 1.9
	// outageDays is the number of days that must be known at this time of day before anything is called an outage.
	outageDays = 2
	// outageShare is the share of a short period after which a fall that lasts is taken for the new normal: a quarter, six hours.
	outageShare = 4
)

// outage reports whether the next value looks like a fault of the service or of its metrics. Such values are no load: forgotten as gaps,
// they leave the forecast of the normal day standing. A fall that lasts is believed in the end.
func (l *Learner) outage(y float64) bool {
	c := l.Cycle
	if math.IsNaN(y) || c.Short == 0 {
		return false
	}
	if !l.fallen(y) {
		l.SetAside = 0
		return false
	}
	if l.SetAside >= max(1, c.Short/outageShare) {
		return false
	}
	l.SetAside++
	return true
}

func (l *Learner) fallen(y float64) bool {
	c, i := l.Cycle, l.hist.Len()
	floor := l.Transform.Forward(y) + outageDrop
	_, far, unit := c.windows()
	recent := l.hist.lately(far, i)
	if math.IsNaN(recent) {
		recent = l.hist.lately(2*unit, i)
	}
	if !(floor < recent) {
		return false
	}
	days, half := 0, max(1, c.Short/96)
	for d := 1; d <= likeDays; d++ {
		known := false
		for j := i - d*c.Short - half; j <= i-d*c.Short+half && j < i; j++ {
			if x := l.hist.at(j); !math.IsNaN(x) {
				if x <= floor {
					return false
				}
				known = true
			}
		}
		if known {
			days++
		}
	}
	return days >= outageDays
}
