package model

import "math"

// History is a run of transformed values with prefix sums, so that the mean of any window costs two look-ups. A gap is NaN.
type History struct {
	// first is the grid index (time since the epoch over the step) of value 0: phases are counted from it.
	first int64
	raw   []float64
	x     []float64
	sum   []float64 // sum[i] is the sum of the known x before i, cnt[i] their number
	cnt   []int32
}

func newHistory(first int64, capacity int) *History {
	return &History{
		first: first,
		raw:   make([]float64, 0, capacity),
		x:     make([]float64, 0, capacity),
		sum:   append(make([]float64, 0, capacity+1), 0),
		cnt:   append(make([]int32, 0, capacity+1), 0),
	}
}

// Len is the number of values, gaps included.
func (h *History) Len() int { return len(h.x) }

func (h *History) push(raw, x float64) {
	h.raw, h.x = append(h.raw, raw), append(h.x, x)
	s, c := h.sum[len(h.sum)-1], h.cnt[len(h.cnt)-1]
	if !math.IsNaN(x) {
		s, c = s+x, c+1
	}
	h.sum, h.cnt = append(h.sum, s), append(h.cnt, c)
}

// rewrite transforms all values anew.
func (h *History) rewrite(t Transform) {
	raw := h.raw
	h.raw, h.x, h.sum, h.cnt = raw[:0], h.x[:0], h.sum[:1], h.cnt[:1]
	for _, y := range raw {
		h.push(y, t.Forward(y))
	}
}

// at is value i, NaN outside of the history.
func (h *History) at(i int) float64 {
	if uint(i) < uint(len(h.x)) {
		return h.x[i]
	}
	return math.NaN()
}

// mean is the mean of the known values in [from, to), NaN where fewer than half of them are known.
func (h *History) mean(from, to int) float64 {
	if from < 0 || to > len(h.x) || from >= to {
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
	from := max(to-w, 0)
	n := h.cnt[to] - h.cnt[from]
	if n == 0 {
		return math.NaN()
	}
	return (h.sum[to] - h.sum[from]) / float64(n)
}
