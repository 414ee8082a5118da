package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/internal/kube/facts"
)

func newServicesCommand(o *cliOptions) *cobra.Command {
	type S = v1alpha1.ElasticService
	known := func(s *S, text string) string {
		if refused(s.Status.Conditions) != "" {
			return none
		}
		return told(s.Status.ObservedGeneration, text)
	}
	v := view[S]{plural: services, namespaced: true, acts: true,
		empty: "no ElasticService: write one, or take over an HPA with springtide adopt",
		seen:  func(s *S) *metav1.Time { return s.Status.ObservedTime },
		columns: []column[S]{
			{"TARGET", wideAlone, func(s *S) string { return s.Spec.TargetRef.Kind + "/" + s.Spec.TargetRef.Name }},
			{"MODE", always, func(s *S) string { return orNone(s.Spec.Mode) }},
			{"PAUSE", wideAlone, func(s *S) string { return orNone(s.Spec.Pause) }},
			{"RANGE", always, func(s *S) string { return fmt.Sprintf("%d-%d", s.Spec.Replicas.Min, s.Spec.Replicas.Max) }},
			{"READY", always, func(s *S) string { return known(s, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, s.Status.Replicas)) }},
			{"DESIRED", always, func(s *S) string { return known(s, desiredText(s)) }},
			{"FLOOR", wideAlone, func(s *S) string { return known(s, number(s.Status.FloorReplicas)) }},
			{"PEAK", always, func(s *S) string { return peakText(s.Status.Tide) }},
			{"MODEL", wideAlone, func(s *S) string { return modelText(s.Status.Tide) }},
			{"ACCEPTED", wideAlone, func(s *S) string { return condition(s.Status.Conditions, v1alpha1.ConditionAccepted) }},
			{"FRESH", wideAlone, func(s *S) string { return condition(s.Status.Conditions, v1alpha1.ConditionDataFresh) }},
			{"FORECAST", wideAlone, func(s *S) string { return condition(s.Status.Conditions, v1alpha1.ConditionForecastReady) }},
			{"SCALED", wideAlone, func(s *S) string { return stamp(s.Status.LastScaleTime) }},
			{"STATE", always, serviceState},
			{"REASON", tableOnly, serviceReason},
			{"REASON", wideAlone, func(s *S) string { return orNone(s.Status.Reason) }},
		}}
	return newListCommand(o, v, &cobra.Command{
		Use:     "services",
		Aliases: []string{"service", "esvc"},
		Short:   "List online services: replicas, what is wanted, and why",
		Long: "List online services. DESIRED is what Springtide wants now (or would want, in mode Observe or Recommend), PEAK the largest demand of\n" +
			"the coming day and when it comes. STATE is Refused, Frozen, Paused, Stale (a signal is missing, so nothing scales in), Held, Observing,\n" +
			"Learning (the forecast is not trusted yet) or OK. SEEN is how old the numbers are: what an operator acts on is\n" +
			"written at once, plain changes within ten minutes, small scales within two hours.\n" +
			"-o wide adds the whole reason and FLOOR: what the forecast asks for with the start-up time of a pod as lead.",
		Example: "  springtide services -A --sort-by desired\n  springtide services cart till -n shop -w",
	})
}

// serviceState is how a service stands, in a word: what an operator must look at first.
func serviceState(s *v1alpha1.ElasticService) string {
	cs := s.Status.Conditions
	able := meta.FindStatusCondition(cs, v1alpha1.ConditionAbleToScale)
	switch {
	case refused(cs) != "":
		return "Refused"
	case able != nil && able.Reason == "Frozen":
		return "Frozen"
	case s.Spec.Pause != "" && s.Spec.Pause != v1alpha1.DefaultPause:
		return "Paused"
	case s.Status.ObservedGeneration == 0:
		return "Unknown"
	case meta.IsStatusConditionFalse(cs, v1alpha1.ConditionDataFresh):
		return "Stale"
	case meta.IsStatusConditionTrue(cs, v1alpha1.ConditionFall), able != nil && able.Reason == "Held":
		return "Held"
	case s.Spec.Mode != string(fleet.Auto):
		return "Observing"
	case meta.IsStatusConditionFalse(cs, v1alpha1.ConditionForecastReady):
		return "Learning"
	}
	return "OK"
}

