package explain

import (
	"context"
	"fmt"
	"strings"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
)

func explainQuota(ctx context.Context, o *cluster.Options, c *cluster.Clients, arg string) (*explanation, error) {
	name := fleet.Name{Name: arg}
	q, err := cluster.Get[v1alpha1.CapacityQuota](ctx, c, cluster.Quotas, name)
	if err != nil {
		return nil, err
	}
	st := &q.Status
	p := &screen.Page{Title: fmt.Sprintf("Quota %s (parent %s)", q.Name, cell.OrNone(q.Spec.Parent))}
	amount := func(a *v1alpha1.ResourceAmounts) string { return cell.Written(st.ObservedGeneration, cell.Amount(a)) }
	p.Add("Guarantee", "%s; of that in force now %s can be kept", cell.Amount(&q.Spec.Guarantee), amount(&st.Entitled))
	p.Add("Limits", "lends %s, borrows %s", limitText(q.Spec.LendingLimit), limitText(q.Spec.BorrowingLimit))
	p.Add("Uses", "%s; its services may request %s", amount(&st.Used), amount(&st.Limit))
	p.Add("Borrows", "%s, lends %s", amount(&st.Borrowed), amount(&st.Lent))
	if st.DrainDeadline != nil {
		var back []string
		if o := &st.Over; !o.CPU.IsZero() || !o.Memory.IsZero() || o.GPU > 0 {
			back = append(back, amount(o))
		}
		for _, x := range st.Parcels {
			if x.Over > 0 {
				back = append(back, fmt.Sprintf("%d %s", x.Over, x.Class))
			}
		}
		if len(back) == 0 {
			back = []string{"nothing more"}
		}
		p.Add("Gives back", "%s by %s, notified at %s", strings.Join(back, ", "), cell.Stamp(st.DrainDeadline), cell.Stamp(st.OverSince))
	}
	if b := q.Spec.Burst; b != nil {
		p.Add("Burst", "%d %% of the guarantee more for %d s; the last one began at %s", b.Percent, b.DurationSeconds, cell.Stamp(st.BurstSince))
	}
	p.Add("Why", "%s", cell.OrNone(st.Reason))
	rows := make([][]string, len(st.Parcels))
	for i, x := range st.Parcels {
		rows[i] = []string{x.Class, fmt.Sprint(x.Entitled), fmt.Sprint(x.Used), fmt.Sprint(x.Limit), fmt.Sprint(x.Over)}
	}
	p.Table("Parcels under offline work", "", []string{"CLASS", "ENTITLED", "USED", "LIMIT", "OVER"}, rows)
	slices := make([]v1alpha1.Window, len(q.Spec.Slices))
	for i, s := range q.Spec.Slices {
		slices[i] = v1alpha1.Window{Name: s.Name + " (" + cell.Amount(&s.Guarantee) + ")", Start: s.Start, Duration: s.Duration, TimeZone: s.TimeZone}
	}
	windows(p, slices, c.Now())
	p.Conditions(st.Conditions)
	// The journal keeps actions, and a quota takes none itself: what it cut is with its services and jobs.
	e := &explanation{page: p, Object: q}
	if e.Events, err = eventsOf(ctx, c, "CapacityQuota", name); err != nil {
		return nil, err
	}
	events(p, c.Clocks, e.Events)
	return e, nil
}

func limitText(a *v1alpha1.ResourceAmounts) string {
	if a == nil {
		return "without limit"
	}
	return "up to " + cell.Amount(a)
}
