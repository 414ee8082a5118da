package peer

import "math"

// Smoothing are the fixed parameters of PHPA's Holt-Winters: nothing fits them.
type Smoothing struct{ Alpha, Beta, Gamma float64 }

// The parameters of PHPA's documentation, and ones that a careful user might choose.
var (
	phpaDocumented = Smoothing{0.9, 0.9, 0.9}
	phpaTame       = Smoothing{0.3, 0.01, 0.3}
)

// phpaSeasons is how many seasons PHPA stores, linearPoints how many of the newest points its regression looks at (historySize in the
// samples of its documentation).
const (
	phpaSeasons  = 4
	linearPoints = 6
)

// HoltWinters is PHPA's exponential smoothing, additive in trend and season, over four stored days. PHPA asks it for one step; here it
// goes on for all of the horizon.
func HoltWinters(p Smoothing) Point {
	return func(h []float64, s Seasons, horizon int) []float64 {
		if len(h) < 2*s.Day {
			return LastValue(h, s, horizon) // PHPA refuses under two seasons, and its HPA stays reactive
		}
		h = h[max(0, len(h)-phpaSeasons*s.Day):]
		level := mean(h[:s.Day])
		trend := (mean(h[s.Day:2*s.Day]) - level) / float64(s.Day)
		season := make([]float64, s.Day)
		for i := range season {
			season[i] = h[i] - level
		}
		for i, y := range h {
			k, before := i%s.Day, level
			level = p.Alpha*(y-season[k]) + (1-p.Alpha)*(level+trend)
			trend = p.Beta*(level-before) + (1-p.Beta)*trend
			season[k] = p.Gamma*(y-before-trend) + (1-p.Gamma)*season[k]
		}
		out := make([]float64, horizon)
		for j := range out {
			out[j] = finite(level+trend*float64(j+1)+season[(len(h)+j)%s.Day], h)
		}
		return out
	}
}

// Linear is PHPA's least squares over the newest points, extended to the horizon.
func Linear(h []float64, _ Seasons, horizon int) []float64 {
	h = h[max(0, len(h)-linearPoints):]
	n := float64(len(h))
	middle, average := (n-1)/2, mean(h)
	xy, xx := 0.0, 0.0
	for i, y := range h {
		x := float64(i) - middle
		xy, xx = xy+x*(y-average), xx+x*x
	}
	slope := 0.0
	if xx > 0 {
		slope = xy / xx
	}
	out := make([]float64, horizon)
	for j := range out {
		out[j] = finite(average+slope*(n+float64(j)-middle), h)
	}
	return out
}

// finite bounds what explodes, so that its error is a number: at a million million times the largest value.
func finite(v float64, h []float64) float64 {
	most := 1.0
	for _, y := range h {
		most = max(most, math.Abs(y))
	}
	bound := min(1e12*most, math.MaxFloat64)
	if math.IsNaN(v) {
		return h[len(h)-1]
	}
	return max(-bound, min(bound, v))
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
