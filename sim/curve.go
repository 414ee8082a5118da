package sim

import (
	"cmp"
	"slices"
)

// Point is one row of a policy's curve: what it costs, and the minutes in which it broke the SLO.
type Point struct {
	OnlineCoreHours float64
	Minutes         float64
	Target          float64
	Knob            string
	Default         bool
}

// Curve is the cost–SLO curve of a policy without lending, by rising cost: of one class, or of all services where class is empty. The cost is
// that of all services in either case, since they share one budget.
func Curve(results []Result, policy, class string) []Point {
	var out []Point
	for i := range results {
		r := &results[i]
		if r.Policy != policy || r.Lender != LendNone && r.Lender != LendOracle {
			continue
		}
		minutes := r.SLOViolationMinutes
		if class != "" {
			minutes = r.Classes[class].SLOViolationMinutes
		}
		out = append(out, Point{OnlineCoreHours: r.OnlineCoreHours, Minutes: float64(minutes), Target: r.Target, Knob: r.Knob, Default: r.Default})
	}
	slices.SortFunc(out, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.OnlineCoreHours, b.OnlineCoreHours), cmp.Compare(a.Minutes, b.Minutes))
	})
	return out
}

// At reads a curve at a cost, on the straight line between its neighbours. It reports false outside of the curve, except that a curve which
// ends below the cost holds its last value: who may spend more need not.
func At(curve []Point, cost float64) (minutes float64, ok bool) {
	i, _ := slices.BinarySearchFunc(curve, cost, func(p Point, c float64) int { return cmp.Compare(p.OnlineCoreHours, c) })
	switch {
	case len(curve) == 0 || i == 0 && curve[0].OnlineCoreHours != cost:
		return 0, false
	case i == len(curve):
		return curve[i-1].Minutes, true
	case i == 0:
		return curve[0].Minutes, true
	}
	a, b := curve[i-1], curve[i]
	w := (cost - a.OnlineCoreHours) / (b.OnlineCoreHours - a.OnlineCoreHours)
	return (1-w)*a.Minutes + w*b.Minutes, true
}

// Find is the row of a policy with a lender at its default target, or nil.
func Find(results []Result, policy, lender string) *Result {
	for i := range results {
		if r := &results[i]; r.Policy == policy && r.Lender == lender && r.Default {
			return r
		}
	}
	return nil
}
