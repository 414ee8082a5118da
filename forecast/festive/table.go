package festive

import (
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/forecast/calendar"
	"github.com/springtide/springtide/series"
)

const (
	// around is the number of ordinary days on either side that a day is measured by, within farthest days of it: near enough for the level
	// to be the same, and enough for a median that one odd day does not move.
	around, farthest = 3, 42
	// leastShare of a day's slots must be known for it to count.
	leastShare = 0.75
	// oddShare is the share of ordinary days, the worst, that the noise leaves out: outages are not noise.
	oddShare = 0.1
	// noiseDays are the newest days that the noise is taken from.
	noiseDays = 56
)

// table is a history as one row of logarithms for each date, NaN where nothing is known.
type table struct {
	first, slots int
	shift        float64
	rows         [][]float64
	plain        []bool // dates without a mark
}

func newTable(h series.Series, marks map[int]calendar.Day, zone *time.Location) *table {
	t := &table{first: dayNumber(h.Start.In(zone)), slots: slots(h.Step)}
	last := dayNumber(h.Time(h.Len() - 1).In(zone))
	t.rows = make([][]float64, last-t.first+1)
	counts := make([]int, t.slots*len(t.rows))
	flat := make([]float64, len(counts))
	for i, y := range h.Values {
		if at := h.Time(i).In(zone); y >= 0 && !math.IsInf(y, 1) {
			k := (dayNumber(at)-t.first)*t.slots + slotOf(at, t.slots)
			counts[k]++
			flat[k] += (y - flat[k]) / float64(counts[k])
		}
	}
	// Half of a slot's values make a slot.
	need := max(1, int(24*time.Hour/time.Duration(t.slots)/h.Step)/2)
	for k := range flat {
		if counts[k] < need {
			flat[k] = math.NaN()
		}
	}
	t.shift = shift(flat)
	for k, y := range flat {
		flat[k] = math.Log(y + t.shift)
	}
	for i := range t.rows {
		t.rows[i] = flat[i*t.slots : (i+1)*t.slots]
		_, marked := marks[t.first+i]
		t.plain = append(t.plain, !marked)
	}
	return t
}

// slots is the number of parts of a day at a step: hours, or the shortest even part of a day that holds a step.
func slots(step time.Duration) int {
	for _, n := range []int{24, 12, 8, 6, 4, 3, 2} {
		if step <= 24*time.Hour/time.Duration(n) {
			return n
		}
	}
	return 1
}

// shift keeps zeros finite and the noise of small counts small, as package model's transform does: a tenth of the median of the positive
// values, nothing where all of them stay clear of zero.
func shift(values []float64) float64 {
	var positive []float64
	zeros := false
	for _, y := range values {
		if y > 0 {
			positive = append(positive, y)
		}
		zeros = zeros || y == 0
	}
	if len(positive) == 0 {
		return 1
	}
	slices.Sort(positive)
	median := positive[len(positive)/2]
	if !zeros && positive[0] > 0.02*median {
		return 0
	}
	return 0.1 * median
}

// usual is what ordinary days of a weekday showed around row i, without that row; nil where fewer than two are known.
func (t *table) usual(i, wday int) []float64 {
	var rows [][]float64
	for _, side := range []int{-1, 1} {
		n := 0
		for k := 1; k <= farthest && n < around; k++ {
			j := i + side*k
			if j >= 0 && j < len(t.rows) && t.plain[j] && weekday(t.first+j) == wday && t.known(j) {
				rows, n = append(rows, t.rows[j]), n+1
			}
		}
	}
	if len(rows) < 2 {
		return nil
	}
	return medians(rows)
}

// medians are those of each column, NaN where nothing is known of it.
func medians(rows [][]float64) []float64 {
	out := make([]float64, len(rows[0]))
	var column []float64
	for s := range out {
		column = column[:0]
		for _, r := range rows {
			if !math.IsNaN(r[s]) {
				column = append(column, r[s])
			}
		}
		out[s] = median(column)
	}
	return out
}

func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// known reports whether enough of a row is known.
func (t *table) known(i int) bool {
	n := 0
	for _, x := range t.rows[i] {
		if !math.IsNaN(x) {
			n++
		}
	}
	return float64(n) >= leastShare*float64(t.slots)
}

// effect is row i less what was usual around it, nil where too little is known. A slot that is not known gets the mean of the others.
func (t *table) effect(i int) []float64 {
	if !t.known(i) {
		return nil
	}
	usual := t.usual(i, weekday(t.first+i))
	if usual == nil {
		return nil
	}
	out := make([]float64, t.slots)
	sum, n := 0.0, 0
	for s := range out {
		out[s] = t.rows[i][s] - usual[s]
		if !math.IsNaN(out[s]) {
			sum, n = sum+out[s], n+1
		}
	}
	if float64(n) < leastShare*float64(t.slots) {
		return nil
	}
	fill(out, sum/float64(n))
	return out
}

func fill(x []float64, with float64) {
	for s := range x {
		if math.IsNaN(x[s]) {
			x[s] = with
		}
	}
}

// week is the newest ordinary week, nil where no ordinary day is known. A weekday that is not known gets the mean of the others.
func (t *table) week() []float64 {
	var usual [7][]float64
	var all [][]float64
	for w := range usual {
		if usual[w] = t.usual(len(t.rows), w); usual[w] != nil {
			all = append(all, usual[w])
		}
	}
	if len(all) == 0 {
		return nil
	}
	rest := medians(all)
	mean, n := 0.0, 0.0
	for _, x := range rest {
		if !math.IsNaN(x) {
			mean, n = mean+x, n+1
		}
	}
	fill(rest, mean/n)
	var out []float64
	for w := range usual {
		day := slices.Clone(rest)
		for s, x := range usual[w] {
			if !math.IsNaN(x) {
				day[s] = x
			}
		}
		out = append(out, day...)
	}
	return out
}

// noise is the mean square of what ordinary days miss those around them by.
func (t *table) noise() float64 {
	var squares []float64
	for i := max(0, len(t.rows)-noiseDays); i < len(t.rows); i++ {
		if !t.plain[i] {
			continue
		}
		if e := t.effect(i); e != nil {
			squares = append(squares, square(e))
		}
	}
	slices.Sort(squares)
	squares = squares[:len(squares)-int(oddShare*float64(len(squares)))]
	sum := 0.0
	for _, s := range squares {
		sum += s
	}
	return sum / float64(max(1, len(squares)))
}

// square is the mean square of x.
func square(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return sum / float64(max(1, len(x)))
}
