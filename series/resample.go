package series

import (
	"math"
	"time"
)

// Aggregate says how values that fall into one step become one.
type Aggregate int

// The aggregates.
const (
	Mean Aggregate = iota
	Max
)

// Sample is one value at a time of its own.
type Sample struct {
	At    time.Time
	Value float64
}

// GridIndex is the number of whole steps from the Unix epoch to t, rounded down: series of one step that are aligned to it share their
// grid wherever they begin. Times outside of the years 1678 to 2262 have no such index.
func GridIndex(t time.Time, step time.Duration) int64 {
	n := t.UnixNano()
	i := n / int64(step)
	if n%int64(step) < 0 {
		i--
	}
	return i
}

// GridTime is the time of a grid index.
func GridTime(index int64, step time.Duration) time.Time {
	return time.Unix(0, index*int64(step)).UTC()
}

// Align brings s to the grid of a step that is at least as long as its own: values that fall into one step are aggregated. A step whose
// values are gaps for the larger part is a gap. The last step is left out while s does not reach its end, since half an hour is not an hour.
func (s Series) Align(step time.Duration, how Aggregate) Series {
	if s.Step <= 0 || step <= 0 {
		return Series{Step: step}
	}
	if len(s.Values) == 0 {
		return Series{Start: s.Start, Step: step}
	}
	first := GridIndex(s.Start, step)
	whole := GridIndex(s.End(), step) - first
	if step == s.Step {
		// One value a step: each is whole, wherever in the step it was taken.
		whole = int64(len(s.Values))
	}
	out := New(GridTime(first, step), step, int(max(whole, 0)))
	b := newBuckets(out.Values, how)
	for i, v := range s.Values {
		b.add(GridIndex(s.Time(i), step)-first, v)
	}
	b.close()
	return out
}

// FromSamples brings samples, in any order, to the grid of a step. A step without a sample is a gap.
func FromSamples(samples []Sample, step time.Duration, how Aggregate) Series {
	if len(samples) == 0 || step <= 0 {
		return Series{Step: step}
	}
	first, last := GridIndex(samples[0].At, step), GridIndex(samples[0].At, step)
	for _, x := range samples[1:] {
		i := GridIndex(x.At, step)
		first, last = min(first, i), max(last, i)
	}
	out := New(GridTime(first, step), step, int(last-first+1))
	b := newBuckets(out.Values, how)
	for _, x := range samples {
		b.add(GridIndex(x.At, step)-first, x.Value)
	}
	b.close()
	return out
}

// buckets aggregates values into steps.
type buckets struct {
	out         []float64
	how         Aggregate
	known, seen []int32
}

func newBuckets(out []float64, how Aggregate) *buckets {
	return &buckets{out: out, how: how, known: make([]int32, len(out)), seen: make([]int32, len(out))}
}

func (b *buckets) add(i int64, v float64) {
	if i < 0 || i >= int64(len(b.out)) {
		return
	}
	b.seen[i]++
	if math.IsNaN(v) {
		return
	}
	b.known[i]++
	switch {
	case b.known[i] == 1:
		b.out[i] = v
	case b.how == Max:
		b.out[i] = max(b.out[i], v)
	default:
		// The running mean cannot overflow where the sum would.
		b.out[i] += v/float64(b.known[i]) - b.out[i]/float64(b.known[i])
	}
}

func (b *buckets) close() {
	for i := range b.out {
		if 2*b.known[i] < b.seen[i] {
			b.out[i] = math.NaN()
		}
	}
}

// Fill returns s with its gaps filled: by the value one period before where period is positive and that value is known, else by the last
// known one, so that nothing from after a gap leaks into it. Gaps before the first known value stay.
func (s Series) Fill(period int) Series {
	out := Series{Start: s.Start, Step: s.Step, Values: make([]float64, len(s.Values))}
	last := math.NaN()
	for i, v := range s.Values {
		if math.IsNaN(v) && period > 0 && i >= period {
			v = out.Values[i-period]
		}
		if math.IsNaN(v) {
			v = last
		}
		out.Values[i], last = v, v
	}
	return out
}
