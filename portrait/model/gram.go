package model

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// gram sums the products that least squares needs: A = Σ w·x·xᵀ (lower triangle by rows) and B = Σ w·x·y.
type gram struct {
	a    []float64
	b    []float64
	rows float64
}

func newGram(n int) gram { return gram{a: make([]float64, n*(n+1)/2), b: make([]float64, n)} }

// add takes one row in.
func (g *gram) add(x []float64, y, w float64) {
	k := 0
	for i, v := range x {
		wv := w * v
		row := g.a[k : k+i+1]
		for j, u := range x[:i+1] {
			row[j] += wv * u
		}
		k += i + 1
		g.b[i] += wv * y
	}
	g.rows++
}

// merge adds the sums of o, divided by a scale squared.
func (g *gram) merge(o *gram, scale float64) {
	s := 1 / (scale * scale)
	for i, v := range o.a {
		g.a[i] += s * v
	}
	for i, v := range o.b {
		g.b[i] += s * v
	}
	g.rows += o.rows
}

// ridge is the solution of least squares pulled towards an earlier one: (A + τI) c = B + τ·c₀ with τ = pull · the mean of A's diagonal (A. E.
// Hoerl, R. W. Kennard, "Ridge regression", 1970). It returns c₀ where there is nothing to solve.
func (g *gram) ridge(pull float64, toward []float64) []float64 {
	n := len(g.b)
	trace := 0.0
	for i := range n {
		trace += g.a[i*(i+3)/2]
	}
	tau := pull * trace / float64(n)
	if !(tau > 0) || math.IsInf(tau, 0) {
		return toward
	}
	sym := mat.NewSymDense(n, nil)
	rhs := mat.NewVecDense(n, nil)
	for i := range n {
		for j := 0; j <= i; j++ {
			v := g.a[i*(i+1)/2+j]
			if i == j {
				v += tau
			}
			sym.SetSym(i, j, v)
		}
		rhs.SetVec(i, g.b[i]+tau*toward[i])
	}
	var factor mat.Cholesky
	if !factor.Factorize(sym) {
		return toward
	}
	var c mat.VecDense
	if factor.SolveVecTo(&c, rhs) != nil {
		return toward
	}
	return c.RawVector().Data
}
