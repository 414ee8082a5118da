package portrait

import (
	"math"
	"time"
)

// Ripple is how far the load of a moment lies from the mean of its step. History and forecasts know means of steps alone; replicas have to
// carry each moment of one. It is the decayed mean square of the logarithm of moment over mean.
type Ripple struct {
	// Square is the mean square, N the number of moments behind it, as far as they are remembered.
	Square, N float64
}

// Moment is the load at one time, over about a minute or less, in the unit of the portrait's signal.
type Moment struct {
	At   time.Time
	Load float64
}

const (
	// rippleLeast is the number of moments before they are believed, rippleMemory the most that are remembered: two days of minutes.
	rippleLeast, rippleMemory = 30, 2880
	// rippleMost bounds one moment: beyond a factor of e it is a burst or a fault, of which misses of forecasts tell.
	rippleMost = 1
	// offLeast and offMost bound how far, as a logarithm, the mean of a step's moments may be from the mean that history has of the step: a flood that
	// doubles in five minutes is off by a fifth, and a source that says everything twice by 0.69.
	offLeast, offMost = 0.2, 0.5
)

// Deviation is the standard deviation of the logarithm, 0 while too little is known.
func (r Ripple) Deviation() float64 {
	if r.N < rippleLeast {
		return 0
	}
	return math.Sqrt(r.Square)
}

// learn folds in the moments of a step that begins at a time and has a mean load. They are in the order of time; what is left of them is
// returned.
func (r *Ripple) learn(moments []Moment, at time.Time, step time.Duration, mean float64) []Moment {
	moments = after(moments, at)
	rest := after(moments, at.Add(step))
	moments = moments[:len(moments)-len(rest)]
	if !(mean > 0) || r.contradict(moments, mean) {
		return rest
	}
	for _, m := range moments {
		if y := m.Load; y > 0 && !math.IsInf(y, 1) {
			d := min(math.Abs(math.Log(y/mean)), rippleMost)
			r.N = min(r.N+1, rippleMemory)
			r.Square += (d*d - r.Square) / r.N
		}
	}
	return rest
}

// contradict reports whether the moments of a step and its mean cannot be of one load: history was read before or after the source began to lie, and
// they were not. Moments lag by half the window of their rate, and bursts on the edge of a step belong to the next one, so their mean may be
// off by what one moment usually is.
func (r *Ripple) contradict(moments []Moment, mean float64) bool {
	sum := 0.0
	for _, m := range moments {
		sum += m.Load
	}
	if len(moments) == 0 {
		return false
	}
	off := math.Abs(math.Log(sum / float64(len(moments)) / mean))
	bound := float64(offMost)
	if r.N >= rippleLeast {
		bound = min(max(offLeast, r.Deviation()), offMost)
	}
	return !(off <= bound)
}

// after are the moments at or after a time.
func after(moments []Moment, at time.Time) []Moment {
	for len(moments) > 0 && moments[0].At.Before(at) {
		moments = moments[1:]
	}
	return moments
}
