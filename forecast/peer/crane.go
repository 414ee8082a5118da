package peer

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
)

// The eight estimators that Crane's DSP ships: how many of the strongest lines are always kept, the amplitude below which others go, and
// the margin on top.
var craneEstimators = func() []estimator {
	var out []estimator
	for _, e := range []estimator{{lines: 3, floor: 1.0}, {lines: 50, floor: 0.05}} {
		for _, e.margin = range []float64{0.01, 0.10, 0.15, 0.20} {
			out = append(out, e)
		}
	}
	return out
}()

const (
	// craneMostLines bounds the lines that count as strong, craneFast is the frequency above which weak ones are dropped: one in an hour.
	craneMostLines = 100
	craneFast      = 1.0 / 3600
	// craneLeast stands for what the filter takes to zero or below.
	craneLeast = 0.01
	// craneShuffles are how often the history is shuffled to find out what strength a line has by chance; craneChance of the maxima are
	// passed by chance.
	craneShuffles = 100
	craneChance   = 98
	// cranePeak is how far around a lag its autocorrelation must rise and fall, in seconds.
	cranePeak = 4 * 3600
)

type estimator struct {
	lines         int
	floor, margin float64
}

// CraneDSP is Crane's forecaster: where a day or a week is found, the last one, filtered, with the margin that would have done best on it.
// Where neither is found Crane makes no forecast and the HPA stays reactive: the last value.
func CraneDSP(h []float64, s Seasons, horizon int) []float64 {
	period := cranePeriod(h, s)
	cycles := 0
	if period > 0 {
		cycles = len(h) / period
	}
	if cycles < 2 {
		return LastValue(h, s, horizon)
	}
	h = h[len(h)-cycles*period:]
	actual, before := h[len(h)-period:], newSpectrum(h[:len(h)-period], s.Step)
	best, least := craneEstimators[0], math.Inf(1)
	for _, e := range craneEstimators {
		if miss := craneError(actual, before.last(e, period)); miss < least {
			best, least = e, miss
		}
	}
	return repeat(newSpectrum(h, s.Step).last(best, period), period, horizon)
}

// cranePeriod finds lines of the spectrum that are stronger than shuffled histories have by chance, takes the one whose lag has the highest
// peak of the autocorrelation, and accepts it where it is near a day or a week.
func cranePeriod(h []float64, s Seasons) int {
	// Whole days alone: Crane cuts to whole units too, and their lengths have small factors, which the transform is fast for.
	h = h[len(h)%s.Day:]
	n := len(h)
	if n < 2*s.Day || s.Day < 2 {
		return 0
	}
	fft := fourier.NewFFT(n)
	threshold := craneThreshold(fft, h)
	lines := fft.Coefficients(nil, h)
	var lags []int
	for k := 2; k < n/2; k++ {
		if lag := n / k; cmplx.Abs(lines[k]) > threshold && (len(lags) == 0 || lags[len(lags)-1] > lag) {
			lags = append(lags, lag)
		}
	}
	acf := autocorrelation(fft, h)
	best, highest := 0, 0.0
	for _, lag := range lags {
		around := min(int(cranePeak/s.Step), lag/2)
		if acf[lag] > highest && isPeak(acf, lag, around) {
			best, highest = lag, acf[lag]
		}
	}
	for _, p := range []int{s.Day, s.Week} {
		if best > 0 && abs(best-p) <= max(1, p/24) {
			return p
		}
	}
	return 0
}

// craneThreshold is the strength that one in a hundred shuffled histories passes. The seed is fixed: the same history, the same answer.
func craneThreshold(fft *fourier.FFT, h []float64) float64 {
	shuffled := slices.Clone(h)
	r := rand.New(rand.NewPCG(uint64(len(h)), 0))
	lines := make([]complex128, len(h)/2+1)
	strongest := make([]float64, craneShuffles)
	for i := range strongest {
		r.Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
		fft.Coefficients(lines, shuffled)
		for k := 1; k < len(h)/2; k++ {
			strongest[i] = max(strongest[i], cmplx.Abs(lines[k]))
		}
	}
	slices.Sort(strongest)
	return strongest[craneChance]
}

