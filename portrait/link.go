package portrait

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/series"
)

// Link is how the load of one service follows that of another: Ratio times it.
type Link struct {
	Ratio float64
	// Fit is the part of the spread of the load that the other one explains: 1 where it follows exactly, 0 where the other says nothing.
	Fit float64
	// Hours are those that both histories know. Refused says why nothing was learned of them; empty otherwise.
	Hours   int
	Refused string
}

// Conditions for a link to be believed.
const (
	// linkHours: three days, so that one odd day is outvoted.
	linkHours = 72
	// linkFit is a correlation of 0.87 where errors are Gaussian, since the spread that is left is then sqrt(1 − 0.87²), a half.
	linkFit = 0.5
)

// Follow learns how y follows x. The means of whole hours are compared, since what one member passes on takes its time to show at another. The ratio
// is the one with the least sum of absolute misses, y ≈ ratio·x, which a few broken hours do not move: the median of y/x, each weighed by x. A
// service whose load has a part of its own fits worse, and is refused rather than scaled by half a truth.
func Follow(x, y series.Series) Link {
	type pair struct{ x, y float64 }
	var both []pair
	other := hourly(y)
	for hour, v := range hourly(x) {
		if w, ok := other[hour]; ok && v > 0 {
			both = append(both, pair{v, w})
		}
	}
	out := Link{Hours: len(both)}
	if len(both) < linkHours {
		out.Refused = fmt.Sprintf("%d hours of history in common, and a ratio needs %d", len(both), linkHours)
		return out
	}
	slices.SortFunc(both, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.y/a.x, b.y/b.x), cmp.Compare(a.x, b.x))
	})
	total, below := 0.0, 0.0
	values := make([]float64, len(both))
	for i, p := range both {
		total += p.x
		values[i] = p.y
	}
	for _, p := range both {
		if below += p.x; below >= total/2 {
			out.Ratio = p.y / p.x
			break
		}
	}
	slices.Sort(values)
	middle := values[len(values)/2]
	missed, spread := 0.0, 0.0
	for _, p := range both {
		missed += math.Abs(p.y - out.Ratio*p.x)
		spread += math.Abs(p.y - middle)
	}
	if spread > 0 {
		out.Fit = max(1-missed/spread, 0)
	}
	switch {
	case !(out.Ratio > 0):
		out.Refused = "it is idle most of the time that the other is not"
	case out.Fit < linkFit:
		out.Refused = fmt.Sprintf("the other explains %.0f %% of its load, and a ratio needs %.0f %%", 100*out.Fit, 100*linkFit)
	}
	return out
}

// hourly is the mean of each hour of which at least half is known, by the hours since 1970.
func hourly(s series.Series) map[int64]float64 {
	out := map[int64]float64{}
	if s.Step <= 0 {
		return out
	}
	per := max(int(time.Hour/s.Step), 1)
	var sum float64
	known, hour := 0, int64(math.MinInt64)
	end := func() {
		if 2*known >= per {
			out[hour] = sum / float64(known)
		}
		sum, known = 0, 0
	}
	for i, v := range s.Values {
		if h := s.Time(i).Unix() / 3600; h != hour {
			end()
			hour = h
		}
		if !math.IsNaN(v) {
			sum += v
			known++
		}
	}
	end()
	return out
}
