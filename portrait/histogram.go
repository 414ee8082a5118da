package portrait

import (
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/util"
)

// Histogram is the decaying histogram of the VPA recommender as a value, so that a portrait can be copied and stored:
// buckets that grow by 5 %, a sample that loses half of its weight in a day, and percentiles that are the upper end of
// a bucket, computed by package util of that project. Its own histogram gives its weights away only rounded, and
// rounding at each fold would never let a small bucket fade.
type Histogram struct {
	// Reference is the time at which a sample weighs what it is given with: a whole number of half-lives since year 1.
	Reference time.Time
	// From is the first bucket of Weights.
	From    int
	Weights []float64
}

// histogramHalfLife is the recommender's: cpu- and memory-histogram-decay-half-life.
const histogramHalfLife = day

// bucketEpsilon is the weight below which a bucket is empty, bucketGrowth the ratio of a bucket to the one before it: both the recommender's.
const bucketEpsilon, bucketGrowth = 0.001 * 0.1, 1.05

var (
	// cpuBuckets run from 10 millicores to 1,000 cores, memoryBuckets from 10 MB to 1 TB, as the recommender's do.
	cpuBuckets    = buckets(1000, 0.01)
	memoryBuckets = buckets(1e12, 1e7)
)

func buckets(most, first float64) bucketing {
	o, err := util.NewExponentialHistogramOptions(most, first, bucketGrowth, bucketEpsilon)
	if err != nil {
		panic("buckets of usage: " + err.Error()) // constants that do not fit
	}
	return o
}

// bucketing is how a histogram divides what it counts.
type bucketing = util.HistogramOptions

// clone returns a histogram that shares nothing with h.
func (h *Histogram) clone() Histogram {
	return Histogram{Reference: h.Reference, From: h.From, Weights: slices.Clone(h.Weights)}
}

// add takes a sample in; a negative weight takes one out again that was added with the same time.
func (h *Histogram) add(o bucketing, value, weight float64, at time.Time) {
	// Weights grow by a power of two a half-life; at each new reference all are scaled back, so that they stay near one.
	if now := at.Truncate(histogramHalfLife); now.After(h.Reference) {
		scale := math.Exp2(-float64(now.Sub(h.Reference)) / float64(histogramHalfLife))
		for i := range h.Weights {
			h.Weights[i] *= scale
		}
		h.Reference = now
	}
	b := o.FindBucket(value)
	if len(h.Weights) == 0 {
		h.From = b
	}
	if b < h.From {
		h.Weights = append(make([]float64, h.From-b), h.Weights...)
		h.From = b
	}
	for b >= h.From+len(h.Weights) {
		h.Weights = append(h.Weights, 0)
	}
	h.Weights[b-h.From] = max(0, h.Weights[b-h.From]+weight*math.Exp2(float64(at.Sub(h.Reference))/float64(histogramHalfLife)))
}

// percentiles are the recommender's; there are none of an empty histogram, where that one says zero.
func (h *Histogram) percentiles(o bucketing, qs ...float64) ([]float64, bool) {
	u := util.NewDecayingHistogram(o, histogramHalfLife)
	for i, w := range h.Weights {
		if w > 0 {
			u.AddSample(middleOf(o, h.From+i), w, h.Reference)
		}
	}
	if u.IsEmpty() {
		return nil, false
	}
	out := make([]float64, len(qs))
	for i, q := range qs {
		out[i] = u.Percentile(q)
	}
	return out, true
}

// middleOf is a value that lies in a bucket for certain: its start may be rounded into the one before.
func middleOf(o bucketing, bucket int) float64 {
	if bucket+1 < o.NumBuckets() {
		return (o.GetBucketStart(bucket) + o.GetBucketStart(bucket+1)) / 2
	}
	return 2 * o.GetBucketStart(bucket)
}

// check refuses a histogram that cannot be read.
func (h *Histogram) check(o bucketing) error {
	if h.From < 0 || h.From > o.NumBuckets()-len(h.Weights) {
		return fmt.Errorf("buckets %d to %d of usage, want 0 to %d", h.From, h.From+len(h.Weights)-1, o.NumBuckets()-1)
	}
	for _, w := range h.Weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return fmt.Errorf("a weight of usage is %v", w)
		}
	}
	return nil
}
