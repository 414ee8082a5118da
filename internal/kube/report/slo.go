package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/slo"
)

// sloGist is what of a budget is worth a write of its own: numbers go with the next one.
type sloGist struct {
	Quantile, Why string
	Missed, Burns bool
	Objective     v1alpha1.ObjectiveStatus
	// Capacity has two digits, so that it does not change with each of its small steps.
	Capacity, Basis string
}

func gistOfSLO(s *v1alpha1.SLOStatus) sloGist {
	if s == nil {
		return sloGist{}
	}
	burn, _ := strconv.ParseFloat(s.Burn1h, 64)
	return sloGist{Quantile: s.Quantile, Why: s.QuantileReason, Missed: s.BudgetLeftMinutes != nil &&
		*s.BudgetLeftMinutes < 0,
		Burns: burn >= slo.BurnRises, Objective: s.Objective, Capacity: s.CapacityPerReplica, Basis: s.CapacityBasis}
}

// sloStatus is what became of what the service promises; nil where it promises nothing. Before the first minute was
// judged it has the objective and the capacity alone.
func (v *serviceView) sloStatus() *v1alpha1.SLOStatus {
	if len(v.svc.SLO.Levels) == 0 {
		return nil
	}
	good, over := loop.Objective(v.svc)
	o := &v.svc.SLO.Objective
	s := &v1alpha1.SLOStatus{Objective: v1alpha1.ObjectiveStatus{GoodMinutes: v1alpha1.PercentOf(good),
		Over: v1alpha1.DurationOf(over), Default: o.Default || o.GoodMinutes == 0}}
	v.capacityStatus(s)
	if a := v.r.Accounts[v.svc.ID]; a != nil {
		v.budgetStatus(s, a, good, over)
	}
	return s
}

// capacityStatus shows what one replica carries and what that is taken from.
func (v *serviceView) capacityStatus(s *v1alpha1.SLOStatus) {
	if v.target == nil || v.target.CapacityPerReplica <= 0 {
		return
	}
	s.CapacityPerReplica = v.perReplica()
	switch b := &v.target.Basis; {
	case b.Level != "":
		s.CapacityBasis = "learned: " + b.Level
	default:
		s.CapacityBasis = "rule: " + string(v1alpha1.PercentOf(hpa.UtilisationTarget(v.svc))) + " of the CPU request"
	}
}

// budgetStatus fills in what was judged.
func (v *serviceView) budgetStatus(s *v1alpha1.SLOStatus, a *slo.Account, good float64, over time.Duration) {
	b := &a.Budget
	s.BudgetMinutes, s.BudgetLeftMinutes = int32(slo.Allowed(good, over)+1e-6), new(int32(math.Floor(b.Left(good,
		over)+1e-6)))
	s.UnknownMinutes = int32(b.Sum().Unknown)
	s.Burn1h, s.Burn6h = burnText(b.Burn(time.Hour, good)), burnText(b.Burn(6*time.Hour, good))
	s.Quantile, s.QuantileReason = strconv.FormatFloat(v.svc.Quantile, 'f', -1, 64), string(a.Choice.Why.Code)
	s.QuantileMessage = v1alpha1.Clip(a.Choice.Why.Text(), 1024)
	if since := b.Since(); !since.IsZero() {
		s.Since = convert.Stamp(since)
	}
	if met := b.Met(); met.OK {
		s.Met = percentText(met.Value)
	}
	bad := map[string]int{}
	for _, n := range b.ByLevel() {
		bad[n.Name] = n.Bad
	}
	for i := range v.svc.SLO.Levels {
		l := &v.svc.SLO.Levels[i]
		x := v1alpha1.SLOLevelStatus{Name: l.Name, Source: sourceText(&l.Source), BadMinutes: int32(bad[l.Name])}
		v.curve(&x)
		s.Levels = append(s.Levels, x)
	}
	causes := b.ByCause()
	slices.SortStableFunc(causes, func(a, b slo.Named) int { return cmp.Compare(b.Bad, a.Bad) })
	for _, c := range causes {
		s.Causes = append(s.Causes, v1alpha1.SLOCauseStatus{Cause: c.Name, BadMinutes: int32(c.Bad)})
	}
}

// curvePoints is how many points of a curve are shown.
const curvePoints = 12

// curve fills in what was learned of a level.
func (v *serviceView) curve(x *v1alpha1.SLOLevelStatus) {
	p, ok := v.r.Portraits[v.svc.ID]
	if !ok {
		return
	}
	l := p.Capacity.Of(x.Name)
	if l == nil {
		return
	}
	if e := l.Capacity(l.Objective); e.Load > 0 {
		x.CapacityPerReplica = v.loadText(e.Load)
	}
	all := l.Curve()
	n := min(len(all), curvePoints)
	for i := range n {
		at := all[i*(len(all)-1)/max(n-1, 1)]
		x.Curve = append(x.Curve, v1alpha1.SLOCurvePoint{Load: v.loadText(at.Load),
			Held: v1alpha1.PercentOf(math.Round(at.Share*1e4) / 1e4)})
	}
}

// percentText is a share rounded down to thousandths of a percent: what was missed by a minute is not shown as kept.
func percentText(share float64) string {
	return strconv.FormatFloat(math.Floor(share*1e5+1e-6)/1e3, 'f', -1, 64) + "%"
}

func burnText(burn fleet.Known[float64]) string {
	if !burn.OK {
		return ""
	}
	return strconv.FormatFloat(burn.Value, 'f', 1, 64)
}

// sourceText names what measures a level.
func sourceText(s *fleet.Source) string {
	switch {
	case s.Preset != "":
		return s.Preset
	case s.Histogram.Name != "":
		return v1alpha1.Clip("histogram "+s.Histogram.Name, 160)
	case s.Query != "" || s.Bad != "":
		return "query"
	}
	return ""
}
