package portrait

import (
	"math"
	"slices"
	"time"
)

// Image says whether a machine had the images of a pod when the pod came to it.
type Image string

// Knowledge of the images at a start-up.
const (
	ImageUnknown Image = "unknown"
	ImagePresent Image = "present"
	ImageAbsent  Image = "absent"
)

// keptStartUps is the number of newest start-ups whose quantiles are shown: a few days' worth for most services, and a new image soon
// makes up all of them.
const keptStartUps = 64

// Starts are observed times to Ready of one kind.
type Starts struct {
	// Times are the newest ones, Count is the number of all.
	Times []time.Duration
	Count int
	// Quantiles are the 0.5, 0.9 and 0.99 of Times; zero while there are none.
	Quantiles [3]time.Duration
}

// Start is one observed start-up.
type Start struct {
	Took  time.Duration
	Image Image
}

// add takes observations in; a time that is not positive is none. The receiver's slice is not written to.
func (s *Starts) add(times []time.Duration) {
	if len(times) == 0 {
		return
	}
	kept := slices.Clone(s.Times)
	for _, d := range times {
		if d > 0 {
			kept = append(kept, d)
			s.Count++
		}
	}
	s.Times = kept[max(0, len(kept)-keptStartUps):]
	s.Quantiles = quantilesOf(s.Times)
}

// quantilesOf are the 0.5, 0.9 and 0.99 quantiles of some times: the next larger observation, not one in between, since a replica that is
// late by a little is late.
func quantilesOf(times []time.Duration) (q [3]time.Duration) {
	sorted := slices.Sorted(slices.Values(times))
	if len(sorted) == 0 {
		return q
	}
	for i, share := range [3]float64{0.5, 0.9, 0.99} {
		q[i] = sorted[min(len(sorted)-1, int(math.Ceil(share*float64(len(sorted))))-1)]
	}
	return q
}

// addStartUps takes observed times to Ready in, whatever is known of images.
func (p *Portrait) addStartUps(times []time.Duration) {
	all := Starts{p.StartUpTimes, p.StartUps, p.StartUp}
	all.add(times)
	p.StartUpTimes, p.StartUps, p.StartUp = all.Times, all.Count, all.Quantiles
}

// addStarts takes start-ups in that say whether the image was there; those that do not are left to [Batch].StartUps, which holds all.
func (p *Portrait) addStarts(starts []Start) {
	var present, absent []time.Duration
	for _, s := range starts {
		switch s.Image {
		case ImagePresent:
			present = append(present, s.Took)
		case ImageAbsent:
			absent = append(absent, s.Took)
		}
	}
	p.Present.add(present)
	p.Absent.add(absent)
}
