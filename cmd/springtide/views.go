package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/springtide/springtide/api/v1alpha1"
)

func newServicesCommand(o *cliOptions) *cobra.Command {
	type S = v1alpha1.ElasticService
	v := view[S]{plural: services, namespaced: true,
		empty: "no ElasticService: write one, or take over an HPA with springtide adopt",
		columns: []column[S]{
			{"TARGET", true, func(s *S) string { return s.Spec.TargetRef.Kind + "/" + s.Spec.TargetRef.Name }},
			{"MODE", false, func(s *S) string { return modeText(s) }},
			{"MIN", false, func(s *S) string { return number(s.Spec.Replicas.Min) }},
			{"MAX", false, func(s *S) string { return number(s.Spec.Replicas.Max) }},
			{"REPLICAS", false, func(s *S) string { return told(s.Status.ObservedGeneration, number(s.Status.Replicas)) }},
			{"READY", false, func(s *S) string { return told(s.Status.ObservedGeneration, number(s.Status.ReadyReplicas)) }},
			{"DESIRED", false, func(s *S) string { return told(s.Status.ObservedGeneration, number(s.Status.DesiredReplicas)) }},
			{"FLOOR", false, func(s *S) string { return told(s.Status.ObservedGeneration, number(s.Status.FloorReplicas)) }},
			{"PEAK", false, func(s *S) string { return peakText(s.Status.Tide) }},
			{"MODEL", true, func(s *S) string { return modelText(s.Status.Tide) }},
			{"ACCEPTED", false, func(s *S) string { return condition(s.Status.Conditions, v1alpha1.ConditionAccepted) }},
			{"FRESH", false, func(s *S) string { return condition(s.Status.Conditions, v1alpha1.ConditionDataFresh) }},
			{"FORECAST", true, func(s *S) string { return condition(s.Status.Conditions, v1alpha1.ConditionForecastReady) }},
			{"SCALED", true, func(s *S) string { return stamp(s.Status.LastScaleTime) }},
			{"REASON", false, func(s *S) string { return orNone(s.Status.Reason) }},
		}}
	return newListCommand(o, v, &cobra.Command{
		Use:     "services",
		Aliases: []string{"service", "esvc"},
		Short:   "List online services: replicas, what is wanted, and why",
		Long: "List online services. DESIRED is what Springtide wants now (or would want, in mode Observe or Recommend), FLOOR what the forecast\n" +
			"asks for with the start-up time of a pod as lead, PEAK the largest demand of the coming day and when it comes.",
	})
}

// told is a figure of a status that was written; before that it is not known, which is not 0.
func told(observedGeneration int64, text string) string {
	if observedGeneration == 0 {
		return none
	}
	return text
}

func modeText(s *v1alpha1.ElasticService) string {
	if p := s.Spec.Pause; p != "" && p != v1alpha1.DefaultPause {
		return fmt.Sprintf("%s (paused: %s)", s.Spec.Mode, strings.ToLower(p))
	}
	return orNone(s.Spec.Mode)
}

func peakText(t *v1alpha1.TideStatus) string {
	if t == nil {
		return none
	}
	return fmt.Sprintf("%d at %s", t.PeakReplicas, clockTime(t.PeakTime))
}

func modelText(t *v1alpha1.TideStatus) string {
	if t == nil {
		return none
	}
	return orNone(t.Model)
}

