package view

import (
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
)

// NewQuotasCommand makes `springtide quotas`.
func NewQuotasCommand(o *cluster.Options) *cobra.Command {
	type Q = v1alpha1.CapacityQuota
	plain := func(a *v1alpha1.ResourceAmounts) string {
		return strconv.FormatFloat(a.CPU.AsApproximateFloat64(), 'f', -1, 64)
	}
	seen := func(q *Q, a *v1alpha1.ResourceAmounts) string {
		if cell.Refused(q.Status.Conditions) != "" {
			return cell.None
		}
		return cell.Written(q.Status.ObservedGeneration, plain(a))
	}
	v := view[Q]{plural: cluster.Quotas,
		empty: "no CapacityQuota: write one for each tenant",
		columns: []column[Q]{
			{"PARENT", wideAlone, func(q *Q) string { return cell.OrNone(q.Spec.Parent) }},
			{"NAMESPACES", wideAlone, func(q *Q) string { return cell.Written(q.Status.ObservedGeneration, cell.Number(q.Status.Namespaces)) }},
			{"GUARANTEE", always, func(q *Q) string { return plain(&q.Spec.Guarantee) }},
			{"ENTITLED", always, func(q *Q) string { return seen(q, &q.Status.Entitled) }},
			{"SERVICE LIMIT", always, func(q *Q) string { return seen(q, &q.Status.Limit) }},
			{"USED", always, func(q *Q) string { return cell.Written(q.Status.ObservedGeneration, plain(&q.Status.Used)) }},
			{"BORROWED", always, func(q *Q) string { return seen(q, &q.Status.Borrowed) }},
			{"LENT", always, func(q *Q) string { return seen(q, &q.Status.Lent) }},
			{"OVER", always, func(q *Q) string { return seen(q, &q.Status.Over) }},
			{"DEADLINE", tableOnly, func(q *Q) string { return cell.ShortTime(q.Status.DrainDeadline) }},
			{"DEADLINE", wideAlone, func(q *Q) string { return cell.Stamp(q.Status.DrainDeadline) }},
			{"ACCEPTED", wideAlone, func(q *Q) string { return cell.Condition(q.Status.Conditions, catalog.ConditionAccepted) }},
			{"KEPT", wideAlone, func(q *Q) string { return cell.Verdict(q.Status.Conditions, catalog.ConditionGuaranteeKept) }},
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
	if why := cell.Refused(q.Status.Conditions); why != "" {
		return "Refused (" + why + ")"
	}
	if c := meta.FindStatusCondition(q.Status.Conditions, catalog.ConditionReady); c != nil &&
		c.Reason == catalog.QuotaReadyShortAhead.Reason() {
		return c.Reason
	}
	return cell.Verdict(q.Status.Conditions, catalog.ConditionReady)
}

// readyText is condition Ready; a shortage to come is shown though the tenant is well today.
func readyText(list []metav1.Condition) string {
	if c := meta.FindStatusCondition(list, catalog.ConditionReady); c != nil &&
		c.Reason == catalog.QuotaReadyShortAhead.Reason() {
		return "True (ShortAhead)"
	}
	return cell.Condition(list, catalog.ConditionReady)
}
