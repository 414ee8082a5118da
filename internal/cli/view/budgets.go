package view

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
)

// NewBudgetsCommand makes the list of `springtide slo`: the budget of each service.
func NewBudgetsCommand(o *cluster.Options) *cobra.Command {
	type S = v1alpha1.ElasticService
	of := func(text func(*v1alpha1.SLOStatus) string) func(*S) string {
		return func(s *S) string {
			if s.Status.SLO == nil {
				return cell.None
			}
			return cell.OrNone(text(s.Status.SLO))
		}
	}
	v := view[S]{plural: cluster.Services, namespaced: true, least: "BUDGET",
		empty: "no ElasticService: write one, or take over an HPA with springtide adopt",
		seen:  func(s *S) *metav1.Time { return s.Status.ObservedTime },
		columns: []column[S]{
			{"OBJECTIVE", always, of(func(s *v1alpha1.SLOStatus) string {
				return string(s.Objective.GoodMinutes) + "/" +
					string(s.Objective.Over)
			})},
			{"MET", always, of(func(s *v1alpha1.SLOStatus) string { return s.Met })},
			{"BUDGET", always, of(func(s *v1alpha1.SLOStatus) string {
				if s.BudgetLeftMinutes == nil {
					return ""
				}
				return fmt.Sprintf("%dm of %dm", *s.BudgetLeftMinutes, s.BudgetMinutes)
			})},
			{"BURN 1H", always, of(func(s *v1alpha1.SLOStatus) string { return s.Burn1h })},
			{"BURN 6H", always, of(func(s *v1alpha1.SLOStatus) string { return s.Burn6h })},
			{"UNKNOWN", wideAlone, of(func(s *v1alpha1.SLOStatus) string { return fmt.Sprintf("%dm", s.UnknownMinutes) })},
			{"SINCE", wideAlone, of(func(s *v1alpha1.SLOStatus) string { return cell.Stamp(s.Since) })},
			{"BROKEN", wideAlone, of(brokenLevels)},
			{"QUANTILE", always, of(func(s *v1alpha1.SLOStatus) string { return s.Quantile })},
			{"WHY", wideAlone, of(func(s *v1alpha1.SLOStatus) string { return s.QuantileMessage })},
			{"CAUSES", always, of(causesText)},
		}}
	return newListCommand(o, v, &cobra.Command{
		Use:   "slo",
		Short: "List what is left of services' error budgets, and why minutes were bad",
		Long: "List services by what became of their objectives. A minute is bad when any stated level is broken in it. " +
			"BUDGET is how\n" +
			"many more minutes may be bad within the window, and of how many; below zero the objective is missed. A BURN of 1 " +
			"uses\n" +
			"the budget up exactly as the window ends. CAUSES are Lending, Room, Bounds, Quota, StartUp, Forecast, Service " +
			"(its own\n" +
			"code) and Unwatched (read back from Prometheus). QUANTILE is the quantile of the tide that the service is sized " +
			"for;\n" +
			"-o wide says why.",
		Example: "  springtide slo -A --sort-by budget\n  springtide slo export -n shop --format sloth",
	})
}

// brokenLevels are the levels that were broken, with their minutes.
func brokenLevels(s *v1alpha1.SLOStatus) string {
	var out []string
	for _, l := range s.Levels {
		if l.BadMinutes > 0 {
			out = append(out, fmt.Sprintf("%s %dm", l.Name, l.BadMinutes))
		}
	}
	return strings.Join(out, ", ")
}

// causesText are the causes of bad minutes, the largest first.
func causesText(s *v1alpha1.SLOStatus) string {
	var out []string
	for _, c := range s.Causes {
		out = append(out, fmt.Sprintf("%s %dm", c.Cause, c.BadMinutes))
	}
	return strings.Join(out, ", ")
}
