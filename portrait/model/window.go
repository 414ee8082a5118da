package model

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

const (
	// windowSeries is the number of series from which a regression on the plain window of values is worth its many coefficients, windowShort
	// the longest short period in steps for which they are few enough.
	windowSeries, windowShort = 8, 48
	// windowCommon and windowGroup are how strongly the regression of all is pulled towards nothing and that of a group towards that of all,
	// windowThin how much more so for few series: by windowThin/n^1.5.
	windowCommon, windowGroup, windowThin = 3e-4, 1e-4, 60
	// windowLeast is the number of series from which a group has a map of its own: the map of one fits no other.
	windowLeast = 4
	// windowBatch is the number of series whose sums are held at once.
	windowBatch = 32
	// windowMemory is the age of a window, in long periods, at which it counts 1/e.
	windowMemory = 1
)

// windowLags is the number of values that the plain window holds: a week and a day of hours.
func (c Cycle) windowLags() int { return c.Long + c.Short }

// windowed reports whether a plain window of a week is short enough for a regression.
func (c Cycle) windowed() bool { return c.Long > 0 && c.Short <= windowShort }

// learnWindows fits the regression from the last week to the next two days of each group, pulled towards that of all: a linear map of the
// plain values, which nothing that is learned on many series of one kind beats by much (A. Zeng et al., "Are transformers effective for time
// series forecasting?", 2023; W. Toner, L. Darlow, arXiv:2403.14587, 2024).
func (k *Groups) learnWindows(all []*Learner, points [][nTrait]float64, each Each) {
	if len(k.Partings) == 0 {
		return
	}
	lags, ahead := all[0].Cycle.windowLags(), 2*all[0].Cycle.Short
	sums := make([][]windowSums, len(k.Partings))
	for p := range sums {
		for range k.Partings[p].Centres {
			sums[p] = append(sums[p], newWindowSums(lags, ahead))
		}
		k.Partings[p].Maps = make([][][]float64, len(sums[p]))
	}
	batch := make([]windowSums, min(windowBatch, len(all)))
	for from := 0; from < len(all); from += len(batch) {
		n := min(len(batch), len(all)-from)
		each(n, func(i int) { batch[i] = all[from+i].windowSums(lags, ahead) })
		for i := range n {
			for p := range sums {
				sums[p][k.Partings[p].nearest(points[from+i])].add(&batch[i])
			}
		}
	}
	whole := newWindowSums(lags, ahead)
	for g := range sums[0] {
		whole.add(&sums[0][g])
	}
	common := whole.solve(windowCommon, nil)
	if whole.rows < 2*lags || common == nil {
		k.Partings = nil
		return
	}
	for p := range sums {
		each(len(sums[p]), func(g int) {
			s := &sums[p][g]
			k.Partings[p].Maps[g] = common
			if s.series < windowLeast {
				return
			}
			if m := s.solve(windowGroup*(1+windowThin/math.Pow(float64(s.series), 1.5)), common); m != nil {
				k.Partings[p].Maps[g] = m
			}
		})
	}
}

// partings are the numbers of groups by which the maps are learned, of which their mean is taken: it is steadier than any single grouping.
func partings(series int) []int {
	n := groups(series)
	out := []int{n, n + n/4, n - n/4, n + n/2}
	slices.Sort(out)
	return slices.Compact(out)
}

// windowSums are the normal equations of a map: those of its inputs, those of inputs and outputs, and how many windows of how many series
// went in.
type windowSums struct {
	a            blas64.Symmetric
	b            blas64.General
	rows, series int
}

func newWindowSums(lags, ahead int) windowSums {
	return windowSums{a: blas64.Symmetric{N: lags, Stride: lags, Uplo: blas.Upper, Data: make([]float64, lags*lags)},
		b: blas64.General{Rows: lags, Cols: ahead, Stride: ahead, Data: make([]float64, lags*ahead)}}
}

func (s *windowSums) add(o *windowSums) {
	for i, v := range o.a.Data {
		s.a.Data[i] += v
	}
	for i, v := range o.b.Data {
		s.b.Data[i] += v
	}
	s.rows, s.series = s.rows+o.rows, s.series+o.series
}

// windowSums sums up all windows of the history.
func (l *Learner) windowSums(lags, ahead int) windowSums {
	s := newWindowSums(lags, ahead)
	x, y, n := l.windows(lags, ahead)
	s.rows, s.series = n, 1
	if n > 0 {
		mx := blas64.General{Rows: n, Cols: lags, Stride: lags, Data: x}
		my := blas64.General{Rows: n, Cols: ahead, Stride: ahead, Data: y}
		blas64.Syrk(blas.Trans, 1, mx, 1, s.a)
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, mx, my, 1, s.b)
	}
	return s
}

// solve is the ridge solution, a row of coefficients for each column of b, or nil.
func (s *windowSums) solve(pull float64, toward [][]float64) [][]float64 {
	a, b, n := s.a, s.b, s.a.N
	trace := 0.0
	for i := range n {
		trace += a.Data[i*n+i]
	}
	tau := pull * trace / float64(n)
	if !(tau > 0) {
		return nil
	}
	sym := mat.NewSymDense(n, slices.Clone(a.Data))
	rhs := mat.NewDense(n, b.Cols, slices.Clone(b.Data))
	for i := range n {
		sym.SetSym(i, i, sym.At(i, i)+tau)
		for j := range b.Cols {
			if toward != nil {
				rhs.Set(i, j, rhs.At(i, j)+tau*toward[j][i])
			}
		}
	}
	var factor mat.Cholesky
	if !factor.Factorize(sym) {
		return nil
	}
	var c mat.Dense
	if factor.SolveTo(&c, rhs) != nil {
		return nil
	}
	out := make([][]float64, b.Cols)
	for j := range out {
		out[j] = mat.Col(nil, j, &c)
	}
	return out
}

// windows lays all windows of the history as rows, weighed by the root of their weight.
func (l *Learner) windows(lags, ahead int) (x, y []float64, rows int) {
	full := l.hist.full
	unit := l.Cycle.unit()
	for t := lags; t+ahead <= len(full); t++ {
		m := 0.0
		for _, v := range full[t-unit : t] {
			m += v / float64(unit)
		}
		if math.IsNaN(full[t-lags]) { // gaps are filled, but for those before the first value
			continue
		}
		age := float64(len(full)-t) / float64(windowMemory*l.Cycle.Long)
		w := math.Exp(-age/2) / l.Scale
		for _, v := range full[t-lags : t] {
			x = append(x, w*(v-m))
		}
		for _, v := range full[t : t+ahead] {
			y = append(y, w*(v-m))
		}
		rows++
	}
	return x, y, rows
}

// sayWindow says what the kin make of the values of the last week.
func (l *Learner) sayWindow(o *origin, i int, out *[members]float64) bool {
	h, w := i-o.t, l.window
	if len(w) == 0 {
		return false
	}
	lags, unit := len(w[0]), l.Cycle.unit()
	if o.t < lags || h >= len(w) {
		return false
	}
	last := l.hist.full[o.t-lags : o.t]
	m := 0.0
	for _, v := range last[lags-unit:] {
		m += v
	}
	m /= float64(unit)
	v := m
	for j, c := range w[h] {
		v += c * (last[j] - m)
	}
	if math.IsNaN(v) {
		return false
	}
	out[kinWindow] = v
	return true
}
