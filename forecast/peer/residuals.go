package peer

import (
	"math"
	"slices"

	"github.com/springtide/springtide/forecast/plain"
)

const (
	// innerOrigins are the origins within the history that a peer is tried on: two weeks of days.
	innerOrigins = 14
	// innerBlocks divide the horizon, since errors grow along it; a block with fewer errors than leastErrors, which cannot draw a tail,
	// takes those of all.
	innerBlocks = 4
	leastErrors = 40
)

// WithResiduals turns a point into quantiles: at each step the point plus the quantile of the peer's own errors, on origins that lie one
// horizon apart within the history. Below zero it goes only where the history does. A history that is too short for one such origin leaves
// the point as it is.
func WithResiduals(p Point) plain.Forecaster {
	return plain.Each(func(h plain.History, in *plain.Input) plain.Forecast {
		s := seasonsOf(h, in.Options)
		known := filled(h.Series, s.Day)
		if len(known) == 0 {
			return plain.Forecast{}
		}
		point := p(known, s, in.Horizon)
		errors := ownErrors(p, known, s, in.Horizon)
		floor := math.Inf(-1)
		if slices.Min(known) >= 0 {
			floor = 0
		}
		out := plain.Forecast{Paths: make([][]float64, len(in.Quantiles))}
		for i, q := range in.Quantiles {
			out.Paths[i] = make([]float64, in.Horizon)
			shift := [innerBlocks]float64{}
			for b := range shift {
				shift[b] = quantile(errors[b], q)
			}
			for j := range out.Paths[i] {
				out.Paths[i][j] = max(floor, point[j]+shift[innerBlocks*j/in.Horizon])
			}
		}
		return out
	})
}

// ownErrors are what a peer missed by within the history, in rising order, for each block of the horizon.
func ownErrors(p Point, h []float64, s Seasons, horizon int) [innerBlocks][]float64 {
	var by [innerBlocks][]float64
	var all []float64
	for k := 1; k <= innerOrigins; k++ {
		end := len(h) - k*horizon
		if end < 2*s.Day || 3*end < len(h) {
			break
		}
		for j, f := range p(slices.Clone(h[:end]), s, horizon) {
			b := innerBlocks * j / horizon
			by[b] = append(by[b], h[end+j]-f)
			all = append(all, h[end+j]-f)
		}
	}
	slices.Sort(all)
	for b := range by {
		if len(by[b]) < leastErrors {
			by[b] = all
			continue
		}
		slices.Sort(by[b])
	}
	return by
}

// quantile interpolates between sorted values; without any it is 0.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
