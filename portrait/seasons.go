package portrait

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/springtide/springtide/series"
)

const (
	// leastStrength is the share of the variation that a season must explain beyond those found before it, leastSwing how far it must move the
	// level: less makes no replica more.
	leastStrength, leastSwing = 0.1, 0.02
	// peaks is the number of lags of the autocorrelation that are tried, leastPeak the least correlation for it.
	peaks, leastPeak = 6, 0.1
	// clipMisses bounds how far one value may stand from the usual one at its time of day, in mean distances: a load test or an outage then
	// neither makes a season nor hides one.
	clipMisses  = 4
	mostPeriods = 8
)

// periods finds the seasons that are present: those up to half of what is seen in the newest values, the week in the medians of the days.
//
// Candidates are the third, half and whole day, and the highest peaks of the autocorrelation (by the transform of the power spectrum, Wiener
// and Khinchin). Each is judged by the share of the variance that its phases explain, where each cycle is held against the mean of the other
// cycles: noise explains nothing, whatever the number of phases. From the shortest on, one counts that explains a tenth of what moves
// beyond those before it.
func periods(s, days series.Series) []Period {
	var found []Period
	if n := int(math.Round(float64(day) / float64(s.Step))); s.Len() >= 2*n && 2*s.Known() >= s.Len() {
		level := mean(s.Values)
		y := clipped(flattened(s.Values, n), n)
		rest := slices.Clone(y)
		_, all := misses(y, n)
		for _, k := range candidates(y, n) {
			// The part that shorter seasons explain is gone from the rest, so that two days are no season where one is.
			missed, left := misses(rest, k)
			strength, swing := explained(y, k)
			if !(left-missed >= leastStrength*all) || strength < leastStrength || !(swing >= leastSwing*level) || !returns(y, k) {
				continue
			}
			found = append(found, Period{Length: time.Duration(k) * s.Step, Strength: strength, Swing: swing / level})
			remove(rest, k)
		}
	}
	if w, ok := weekly(days); ok {
		found = append(found, w)
	}
	if len(found) > mostPeriods {
		found = found[len(found)-mostPeriods:]
	}
	return found
}

// weekly judges the week by the medians of the days: their logarithms, less the mean of the seven days around.
func weekly(days series.Series) (Period, bool) {
	const n = 7
	if days.Known() < 2*n {
		return Period{}, false
	}
	logs := make([]float64, days.Len())
	for i, v := range days.Values {
		logs[i] = math.NaN()
		if v > 0 {
			logs[i] = math.Log(v)
		}
	}
	strength, swing := explained(clipped(flattened(logs, n), n), n)
	return Period{Length: week, Strength: strength, Swing: math.Expm1(swing)}, strength >= leastStrength && swing >= leastSwing
}

// flattened is v less its mean over the n values around: what is slower than the season is gone, and the season itself is left as it is,
// since a whole cycle has no mean. At both ends the nearest whole cycle stands in.
func flattened(v []float64, n int) []float64 {
	sum, count := make([]float64, len(v)+1), make([]int, len(v)+1)
	for i, y := range v {
		sum[i+1], count[i+1] = sum[i], count[i]
		if !math.IsNaN(y) {
			sum[i+1], count[i+1] = sum[i]+y, count[i]+1
		}
	}
	out := make([]float64, len(v))
	for i, y := range v {
		from := max(0, min(i-n/2, len(v)-n))
		to := min(from+n, len(v))
		out[i] = math.NaN()
		if c := count[to] - count[from]; c > 0 && 2*c >= to-from {
			out[i] = y - (sum[to]-sum[from])/float64(c)
		}
	}
	return out
}

// clipped bounds each value by its distance from the median of its phase.
func clipped(y []float64, n int) []float64 {
	middle := phaseMedians(y, n)
	miss, known := 0.0, 0.0
	for i, v := range y {
		if d := math.Abs(v - middle[i%n]); !math.IsNaN(d) {
			miss, known = miss+d, known+1
		}
	}
	far := clipMisses * miss / max(known, 1)
	out := make([]float64, len(y))
	for i, v := range y {
		m := middle[i%n]
		out[i] = math.NaN()
		if !math.IsNaN(v) {
			out[i] = m + max(-far, min(far, v-m))
		}
	}
	return out
}

// phaseMedians are the medians of the known values of each phase of period n, gaps where none is known.
func phaseMedians(y []float64, n int) []float64 {
	out := make([]float64, n)
	one := make([]float64, 0, len(y)/n+1)
	for phase := range out {
		one = one[:0]
		for i := phase; i < len(y); i += n {
			if !math.IsNaN(y[i]) {
				one = append(one, y[i])
			}
		}
		out[phase] = median(one)
	}
	return out
}

