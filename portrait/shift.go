package portrait

import (
	"fmt"
	"math"
	"time"

	"github.com/springtide/springtide/series"
)

// Shift is a change of level that stayed: a release, a new client, a market that was opened.
type Shift struct {
	// At is when the level changed, to within a few hours; zero where it did not.
	At time.Time
	// Ratio is the new level over the old one.
	Ratio float64
	// Score is the size of the change in units of how blocks of hours usually differ from their level.
	Score float64
}

const (
	// shiftBlock is the length of the blocks whose medians are compared: short enough to date a change, long enough for a burst to vanish.
	shiftBlock = 3 * time.Hour
	// leastShift is the least change worth a word, as a log ratio: a fifth, two replicas in ten.
	leastShift = 0.18
	// leastScore is the least change in units of the blocks' own spread.
	leastScore = 3
	// shiftStays is how long both levels must have lasted, when the days of the week are known and taken out; shiftStaysLonger when they are
	// not, so that a weekend, even a long one, is the smaller half of either side.
	shiftStays, shiftStaysLonger = day, 5 * day
)

// shifted looks for a change of level in the newest values: the split into two runs of blocks whose medians lie
// furthest apart in units of the blocks' distances from them (binary segmentation, A. J. Scott, M. Knott 1974, on
// medians, so that neither a burst nor an outage is a change). Blocks are of logarithms, less what is usual at their
// time of day and on their day of the week. Nothing is remembered from one look to the next: a change is reported for
// as long as both of its sides are in sight, about nine days.
func shifted(s, days series.Series, perDay int) Shift {
	weekday, known := weekdays(days)
	stays := shiftStays
	if !known {
		stays = shiftStaysLonger
	}
	blocks, width := blocksOf(s, weekday, perDay)
	least := int(stays / (time.Duration(width) * s.Step))
	var best Shift
	var before, after float64
	for k := least; k <= len(blocks)-least; k++ {
		a, b, spread, ok := split(blocks, k)
		if !ok || math.Abs(b-a) < leastShift {
			continue
		}
		// The floor is a hundredth of the level.
		if score := math.Abs(b-a) / max(spread, 0.01); score > best.Score {
			best, before, after = Shift{Ratio: math.Exp(b - a), Score: score}, a, b
		}
	}
	if best.Score < leastScore {
		return Shift{}
	}
	k := turn(blocks, before, after)
	if a, b, _, ok := split(blocks, k); ok {
		best.Ratio = math.Exp(b - a)
	}
	best.At = s.Start.Add(time.Duration(k*width) * s.Step)
	return best
}

// split are the medians of the blocks before and from k on, and the usual distance from them as a standard deviation: 1.48 median distances
// where errors are normal. It is not ok where half of either side is not known.
func split(blocks []float64, k int) (a, b, spread float64, ok bool) {
	old, now := knownOf(blocks[:k]), knownOf(blocks[k:])
	if len(old) == 0 || len(now) == 0 || 2*len(old) < k || 2*len(now) < len(blocks)-k {
		return 0, 0, 0, false
	}
	a, b = median(old), median(now)
	off := make([]float64, 0, len(blocks))
	for _, x := range old {
		off = append(off, math.Abs(x-a))
	}
	for _, x := range now {
		off = append(off, math.Abs(x-b))
	}
	return a, b, 1.4826 * median(off), true
}

// turn dates a change from level a to level b: medians hardly move with a few blocks more on the wrong side, the sum of the distances does.
func turn(blocks []float64, a, b float64) int {
	sum, least, at := 0.0, math.Inf(1), 1
	for k, x := range blocks[:len(blocks)-1] {
		if !math.IsNaN(x) {
			sum += math.Abs(x-a) - math.Abs(x-b)
		}
		if sum < least {
			least, at = sum, k+1
		}
	}
	return at
}

// blocksOf are the medians of blocks of hours of the logarithm of s, less the usual logarithm at the time of day and what its weekday adds;
// width is their number of steps.
func blocksOf(s series.Series, weekday [7]float64, perDay int) (blocks []float64, width int) {
	width = max(1, int(shiftBlock/s.Step))
	logs := make([]float64, s.Len())
	for i, y := range s.Values {
		logs[i] = math.NaN()
		if y > 0 {
			logs[i] = math.Log(y) - weekday[s.Time(i).Weekday()]
		}
	}
	usual := phaseMedians(logs, perDay)
	one := make([]float64, 0, width)
	for from := 0; from+width <= len(logs); from += width {
		one = one[:0]
		for i := from; i < from+width; i++ {
			if x := logs[i] - usual[i%perDay]; !math.IsNaN(x) {
				one = append(one, x)
			}
		}
		blocks = append(blocks, median(one))
	}
	return blocks, width
}

// weekdays are the logarithms by which each day of the week stands above the median of the seven days around it, the median over the weeks;
// not known of fewer than two weeks.
func weekdays(days series.Series) (out [7]float64, known bool) {
	if days.Known() < 14 {
		return out, false
	}
	var by [7][]float64
	for i, v := range days.Values {
		from := max(0, min(i-3, days.Len()-7))
		around := knownOf(days.Values[from : from+7])
		if m := median(around); v > 0 && m > 0 && len(around) >= 4 {
			d := days.Time(i).Weekday()
			by[d] = append(by[d], math.Log(v/m))
		}
	}
	for d := range by {
		if len(by[d]) < 2 {
			return [7]float64{}, false
		}
		out[d] = median(by[d])
	}
	return out, true
}

// shiftDoubt is how long after a change of level a portrait says that its seasons are still of the old one: half of what a forecast looks at.
const shiftDoubt = 5 * day

// String describes the change in a sentence.
func (s Shift) String() string {
	verb, by := "rose", s.Ratio-1
	if by < 0 {
		verb, by = "fell", -by
	}
	return fmt.Sprintf("the level %s by %.0f %% on %s and stayed there", verb, 100*by, s.At.UTC().Format("2006-01-02 15:04 UTC"))
}
