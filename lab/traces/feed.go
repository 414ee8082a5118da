package traces

import (
	"math"
	"time"

	"github.com/springtide/springtide/series"
)

// Feed hands out the loads of services as time passes, and nothing that has not happened yet.
type Feed struct{ loads []series.Series }

// NewFeed returns a feed over the sources' loads.
func NewFeed(sources []Source) *Feed {
	f := &Feed{}
	for i := range sources {
		f.loads = append(f.loads, sources[i].Load)
	}
	return f
}

// View is what the feed shows at one time.
type View struct {
	at    time.Time
	loads []series.Series
}

// At returns the view at t.
func (f *Feed) At(t time.Time) View { return View{at: t, loads: f.loads} }

// Now is the load that presses on service i in the minute that contains t: what its queues feel. No one measures it
// before the minute is over. It is NaN outside of the trace.
func (v View) Now(i int) float64 { return v.loads[i].At(v.at) }

// Past is the load of service i over the minutes that are over. Its capacity ends where its length does, so no reslicing reaches the
// future.
func (v View) Past(i int) series.Series {
	s := v.loads[i]
	n := max(0, min(s.Len(), s.Index(v.at)))
	return series.Series{Start: s.Start, Step: s.Step, Values: s.Values[:n:n]}
}

// Last is the mean over the newest n minutes that are over, or NaN where none of them is known.
func (v View) Last(i, n int) float64 {
	s := v.Past(i)
	sum, known := 0.0, 0
	for _, x := range s.Values[max(0, s.Len()-n):] {
		if !math.IsNaN(x) {
			sum, known = sum+x, known+1
		}
	}
	if known == 0 {
		return math.NaN()
	}
	return sum / float64(known)
}
