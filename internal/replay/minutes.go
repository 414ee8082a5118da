package replay

import (
	"math"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/springtide/springtide/series"
)

// The noise between the centres of coarse intervals: a Brownian bridge of bridgeSD a minute plus white noise of whiteSD. The two are such
// that the noise drawn from them shows the same two moments around the log-linear path as the shipped one-minute traces do (the upper
// median over the six of them; a test measures both sides again).
const (
	bridgeSD = 0.0216
	whiteSD  = 0.0492
)

// Minutes brings a series to one-minute steps; its step is whole minutes. The replay begins at value split of it.
//
// A one-minute window is taken as it is. A coarser one follows a log-linear path between the centres of its intervals (an interval's
// stamp is its start, and reading it as a point would move the future forward by half a step) plus the fitted noise, whose size and seed
// do not depend on the values.
//
// In the history a missing interval stays a gap. The replay needs a load at every minute, so a gap there is bridged by the path.
//
// No minute before the replay depends on a value after its start: the last half interval of the history is held, and
// the replay's path sets out from there.
func Minutes(raw series.Series, split int, r *rand.Rand) series.Series {
	k := int(raw.Step / time.Minute)
	n := raw.Len() * k
	out := series.New(raw.Start, time.Minute, n)
	begin := split * k
	history := raw.Values[:split:split]
	off := 0.01 * mean(history) // keeps the logarithm of a zero finite: one hundredth of the mean

	past := knots(history, 0, k, off)
	last := past[len(past)-1]
	ahead := append([]knot{{float64(begin), last.y}}, knots(raw.Values[split:], split, k, off)...)

	var noise []float64
	if k > 1 {
		noise = bridges(n, k, r)
	}
	for i := range n {
		raw := raw.Values[i/k]
		switch {
		case k == 1 && !math.IsNaN(raw):
			out.Values[i] = raw
			continue
		case i < begin && math.IsNaN(raw):
			continue
		}
		path := past
		if i >= begin {
			path = ahead
		}
		y := at(path, float64(i)+0.5)
		if noise != nil {
			y += noise[i]
		}
		out.Values[i] = max(0, math.Exp(y)-off)
	}
	return out
}

// knot is a point of the log path: minutes from the window's start, and the logarithm.
type knot struct{ x, y float64 }

func knots(values []float64, first, k int, off float64) []knot {
	var out []knot
	for i, v := range values {
		if !math.IsNaN(v) {
			out = append(out, knot{(float64(first+i) + 0.5) * float64(k), math.Log(v + off)})
		}
	}
	return out
}

// at follows the path linearly and holds its ends.
func at(path []knot, x float64) float64 {
	i := sort.Search(len(path), func(i int) bool { return path[i].x >= x })
	switch i {
	case 0:
		return path[0].y
	case len(path):
		return path[i-1].y
	}
	a, b := path[i-1], path[i]
	return a.y + (b.y-a.y)*(x-a.x)/(b.x-a.x)
}

// bridges draws the noise of n minutes: a Brownian bridge from each interval's centre to the next, with white noise on top.
func bridges(n, k int, r *rand.Rand) []float64 {
	out := make([]float64, n)
	for c := 0.5 * float64(k); c < float64(n); c += float64(k) {
		var at []int
		var walk []float64
		x, sum := c, 0.0
		for i := int(math.Ceil(c - 0.5)); i < n && float64(i)+0.5 < c+float64(k); i++ {
			sum += bridgeSD * math.Sqrt(float64(i)+0.5-x) * r.NormFloat64()
			x = float64(i) + 0.5
			at, walk = append(at, i), append(walk, sum)
		}
		sum += bridgeSD * math.Sqrt(c+float64(k)-x) * r.NormFloat64()
		for j, i := range at {
			out[i] = walk[j] - sum*(float64(i)+0.5-c)/float64(k)
		}
	}
	for i := range out {
		out[i] += whiteSD * r.NormFloat64()
	}
	return out
}

func mean(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n)
}
