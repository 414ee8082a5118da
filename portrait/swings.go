package portrait

import (
	"math"
	"slices"
	"time"
)

// Swing is a fall or a rise of the load that was in doubt and came back by itself.
type Swing struct {
	At time.Time
	// By is how far it went within one, two and three spans, as [Falls] has it.
	By Falls
}

// A change that happens several times in a week is usual for a service: spiky loads fall and rise by more than their
// slow tides several times a day. Faults of a metrics path are rarer. And they go far: what moves a load by a factor of
// ten within minutes is never usual, however often it is seen.
const (
	// dipsSeen dips within dipsWithin make their like usual. Of bursts one is enough: what is learned of one that was none costs
	// replicas, what is not learned of one that was costs those who wait.
	dipsSeen, burstsSeen     = 3, 1
	dipsWithin, burstsWithin = week, 8 * day
	// mostUsual is the swing that is never usual, keptSwings the number of them that are kept.
	mostUsual  = 0.9
	keptSwings = 8
)

// usualSwing is how far the load goes within n spans so often that it is usual: the seen-th largest of the newest swings, and a tenth of what that leaves
// more, since swings of one kind differ.
func usualSwing(swings []Swing, n int, at time.Time, seen int, within time.Duration) float64 {
	var by [keptSwings]float64
	k := 0
	for i := range swings {
		if at.Sub(swings[i].At) < within && k < len(by) {
			by[k] = swings[i].By[min(n, len(Falls{}))-1]
			k++
		}
	}
	if k < seen {
		return 0
	}
	slices.Sort(by[:k])
	return 1 - (1-by[k-seen])*(1-leastFall)
}

// noteSwing keeps a swing; the slice that is given stays as it is.
func noteSwing(swings []Swing, at time.Time, by Falls) []Swing {
	if slices.Max(by[:]) > mostUsual {
		return swings
	}
	kept := append(slices.Clone(swings), Swing{At: at, By: by})
	return kept[max(0, len(kept)-keptSwings):]
}

// swing is how far the load went from the step i to another, within one, two and three spans.
func (s *suspects) swing(i, end int, far func(y float64) float64) (by Falls) {
	for n := range by {
		for j := i; j <= min(end, i+(n+1)*s.k); j++ {
			if y := far(s.at(j)); y > by[n] && !math.IsInf(y, 0) {
				by[n] = y
			}
		}
	}
	return by
}
