package capacity

import (
	"math"
	"slices"
	"time"
)

const (
	// halfLife is in which the weight of a minute halves. A week holds every load of a usual cycle, and leaves
	// 168·60/ln 2 = 14,500 minutes in force: an objective of 99.95 % is shown by 5,400 of them.
	halfLife = 7 * 24 * time.Hour
	// ratio is the width of a bin: the capacity is read at a bin's lower end, 1.2 % low on average.
	ratio = 1.025
	// mostBins are kept: 1.025^32 = 2.2 times from the lowest to the highest, if all are used. The two lowest become
	// one where more are needed, since the knee is at the upper end.
	mostBins = 32
	// faded is the weight below which a bin has no say: the single minute of it is a half-life old.
	faded = 0.5
)

// The cells of a bin count minutes by value over limit, each up to its edge. The first four hold.
const (
	heldCells = 4
	cells     = 6
)

// edges are the upper ends of the cells; the last has none.
var edges = [cells - 1]float64{0.25, 0.5, math.Sqrt2 / 2, 1, 2}

// bin counts the minutes at loads from ratio^Key up to the next.
type bin struct {
	Key int
	N   [cells]float64
}

func keyOf(load float64) int { return int(math.Floor(math.Log(load)/math.Log(ratio) + 1e-9)) }

// loadOf is the lower end of a bin.
func loadOf(key int) float64 { return math.Exp(float64(key) * math.Log(ratio)) }

// cellOf is the cell of a value; a limit of 0 holds at 0 alone.
func cellOf(value, limit float64) int {
	if value <= 0 {
		return 0
	}
	for c, e := range edges {
		if value <= e*limit {
			return c
		}
	}
	return cells - 1
}

func (b *bin) held() float64   { return b.N[0] + b.N[1] + b.N[2] + b.N[3] }
func (b *bin) broken() float64 { return b.N[4] + b.N[5] }
func (b *bin) all() float64    { return b.held() + b.broken() }

func (b *bin) add(o *bin) {
	for c := range b.N {
		b.N[c] += o.N[c]
	}
}

// count adds a minute to bins in the order of their keys.
func count(bins []bin, load float64, cell int) []bin {
	key := keyOf(load)
	i, found := slices.BinarySearchFunc(bins, key, func(b bin, k int) int { return b.Key - k })
	if !found {
		if len(bins) == mostBins {
			bins, i = makeRoom(bins, i)
		}
		bins = slices.Insert(bins, i, bin{Key: key})
	}
	bins[i].N[cell]++
	return bins
}

// makeRoom joins the two lowest bins. Minutes that held at the upper of them then speak for the lower load alone, and
// those that broke speak against it: both are cautious. i is the place of a bin to come, before and after.
func makeRoom(bins []bin, i int) ([]bin, int) {
	bins[0].add(&bins[1])
	if i > 1 {
		i--
	}
	return slices.Delete(bins, 1, 2), i
}

// fade lets weights fall by some hours, and drops bins that are left without a say.
func fade(bins []bin, hours int64) []bin {
	keep := math.Exp2(-float64(hours) / halfLife.Hours())
	for i := range bins {
		for c := range bins[i].N {
			bins[i].N[c] *= keep
		}
	}
	return slices.DeleteFunc(bins, func(b bin) bool { return b.all() < faded })
}

// limited moves the counts to another limit, which is 1/factor of the old one. A cell that the new limit splits is
// dropped: it is not known which of its minutes would have held.
func limited(bins []bin, factor float64) []bin {
	for i := range bins {
		var out [cells]float64
		for c, n := range bins[i].N {
			if to, ok := moved(c, factor); ok {
				out[to] += n
			}
		}
		bins[i].N = out
	}
	return slices.DeleteFunc(bins, func(b bin) bool { return b.all() < faded })
}

// moved is the cell of a cell's minutes under another limit: by its upper end where it holds, else by its lower one.
func moved(c int, factor float64) (int, bool) {
	lower, upper := 0.0, math.Inf(1)
	if c > 0 {
		lower = edges[c-1] * factor
	}
	if c < len(edges) {
		upper = edges[c] * factor
	}
	switch {
	case upper <= 1+1e-12:
		return cellOf(upper, 1+1e-12), true
	case lower < 1-1e-12:
		return 0, false
	case lower < 2-1e-12:
		return heldCells, true
	}
	return cells - 1, true
}
