// Package score measures forecasts against what came: point errors (MASE, sMAPE), quantile losses (pinball, WQL), interval scores (MSIS)
// and coverage. A step whose actual value is a gap is left out of every measure.
//
// The forms are those of the M4 competition (S. Makridakis, E. Spiliotis, V. Assimakopoulos, "The M4 Competition", 2020) and, for WQL,
// those in use since DeepAR (D. Salinas et al., 2020). Where a measure has no value (no known step, a zero scale) it is NaN.
package score

import (
	"fmt"
	"math"
)

// SMAPE is the mean of 200·|y−f| / (|y|+|f|), from 0 to 200; a step where both are zero counts as no error.
func SMAPE(actual, forecast []float64) float64 {
	return over(actual, forecast, func(y, f float64) float64 {
		if size := math.Abs(y) + math.Abs(f); size > 0 {
			return 200 * math.Abs(y-f) / size
		}
		return 0
	})
}

// MAE is the mean absolute error.
func MAE(actual, forecast []float64) float64 {
	return over(actual, forecast, func(y, f float64) float64 { return math.Abs(y - f) })
}

// Scale is what MASE and MSIS measure errors by: the mean absolute error, within the history, of repeating the value one period before.
func Scale(history []float64, period int) float64 {
	if period <= 0 || period >= len(history) {
		return math.NaN()
	}
	return MAE(history[period:], history[:len(history)-period])
}

// MASE is the mean absolute error over the scale of the history; NaN where that is zero.
func MASE(actual, forecast, history []float64, period int) float64 {
	return ratio(MAE(actual, forecast), Scale(history, period))
}

// Pinball is the mean quantile loss max(q·(y−f), (q−1)·(y−f)).
func Pinball(q float64, actual, forecast []float64) float64 {
	return over(actual, forecast, func(y, f float64) float64 { return max(q*(y-f), (q-1)*(y-f)) })
}

// WQL is the weighted quantile loss: twice the sum of pinball losses over the sum of |y|, averaged over the quantiles. paths[i] is the path
// of quantiles[i].
func WQL(quantiles, actual []float64, paths [][]float64) float64 {
	if len(quantiles) == 0 || len(quantiles) != len(paths) {
		panic(fmt.Sprintf("score: %d quantiles and %d paths", len(quantiles), len(paths)))
	}
	size := over(actual, actual, func(y, _ float64) float64 { return math.Abs(y) })
	loss := 0.0
	for i, q := range quantiles {
		loss += 2 * Pinball(q, actual, paths[i])
	}
	return ratio(loss/float64(len(quantiles)), size)
}

// touching is how far, as a share of the value, an actual value may exceed a path and still lie on it: the path of a constant series went
// through a logarithm and back and was written with nine digits. A millionth decides nothing about a load.
const touching = 1e-6

// Coverage is the share of steps whose actual value is at or below the path: of a good q quantile, q.
func Coverage(actual, path []float64) float64 {
	return over(actual, path, func(y, f float64) float64 {
		if y-f <= touching*math.Abs(y) {
			return 1
		}
		return 0
	})
}

// MSIS is the mean scaled interval score of the interval from low to high that is meant to hold 1−alpha of the values: its width, plus 2/alpha
// times the distance of each value outside of it, over the scale of the history.
func MSIS(actual, low, high, history []float64, period int, alpha float64) float64 {
	if len(low) != len(high) {
		panic(fmt.Sprintf("score: %d lower and %d upper bounds", len(low), len(high)))
	}
	width := over(actual, high, func(_, h float64) float64 { return h }) - over(actual, low, func(_, l float64) float64 { return l })
	below := over(actual, low, func(y, l float64) float64 { return max(l-y, 0) })
	above := over(actual, high, func(y, h float64) float64 { return max(y-h, 0) })
	return ratio(width+2/alpha*(below+above), Scale(history, period))
}

// over averages a measure over the steps where both values are known.
func over(actual, forecast []float64, measure func(y, f float64) float64) float64 {
	if len(actual) != len(forecast) {
		panic(fmt.Sprintf("score: %d actual and %d forecast values", len(actual), len(forecast)))
	}
	sum, n := 0.0, 0
	for i, y := range actual {
		if !math.IsNaN(y) && !math.IsNaN(forecast[i]) {
			sum, n = sum+measure(y, forecast[i]), n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

func ratio(a, b float64) float64 {
	if !(b > 0) {
		return math.NaN()
	}
	return a / b
}
