package signal

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
)

// youngFor is how long after Ready a pod without samples is taken to carry nothing: a rate needs two scrapes and the first request,
// so it is longer where the window of the rate is, and until then the load that the pod took over still stands in the rates of the others.
const youngFor = 2 * time.Minute

// sharesFor is how long a look is remembered: what pods carried before that says nothing of now.
const sharesFor = 30 * time.Minute

// share is what is taken to be carried by pods that were never measured: the total at the last look, and their part
// as a multiple of what is measured.
type share struct {
	total, part float64
	missing     int       // so many pods were never measured
	seen        time.Time // the last look, zero where there was none
}

// at is the share where it still says something: one that is too old says nothing, nor one of the future, after the
// clock was set back.
func (s share) at(now time.Time) share {
	if now.Sub(s.seen) > sharesFor || s.seen.After(now) {
		return share{}
	}
	return s
}

// grown is the part that pods carry which were never measured: more of it only when more of them are there than at the
// last look. Else one look at a wrong number would stay in each total after it.
func (s share) grown(missing int, measured float64) float64 {
	if missing <= s.missing {
		return s.part
	}
	return max(s.part, s.total/measured-1)
}

// total sums the samples of a service's pods. A ready pod that was measured once and has no fresh sample is imputed
// at the largest value known of any pod, the bias being towards more replicas. Where fewer than half of the pods
// have fresh samples the total is what the old ones say, at the age of the oldest, and so is fresh to no decision;
// with nothing old to stand on it is unknown. countUnready says whether pods that are not ready count: requests
// reach them until they are gone, but their CPU is start-up and no load.
//
// Pods that were never measured took what they carry from the others: they carry what these lost since the last look, at most as much each as the busiest one, and their
// part follows what is measured from then on. So a pod that is added adds no load: otherwise each replica that nothing scrapes, or that gets no requests, asks for the next.
// Where there was no last look, they carry the most.
//
// window is the window of the rates: a sample is as old as that when a rate over it is still made of two.
func total(
	s *fleet.Service, samples map[fleet.Name]fleet.Known[float64], last share, window time.Duration, now time.Time,
	countUnready bool,
) (fleet.Known[float64], share) {
	var pods, missing, fresh int
	var freshSum, oldSum, largest float64
	var freshAt, oldAt time.Time
	for i := range s.Pods {
		p := &s.Pods[i]
		v := credible(samples[p.Name], window, now)
		isFresh := v.Fresh(now, MissingAfter(window)) && (p.Ready || countUnready)
		if !isFresh && !MustReport(p, window, now) {
			continue
		}
		pods++
		largest = max(largest, v.Value)
		switch {
		case isFresh:
			fresh++
			freshSum += v.Value
			freshAt = earlier(freshAt, v.At)
		case v.OK:
			oldSum += v.Value
			oldAt = earlier(oldAt, v.At)
		default:
			missing++
		}
	}
	switch {
	case fresh > 0 && 2*fresh >= pods:
		measured, part := freshSum+float64(pods-fresh-missing)*largest, 0.0
		if measured > 0 {
			part = float64(missing) * largest / measured
			if !last.seen.IsZero() {
				part = min(part, last.grown(missing, measured))
			}
		}
		sum := measured * (1 + part)
		if !Sound(sum) {
			return fleet.Known[float64]{}, last
		}
		return fleet.KnownAt(sum, freshAt), share{sum, part, missing, now}
	case !oldAt.IsZero():
		return finiteAt(freshSum+oldSum+float64(missing)*largest, oldAt), last
	}
	return fleet.Known[float64]{}, last
}

// credible is a sample that may be a load. A value that no load can have is unknown, and so is one that is stamped
// further ahead than a fresh one may be old.
func credible(v fleet.Known[float64], window time.Duration, now time.Time) fleet.Known[float64] {
	if !v.OK || !Sound(v.Value) || v.At.Sub(now) > MissingAfter(window) {
		return fleet.Known[float64]{}
	}
	return v
}

// finiteAt is a total that is a number: sums of forged samples may be none.
func finiteAt(v float64, at time.Time) fleet.Known[float64] {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return fleet.Known[float64]{}
	}
	return fleet.KnownAt(v, at)
}

// MustReport reports whether a pod carries load that ought to have been measured by now, in rates over a window.
func MustReport(p *fleet.Pod, window time.Duration, now time.Time) bool {
	return p.Ready && !p.Deleting && !(p.ReadySince.OK && now.Sub(p.ReadySince.Value) < max(youngFor, window))
}

// earlier is the earlier of two times, where the zero time stands for none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
