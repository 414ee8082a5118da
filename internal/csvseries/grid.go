package csvseries

import (
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/series"
)

const (
	// loneStep is the step of a series of one value: nothing can be read from it, and five minutes is the grid of portraits.
	loneStep = 5 * time.Minute
	// even is how much the longest distance between values may exceed the shortest for the values to count as one a step: months (28 to 31
	// days), a day of 23 or 25 hours, a scrape that comes a little late.
	even = 1.25
	// longest bounds the steps that are kept, the newest ones: a lone value of long ago must not cost gigabytes of gaps.
	longest = 1 << 22
)

// uneven are steps that have no fixed length: between the bounds a step counts as the mean one, so that rounding finds the right month
// however many lie between.
var uneven = []struct{ least, most, mean time.Duration }{
	{28 * day, 31 * day, time.Duration(365.2425 / 12 * float64(day))},
	{89 * day, 92 * day, time.Duration(365.2425 / 4 * float64(day))},
	{365 * day, 366 * day, time.Duration(365.2425 * float64(day))},
}

const day = 24 * time.Hour

// Series brings the points to a regular grid whose step is read from their distances: the most common one, or the middle one where none is
// common. Steps without a value are gaps, values that share one are averaged.
func (g *Group) Series() series.Series {
	n := len(g.Points)
	if n == 0 {
		return series.Series{}
	}
	start := time.Unix(0, g.Points[0].At).UTC()
	if n == 1 {
		return series.Series{Start: start, Step: loneStep, Values: []float64{g.Points[0].Value}}
	}
	step, regular := g.step()
	if regular {
		// Dated backwards from the last value, which is what a forecast begins at.
		s := series.New(time.Unix(0, g.Points[n-1].At).UTC().Add(-time.Duration(n-1)*step), step, n)
		for i, p := range g.Points {
			s.Values[i] = p.Value
		}
		return s
	}
	index := func(p Point) int { return int(math.Round(float64(p.At-g.Points[0].At) / float64(step))) }
	last := index(g.Points[n-1])
	first := max(0, last+1-longest)
	s := series.New(start.Add(time.Duration(first)*step), step, last+1-first)
	count := make([]float64, len(s.Values))
	for _, p := range g.Points {
		i := index(p) - first
		if i < 0 || math.IsNaN(p.Value) {
			continue
		}
		if count[i]++; count[i] == 1 {
			s.Values[i] = p.Value
		} else {
			s.Values[i] += p.Value/count[i] - s.Values[i]/count[i]
		}
	}
	return s
}

// mixedRun is how many values in a row make a step of their own.
const mixedRun = 12

// MixedSteps looks for the line from which on the values come by another step than before: a source that keeps old values at a coarser step. A step is
// what twelve distances in a row are; values that are missing now and then make none.
func (g *Group) MixedSteps() (line int, before, after time.Duration, mixed bool) {
	run, at := 0, time.Duration(0)
	for i := 1; i < len(g.Points); i++ {
		gap := time.Duration(g.Points[i].At - g.Points[i-1].At)
		if run++; i == 1 || float64(max(gap, at)) > even*float64(min(gap, at)) {
			run, at = 1, gap
		}
		switch {
		case run < mixedRun:
		case before == 0:
			before = at
		case float64(max(before, at)) > even*float64(min(before, at)):
			return int(g.Points[i-run+1].Line), before, at, true
		}
	}
	return 0, 0, 0, false
}

// step reads the step from the distances of the points; regular says that there is one value a step without exception.
func (g *Group) step() (step time.Duration, regular bool) {
	gaps := make([]time.Duration, 0, len(g.Points)-1)
	for i := 1; i < len(g.Points); i++ {
		gaps = append(gaps, time.Duration(g.Points[i].At-g.Points[i-1].At))
	}
	slices.Sort(gaps)
	middle := gaps[len(gaps)/2]
	if float64(gaps[len(gaps)-1]) <= even*float64(gaps[0]) {
		return middle, true
	}
	for _, c := range uneven {
		if middle >= c.least && middle <= c.most {
			return c.mean, false
		}
	}
	most, common := 0, middle
	for i := 0; i < len(gaps); {
		j := i
		for j < len(gaps) && gaps[j] == gaps[i] {
			j++
		}
		if j-i > most {
			most, common = j-i, gaps[i]
		}
		i = j
	}
	if 2*most >= len(gaps) {
		return common, false
	}
	return middle, false
}
