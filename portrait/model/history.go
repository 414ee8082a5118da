package model

import "math"

// History is a run of transformed values with prefix sums, so that the mean of any window costs two look-ups. A gap is NaN.
type History struct {
	// first is the grid index (time since the epoch over the step) of value 0: phases are counted from it.
	first int64
	// low is the index of the oldest value that at and the means still know.
	low int
	raw []float64
	x   []float64
	// full is x with gaps filled by the value a short period before, or else the newest one.
	full  []float64
	short int
	sum   []float64 // sum[i] is the sum of the known x before i, cnt[i] their number
	cnt   []int32
}

// newHistory is an empty history in the memory of another, which is not used any more.
func newHistory(old History, first int64, capacity, short int) *History {
	return &History{first: first, short: short, raw: blank(old.raw, 0, capacity), x: blank(old.x, 0, capacity), full: blank(old.full, 0, capacity),
		sum: blank(old.sum, 1, capacity+1), cnt: blank(old.cnt, 1, capacity+1)}
}

// Len is the number of values, gaps included.
func (h *History) Len() int { return len(h.x) }

func (h *History) push(raw, x float64) {
	// One slice a line: several in one assignment are written back whole, which costs a barrier for each while garbage is collected.
	h.raw = append(h.raw, raw)
	h.x = append(h.x, x)
	full, n := x, len(h.full)
	if math.IsNaN(full) && h.short > 0 && n >= h.short {
		full = h.full[n-h.short]
	}
	if math.IsNaN(full) && n > 0 {
		full = h.full[n-1]
	}
	h.full = append(h.full, full)
	s, c := h.sum[len(h.sum)-1], h.cnt[len(h.cnt)-1]
	if !math.IsNaN(x) {
		s, c = s+x, c+1
	}
	h.sum = append(h.sum, s)
	h.cnt = append(h.cnt, c)
}

// rewrite transforms all values again.
func (h *History) rewrite(t Transform) {
	raw := h.raw
	h.raw, h.x, h.full, h.sum, h.cnt = raw[:0], h.x[:0], h.full[:0], h.sum[:1], h.cnt[:1]
	for _, y := range raw {
		h.push(y, t.Forward(y))
	}
}

// at is value i, NaN outside of the history.
func (h *History) at(i int) float64 {
	if i < h.low || i >= len(h.x) {
		return math.NaN()
	}
	return h.x[i]
}

// mean is the mean of the known values in [from, to), NaN where fewer than half of them are known.
func (h *History) mean(from, to int) float64 {
	if from < h.low || to > len(h.x) || from >= to {
		return math.NaN()
	}
	n := h.cnt[to] - h.cnt[from]
	if 2*int(n) < to-from || n == 0 {
		return math.NaN()
	}
	return (h.sum[to] - h.sum[from]) / float64(n)
}

// lately is the mean of the known values in the window of w steps before to, however few, NaN where there is none.
func (h *History) lately(w, to int) float64 {
	from := min(max(to-w, h.low), to)
	n := h.cnt[to] - h.cnt[from]
	if n == 0 {
		return math.NaN()
	}
	return (h.sum[to] - h.sum[from]) / float64(n)
}

// difference is the mean absolute difference over a lag of the values at index from and later, NaN where none is known.
func (h *History) difference(lag, from int) float64 {
	sum, n := 0.0, 0.0
	for i := from + lag; i < len(h.x); i++ {
		if d := math.Abs(h.x[i] - h.x[i-lag]); !math.IsNaN(d) {
			sum, n = sum+d, n+1
		}
	}
	return sum / n
}
