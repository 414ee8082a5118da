package model

import "math"

// Sketch is a decayed histogram of signed misses on bins whose width grows with their distance from zero, so that quantiles are good to
// about a tenth of their size over seven decades, in a few hundred bytes.
//
// Decay costs nothing per sample: new samples weigh more instead of old ones less, and the counts are brought down when they grow large.
type Sketch struct {
	// Bins are counts by bin: the middle one is around zero.
	Bins []float64
	// Unit is the weight of the next sample.
	Unit float64
	// Total is the sum of Bins.
	Total float64
}

const (
	// sketchLeast is the edge of the middle bin, sketchRatio the growth from bin to bin; 62 of them reach from 1e-5 to about 10.
	sketchLeast = 1e-5
	sketchRatio = 1.25
	sketchHalf  = 62
	sketchBins  = 2*sketchHalf + 1
	// sketchMost only keeps the bin's number within an int: the last bin begins far below it.
	sketchMost = 1e9
)

func (s *Sketch) clone() Sketch {
	c := *s
	c.Bins = append([]float64(nil), s.Bins...)
	return c
}

// add folds in one miss. memory is the number of samples after which a sample's weight has fallen to 1/e.
func (s *Sketch) add(v, memory float64) {
	if math.IsNaN(v) {
		return
	}
	if s.Bins == nil {
		s.Bins, s.Unit = make([]float64, sketchBins), 1
	}
	s.Bins[binOf(v)] += s.Unit
	s.Total += s.Unit
	s.Unit *= 1 + 1/memory
	if s.Unit > 1e6 {
		for i := range s.Bins {
			s.Bins[i] /= s.Unit
		}
		s.Total /= s.Unit
		s.Unit = 1
	}
}

// fade lets the samples so far weigh no more than some newest ones.
func (s *Sketch) fade(most float64) {
	if n := s.Count(); n > most {
		for i := range s.Bins {
			s.Bins[i] *= most / n
		}
		s.Total *= most / n
	}
}

// Count is the effective number of samples.
func (s *Sketch) Count() float64 {
	if s.Unit == 0 {
		return 0
	}
	return s.Total / s.Unit
}

// Quantile is the q quantile of the misses, NaN when there are none. Ranks are those of n+1 samples, as conformal intervals ask for, so
// that few samples give a wider answer; within a bin the samples are taken to lie evenly.
func (s *Sketch) Quantile(q float64) float64 {
	n := s.Count()
	if n == 0 {
		return math.NaN()
	}
	rank := 0.5 + (q-0.5)*(1+1/n)
	want := max(0, min(1, rank)) * s.Total
	below := 0.0
	for i, c := range s.Bins {
		if c > 0 && below+c >= want {
			lo, hi := edges(i)
			return lo + (hi-lo)*(want-below)/c
		}
		below += c
	}
	for i := len(s.Bins) - 1; i >= 0; i-- {
		if s.Bins[i] > 0 {
			_, hi := edges(i)
			return hi
		}
	}
	return math.NaN()
}

func binOf(v float64) int {
	a := min(math.Abs(v), sketchMost)
	if a <= sketchLeast {
		return sketchHalf
	}
	k := min(int(math.Log(a/sketchLeast)*invLogRatio)+1, sketchHalf)
	if v < 0 {
		return sketchHalf - k
	}
	return sketchHalf + k
}

// invLogRatio is 1/ln(sketchRatio).
const invLogRatio = 4.48142011772455

// edges are the ends of a bin, the lower first.
func edges(bin int) (lo, hi float64) {
	k := bin - sketchHalf
	switch {
	case k == 0:
		return -sketchLeast, sketchLeast
	case k < 0:
		lo, hi = edges(sketchHalf - k)
		return -hi, -lo
	}
	return edgeAt[k-1], edgeAt[k]
}

// edgeAt are the upper ends of the bins from the middle one on.
var edgeAt = func() (e [sketchHalf + 1]float64) {
	for k := range e {
		e[k] = sketchLeast * math.Pow(sketchRatio, float64(k))
	}
	return e
}()

// scale multiplies all misses by a factor between 0 and 1. Bins are of equal ratio, so that they move by one number of bins; the part of a
// bin splits each in two.
func (s *Sketch) scale(factor float64) {
	if s.Bins == nil || !(factor > 0 && factor < 1) {
		return
	}
	moved := -math.Log(factor) * invLogRatio
	whole := int(moved)
	part := moved - float64(whole)
	out := make([]float64, sketchBins)
	for i, c := range s.Bins {
		side, k := 1, i-sketchHalf
		if k < 0 {
			side, k = -1, -k
		}
		out[sketchHalf+side*max(k-whole, 0)] += (1 - part) * c
		out[sketchHalf+side*max(k-whole-1, 0)] += part * c
	}
	s.Bins = out
}
