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
	// commonPull and groupPull are how strongly a season-aligned regression is pulled, that of all towards its start and that of a group
	// towards that of all.
	commonPull, groupPull = 1e-3, 3e-3
)

// Each calls f for 0..n-1, in any order and as many at once as it likes: the caller's way to use its processors.
type Each func(n int, f func(i int))

// Teach learns kin from lessons. early has not seen the last values of each, as many as held: what it says of them judges what kin are worth and
// how members are weighed where they speak, in both, which therefore have the same groups. A group whose kin say nothing that its series do not
// know themselves stays silent. Both are nil where no series is long enough.
func Teach(step time.Duration, lessons []Lesson, held int, each Each) (early, final *Groups) {
	short := make([]Lesson, len(lessons))
	for i, s := range lessons {
		short[i] = Lesson{First: s.First, Values: s.Values[:max(0, len(s.Values)-held)]}
	}
	early = learnKin(step, short, nil, each)
	if early == nil {
		return nil, nil
	}
	heard := make([]*verdict, len(lessons))
	each(len(lessons), func(i int) { heard[i] = early.try(lessons[i], held) })
	early.weigh(slices.DeleteFunc(heard, func(v *verdict) bool { return v == nil }))
	return early, learnKin(step, lessons, early, each)
}

// learnKin learns what the series have in common: by groups of their own, or by those of kin that were judged before, whose silence and weights
// they take over. It returns nil where no series is long enough.
func learnKin(step time.Duration, lessons []Lesson, judged *Groups, each Each) *Groups {
	all := make([]*Learner, len(lessons))
	each(len(lessons), func(i int) { all[i] = study(step, lessons[i]) })
	all = slices.DeleteFunc(all, func(l *Learner) bool { return !l.Typed })
	if len(all) == 0 {
		return nil
	}
	points := make([][nTrait]float64, len(all))
	for i, l := range all {
		points[i] = l.Traits
	}
	k := &Groups{Step: step, Width: widths(points)}
	if judged != nil {
		k.Width = judged.Width
	}
	for i := range points {
		points[i] = over(points[i], k.Width)
	}
	if judged == nil {
		k.part(points, all[0].Cycle)
	} else {
		k.likeThose(judged)
	}
	k.learnRidges(all, points, each)
	k.learnWindows(all, points, each)
	if judged != nil {
		k.adopt(judged)
	}
	return k
}

// study reads a lesson into a history without judging anything.
func study(step time.Duration, s Lesson) *Learner {
	st := NewState(step)
	l := st.Open(nil, s.First, nil, len(s.Values))
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
		l.profile(i, x)
		l.push(y, x)
	}
	l.measure()
	return l
}

// learnRidges fits the season-aligned regression of each group and block, pulled towards that of all.
func (k *Groups) learnRidges(all []*Learner, points [][nTrait]float64, each Each) {
	labels := make([]int, len(all))
	for i := range all {
		labels[i] = k.nearest(points[i])
		k.Groups[labels[i]].Series++
	}
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
