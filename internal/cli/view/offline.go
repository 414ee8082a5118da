package view

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
)

// NewJobsCommand makes `springtide jobs`.
func NewJobsCommand(o *cluster.Options) *cobra.Command {
	type J = v1alpha1.ElasticJob
	known := func(j *J, text string) string {
		if cell.Refused(j.Status.Conditions) != "" {
			return cell.None
		}
		return cell.Written(j.Status.ObservedGeneration, text)
	}
	v := view[J]{plural: cluster.Jobs, namespaced: true, acts: true,
		empty: "no ElasticJob: write one for work that lives between two sizes (docs/offline-work.md)",
		columns: []column[J]{
			{"PRIORITY", always, func(j *J) string { return cell.OrNone(j.Spec.Priority) }},
			{"ACTIVE", always, func(j *J) string { return known(j, fmt.Sprintf("%d/%d", j.Status.Active, j.Status.Desired)) }},
			{"BOUNDS", wideAlone, jobBounds},
			{"GANG", always, func(j *J) string { return gangWord(j) }},
			{"ETA", always, func(j *J) string { return etaWord(j.Status.ETA) }},
			{"RECALLED", wideAlone, func(j *J) string { return cell.ShortTime(j.Status.LastRecallTime) }},
			{"STATE", always, jobState},
			{"REASON", always, func(j *J) string { return jobReason(j) }},
		}}
	return newListCommand(o, v, &cobra.Command{
		Use:     "jobs",
		Aliases: []string{"job", "ejob"},
		Short:   "List offline jobs: members that run, whether the gang is whole, and when a waiting job begins",
		Long: "List offline jobs. ACTIVE is how many members run of those that are wanted. ETA is when a job that waits is expected to begin:\n" +
			"springtide explain job NAME gives the band and what it waits for. -o wide adds BOUNDS and RECALLED, when members left last.",
		Example: "  springtide jobs -A --sort-by eta\n  springtide jobs train -n ml -w",
	})
}

func jobBounds(j *v1alpha1.ElasticJob) string {
	var least, most int32
	for i := range j.Spec.Members {
		least, most = least+j.Spec.Members[i].Min, most+j.Spec.Members[i].Max
	}
	return fmt.Sprintf("%d-%d", least, most)
}

func gangWord(j *v1alpha1.ElasticJob) string {
	if j.Status.Gang == nil {
		return cell.None
	}
	return j.Status.Gang.Phase
}

// etaWord is when a job begins, or that this cannot be said.
func etaWord(e *v1alpha1.ETAStatus) string {
	switch {
	case e == nil:
		return cell.None
	case e.Expected == nil:
		return "Unknown"
	}
	return cell.ShortTime(e.Expected)
}

func jobState(j *v1alpha1.ElasticJob) string {
	able := meta.FindStatusCondition(j.Status.Conditions, catalog.ConditionAbleToScale)
	switch {
	case cell.Refused(j.Status.Conditions) != "":
		return "Refused"
	case able != nil && able.Reason == "Frozen":
		return "Frozen"
	case j.Status.ObservedGeneration == 0:
		return "Unknown"
	case j.Status.ETA != nil:
		return "Waiting"
	}
	return "OK"
}

func jobReason(j *v1alpha1.ElasticJob) string {
	if why := cell.Refused(j.Status.Conditions); why != "" {
		return why
	}
	if e := j.Status.ETA; e != nil {
		return cell.OrNone(e.Reason)
	}
	return cell.Gist(j.Status.Reason)
}

// lifts counts the services that a plan lifts in any phase.
func lifts(f *v1alpha1.FestivalPlan) int {
	services := map[[2]string]bool{}
	for _, p := range f.Spec.Phases {
		for _, l := range p.Lifts {
			services[[2]string{l.Namespace, l.Service}] = true
		}
	}
	return len(services)
}

// NewFestivalsCommand makes `springtide festivals`.
func NewFestivalsCommand(o *cluster.Options) *cobra.Command {
	type F = v1alpha1.FestivalPlan
	v := view[F]{plural: cluster.Festivals,
		empty: "no FestivalPlan: write one, and see what it asks for with springtide festival check",
		columns: []column[F]{
			{"START", always, func(f *F) string { return cell.Stamp(f.Status.Start) }},
			{"END", always, func(f *F) string { return cell.Stamp(f.Status.End) }},
			{"APPROVED", always, func(f *F) string { return fmt.Sprint(f.Spec.Approved) }},
			{"LIFTS", always, func(f *F) string { return cell.Number(lifts(f)) }},
			{"PHASE", always, func(f *F) string { return cell.OrNone(f.Status.Phase) }},
			{"READY", tableOnly, func(f *F) string {
				if why := cell.Refused(f.Status.Conditions); why != "" {
					return "Refused (" + why + ")"
				}
				return cell.Verdict(f.Status.Conditions, catalog.ConditionReady)
			}},
			{"READY", wideAlone, func(f *F) string { return cell.Condition(f.Status.Conditions, catalog.ConditionReady) }},
		}}
	return newListCommand(o, v, &cobra.Command{
		Use:     "festivals",
		Aliases: []string{"fest"},
		Short:   "List festival plans: when they lift services, and whether they are approved",
		Example: "  springtide festivals --sort-by start",
	})
}
