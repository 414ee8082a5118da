package sim

import (
	"cmp"
	"maps"
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
		if !r.unlent(policy) {
			continue
		}
		minutes := r.SLOViolationMinutes
		if class != "" {
			minutes = r.Classes[class].SLOViolationMinutes
		}
		out = append(out, Point{OnlineCoreHours: r.OnlineCoreHours, Minutes: float64(minutes), Target: r.Target, Knob: r.Knob, Default: r.Default})
	}
	slices.SortFunc(out, byCost)
	return out
}

// unlent reports whether a row is one of a policy's without lending.
func (r *Result) unlent(policy string) bool {
	return r.Policy == policy && (r.Lender == LendNone || r.Lender == LendOracle)
}

// Tuned is what a policy's rows without lending come to at a cost, had each service the target that hindsight gives it: where a core-hour saves the
// most minutes first, the last step in part, as At reads between two rows. It reports false where the cheapest targets cost more.
func Tuned(results []Result, policy string, cost float64) (minutes float64, ok bool) {
	targets := map[string][]Point{}
	for i := range results {
		for _, s := range results[i].Services {
			if results[i].unlent(policy) {
				targets[s.Service] = append(targets[s.Service], Point{OnlineCoreHours: s.OnlineCoreHours, Minutes: float64(s.SLOViolationMinutes)})
			}
		}
	}
	var steps []Point // what a service's next target costs more, and the minutes that it saves
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		at := slices.MinFunc(targets[name], byCost)
		cost, minutes = cost-at.OnlineCoreHours, minutes+at.Minutes
		for {
			best := Point{}
			for _, p := range targets[name] {
				if s := (Point{OnlineCoreHours: p.OnlineCoreHours - at.OnlineCoreHours, Minutes: at.Minutes - p.Minutes}); s.worth() > best.worth() {
					best = s
				}
			}
			if best.Minutes == 0 {
				break
			}
			steps = append(steps, best)
			at.OnlineCoreHours, at.Minutes = at.OnlineCoreHours+best.OnlineCoreHours, at.Minutes-best.Minutes
		}
	}
	slices.SortStableFunc(steps, func(a, b Point) int { return cmp.Compare(b.worth(), a.worth()) })
	ok = len(targets) > 0 && cost >= 0
	for _, s := range steps {
		minutes -= min(1, max(cost, 0)/s.OnlineCoreHours) * s.Minutes
		cost -= s.OnlineCoreHours
	}
	return minutes, ok
}

// worth is what a core-hour of a step saves in minutes; none where it costs nothing or saves nothing.
func (p Point) worth() float64 {
	if p.OnlineCoreHours <= 0 {
		return 0
	}
	return max(p.Minutes/p.OnlineCoreHours, 0)
}

func byCost(a, b Point) int {
	return cmp.Or(cmp.Compare(a.OnlineCoreHours, b.OnlineCoreHours), cmp.Compare(a.Minutes, b.Minutes))
}

// At reads a curve at a cost, on the straight line between its neighbours. It reports false outside of the curve: what a policy would come to at
// targets that it was not played at is not known. Only a curve that ends below the cost with no minute left holds there: who may spend more need not.
func At(curve []Point, cost float64) (minutes float64, ok bool) {
	i, _ := slices.BinarySearchFunc(curve, cost, func(p Point, c float64) int { return cmp.Compare(p.OnlineCoreHours, c) })
	switch {
	case len(curve) == 0 || i == 0 && curve[0].OnlineCoreHours != cost:
		return 0, false
	case i == len(curve):
		return 0, curve[i-1].Minutes == 0
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
