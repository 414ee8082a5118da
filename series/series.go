// Package series holds numbers on a regular grid of time, the form in which history is read, folded and forecast.
//
// A gap is NaN, never zero: zero means that the service was seen to do nothing.
package series

import (
	"fmt"
	"math"
	"time"
)

// Series is a run of values at Start, Start+Step, ... A missing value is NaN.
type Series struct {
	Start  time.Time
	Step   time.Duration
	Values []float64
}

// New returns a series of n gaps.
func New(start time.Time, step time.Duration, n int) Series {
	if step <= 0 || n < 0 {
		panic(fmt.Sprintf("series: step %v and length %d must be positive", step, n))
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = math.NaN()
	}
	return Series{Start: start, Step: step, Values: v}
}

// Len is the number of steps, gaps included.
func (s Series) Len() int { return len(s.Values) }

// End is the time one step after the last value.
func (s Series) End() time.Time { return s.Time(len(s.Values)) }

// Time is the time of value i.
func (s Series) Time(i int) time.Time { return s.Start.Add(time.Duration(i) * s.Step) }

// Index is the index of the step that contains t; it may lie outside of the series.
func (s Series) Index(t time.Time) int {
	d := t.Sub(s.Start)
	i := d / s.Step
	if d < 0 && d%s.Step != 0 {
		i--
	}
	return int(i)
}

// At is the value of the step that contains t, NaN outside of the series.
func (s Series) At(t time.Time) float64 {
	if s.Step <= 0 {
		return math.NaN()
	}
	if i := s.Index(t); i >= 0 && i < len(s.Values) {
		return s.Values[i]
	}
	return math.NaN()
}

// Since is the part of the series at or after t. The values are shared, not copied.
func (s Series) Since(t time.Time) Series {
	if s.Step <= 0 || len(s.Values) == 0 || !t.After(s.Start) {
		return s
	}
	i := s.Index(t)
	if s.Time(i).Before(t) {
		i++
	}
	i = min(i, len(s.Values))
	return Series{Start: s.Time(i), Step: s.Step, Values: s.Values[i:]}
}

// Known counts the values that are not gaps.
func (s Series) Known() int {
	n := 0
	for _, v := range s.Values {
		if !math.IsNaN(v) {
			n++
		}
	}
	return n
}
