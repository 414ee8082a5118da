package backtest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/forecast/plain"
	"github.com/springtide/springtide/series"
)

// Rolling says at which origins series are forecast.
type Rolling struct {
	// Horizon is the number of steps to forecast, Stride how many lie between two origins, Origins their number. Where Stride is less
	// than Horizon a step counts more than once.
	Horizon, Stride, Origins int
	Options                  plain.Options
}

// leastPeriods is how many of its shorter season a series must have before an origin: errors are scaled by how it repeats itself.
const leastPeriods = 2

// Sets cuts the origins. They are moments that series share: at one of them a forecaster may see what every series was before it, and a
// history that reaches further would show what came for another. Series of one step that end within half a horizon of each other share
// their origins, counted back from the newest end; the values that the others lack at their ends are gaps.
//
// skipped says of each series without any origin why that is so, in the order of the series.
func (r Rolling) Sets(all []plain.History) (sets []Set, skipped []string) {
	used := make([]bool, len(all))
	for _, group := range cohorts(all, r.Horizon) {
		for k := range r.Origins {
			s := Set{Origin: k, Horizon: r.Horizon, Options: r.Options}
			for _, i := range group.members {
				at := group.end.Add(-time.Duration(r.Horizon+k*r.Stride) * all[i].Step)
				if c, ok := r.cut(all[i], at); ok {
					s.Cases = append(s.Cases, c)
					used[i] = true
				}
			}
			if len(s.Cases) > 0 {
				sets = append(sets, s)
			}
		}
	}
	for i, h := range all {
		if !used[i] {
			skipped = append(skipped, fmt.Sprintf("%s: %s", h.ID, r.why(h)))
		}
	}
	return sets, skipped
}

// cohort is a group of series that share their origins: end is the newest of their ends, members are rising.
type cohort struct {
	end     time.Time
	members []int
}

// cohorts groups series by their step and, roughly, their end, in the order of each group's first member.
func cohorts(all []plain.History, horizon int) []cohort {
	order := make([]int, 0, len(all))
	for i := range all {
		if all[i].Step > 0 && all[i].Len() > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return all[b].End().Compare(all[a].End()) })
	var out []cohort
next:
	for _, i := range order {
		for g := range out {
			step := all[out[g].members[0]].Step
			if step == all[i].Step && 2*out[g].end.Sub(all[i].End()) < time.Duration(horizon)*step {
				out[g].members = append(out[g].members, i)
				continue next
			}
		}
		out = append(out, cohort{end: all[i].End(), members: []int{i}})
	}
	for g := range out {
		slices.Sort(out[g].members)
	}
	slices.SortFunc(out, func(a, b cohort) int { return a.members[0] - b.members[0] })
	return out
}

// cut splits a series at a time: the history holds what ended by then. It is no case where too little is known on either side.
func (r Rolling) cut(h plain.History, at time.Time) (Case, bool) {
	n := 0
	if at.After(h.Start) {
		n = min(int(at.Sub(h.Start)/h.Step), h.Len())
	}
	period := r.period(h)
	past := series.Series{Start: h.Start, Step: h.Step, Values: h.Values[:n]}
	if past.Known() < leastPeriods*period+1 {
		return Case{}, false
	}
	actual := slices.Repeat([]float64{math.NaN()}, r.Horizon)
	copy(actual, h.Values[n:])
	if 2*missing(actual) > 1 {
		return Case{}, false
	}
	return Case{Series: h.ID, History: past, Actual: actual, Period: period}, true
}

// period is the shortest season, by which errors are scaled; 1 where a step shows none.
func (r Rolling) period(h plain.History) int {
	if p := r.Options.Periods(h.Step); len(p) > 0 {
		return p[0]
	}
	return 1
}

func (r Rolling) why(h plain.History) string {
	need := leastPeriods*r.period(h) + 1
	return fmt.Sprintf("no origin: %d values are known, and a backtest needs %d before an origin and half of the %d after it", h.Known(), need, r.Horizon)
}
