package clock

import (
	"sort"
	"time"
)

// Anchor ties a moment of the wall clock to one of the virtual clock.
type Anchor struct {
	Wall    time.Time `json:"wall"`
	Virtual time.Time `json:"virtual"`
}

// Anchors is a record of how the two clocks ran, ascending in both.
type Anchors []Anchor

// stampResolution is what API stamps are cut to (metav1.Time is written in whole seconds).
const stampResolution = time.Second

// At brings a stamp of the wall clock into virtual time: linear between anchors, and held at the first and the last one.
//
// A stamp in whole seconds was cut down from somewhere within the second that follows it. The middle of that second is taken: it halves
// the largest error, and leaves no bias on the ages computed from it. Callers hold the result at their own now.
func (a Anchors) At(stamp time.Time) time.Time {
	if len(a) == 0 || stamp.IsZero() {
		return stamp
	}
	if stamp.Nanosecond() == 0 {
		stamp = stamp.Add(stampResolution / 2)
	}
	i := sort.Search(len(a), func(i int) bool { return a[i].Wall.After(stamp) })
	switch {
	case i == 0:
		return a[0].Virtual
	case i == len(a):
		return a[len(a)-1].Virtual
	}
	before, after := a[i-1], a[i]
	share := float64(stamp.Sub(before.Wall)) / float64(after.Wall.Sub(before.Wall))
	return before.Virtual.Add(time.Duration(share * float64(after.Virtual.Sub(before.Virtual))))
}
