package model

import (
	"math"
	"time"
)

// Groups are what many series have taught jointly: series are grouped by a few traits of their shape, and each group has
// its own regressions. Its kin have often seen what one series has seen too seldom.
type Groups struct {
	Step   time.Duration
	Groups []Group
	// Width is the spread of each trait over the series.
	Width [nTrait]float64
	// Partings are the regressions on the plain window of values, by groups of their own; none where the step is too short for them or the
	// series too few.
	Partings []Parting
}

// Parting is one way to part the series into groups for the regression on their plain values.
type Parting struct {
	Centres [][nTrait]float64
	// Maps take the values of the last week to the next ones: row h of a group's map holds the coefficients of the value h+1 steps ahead.
	Maps [][][]float64
}

// Group is what the series of one kind have in common. All of it is in the scale-free form x ↦ (x − mean of the last day) / Scale.
type Group struct {
	// Centre is the middle of the group's traits.
	Centre [nTrait]float64
	// Ridge are the coefficients of the season-aligned regression by block.
	Ridge [][]float64
	// Errors are the mean second moments of the members' errors by block, in units of the series' scales; see [Block] and pool.
	Errors [][]float64
	// Series is the number of series that the group was learned from.
	Series int
}

// The traits: logarithms of the mean absolute difference over several lags against that over a short period, and of its size.
const nTrait = 5

// traits describe a history; ok is false while it is too short.
func (l *Learner) traits() (v [nTrait]float64, ok bool) {
	u := l.Cycle.Short
	from := l.recent(l.hist.Len())
	n := l.hist.Len() - from
	if u == 0 || n < 3*u || !(l.Scale > 0) {
		return v, false
	}
	far := min(max(l.Cycle.Long, u), n/2/u*u)
	for i, lag := range []int{1, u / 2, 2 * u, far} {
		v[i] = math.Log(l.hist.difference(lag, from)/l.Scale + 1e-3)
	}
	v[4] = math.Log(l.Scale) / 2
	return v, !math.IsNaN(v[0] + v[1] + v[2] + v[3])
}

// Speak is the number of series whose groups have something to say.
func (k *Groups) Speak() int {
	n := 0
	for i := range k.Groups {
		if g := &k.Groups[i]; g.speaks() {
			n += g.Series
		}
	}
	return n
}

// most is the group of most series among those that speak, nil where none does.
func (k *Groups) most() *Group {
	var out *Group
	for i := range k.Groups {
		if g := &k.Groups[i]; g.speaks() && (out == nil || g.Series > out.Series) {
			out = g
		}
	}
	return out
}

// speaks reports whether the group has something to say.
func (g *Group) speaks() bool { return len(g.Ridge) > 0 }

// hush silences the group.
func (g *Group) hush() { *g = Group{Centre: g.Centre, Series: g.Series} }

// nearest is the group of a series whose traits, over their widths, are given.
func (k *Groups) nearest(v [nTrait]float64) int {
	return nearest(v, len(k.Groups), func(i int) [nTrait]float64 { return k.Groups[i].Centre })
}

// nearest is the index of the centre that lies nearest to v.
func nearest(v [nTrait]float64, n int, centre func(i int) [nTrait]float64) int {
	best, least := 0, math.Inf(1)
	for i := range n {
		if d := distance(v, centre(i)); d < least {
			best, least = i, d
		}
	}
	return best
}

// nearest is the parting's group of a series whose traits, over their widths, are given.
func (p *Parting) nearest(v [nTrait]float64) int {
	return nearest(v, len(p.Centres), func(i int) [nTrait]float64 { return p.Centres[i] })
}

// mapOf is the mean of the maps of the partings for a series whose traits, over their widths, are given; nil where there are none.
func (k *Groups) mapOf(v [nTrait]float64) [][]float64 {
	var out [][]float64
	for i := range k.Partings {
		p := &k.Partings[i]
		for h, row := range p.Maps[p.nearest(v)] {
			if len(out) == h {
				out = append(out, make([]float64, len(row)))
			}
			for j, c := range row {
				out[h][j] += c / float64(len(k.Partings))
			}
		}
	}
	return out
}

// widths is the standard deviation of each trait.
func widths(points [][nTrait]float64) (w [nTrait]float64) {
	n := float64(len(points))
	for j := range w {
		mean, square := 0.0, 0.0
		for _, p := range points {
			mean += p[j] / n
			square += p[j] * p[j] / n
		}
		w[j] = math.Sqrt(max(square-mean*mean, 0)) + 1e-9
	}
	return w
}

func over(v, w [nTrait]float64) [nTrait]float64 {
	for j := range v {
		v[j] /= w[j]
	}
	return v
}

func distance(a, b [nTrait]float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return sum
}

const (
	// kinScores is the number of judged forecasts that the errors of many kin stand for, kinHalf the number of series at which they stand for
	// half of it.
	kinScores, kinHalf = 100, 10
)

// inherit begins the errors of a block with those of the kin.
func (l *Learner) inherit(b *Block, block int) {
	if len(l.group.Errors) == 0 {
		clear(b.Errors)
		b.Scores = 0
		return
	}
	// Where kin speak the blend misses less than it did: the band so far is narrowed by how much less it is for their own series.
	for m := kinAligned; m < members; m++ {
		b.Weights[aligned] += b.Weights[m]
		b.Weights[m] = 0
	}
	before := quadratic(l.group.Errors[block], b.Weights)
	copy(b.Errors, l.group.Errors[block])
	n := float64(l.group.Series)
	b.Scores = kinScores * n / (n + kinHalf)
	b.weigh()
	if after := quadratic(l.group.Errors[block], b.Weights); before > 0 && after < before {
		b.Band.narrow(math.Sqrt(after / before))
		b.Miss *= math.Sqrt(after / before)
	}
}

// quadratic is the mean square miss of a blend whose members' errors have the second moments e.
func quadratic(e, weights []float64) float64 {
	sum, k := 0.0, 0
	for i := range weights {
		for j := 0; j < i; j++ {
			sum += 2 * weights[i] * weights[j] * e[k]
			k++
		}
		sum += weights[i] * weights[i] * e[k]
		k++
	}
	return sum
}
