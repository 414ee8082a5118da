package view

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/kube/facts"
)

// NewServicesCommand makes `springtide services`.
func NewServicesCommand(o *cluster.Options) *cobra.Command {
	type S = v1alpha1.ElasticService
	known := func(s *S, text string) string {
		if cell.Refused(s.Status.Conditions) != "" {
			return cell.None
		}
		return cell.Written(s.Status.ObservedGeneration, text)
	}
	v := view[S]{plural: cluster.Services, namespaced: true, acts: true,
		empty: "no ElasticService: write one, or take over an HPA with springtide adopt",
		seen:  func(s *S) *metav1.Time { return s.Status.ObservedTime },
		columns: []column[S]{
			{"TARGET", wideAlone, func(s *S) string { return s.Spec.TargetRef.Kind + "/" + s.Spec.TargetRef.Name }},
			{"MODE", always, func(s *S) string { return cell.OrNone(s.Spec.Mode) }},
			{"PAUSE", wideAlone, func(s *S) string { return cell.OrNone(cell.Paused(s)) }},
			{"RANGE", always, func(s *S) string { return fmt.Sprintf("%d-%d", s.Spec.Replicas.Min, s.Spec.Replicas.Max) }},
			{"READY", always, func(s *S) string { return known(s, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, s.Status.Replicas)) }},
			{"DESIRED", always, func(s *S) string { return known(s, cell.Desired(s)) }},
			{"FLOOR", wideAlone, func(s *S) string { return known(s, cell.Number(s.Status.FloorReplicas)) }},
			{"PEAK", always, func(s *S) string { return peakText(s.Status.Tide) }},
			{"MODEL", wideAlone, func(s *S) string { return modelText(s.Status.Tide) }},
			{"ACCEPTED", wideAlone, func(s *S) string { return cell.Condition(s.Status.Conditions, catalog.ConditionAccepted) }},
			{"FRESH", wideAlone, func(s *S) string { return cell.Condition(s.Status.Conditions, catalog.ConditionDataFresh) }},
			{"FORECAST", wideAlone, func(s *S) string {
				return cell.Condition(s.Status.Conditions,
					catalog.ConditionForecastReady)
			}},
			{"SCALED", wideAlone, func(s *S) string { return cell.Stamp(s.Status.LastScaleTime) }},
			{"STATE", always, serviceState},
			{"REASON", tableOnly, serviceReason},
			{"REASON", wideAlone, func(s *S) string { return cell.OrNone(s.Status.Reason) }},
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
	able := meta.FindStatusCondition(cs, catalog.ConditionAbleToScale)
	switch {
	case cell.Refused(cs) != "":
		return "Refused"
	case able != nil && able.Reason == "Frozen":
		return "Frozen"
	case cell.Paused(s) != "":
		return "Paused"
	case s.Status.ObservedGeneration == 0:
		return "Unknown"
	case meta.IsStatusConditionFalse(cs, catalog.ConditionDataFresh):
		return "Stale"
	case meta.IsStatusConditionTrue(cs, catalog.ConditionFall), able != nil &&
		able.Reason == catalog.ServiceAbleHeld.Reason():
		return "Held"
	case s.Spec.Mode != string(fleet.Auto):
		return "Observing"
	case meta.IsStatusConditionFalse(cs, catalog.ConditionForecastReady):
		return "Learning"
	}
	return "OK"
}

// serviceReason is the reason in few words.
func serviceReason(s *v1alpha1.ElasticService) string {
	if why := cell.Refused(s.Status.Conditions); why != "" {
		return why
	}
	return cell.Gist(s.Status.Reason)
}

func peakText(t *v1alpha1.TideStatus) string {
	if t == nil {
		return cell.None
	}
	if t.Model == "" || t.Model == forecast.ModelNone {
		return cell.None
	}
	return fmt.Sprintf("%d %s", t.PeakReplicas, cell.ClockTime(t.PeakTime)) // of the coming day, so the hour says it all
}

func modelText(t *v1alpha1.TideStatus) string {
	if t == nil {
		return cell.None
	}
	return cell.OrNone(t.Model)
}

// NewPoolsCommand makes `springtide pools`.
func NewPoolsCommand(o *cluster.Options) *cobra.Command {
	type P = v1alpha1.CapacityPool
	known := func(p *P, text string) string {
		if cell.Refused(p.Status.Conditions) != "" {
			return cell.None
		}
		return cell.Written(p.Status.ObservedGeneration, text)
	}
	v := view[P]{plural: cluster.Pools, acts: true,
		empty: "no CapacityPool: write one for the online machines and one for the offline side",
		columns: []column[P]{
			{"CLASS", always, func(p *P) string { return p.Spec.Class }},
			{"MODE", always, func(p *P) string { return cell.OrNone(p.Spec.Mode) }},
			{"UNIT", wideAlone, func(p *P) string { return cell.OrNone(p.Spec.LendableUnit) }},
			{"NODES", always, func(p *P) string { return known(p, cell.Number(p.Status.Nodes)) }},
			{"CPU", always, func(p *P) string { return known(p, p.Status.Capacity.CPU.String()) }},
			{"REQUESTED", always, func(p *P) string { return known(p, requestedByOnline(p)) }},
			{"LENT", always, func(p *P) string { return known(p, withShare(&p.Status.Lent, &p.Status)) }},
			{"LENT NODES", wideAlone, func(p *P) string { return known(p, cell.Number(p.Status.LentNodes)) }},
			{"LENT SOCKETS", wideAlone, func(p *P) string { return known(p, cell.Number(p.Status.LentSockets)) }},
			{"MOVING", always, func(p *P) string { return known(p, cell.Number(p.Status.Moving)) }},
			{"RECALLS", wideAlone, func(p *P) string { return cell.Number(p.Status.Disruptions.Recalls) }},
			{"EVICTIONS", wideAlone, func(p *P) string { return cell.Number(p.Status.Disruptions.Evictions) }},
			{"READY", tableOnly, func(p *P) string { return poolState(p) }},
			{"READY", wideAlone, func(p *P) string { return cell.Condition(p.Status.Conditions, catalog.ConditionReady) }},
			{"PINNED", tableOnly, func(p *P) string { return cell.Number(len(p.Status.Pinned)) }},
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
	if why := cell.Refused(p.Status.Conditions); why != "" {
		return "Refused (" + why + ")"
	}
	return cell.Verdict(p.Status.Conditions, catalog.ConditionReady)
}

// requestedByOnline is what online pods ask for. Offline pods ask for what others leave, so an offline pool without online pods has no such figure.
func requestedByOnline(p *v1alpha1.CapacityPool) string {
	if p.Spec.Class == string(fleet.Offline) && p.Status.Requested.CPU.IsZero() {
		return cell.None
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
		return cell.None
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

// NewLoansCommand makes `springtide loans`.
func NewLoansCommand(o *cluster.Options) *cobra.Command {
	type L = v1alpha1.Loan
	v := view[L]{plural: cluster.Loans,
		empty: "no loans: every parcel is at home",
		columns: []column[L]{
			{"NODE", wideAlone, func(l *L) string { return l.Spec.NodeName }},
			{"KIND", wideAlone, func(l *L) string { return l.Spec.Kind }},
			{"CELLS", wideAlone, func(l *L) string { return strings.Trim(fmt.Sprint(l.Spec.Cells), "[]") }},
			{"FROM", always, func(l *L) string { return l.Spec.From }},
			{"TO", always, func(l *L) string { return l.Spec.To }},
			{"PHASE", always, func(l *L) string { return cell.Phase(&l.Status) }},
			{"EPOCH", wideAlone, func(l *L) string { return cell.Number(max(l.Status.Epoch, 1)) }},
			{"CAPACITY", wideAlone, func(l *L) string { return cell.Amount(&l.Spec.Capacity) }},
			{"BEGUN", wideAlone, func(l *L) string { return cell.Stamp(&l.Spec.BeginTime) }},
			{"SINCE", tableOnly, func(l *L) string { return cell.ShortTime(l.Status.Since) }},
			{"DUE", tableOnly, func(l *L) string { return cell.ShortTime(l.Status.Due) }},
			{"SINCE", wideAlone, func(l *L) string { return cell.Stamp(l.Status.Since) }},
			{"EXPECTED UNTIL", wideAlone, func(l *L) string { return cell.Stamp(l.Status.ExpectedUntil) }},
			{"DUE", wideAlone, func(l *L) string { return cell.Stamp(l.Status.Due) }},
			{"DEADLINE", wideAlone, func(l *L) string { return cell.Stamp(l.Status.Deadline) }},
			{"REASON", always, func(l *L) string { return cell.OrNone(l.Status.Reason) }},
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
