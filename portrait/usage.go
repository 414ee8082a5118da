package portrait

import (
	"fmt"
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/series"
)

// Usage is what one replica used, as the VPA recommender keeps it: all CPU samples, and of memory the peak of each day, since memory that was
// needed once a day is needed.
type Usage struct {
	CPU, Memory Histogram
	// Peak is the memory peak of the running interval, which ends at PeakEnd.
	Peak    float64
	PeakEnd time.Time
	// First and Last are the times of the oldest and the newest step with a sample, Steps how many there were.
	First, Last time.Time
	Steps       int
}

const (
	// sampleWeight is the recommender's weight of one sample, peakInterval its interval of memory peaks.
	sampleWeight = 0.1
	peakInterval = day
)

func (u *Usage) clone() Usage {
	c := *u
	c.CPU, c.Memory = u.CPU.clone(), u.Memory.clone()
	return c
}

// learn takes the step that began at a time in: the CPU of all replicas, the memory of the largest one, and how many
// were ready. Each ready replica is a sample of CPU of its own, of which only the mean is known. An unknown value is
// left out.
func (u *Usage) learn(at time.Time, cpu, memory, ready float64) {
	took := false
	if cpu >= 0 && ready > 0 && cpu <= hugest && ready <= math.MaxInt32 {
		u.CPU.add(cpuBuckets, cpu/ready, sampleWeight*ready, at)
		took = true
	}
	if memory > 0 && memory <= hugest {
		u.addPeak(at, memory)
		took = true
	}
	if !took {
		return
	}
	if u.Steps == 0 {
		u.First = at
	}
	u.Last = at
	u.Steps++
}

// addPeak counts the memory of an interval once, at its largest.
func (u *Usage) addPeak(at time.Time, memory float64) {
	switch {
	case !at.Before(u.PeakEnd):
		u.PeakEnd = at.Truncate(peakInterval).Add(peakInterval)
	case memory <= u.Peak:
		return
	default:
		u.Memory.add(memoryBuckets, u.Peak, -1, u.PeakEnd)
	}
	u.Peak = memory
	u.Memory.add(memoryBuckets, memory, 1, u.PeakEnd)
}

func (u *Usage) check() error {
	if err := u.CPU.check(cpuBuckets); err != nil {
		return fmt.Errorf("CPU: %w", err)
	}
	if err := u.Memory.check(memoryBuckets); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

// Bounds is a recommended amount and the range within which another one is good enough.
type Bounds struct{ Lower, Target, Upper float64 }

// Recommendation is what one replica should request; an amount of which nothing is known is not OK.
type Recommendation struct {
	// CPU is in cores, Memory in bytes.
	CPU, Memory fleet.Known[Bounds]
	// Days is the history behind it, as the recommender counts it.
	Days float64
}

// The recommender's figures (its flags' defaults).
const (
	targetPercentile, lowerPercentile, upperPercentile = 0.9, 0.5, 0.95
	// recommendationMargin is added to each.
	recommendationMargin = 0.15
	// leastCores and leastBytes are the least that any pod is given.
	leastCores, leastBytes = 0.025, 250 << 20
)

// advise computes the recommendation again when a quarter of a day ends with the step at grid index i: what it depends
// on changes in days, and six percentiles cost as much as a fold.
func (p *Portrait) advise(i int64) {
	if p.quarter(series.GridTime(i+1, p.Step)).After(p.quarter(series.GridTime(i, p.Step))) {
		p.Advice = Recommend(p)
	}
}

// Recommend gives the request of one replica as the VPA recommender computes it: the 0.9 percentile of usage with a
// margin of 15 %, the median and the 0.95 percentile as bounds, which are the wider the less history there is, with d
// days of it:
//
//	lower · (1 + 0.001/d)^-2,  upper · (1 + 1/d)
//
// A service that is scaled by its CPU uses what its number of replicas makes it use: there a CPU request says how large replicas are and not
// how many are needed, and should not be followed blindly.
func Recommend(p *Portrait) Recommendation {
	u := &p.Usage
	days := min(float64(u.Last.Sub(u.First)), float64(u.Steps)*float64(p.Step)) / float64(day)
	r := Recommendation{Days: max(days, 0)}
	if !(days > 0) {
		return r
	}
	bounds := func(h *Histogram, o bucketing, least float64) fleet.Known[Bounds] {
		usage, ok := h.percentiles(o, lowerPercentile, targetPercentile, upperPercentile)
		if !ok {
			return fleet.Known[Bounds]{}
		}
		with := func(usage, factor float64) float64 { return max(least, usage*(1+recommendationMargin)*factor) }
		return fleet.KnownAt(Bounds{
			Lower:  with(usage[0], math.Pow(1+0.001/days, -2)),
			Target: with(usage[1], 1),
			Upper:  with(usage[2], 1+1/days),
		}, u.Last)
	}
	r.CPU = bounds(&u.CPU, cpuBuckets, leastCores)
	r.Memory = bounds(&u.Memory, memoryBuckets, leastBytes)
	return r
}
