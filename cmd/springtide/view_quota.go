package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

func newQuotasCommand(o *cliOptions) *cobra.Command {
	type Q = v1alpha1.CapacityQuota
	plain := func(a *v1alpha1.ResourceAmounts) string {
		return strconv.FormatFloat(a.CPU.AsApproximateFloat64(), 'f', -1, 64)
	}
	seen := func(q *Q, a *v1alpha1.ResourceAmounts) string {
		if refused(q.Status.Conditions) != "" {
			return none
		}
		return told(q.Status.ObservedGeneration, plain(a))
	}
	v := view[Q]{plural: quotas,
		empty: "no CapacityQuota: write one for each tenant",
		columns: []column[Q]{
			{"PARENT", wideAlone, func(q *Q) string { return orNone(q.Spec.Parent) }},
			{"NAMESPACES", wideAlone, func(q *Q) string { return told(q.Status.ObservedGeneration, number(q.Status.Namespaces)) }},
			{"GUARANTEE", always, func(q *Q) string { return plain(&q.Spec.Guarantee) }},
			{"ENTITLED", always, func(q *Q) string { return seen(q, &q.Status.Entitled) }},
			{"SERVICE LIMIT", always, func(q *Q) string { return seen(q, &q.Status.Limit) }},
			{"USED", always, func(q *Q) string { return told(q.Status.ObservedGeneration, plain(&q.Status.Used)) }},
			{"BORROWED", always, func(q *Q) string { return seen(q, &q.Status.Borrowed) }},
			{"LENT", always, func(q *Q) string { return seen(q, &q.Status.Lent) }},
			{"OVER", always, func(q *Q) string { return seen(q, &q.Status.Over) }},
			{"DEADLINE", tableOnly, func(q *Q) string { return shortTime(q.Status.DrainDeadline) }},
			{"DEADLINE", wideAlone, func(q *Q) string { return stamp(q.Status.DrainDeadline) }},
			{"ACCEPTED", wideAlone, func(q *Q) string { return condition(q.Status.Conditions, v1alpha1.ConditionAccepted) }},
			{"KEPT", wideAlone, func(q *Q) string { return verdict(q.Status.Conditions, v1alpha1.ConditionGuaranteeKept) }},
			{"READY", tableOnly, func(q *Q) string { return quotaState(q) }},
			{"READY", wideAlone, func(q *Q) string { return readyText(q.Status.Conditions) }},
		}}
	return newListCommand(o, v, &cobra.Command{
		Use:     "quotas",
		Aliases: []string{"quota", "cquota"},
		Short:   "List tenants: what each is guaranteed, may use, uses, borrows, lends and must give back",
		Long: "List tenants, in cores. ENTITLED is what of the guarantee in force (time slices included) can be kept. SERVICE LIMIT is the most\n" +
			"that the tenant's services may request now; USED counts offline work too. OVER is what is to be given back by DEADLINE: springtide explain quota NAME says why.",
		Example: "  springtide quotas --sort-by over\n  springtide quotas shop -o wide",
	})
}

// quotaState is condition Ready in a word, or why the quota is refused.
func quotaState(q *v1alpha1.CapacityQuota) string {
	if why := refused(q.Status.Conditions); why != "" {
		return "Refused (" + why + ")"
	}
	if c := meta.FindStatusCondition(q.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Reason == "ShortAhead" {
		return c.Reason
	}
	return verdict(q.Status.Conditions, v1alpha1.ConditionReady)
}

// readyText is condition Ready; a shortage to come is told though the tenant is well today.
func readyText(list []metav1.Condition) string {
	if c := meta.FindStatusCondition(list, v1alpha1.ConditionReady); c != nil && c.Reason == "ShortAhead" {
		return "True (ShortAhead)"
	}
	return condition(list, v1alpha1.ConditionReady)
}

func explainQuota(ctx context.Context, o *cliOptions, c *clients, arg string) (*explanation, error) {
	name := fleet.Name{Name: arg}
	q, err := get[v1alpha1.CapacityQuota](ctx, c, quotas, name)
	if err != nil {
		return nil, err
	}
	st := &q.Status
	p := &page{title: fmt.Sprintf("Quota %s (parent %s)", q.Name, orNone(q.Spec.Parent))}
	amount := func(a *v1alpha1.ResourceAmounts) string { return told(st.ObservedGeneration, amountText(a)) }
	p.add("Guarantee", "%s; of that in force now %s can be kept", amountText(&q.Spec.Guarantee), amount(&st.Entitled))
	p.add("Limits", "lends %s, borrows %s", limitText(q.Spec.LendingLimit), limitText(q.Spec.BorrowingLimit))
	p.add("Uses", "%s; its services may request %s", amount(&st.Used), amount(&st.Limit))
	p.add("Borrows", "%s, lends %s", amount(&st.Borrowed), amount(&st.Lent))
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
		p.add("Gives back", "%s by %s, notified at %s", strings.Join(back, ", "), stamp(st.DrainDeadline), stamp(st.OverSince))
	}
	if b := q.Spec.Burst; b != nil {
		p.add("Burst", "%d %% of the guarantee more for %d s; the last one began at %s", b.Percent, b.DurationSeconds, stamp(st.BurstSince))
	}
	p.add("Why", "%s", orNone(st.Reason))
	rows := make([][]string, len(st.Parcels))
	for i, x := range st.Parcels {
		rows[i] = []string{x.Class, fmt.Sprint(x.Entitled), fmt.Sprint(x.Used), fmt.Sprint(x.Limit), fmt.Sprint(x.Over)}
	}
	p.table("Parcels under offline work", "", []string{"CLASS", "ENTITLED", "USED", "LIMIT", "OVER"}, rows)
	slices := make([]v1alpha1.Window, len(q.Spec.Slices))
	for i, s := range q.Spec.Slices {
		slices[i] = v1alpha1.Window{Name: s.Name + " (" + amountText(&s.Guarantee) + ")", Start: s.Start, Duration: s.Duration, TimeZone: s.TimeZone}
	}
	p.windows(slices, c.now())
	p.conditions(st.Conditions)
	// The journal keeps actions, and a quota takes none itself: what it cut is with its services and jobs.
	e := &explanation{page: p, Object: q}
	if e.Events, err = eventsOf(ctx, c, "CapacityQuota", name); err != nil {
		return nil, err
	}
	p.events(c.clocks, e.Events)
	return e, nil
}

func limitText(a *v1alpha1.ResourceAmounts) string {
	if a == nil {
		return "without limit"
	}
	return "up to " + amountText(a)
}
