package traces

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"time"

	"github.com/springtide/springtide/internal/series"
)

// The noise between the centres of coarse intervals: a Brownian bridge of bridgeSD a minute plus white noise of whiteSD. The two are such
// that the noise drawn from them shows the same two moments around the log-linear path as the shipped one-minute traces do (the upper
// median over the six of them; a test measures both sides again).
const (
	bridgeSD = 0.0216
	whiteSD  = 0.0492
)

// toMinutes brings a window to one-minute steps.
//
// A one-minute window is taken as it is. A coarser one follows a log-linear path between the centres of its intervals (an interval's
// stamp is its start, and reading it as a point would move the future forward by half a step) plus the fitted noise, whose size and seed
// do not depend on the values.
//
// In the history a missing interval stays a gap. The replay needs a load at every minute, so a gap there is bridged by the path.
//
// No minute before the replay rests on a value after its start: the last half interval of the history is held, and the replay's path
// sets out from there.
func toMinutes(w *window, seed uint64) series.Series {
	n := int(w.raw.End().Sub(w.raw.Start) / time.Minute)
	out := series.New(w.raw.Start, time.Minute, n)
	h := w.history()
	split := int(h.End().Sub(h.Start) / time.Minute)
	k := int(w.raw.Step / time.Minute)
	off := 0.01 * mean(h) // keeps the logarithm of a zero finite: one hundredth of the mean

	past := knots(h.Values, 0, k, off)
	last := past[len(past)-1]
	ahead := append([]knot{{float64(split), last.y}}, knots(w.raw.Values[h.Len():], h.Len(), k, off)...)

	var noise []float64
	if k > 1 {
		noise = bridges(w, n, k, seed)
	}
	for i := range n {
		raw := w.raw.Values[i/k]
		switch {
		case k == 1 && !math.IsNaN(raw):
			out.Values[i] = raw
			continue
		case i < split && math.IsNaN(raw):
			continue
		}
		path := past
		if i >= split {
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
func bridges(w *window, n, k int, seed uint64) []float64 {
	out := make([]float64, n)
	r := rand.New(rand.NewPCG(seed, hash(w.trace.Name, strconv.Itoa(w.number))))
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

func mean(s series.Series) float64 {
	sum, n := 0.0, 0
	for _, v := range s.Values {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n)
}

// hash makes a seed of names.
func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return h.Sum64()
}