// autocorrelation is the circular one, by the transform of the squared spectrum.
func autocorrelation(fft *fourier.FFT, h []float64) []float64 {
	n := float64(len(h))
	average, variance := mean(h), 0.0
	z := make([]float64, len(h))
	for i, y := range h {
		z[i] = y - average
		variance += z[i] * z[i] / n
	}
	lines := fft.Coefficients(nil, z)
	for k, c := range lines {
		lines[k] = complex(real(c)*real(c)+imag(c)*imag(c), 0)
	}
	out := fft.Sequence(nil, lines)
	for i := range out {
		out[i] /= n * n * max(variance, math.SmallestNonzeroFloat64)
	}
	return out
}

// isPeak reports whether straight lines through the values before and after a lag rise to it and fall from it.
func isPeak(x []float64, at, around int) bool {
	return slope(x[max(0, at-around):at+1]) > 0 && slope(x[at:min(len(x), at+around+1)]) < 0
}

func slope(v []float64) float64 {
	middle := float64(len(v)-1) / 2
	sum := 0.0
	for i, y := range v {
		sum += (float64(i) - middle) * y
	}
	return sum
}

// spectrum is a signal of whole cycles, taken apart.
type spectrum struct {
	fft       *fourier.FFT
	lines     []complex128
	amplitude []float64
	// sorted are the amplitudes without the mean, the strongest first.
	sorted []float64
	step   float64
}

func newSpectrum(h []float64, step float64) *spectrum {
	s := &spectrum{fft: fourier.NewFFT(len(h)), step: step}
	s.lines = s.fft.Coefficients(nil, h)
	s.amplitude = make([]float64, len(s.lines))
	for k, c := range s.lines {
		s.amplitude[k] = cmplx.Abs(c) / float64(len(h))
	}
	s.sorted = slices.Clone(s.amplitude[1:max(1, len(h)/2)])
	slices.SortFunc(s.sorted, func(a, b float64) int {
		if a > b {
			return -1
		} else if a < b {
			return 1
		}
		return 0
	})
	return s
}

// last is the newest period of the signal without its fast and weak lines, with the margin.
func (s *spectrum) last(e estimator, period int) []float64 {
	n := s.fft.Len()
	weak := e.floor
	if len(s.sorted) > 0 {
		weak = max(weak, s.sorted[min(craneMostLines, len(s.sorted))-1])
	}
	if len(s.sorted) >= e.lines {
		weak = min(weak, s.sorted[e.lines-1])
	}
	lines := slices.Clone(s.lines)
	kept := func(k int) float64 {
		// Each line has a mirror at n-k, which Crane counts as fast however slow the line is: weak slow ones are halved by it.
		if s.amplitude[min(k, n-k)] < weak && float64(k)/(float64(n)*s.step) > craneFast {
			return 0
		}
		return 1
	}
	for k := 1; k < len(lines); k++ {
		lines[k] *= complex((kept(k)+kept(n-k))/2, 0)
	}
	all := s.fft.Sequence(nil, lines)
	out := all[n-period:]
	for i, y := range out {
		if y /= float64(n); y <= 0 {
			y = craneLeast
		}
		out[i] = y * (1 + e.margin)
	}
	return out
}

// craneError is a mean relative error in which too low a forecast counts four to six times as much; an absolute one where a value is near
// zero.
func craneError(actual, forecast []float64) float64 {
	relative, absolute := 0.0, 0.0
	tiny := false
	for i, y := range actual {
		f := forecast[i]
		absolute += math.Abs(y - f)
		switch {
		case y < 1e-3:
			tiny = true
		case f < y:
			relative -= math.Log(f/y) / math.Log(1.25)
		default:
			relative += (f - y) / y
		}
	}
	if tiny {
		return absolute / float64(len(actual))
	}
	return relative / float64(len(actual))
}

func abs(v int) int { return max(v, -v) }
