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
func (k *Kin) learnWindows(all []*Learner, labels []int, each Each) {
	c := all[0].Cycle
	if !c.windowed() || len(all) < windowSeries {
		return
	}
	lags, ahead := c.windowLags(), 2*c.Short
	type sums struct {
		a blas64.Symmetric
		b blas64.General
	}
	fresh := func() sums {
		return sums{blas64.Symmetric{N: lags, Stride: lags, Uplo: blas.Upper, Data: make([]float64, lags*lags)},
			blas64.General{Rows: lags, Cols: ahead, Stride: ahead, Data: make([]float64, lags*ahead)}}
	}
	groups, rows := make([]sums, len(k.Groups)), make([]int, len(k.Groups))
	each(len(groups), func(g int) {
		groups[g] = fresh()
		for i, l := range all {
			if labels[i] != g {
				continue
			}
			x, y, n := l.windows(lags, ahead)
			if n == 0 {
				continue
			}
			rows[g] += n
			mx := blas64.General{Rows: n, Cols: lags, Stride: lags, Data: x}
			my := blas64.General{Rows: n, Cols: ahead, Stride: ahead, Data: y}
			blas64.Syrk(blas.Trans, 1, mx, 1, groups[g].a)
			blas64.Gemm(blas.Trans, blas.NoTrans, 1, mx, my, 1, groups[g].b)
		}
	})
	seen := 0
	for _, n := range rows {
		seen += n
	}
	if seen < 2*lags {
		return
	}
	whole := fresh()
	for i := range groups {
		for j, v := range groups[i].a.Data {
			whole.a.Data[j] += v
		}
		for j, v := range groups[i].b.Data {
			whole.b.Data[j] += v
		}
	}
	common := solve(whole.a, whole.b, windowCommon, nil)
	each(len(groups), func(g int) {
		pull := windowGroup * (1 + windowThin/math.Pow(float64(k.Groups[g].Series), 1.5))
		k.Groups[g].Window = common
		if s := solve(groups[g].a, groups[g].b, pull, common); s != nil {
			k.Groups[g].Window = s
		}
	})
}

// solve is the ridge solution, a row of coefficients for each column of b, or nil.
func solve(a blas64.Symmetric, b blas64.General, pull float64, toward [][]float64) [][]float64 {
	n := a.N
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
	h, w := i-o.t, l.group.Window
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
