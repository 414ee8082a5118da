package model

import (
	"math"
	"sort"
)

// Known is the number of values in the history that are no gaps.
func (l *Learner) Known() int { return int(l.hist.cnt[l.hist.Len()]) }

// Project returns paths[i][j], quantile i of the raw value lead+j steps after the last step of the history, for j < n. Quantiles must
// rise; so do the paths at every step, and none is negative. The history must hold a known value. The newest one is the origin: gaps after
// it make the horizon longer, so that a value of hours ago is not taken for the present.
func (l *Learner) Project(lead, n int, quantiles []float64) [][]float64 {
	paths := make([][]float64, len(quantiles))
	for i := range paths {
		paths[i] = make([]float64, n)
	}
	t := l.hist.Len()
	for math.IsNaN(l.hist.at(t - 1)) {
		t, lead = t-1, lead+1
	}
	bounds := l.limits()
	logs, raws := make([][]float64, len(l.Blocks)), make([][]float64, len(l.Blocks))
	mixtures := make([][]mixture, len(l.Blocks))
	for k := range l.Blocks {
		logs[k], raws[k] = l.Blocks[k].Band.distances(quantiles, l.Blocks[k].Miss, l.settled())
		mixtures[k] = l.Blocks[k].Band.Spread.mixtures(quantiles)
	}
	var windows [windowsOf][]float64
	l.hist.spread(t, l.Cycle.unit(), &windows)
	lately := make([][windowsOf]float64, len(quantiles))
	for i, q := range quantiles {
		for e := range windows {
			lately[i][e] = quantileOf(windows[e], q)
		}
	}
	var o origin
	var said [members]float64
	level := 0.0
	for j := range n {
		h := lead + j
		if j == 0 || periods(h, l.Cycle.Short) != o.k || periods(h, l.Cycle.Long) != o.kw {
			o = l.from(t, h)
			level = math.Exp(o.values[lastUnit])
		}
		a, b, share := l.between(h)
		l.say(&o, t-1+h, a, &said)
		f := (1 - share) * l.tempered(a, said)
		if share > 0 {
			l.sayAligned(&o, b, &said)
			f += share * l.tempered(b, said)
		}
		f = max(bounds.low, min(bounds.high, f))
		y, wide := l.Transform.Back(f), l.widen(h)
		logShare := (1-share)*l.Blocks[a].Band.logShare() + share*l.Blocks[b].Band.logShare()
		last := 0.0
		for i := range quantiles {
			zl := wide * ((1-share)*logs[a][i] + share*logs[b][i])
			zr := wide * ((1-share)*raws[a][i] + share*raws[b][i])
			v := logShare*l.Transform.Back(f+zl) + (1-logShare)*max(y+zr*level, 0)
			top := bounds.top(quantiles[i])
			v = min(mixtures[a][i].between(mixtures[b][i], share).of(v, &lately[i]), top)
			v = min(v+outer(quantiles[i])*outerMargin*max(0, v-y), top)
			if quantiles[i] <= 0.5 && v < bounds.grain/2 {
				v = 0
			}
			last = max(last, v)
			paths[i][j] = last
		}
	}
	return paths
}

// outerMargin is how much the paths from the 0.99 quantile on are widened, those above the 0.9 quantile in proportion: what lies outside of all
// that was seen is not in any record of misses.
const outerMargin = 0.1

// outer is how far a quantile is on the way from the 0.9 to the 0.99 quantile.
func outer(quantile float64) float64 { return max(0, min(1, (quantile-0.9)/0.09)) }

// tempered is the blend of block k on what the members said.
func (l *Learner) tempered(k int, said [members]float64) float64 {
	l.Blocks[k].temper(&said, l.settled())
	return l.Blocks[k].blend(&said)
}

// limits keep a projection within what history makes believable: for the middle, in the transformed space, 30 % of the range beyond
// either end; for quantiles up to 0.9 half of the range above the most, and up to a whole range more for the outermost, which a load that
// grows from day to day has to reach. The range of a few values says little, so while there are few the top stands up to twice as high.
type limits struct {
	low, high   float64
	most, reach float64
	// grain is the least load above nothing of a series that knows nothing too, else 0. A likely value between the two
	// is taken for nothing.
	grain float64
}

// top is the most that a quantile may say.
func (b limits) top(quantile float64) float64 { return b.most + outer(quantile)*b.reach }

func (l *Learner) limits() limits {
	low, high := math.Inf(1), math.Inf(-1)
	least, most, grain := math.Inf(1), math.Inf(-1), math.Inf(1)
	from := max(0, l.hist.Len()-l.Cycle.Span())
	for i, x := range l.hist.x[from:] {
		if math.IsNaN(x) {
			continue
		}
		y := l.hist.raw[from+i]
		low, high = min(low, x), max(high, x)
		least, most = min(least, y), max(most, y)
		if y > 0 {
			grain = min(grain, y)
		}
	}
	if least > 0 {
		grain = 0
	}
	few := priorMisses / (float64(l.Known()) + priorMisses)
	return limits{low: low - 0.3*(high-low), high: high + 0.3*(high-low),
		most: most + 0.5*(most-least) + few*few*most, reach: most - least, grain: grain}
}

// between finds the two blocks whose centres lie around h, and the share of the second one: weights and bands pass smoothly from block to
// block.
func (l *Learner) between(h int) (a, b int, share float64) {
	k := sort.Search(len(l.ends), func(k int) bool { return l.centre(k) >= float64(h) })
	switch {
	case k == 0:
		return 0, 0, 0
	case k == len(l.ends):
		return k - 1, k - 1, 0
	}
	low := l.centre(k - 1)
	return k - 1, k, math.Log(float64(h)/low) / math.Log(l.centre(k)/low)
}

// centre is the geometric middle of a block.
func (l *Learner) centre(k int) float64 {
	low := 1
	if k > 0 {
		low = l.ends[k-1] + 1
	}
	return math.Sqrt(float64(low) * float64(l.ends[k]))
}

// widening is the growth of the squared band per short period beyond the last block.
const widening = 0.1

// widen is the factor on the band beyond the last block that is judged.
func (l *Learner) widen(h int) float64 {
	last := l.ends[len(l.ends)-1]
	if h <= last {
		return 1
	}
	return math.Sqrt(1 + widening*float64(h-last)/float64(l.Cycle.unit()))
}
