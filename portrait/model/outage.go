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

// hindsightDrop is the fall, as a log ratio, below which a value is set aside in hindsight: under half.
const hindsightDrop = 0.7

// review sets aside in hindsight what was an outage on the day before the last one, though not so deep that it could be
// known for one at once: values that lie far under those of the same hours of the day before and of the day after,
// while these are like each other. A value that was so a week earlier too is a habit of the service. The lessons
// from such values are forgotten.
func (l *Learner) review() {
	c, n := l.Cycle, l.hist.Len()
	if c.Short == 0 || n < 3*c.Short {
		return
	}
	half := max(1, c.Short/96)
	around := func(i int) float64 { return l.hist.mean(max(i-half, 0), min(i+half+1, n)) }
	var faults []int
	for i := n - 2*c.Short; i < n-c.Short; i++ {
		then := around(i)
		fall := -l.fault(then, around(i-c.Short), around(i+c.Short))
		if !(fall > hindsightDrop) {
			continue
		}
		if at := i - c.Long; c.Long > 0 && at >= 0 && !(around(at)-then > fall/2) {
			continue
		}
		faults = append(faults, i)
	}
	if len(faults) == 0 {
		return
	}
	for _, i := range faults {
		l.hist.raw[i] = math.NaN()
	}
	clear(l.slots) // they have seen the faults
	l.hist.rewrite(l.Transform)
	l.learnProfile()
	l.begin()
}

// learnProfile learns the weekly profile from the history alone: the differences of all days after a fault were taken to a mean that it had lowered.
func (l *Learner) learnProfile() {
	l.Week = newProfile(l.Cycle)
	n := l.hist.Len()
	l.hist.low = l.recent(n)
	defer func() { l.hist.low = 0 }()
	for i := l.hist.low + l.Cycle.Short; i < n; i++ {
		l.profile(i, l.hist.x[i])
	}
}