func newPoolsCommand(o *cliOptions) *cobra.Command {
	type P = v1alpha1.CapacityPool
	v := view[P]{plural: pools,
		empty: "no CapacityPool: write one for the online machines and one for the offline side",
		columns: []column[P]{
			{"CLASS", false, func(p *P) string { return p.Spec.Class }},
			{"MODE", false, func(p *P) string { return orNone(p.Spec.Mode) }},
			{"UNIT", true, func(p *P) string { return orNone(p.Spec.LendableUnit) }},
			{"NODES", false, func(p *P) string { return told(p.Status.ObservedGeneration, number(p.Status.Nodes)) }},
			{"CPU", false, func(p *P) string { return told(p.Status.ObservedGeneration, p.Status.Capacity.CPU.String()) }},
			{"REQUESTED", false, func(p *P) string {
				return told(p.Status.ObservedGeneration, withShare(p.Status.Requested.CPU.MilliValue(), &p.Status))
			}},
			{"LENT CPU", false, func(p *P) string {
				return told(p.Status.ObservedGeneration, withShare(p.Status.Lent.CPU.MilliValue(), &p.Status))
			}},
			{"LENT NODES", false, func(p *P) string { return told(p.Status.ObservedGeneration, number(p.Status.LentNodes)) }},
			{"LENT SOCKETS", false, func(p *P) string { return told(p.Status.ObservedGeneration, number(p.Status.LentSockets)) }},
			{"MOVING", false, func(p *P) string { return told(p.Status.ObservedGeneration, number(p.Status.Moving)) }},
			{"RECALLS", true, func(p *P) string { return number(p.Status.Disruptions.Recalls) }},
			{"EVICTIONS", true, func(p *P) string { return number(p.Status.Disruptions.Evictions) }},
			{"READY", false, func(p *P) string { return condition(p.Status.Conditions, v1alpha1.ConditionReady) }},
			{"PINNED", false, func(p *P) string { return pinnedText(p.Status.Pinned) }},
		}}
	return newListCommand(o, v, &cobra.Command{
		Use:     "pools",
		Aliases: []string{"pool", "cpool"},
		Short:   "List pools: capacity, what is asked for, what is lent and moving",
		Long: "List pools. REQUESTED and LENT CPU are in cores, with their share of the pool's capacity; PINNED names machines that could not be\n" +
			"emptied (springtide explain node NAME says by what).",
	})
}

// withShare prints cores and their share of the pool.
func withShare(milli int64, s *v1alpha1.CapacityPoolStatus) string {
	whole := s.Capacity.CPU.MilliValue()
	if whole <= 0 {
		return fmt.Sprint(milli / 1000)
	}
	return fmt.Sprintf("%d (%d%%)", milli/1000, milli*100/whole)
}

func pinnedText(pinned []v1alpha1.PinnedNode) string {
	if len(pinned) == 0 {
		return none
	}
	names := make([]string, len(pinned))
	for i, p := range pinned {
		names[i] = p.Node
	}
	const shown = 3
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

func newLoansCommand(o *cliOptions) *cobra.Command {
	type L = v1alpha1.Loan
	v := view[L]{plural: loans,
		empty: "no loans: every parcel is at home",
		columns: []column[L]{
			{"NODE", false, func(l *L) string { return l.Spec.NodeName }},
			{"KIND", false, func(l *L) string { return l.Spec.Kind }},
			{"CELLS", true, func(l *L) string { return strings.Trim(fmt.Sprint(l.Spec.Cells), "[]") }},
			{"FROM", false, func(l *L) string { return l.Spec.From }},
			{"TO", false, func(l *L) string { return l.Spec.To }},
			{"PHASE", false, func(l *L) string { return phaseText(&l.Status) }},
			{"EPOCH", false, func(l *L) string { return number(max(l.Status.Epoch, 1)) }},
			{"CAPACITY", true, func(l *L) string { return amountText(&l.Spec.Capacity) }},
			{"BEGUN", true, func(l *L) string { return stamp(&l.Spec.BeginTime) }},
			{"SINCE", false, func(l *L) string { return stamp(l.Status.Since) }},
			{"EXPECTED UNTIL", false, func(l *L) string { return stamp(l.Status.ExpectedUntil) }},
			{"DUE", false, func(l *L) string { return stamp(l.Status.Due) }},
			{"DEADLINE", false, func(l *L) string { return stamp(l.Status.Deadline) }},
			{"REASON", false, func(l *L) string { return orNone(l.Status.Reason) }},
		}}
	return newListCommand(o, v, &cobra.Command{
		Use:     "loans",
		Aliases: []string{"loan"},
		Short:   "List parcels away from home, or on their way: who, from whom, since when, due when",
		Long: "List loans. SINCE is when the phase was entered, EXPECTED UNTIL until when the forecast does not ask for a lent parcel, DUE when the\n" +
			"parcel is wanted back, DEADLINE the latest announced deadline of the notice. Times are those of the controller's clock.",
	})
}

// phaseText is the phase; a status that was never written is that of a loan just begun.
func phaseText(s *v1alpha1.LoanStatus) string {
	if s.Phase == "" {
		return "Emptying"
	}
	return s.Phase
}
