package model

import (
	"math"
	"slices"
	"time"
)

// Lesson is one series to learn kin from: raw values on the grid, gaps as NaN, and the grid index of the first.
type Lesson struct {
	First  int64
	Values []float64
}

const (
	// perGroup is about how many series make a group: fewer leave its regressions thin, more mix unlike shapes. mostGroups bounds them.
	perGroup, mostGroups = 50, 16
	// leastGain is the gain, as a logarithm of squared misses, from which kin speak: 5 % less.
	leastGain = 0.1
	// commonPull and groupPull are how strongly a season-aligned regression is pulled, that of all towards its start and that of a group
	// towards that of all.
	commonPull, groupPull = 1e-3, 3e-3
)

// Each calls f for 0..n-1, in any order and as many at once as it likes: the caller's way to use its processors.
type Each func(n int, f func(i int))

// Teach learns kin from lessons. early has not seen the last values of each, as many as held: what it says of them judges what kin are worth and
// how members are weighed where they speak, in both. A group whose kin say nothing that its series do not know themselves stays silent. Both are
// nil where no series is long enough.
func Teach(step time.Duration, lessons []Lesson, held int, each Each) (early, final *Kin) {
	short := make([]Lesson, len(lessons))
	for i, s := range lessons {
		short[i] = Lesson{First: s.First, Values: s.Values[:max(0, len(s.Values)-held)]}
	}
	early, final = learnKin(step, short, each), learnKin(step, lessons, each)
	if early == nil || final == nil {
		return nil, nil
	}
	heard := make([]*verdict, len(lessons))
	each(len(lessons), func(i int) { heard[i] = early.try(lessons[i], held) })
	heard = slices.DeleteFunc(heard, func(v *verdict) bool { return v == nil })
	early.weigh(heard)
	final.weigh(heard)
	return early, final
}

// verdict is how the members did on the held values of one lesson.
type verdict struct {
	traits [nTrait]float64
	// errors are the members' second moments by block over their mean, gain is the mean logarithm of how much less the kin's best regression
	// missed than the series' own, negative where it missed more.
	errors [][]float64
	gain   float64
}

// try reads a lesson with kin that know all but its held values. It returns nil where they had nothing to say.
func (k *Kin) try(s Lesson, held int) *verdict {
	st := NewState(k.Step)
	l := st.Open(s.First, nil, len(s.Values))
	l.Ask(k, s.First+int64(len(s.Values)-held))
	for _, y := range s.Values {
		l.Observe(y)
	}
	if l.group == nil {
		return nil
	}
	v := &verdict{traits: l.Traits}
	for i := range l.Blocks {
		b := &l.Blocks[i]
		own := b.Errors[entry(aligned, aligned)]
		best := min(b.Errors[entry(kinAligned, kinAligned)], b.Errors[entry(kinWindow, kinWindow)])
		if b.Spoke&kinBits == 0 || b.Scores < firstWeighing || !(own > 0) || !(best > 0) {
			return nil
		}
		v.gain -= math.Log(best/own) / float64(len(l.Blocks))
		v.errors = append(v.errors, slices.Clone(b.Errors))
	}
	return v
}

// weigh gives each group the mean errors of its series, and silences those whose kin gain too little for half of them.
func (k *Kin) weigh(all []*verdict) {
	of := make([][]*verdict, len(k.Groups))
	for _, v := range all {
		g := k.index(v.traits)
		of[g] = append(of[g], v)
	}
	for g := range k.Groups {
		gains := make([]float64, len(of[g]))
		for i, v := range of[g] {
			gains[i] = v.gain
		}
		slices.Sort(gains)
		group := &k.Groups[g]
		if len(gains) == 0 || gains[len(gains)/2] < leastGain {
			*group = Group{Centre: group.Centre, Series: group.Series}
			continue
		}
		for _, v := range of[g] {
			for b, e := range v.errors {
				if len(group.Errors) == b {
					group.Errors = append(group.Errors, make([]float64, triangle))
				}
				for i, x := range e {
					group.Errors[b][i] += x / float64(len(of[g]))
				}
			}
		}
	}
}

// learnKin learns what the series have in common. It returns nil where no series is long enough.
func learnKin(step time.Duration, lessons []Lesson, each Each) *Kin {
	studied := make([]*Learner, len(lessons))
	each(len(lessons), func(i int) { studied[i] = study(step, lessons[i]) })
	var all []*Learner
	var points [][nTrait]float64
	for _, l := range studied {
		if l.Typed {
			all, points = append(all, l), append(points, l.Traits)
		}
	}
	if len(all) == 0 {
		return nil
	}
	width := widths(points)
	for i := range points {
		points[i] = over(points[i], width)
	}
	labels, centres := cluster(points, max(1, min(mostGroups, len(all)/perGroup)))
	k := &Kin{Step: step, Width: width, Groups: make([]Group, len(centres))}
	for _, g := range labels {
		k.Groups[g].Series++
	}
	for i := range k.Groups {
		k.Groups[i].Centre = centres[i]
	}
	k.learnRidges(all, labels, each)
	k.learnWindows(all, labels, each)
	return k
}

// study reads a lesson into a history without judging anything.
func study(step time.Duration, s Lesson) *Learner {
	st := NewState(step)
	l := st.Open(s.First, nil, len(s.Values))
	var known []float64
	for i := max(0, len(s.Values)-l.Cycle.Span()); i < len(s.Values); i++ {
		if y := s.Values[i]; !math.IsNaN(y) {
			known = append(known, y)
		}
	}
	if len(known) == 0 {
		return l
	}
	l.Transform = choose(known)
	for i, y := range s.Values {
		x := l.Transform.Forward(y)
		if c := l.Cycle; c.Long > 0 && i >= c.Short && !math.IsNaN(x) {
			l.Week.learn(s.First+int64(i), c, x-l.hist.lately(c.Long, i), 0)
		}
		l.push(y, x)
	}
	l.measure()
	return l
}

// learnRidges fits the season-aligned regression of each group and block, pulled towards that of all.
func (k *Kin) learnRidges(all []*Learner, labels []int, each Each) {
	blocks := len(all[0].Blocks)
	grams := make([][]gram, len(all))
	each(len(all), func(i int) {
		for b := range blocks {
			grams[i] = append(grams[i], all[i].rows(b, kinRows, false))
		}
	})
	for b := range blocks {
		sums := make([]gram, len(k.Groups))
		for g := range sums {
			sums[g] = newGram(nFeature)
		}
		for i, l := range all {
			sums[labels[i]].merge(&grams[i][b], l.Scale)
		}
		whole := newGram(nFeature)
		for g := range sums {
			whole.merge(&sums[g], 1)
		}
		start := ridgeStart(b)
		common := whole.ridge(commonPull, start[:])
		for g := range sums {
			k.Groups[g].Ridge = append(k.Groups[g].Ridge, sums[g].ridge(groupPull, common))
		}
	}
}
