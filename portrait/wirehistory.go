package portrait

import "math"

// The history is kept on a grid of logarithms. Its grain is a share of the usual miss of a forecast one step ahead: what is rounded off a
// value is 16·√12 = 55 times smaller than that in the mean, and adds a three-thousandth to the variance of its noise. As powers of 2, finest
// is the grain of a service without noise, one part in 130,000, and coarsest that of the wildest, one in 256.
const (
	grainsInNoise    = 16
	finest, coarsest = 17, 8
	// tiniest is the smallest load that is distinguished from others: below it lie the numbers that lose their digits.
	tiniest = 1e-300
	// mostValues bounds what a damaged history may ask for: it is more than two weeks of seconds.
	mostValues = 1 << 21
)

func grainOf(noise float64) int {
	if !(noise > 0) {
		return finest
	}
	return int(max(coarsest, min(finest, math.Round(-math.Log2(noise/grainsInNoise)))))
}

// Kinds of a value of the history.
const (
	isGap = iota
	isZero
	isLoad
)

func kindOf(v float64) uint64 {
	switch {
	case v > 0:
		return isLoad
	case v == 0:
		return isZero
	}
	return isGap
}

// history writes non-negative values and gaps: runs of each kind, then the loads.
func (w *writer) history(v []float64, noise float64) {
	grain := grainOf(noise)
	loads := make([]int64, 0, len(v))
	w.uint(uint64(len(v)))
	for i := 0; i < len(v); {
		kind, from := kindOf(v[i]), i
		for ; i < len(v) && kindOf(v[i]) == kind; i++ {
			if kind == isLoad {
				loads = append(loads, int64(math.Round(math.Ldexp(math.Log(max(v[i], tiniest)), grain))))
			}
		}
		w.uint(uint64(i - from))
		w.uint(kind)
	}
	w.uint(uint64(grain))
	w.course(loads)
}

func (r *reader) history() []float64 {
	v := r.runs(func() float64 {
		switch r.uint() {
		case isGap:
			return math.NaN()
		case isZero:
			return 0
		}
		return 1
	})
	grain := int(min(r.uint(), finest))
	codes := r.course()
	for i := range v {
		if r.err != nil {
			return nil
		}
		if !(v[i] > 0) {
			continue
		}
		if len(codes) == 0 {
			r.fail("a history with fewer loads than it tells")
			return nil
		}
		log := math.Ldexp(float64(codes[0]), -grain)
		if v[i], codes = math.Exp(log), codes[1:]; !(v[i] > 0) || math.IsInf(v[i], 0) {
			r.fail("a load of e to the %g", log)
		}
	}
	if len(codes) > 0 {
		r.fail("a history with %d loads more than it tells", len(codes))
	}
	return v
}

// runs reads a list in runs of equal values: how long each is, and its value.
func (r *reader) runs(value func() float64) []float64 {
	n := r.uint()
	if n > mostValues {
		r.fail("a list of %d entries", n)
	}
	if n == 0 || r.err != nil {
		return nil
	}
	v := make([]float64, n)
	for rest := v; len(rest) > 0; {
		long := r.uint()
		if r.err == nil && (long == 0 || long > uint64(len(rest))) {
			r.fail("a run of %d where %d entries are left", long, len(rest))
		}
		if r.err != nil {
			return nil
		}
		x := value()
		for i := range rest[:long] {
			rest[i] = x
		}
		rest = rest[long:]
	}
	return v
}