// serviceReason is the reason in few words.
func serviceReason(s *v1alpha1.ElasticService) string {
	if why := refused(s.Status.Conditions); why != "" {
		return why
	}
	return gist(s.Status.Reason)
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
	if t.Model == "" || t.Model == forecast.ModelNone {
		return none
	}
	return fmt.Sprintf("%d %s", t.PeakReplicas, clockTime(t.PeakTime)) // of the coming day, so the hour says it all
}

func modelText(t *v1alpha1.TideStatus) string {
	if t == nil {
		return none
	}
	return orNone(t.Model)
}

func newPoolsCommand(o *cliOptions) *cobra.Command {
	type P = v1alpha1.CapacityPool
	known := func(p *P, text string) string {
		if refused(p.Status.Conditions) != "" {
			return none
		}
		return told(p.Status.ObservedGeneration, text)
	}
	v := view[P]{plural: pools, acts: true,
		empty: "no CapacityPool: write one for the online machines and one for the offline side",
		columns: []column[P]{
			{"CLASS", always, func(p *P) string { return p.Spec.Class }},
			{"MODE", always, func(p *P) string { return orNone(p.Spec.Mode) }},
			{"UNIT", wideAlone, func(p *P) string { return orNone(p.Spec.LendableUnit) }},
			{"NODES", always, func(p *P) string { return known(p, number(p.Status.Nodes)) }},
			{"CPU", always, func(p *P) string { return known(p, p.Status.Capacity.CPU.String()) }},
			{"REQUESTED", always, func(p *P) string { return known(p, requestedByOnline(p)) }},
			{"LENT", always, func(p *P) string { return known(p, withShare(&p.Status.Lent, &p.Status)) }},
			{"LENT NODES", wideAlone, func(p *P) string { return known(p, number(p.Status.LentNodes)) }},
			{"LENT SOCKETS", wideAlone, func(p *P) string { return known(p, number(p.Status.LentSockets)) }},
			{"MOVING", always, func(p *P) string { return known(p, number(p.Status.Moving)) }},
			{"RECALLS", wideAlone, func(p *P) string { return number(p.Status.Disruptions.Recalls) }},
			{"EVICTIONS", wideAlone, func(p *P) string { return number(p.Status.Disruptions.Evictions) }},
			{"READY", tableOnly, func(p *P) string { return poolState(p) }},
			{"READY", wideAlone, func(p *P) string { return condition(p.Status.Conditions, v1alpha1.ConditionReady) }},
			{"PINNED", tableOnly, func(p *P) string { return number(len(p.Status.Pinned)) }},
			{"PINNED", wideAlone, func(p *P) string { return pinnedText(p.Status.Pinned, 3) }},
		}}
	return newListCommand(o, v, &cobra.Command{
		Use:     "pools",
		Aliases: []string{"pool", "cpool"},
		Short:   "List pools: capacity, what is asked for, what is lent and moving",
		Long: "List pools. REQUESTED (by online pods) and LENT are in cores, with their share of the pool's capacity; READY is True, or why the pool lends nothing;\n" +
			"PINNED counts the machines that could not be emptied (-o wide names them; springtide explain node NAME says by what).",
		Example: "  springtide pools -o wide\n  springtide pools online -w",
	})
}

// poolState is True, or why a pool lends and recalls nothing.
func poolState(p *v1alpha1.CapacityPool) string {
	if why := refused(p.Status.Conditions); why != "" {
		return "Refused (" + why + ")"
	}
	return verdict(p.Status.Conditions, v1alpha1.ConditionReady)
}

