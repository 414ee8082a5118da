package peer

import "math"

// Naive2 is the yardstick of the M4 competition: the last value of the series without its season, which is put back on. The season is
// multiplicative, and taken out only where the autocorrelation at its lag is significant at 90 %.
func Naive2(h []float64, s Seasons, horizon int) []float64 {
	m := s.Day
	if m < 2 || !seasonal(h, m) {
		return LastValue(h, s, horizon)
	}
	index := seasonalIndex(h, m)
	n := len(h)
	out := make([]float64, horizon)
	for j := range out {
		out[j] = h[n-1] / index[(n-1)%m] * index[(n+j)%m]
	}
	return out
}

// seasonal tests the autocorrelation at lag m against the limit that Bartlett's formula gives for it.
func seasonal(h []float64, m int) bool {
	const t90 = 1.645
	if len(h) < 3*m {
		return false
	}
	average, variance := mean(h), 0.0
	for _, y := range h {
		variance += (y - average) * (y - average)
	}
	if variance == 0 {
		return false
	}
	sum, last := 1.0, 0.0
	for lag := 1; lag <= m; lag++ {
		if lag > 1 {
			sum += 2 * last * last
		}
		c := 0.0
		for i := lag; i < len(h); i++ {
			c += (h[i] - average) * (h[i-lag] - average)
		}
		last = c / variance
	}
	return math.Abs(last) > t90*math.Sqrt(sum/float64(len(h)))
}

// seasonalIndex is the classical decomposition: the mean ratio of each phase to the centred moving average, scaled to a mean of one.
func seasonalIndex(h []float64, m int) []float64 {
	sum, count := make([]float64, m), make([]float64, m)
	half := m / 2
	for i := half; i < len(h)-half; i++ {
		trend := 0.0
		for k := -half; k <= half; k++ {
			w := 1.0
			if m%2 == 0 && (k == -half || k == half) {
				w = 0.5
			}
			trend += w * h[i+k]
		}
		if trend /= float64(m); trend != 0 {
			sum[i%m] += h[i] / trend
			count[i%m]++
		}
	}
	total := 0.0
	for k := range sum {
		if count[k] > 0 {
			sum[k] /= count[k]
		}
		total += sum[k] / float64(m)
	}
	for k := range sum {
		if total == 0 || sum[k] == 0 {
			sum[k] = 1 // no load in this phase: nothing to divide by
			continue
		}
		sum[k] /= total
	}
	return sum
}
