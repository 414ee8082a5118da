package model

import (
	"math"
	"slices"
)

// Transform takes values to the space that the methods work in, x = log(y + Shift): tides multiply, so it is their ratios that repeat.
// The shift keeps zeros finite and keeps the noise of small counts from drowning the rest.
type Transform struct {
	Shift float64
	// Least is the smallest argument of the logarithm; without a shift it is also the smallest value the choice was made for.
	Least float64
	// Blank says that nothing positive was seen yet, so that the shift is arbitrary.
	Blank bool
}

// Forward is log(y + Shift); a gap stays a gap.
func (t Transform) Forward(y float64) float64 {
	if math.IsNaN(y) {
		return y
	}
	return math.Log(max(y+t.Shift, t.Least))
}

// Back inverts Forward and never returns a negative value.
func (t Transform) Back(x float64) float64 { return max(math.Exp(x)-t.Shift, 0) }

// outgrown reports whether the value is one that the choice of the shift did not compute with.
func (t Transform) outgrown(y float64) bool {
	return t.Blank && y > 0 || t.Shift == 0 && y < t.Least
}

// like reports whether o would treat values much as t does, so that a change is not worth its cost.
func (t Transform) like(o Transform) bool {
	return t.Blank == o.Blank && (t.Shift == 0) == (o.Shift == 0) && t.Shift <= 2*o.Shift && o.Shift <= 2*t.Shift
}

const (
	// clearOfZero is the share of the median above which all values must stay for a plain logarithm.
	clearOfZero = 0.02
	// shiftShare is the shift as a share of the median of the positive values: about the size below which counts are noise.
	shiftShare = 0.1
)

// choose picks the transform for a sample of known values, which it sorts in place.
func choose(sample []float64) Transform {
	slices.Sort(sample)
	zeros, _ := slices.BinarySearch(sample, math.SmallestNonzeroFloat64)
	positive := sample[zeros:]
	if len(positive) == 0 {
		return Transform{Shift: 1, Least: 1, Blank: true}
	}
	median := positive[len(positive)/2]
	if least := clearOfZero * median; zeros == 0 && sample[0] > least {
		return Transform{Least: max(least, math.SmallestNonzeroFloat64)}
	}
	shift := max(shiftShare*median, math.SmallestNonzeroFloat64)
	return Transform{Shift: shift, Least: shift}
}