// requestedByOnline is what online pods ask for. Offline pods ask for what others leave, so an offline pool without online pods has no such figure.
func requestedByOnline(p *v1alpha1.CapacityPool) string {
	if p.Spec.Class == string(fleet.Offline) && p.Status.Requested.CPU.IsZero() {
		return none
	}
	return withShare(&p.Status.Requested, &p.Status)
}

// withShare prints cores and their share of the pool.
func withShare(part *v1alpha1.ResourceAmounts, s *v1alpha1.CapacityPoolStatus) string {
	cpu, _ := facts.Sum(&part.CPU, &part.Memory)
	whole, _ := facts.Sum(&s.Capacity.CPU, &s.Capacity.Memory)
	if whole <= 0 {
		return fmt.Sprint(cpu / 1000)
	}
	return fmt.Sprintf("%d (%d%%)", cpu/1000, int(100*float64(cpu)/float64(whole)))
}

func pinnedText(pinned []v1alpha1.PinnedNode, shown int) string {
	if len(pinned) == 0 {
		return none
	}
	names := make([]string, len(pinned))
	for i, p := range pinned {
		names[i] = p.Node
	}
	if len(names) > shown {
		return fmt.Sprintf("%s +%d", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

func newLoansCommand(o *cliOptions) *cobra.Command {
	type L = v1alpha1.Loan
	v := view[L]{plural: loans,
		empty: "no loans: every parcel is at home",
		columns: []column[L]{
			{"NODE", wideAlone, func(l *L) string { return l.Spec.NodeName }},
			{"KIND", wideAlone, func(l *L) string { return l.Spec.Kind }},
			{"CELLS", wideAlone, func(l *L) string { return strings.Trim(fmt.Sprint(l.Spec.Cells), "[]") }},
			{"FROM", always, func(l *L) string { return l.Spec.From }},
			{"TO", always, func(l *L) string { return l.Spec.To }},
			{"PHASE", always, func(l *L) string { return phaseText(&l.Status) }},
			{"EPOCH", wideAlone, func(l *L) string { return number(max(l.Status.Epoch, 1)) }},
			{"CAPACITY", wideAlone, func(l *L) string { return amountText(&l.Spec.Capacity) }},
			{"BEGUN", wideAlone, func(l *L) string { return stamp(&l.Spec.BeginTime) }},
			{"SINCE", tableOnly, func(l *L) string { return shortTime(l.Status.Since) }},
			{"DUE", tableOnly, func(l *L) string { return shortTime(l.Status.Due) }},
			{"SINCE", wideAlone, func(l *L) string { return stamp(l.Status.Since) }},
			{"EXPECTED UNTIL", wideAlone, func(l *L) string { return stamp(l.Status.ExpectedUntil) }},
			{"DUE", wideAlone, func(l *L) string { return stamp(l.Status.Due) }},
			{"DEADLINE", wideAlone, func(l *L) string { return stamp(l.Status.Deadline) }},
			{"REASON", always, func(l *L) string { return orNone(l.Status.Reason) }},
		}}
	return newListCommand(o, v, &cobra.Command{
		Use:     "loans",
		Aliases: []string{"loan"},
		Short:   "List parcels away from home, or on their way: who, from whom, since when, due when",
		Long: "List loans. SINCE is when the phase was entered, DUE when the parcel is wanted back. -o wide adds EXPECTED UNTIL, until when the\n" +
			"forecast does not ask for a lent parcel, and DEADLINE, the latest announced deadline of the notice. Times are those of the controller's clock.",
		Example: "  springtide loans --sort-by due\n  springtide loans -o wide -w",
	})
}

// phaseText is the phase; a status that was never written is that of a loan just begun.
func phaseText(s *v1alpha1.LoanStatus) string {
	if s.Phase == "" {
		return "Emptying"
	}
	return s.Phase
}
