package peer

import (
	"math"
	"slices"

	"github.com/springtide/springtide/forecast/plain"
)

// Crane's percentile predictor for requests, as it ships: the 99th percentile of a histogram that halves each day, and
// a margin.
const (
	cranePercentile       = 0.99
	craneHalfLifeDays     = 1.0
	cranePercentileMargin = 0.15
)

// CranePercentile is Crane's percentile predictor: a constant. (Its histogram has linear buckets; here the percentile is exact.)
func CranePercentile(h []float64, s Seasons, horizon int) []float64 {
	w := windowOf(h, craneHalfLifeDays*float64(s.Day))
	return hold(w.quantile(cranePercentile)*(1+cranePercentileMargin), horizon)
}

// A moving-window recommender: the 95th percentile of usage that counts half as much after half a day, and the lower of
// the margins of 10 to 15 %. (K. Rzadca et al., "Autopilot: workload autoscaling at Google", EuroSys 2020, gives the
// form; it leaves the percentile to the class of the job.)
const (
	windowPercentile   = 0.95
	windowHalfLifeDays = 0.5
	windowMargin       = 0.10
)

// WindowPercentile is a moving-window percentile with a margin: a constant.
func WindowPercentile(h []float64, s Seasons, horizon int) []float64 {
	w := windowOf(h, windowHalfLifeDays*float64(s.Day))
	return hold(w.quantile(windowPercentile)*(1+windowMargin), horizon)
}

// WindowQuantiles gives each quantile of the same window without a margin: a forecast that knows how the load is spread and nothing of when.
func WindowQuantiles(in plain.Input) []plain.Forecast {
	return plain.Each(func(h plain.History, in *plain.Input) plain.Forecast {
		s := seasonsOf(h, in.Options)
		known := filled(h.Series, s.Day)
		if len(known) == 0 {
			return plain.Forecast{}
		}
		w := windowOf(known, windowHalfLifeDays*float64(s.Day))
		out := plain.Forecast{}
		for _, q := range in.Quantiles {
			out.Paths = append(out.Paths, hold(w.quantile(q), in.Horizon))
		}
		return out
	})(in)
}

// window is a sample in rising order with the weights summed up to each value.
type window struct{ values, until []float64 }

// windowOf weighs the newest value by 1 and one halfLife steps before it by half.
func windowOf(h []float64, halfLife float64) window {
	order := make([]int, len(h))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case h[a] < h[b]:
			return -1
		case h[a] > h[b]:
			return 1
		}
		return 0
	})
	w := window{values: make([]float64, len(h)), until: make([]float64, len(h))}
	sum := 0.0
	for k, i := range order {
		sum += math.Exp2(-float64(len(h)-1-i) / halfLife)
		w.values[k], w.until[k] = h[i], sum
	}
	return w
}

// quantile is the least value that holds the share q of the weight.
func (w window) quantile(q float64) float64 {
	k, _ := slices.BinarySearch(w.until, q*w.until[len(w.until)-1])
	return w.values[min(k, len(w.values)-1)]
}