// candidates are the lags to be judged, in steps, rising and each once.
func candidates(y []float64, perDay int) []int {
	var out []int
	for _, parts := range [...]int{1, 2, 3} {
		if k := perDay / parts; perDay%parts == 0 && k >= 3 && 2*k <= len(y) {
			out = append(out, k)
		}
	}
	named := out
	for _, k := range acfPeaks(y) {
		// A peak next to a part of the day is that part, moved by noise.
		if !slices.ContainsFunc(named, func(n int) bool { return 20*max(k-n, n-k) <= n }) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// acfPeaks are the lags at which the autocorrelation has its highest peaks, each the highest within a sixth of its lag on either side. Three
// cycles are the least: two are alike by chance too often.
func acfPeaks(y []float64) []int {
	n := len(y)
	size := 1
	for size < 2*n {
		size *= 2
	}
	x := make([]float64, size)
	for i, v := range y {
		if !math.IsNaN(v) {
			x[i] = v
		}
	}
	fft := fourier.NewFFT(size)
	power := fft.Coefficients(nil, x)
	for i, c := range power {
		power[i] = complex(real(c)*real(c)+imag(c)*imag(c), 0)
	}
	r := fft.Sequence(x, power)
	if !(r[0] > 0) {
		return nil
	}
	type peak struct {
		lag int
		r   float64
	}
	var found []peak
	for k := 3; 3*k <= n; k++ {
		here := r[k] / float64(n-k)
		reach, highest := max(1, k/6), true
		for j := max(1, k-reach); j <= k+reach && highest; j++ {
			highest = j == k || r[j]/float64(n-j) < here
		}
		if here *= float64(n) / r[0]; highest && here >= leastPeak {
			found = append(found, peak{k, here})
		}
	}
	slices.SortFunc(found, func(a, b peak) int { return cmp.Or(cmp.Compare(b.r, a.r), cmp.Compare(a.lag, b.lag)) })
	var out []int
	for _, f := range found[:min(peaks, len(found))] {
		out = append(out, f.lag)
	}
	return out
}

// returns says whether each cycle of period k resembles the next, once what is slower is gone. One spike a day explains
// much of the mean of all half days, though every other half day has none.
func returns(y []float64, k int) bool {
	flat := flattened(y, k)
	with, own := 0.0, 0.0
	for i := k; i < len(flat); i++ {
		a, b := flat[i-k], flat[i]
		if !math.IsNaN(a) && !math.IsNaN(b) {
			with, own = with+a*b, own+(a*a+b*b)/2
		}
	}
	return with >= leastPeak*own
}

// explained is the share of the variance of y that the phases of period k explain, and the span from the lowest to the highest phase (their
// 1 % and 99 %: an hour of each day is a twenty-fourth of it).
func explained(y []float64, k int) (strength, swing float64) {
	missed, all := misses(y, k)
	if !(all > 0) {
		return 0, 0
	}
	shape := knownOf(phases(y, k))
	slices.Sort(shape)
	return max(0, 1-missed/all), rank(shape, 0.99) - rank(shape, 0.01)
}

// misses sums the squared distances of y from the mean that the same phase has in the other cycles of period k, and the squares themselves.
// A phase that is known once is left out.
func misses(y []float64, k int) (missed, all float64) {
	for phase := range k {
		sum, n := 0.0, 0.0
		for i := phase; i < len(y); i += k {
			if !math.IsNaN(y[i]) {
				sum, n = sum+y[i], n+1
			}
		}
		if n < 2 {
			continue
		}
		for i := phase; i < len(y); i += k {
			if v := y[i]; !math.IsNaN(v) {
				d := v - (sum-v)/(n-1)
				missed, all = missed+d*d, all+v*v
			}
		}
	}
	return missed, all
}

// phases are the means of the phases of period k, gaps where none is known.
func phases(y []float64, k int) []float64 {
	sum, n := make([]float64, k), make([]float64, k)
	for i, v := range y {
		if !math.IsNaN(v) {
			sum[i%k], n[i%k] = sum[i%k]+v, n[i%k]+1
		}
	}
	for i := range sum {
		sum[i] /= n[i]
	}
	return sum
}

// remove takes the season of period k from y.
func remove(y []float64, k int) {
	shape := phases(y, k)
	for i := range y {
		y[i] -= shape[i%k]
	}
}
