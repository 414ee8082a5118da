package model

import (
	"math"
	"slices"
)

// Spread weighs the band of the blend against two forecasts that know how the load is spread and nothing of when: the
// quantiles of the last half of a short period and those of the last seven. After a level shift, or where load comes in
// bursts without a clock, they are hard to beat, since the blend's own misses describe another time for days.
//
// Quantiles are averaged, not probabilities, so that a mixture of two narrow bands stays narrow (K. C. Lichtendahl, Y. Grushka-Cockayne,
// R. L. Winkler, "Is it better to average probabilities or quantiles?", 2013). The weights are the mean of all points of a grid over the
// mixtures, each weighed by a power of the pinball loss that it would have had, apart for the middle and the upper quantiles (after J.
// Berrisch, F. Ziel, "CRPS learning", 2021).
type Spread struct {
	// Losses are the decayed mean losses of each point of the grid, in levels, for the middle and the upper cuts.
	Losses [parts][points]float64
	// N is the number of values behind them, as far as they are remembered.
	N float64
}

const (
	windowsOf = 2 // windows whose quantiles speak next to the blend
	parts     = 2 // quantiles up to the middle, and upper ones

	// grain is the number of steps of the grid from nothing to all, points the number of its points.
	grain  = 2
	points = (grain + 1) * (grain + 2) / 2

	// spreadMemory is the least number of losses that are remembered, otherwise those of a short period: what has become of a series after a
	// shift must be known within a day or two of it.
	spreadMemory = 72
	// squarings give the power of the losses in the weights, 2⁵: one that is a tenth smaller weighs thirty times as much.
	squarings = 5
	// spreadFew is the most values of a window that are looked at: half a day of five minutes, whose .99 quantile lies between the two largest.
	spreadFew = 144
)

// doubt is the weight of each mixture against the blend alone before anything was judged. The middle is the blend's own strength, so that more
// must speak against it there.
var doubt = [parts]float64{0.0005, 0.1}

// spreadAt are the quantiles at which mixtures are judged, the first middleCuts of them for the middle.
var spreadAt = [5]float64{0.1, 0.5, 0.9, 0.95, 0.99}

const middleCuts = 2

// mixture is the weights of the windows; the blend has what is left to one.
type mixture [windowsOf]float64

// grid are all mixtures in steps of 1/grain, the blend alone first.
var grid = func() (out [points]mixture) {
	k := 0
	for i := range grain + 1 {
		for j := range grain + 1 - i {
			out[k] = mixture{float64(i) / grain, float64(j) / grain}
			k++
		}
	}
	return out
}()

// of is the mixture of a quantile of the blend with those of the windows, of which NaN is none. A blend beyond all numbers stays that.
func (m mixture) of(blend float64, windows *[windowsOf]float64) float64 {
	v, rest := 0.0, 1.0
	for e, w := range m {
		if w > 0 && !math.IsNaN(windows[e]) {
			v, rest = v+w*windows[e], rest-w
		}
	}
	if rest > 0 {
		v += rest * blend
	}
	return v
}

// learn charges every mixture for value y at a mean level. blend and windows are their quantiles at spreadAt.
func (s *Spread) learn(y, level, memory float64, blend *[len(spreadAt)]float64, windows *windowCuts) {
	s.N = min(s.N+1, memory)
	gain := 1 / s.N
	for g, m := range grid {
		var loss [parts]float64
		for c, q := range spreadAt {
			part := 0
			if c >= middleCuts {
				part = 1
			}
			loss[part] += pinball(q, y-m.of(blend[c], &windows[c])) / level
		}
		for p, l := range loss {
			s.Losses[p][g] += gain * (min(l, sketchMost) - s.Losses[p][g])
		}
	}
}

// weights are the mixtures of the middle and of the upper quantiles.
func (s *Spread) weights() (out [parts]mixture) {
	if s.N < firstWeighing {
		return out
	}
	for p := range out {
		least := max(slices.Min(s.Losses[p][:]), math.SmallestNonzeroFloat64)
		total := 0.0
		for g, m := range grid {
			say := least / max(s.Losses[p][g], least)
			for range squarings {
				say *= say
			}
			if g > 0 {
				say *= doubt[p]
			}
			total += say
			for e := range m {
				out[p][e] += say * m[e]
			}
		}
		for e := range out[p] {
			out[p][e] /= total
		}
	}
	return out
}

// mixtures are those of quantiles: the middle's up to the median, that of the upper ones from the 0.9 quantile on.
func (s *Spread) mixtures(quantiles []float64) []mixture {
	w, out := s.weights(), make([]mixture, len(quantiles))
	for i, q := range quantiles {
		out[i] = w[0].between(w[1], max(0, min(1, (q-0.5)/0.4)))
	}
	return out
}

// between is the mixture a share of the way from m to o.
func (m mixture) between(o mixture, share float64) mixture {
	for e := range m {
		m[e] += share * (o[e] - m[e])
	}
	return m
}

// windowCuts are the quantiles of the windows at spreadAt.
type windowCuts [len(spreadAt)][windowsOf]float64

// spread are the values of both windows before index t in rising order, no more than spreadFew of each, in the room of out.
func (h *History) spread(t, unit int, out *[windowsOf][]float64) {
	for e, n := range [windowsOf]int{max(1, unit/2), likeDays * unit} {
		out[e] = out[e][:0]
		from := max(0, t-n)
		stride := max(1, (t-from+spreadFew-1)/spreadFew)
		for i := t - 1; i >= from; i -= stride {
			if y := h.raw[i]; !math.IsNaN(y) {
				out[e] = append(out[e], y)
			}
		}
		slices.Sort(out[e])
	}
}

// quantileOf is a quantile of values in rising order, which lie in the middle of equal shares; ranks are those of n+1 samples, as conformal
// intervals ask for. Of no values it is NaN.
func quantileOf(sorted []float64, q float64) float64 {
	n := float64(len(sorted))
	if n == 0 {
		return math.NaN()
	}
	rank := max(0, min(n-1, n*(0.5+(q-0.5)*(1+1/n))-0.5))
	low := int(rank)
	v := sorted[low]
	if low+1 < len(sorted) {
		v += (rank - float64(low)) * (sorted[low+1] - v)
	}
	return v
}

// spreadSlot is what was known of the windows at the beginning of a stretch of steps.
type spreadSlot struct {
	slot int64
	cuts windowCuts
}

// windowsAt are the windows' quantiles as of the last beginning of a stretch at or before t known values. Blocks judge different horizons of
// the same origins, so that each stretch is looked at once.
func (l *Learner) windowsAt(t int) *windowCuts {
	every := int64(l.every())
	slot := (l.hist.first + int64(t)) / every
	if l.slots == nil {
		l.slots = make([]spreadSlot, 2*l.perDay()+2)
	}
	s := &l.slots[mod(slot, len(l.slots))]
	if s.slot != slot+1 { // zero means none, so that they are counted from one
		s.slot = slot + 1
		l.hist.spread(int(max(0, slot*every-l.hist.first)), l.Cycle.unit(), &l.sorted)
		for c, q := range spreadAt {
			for e := range l.sorted {
				s.cuts[c][e] = quantileOf(l.sorted[e], q)
			}
		}
	}
	return &s.cuts
}
