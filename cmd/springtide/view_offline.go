package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/springtide/springtide/api/v1alpha1"
)

func newJobsCommand(o *cliOptions) *cobra.Command {
	type J = v1alpha1.ElasticJob
	known := func(j *J, text string) string {
		if refused(j.Status.Conditions) != "" {
			return none
		}
		return told(j.Status.ObservedGeneration, text)
	}
	v := view[J]{plural: jobs, namespaced: true, acts: true,
		empty: "no ElasticJob: write one for work that lives between two sizes (docs/offline-work.md)",
		columns: []column[J]{
			{"PRIORITY", always, func(j *J) string { return orNone(j.Spec.Priority) }},
			{"ACTIVE", always, func(j *J) string { return known(j, fmt.Sprintf("%d/%d", j.Status.Active, j.Status.Desired)) }},
			{"BOUNDS", wideAlone, jobBounds},
			{"GANG", always, func(j *J) string { return gangWord(j) }},
			{"ETA", always, func(j *J) string { return etaWord(j.Status.ETA) }},
			{"RECALLED", wideAlone, func(j *J) string { return shortTime(j.Status.LastRecallTime) }},
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
		return none
	}
	return j.Status.Gang.Phase
}

// etaWord is when a job begins, or that this cannot be said.
func etaWord(e *v1alpha1.ETAStatus) string {
	switch {
	case e == nil:
		return none
	case e.Expected == nil:
		return "Unknown"
	}
	return shortTime(e.Expected)
}

func jobState(j *v1alpha1.ElasticJob) string {
	able := meta.FindStatusCondition(j.Status.Conditions, v1alpha1.ConditionAbleToScale)
	switch {
	case refused(j.Status.Conditions) != "":
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
	if why := refused(j.Status.Conditions); why != "" {
		return why
	}
	if e := j.Status.ETA; e != nil {
		return orNone(e.Reason)
	}
	return gist(j.Status.Reason)
}

func newFestivalsCommand(o *cliOptions) *cobra.Command {
	type F = v1alpha1.FestivalPlan
	v := view[F]{plural: festivals,
		empty: "no FestivalPlan: write one, and see what it asks for with springtide festival check",
		columns: []column[F]{
			{"START", always, func(f *F) string { return stamp(&f.Spec.Start) }},
			{"END", always, func(f *F) string { return stamp(&f.Spec.End) }},
			{"APPROVED", always, func(f *F) string { return fmt.Sprint(f.Spec.Approved) }},
			{"LIFTS", always, func(f *F) string { return number(len(f.Spec.Lifts)) }},
			{"PHASE", always, func(f *F) string { return orNone(f.Status.Phase) }},
			{"READY", tableOnly, func(f *F) string {
				if why := refused(f.Status.Conditions); why != "" {
					return "Refused (" + why + ")"
				}
				return verdict(f.Status.Conditions, v1alpha1.ConditionReady)
			}},
			{"READY", wideAlone, func(f *F) string { return condition(f.Status.Conditions, v1alpha1.ConditionReady) }},
		}}
	return newListCommand(o, v, &cobra.Command{
		Use:     "festivals",
		Aliases: []string{"fest"},
		Short:   "List festival plans: when they lift services, and whether they are approved",
		Example: "  springtide festivals --sort-by start",
	})
}
