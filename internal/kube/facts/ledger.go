package facts

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// Budget is how many pods of a pool may be taken.
func Budget(p *v1alpha1.CapacityPool) fleet.DisruptionBudget {
	or := func(n *int32, otherwise int32) int32 {
		if n == nil {
			return otherwise
		}
		return *n
	}
	d := &p.Spec.Disruptions
	return fleet.DisruptionBudget{
		EvictionsPerMinute: int(or(d.EvictionsPerMinute, v1alpha1.DefaultEvictionsPerMinute)),
		ServiceShare:       float64(or(d.ServicePercent, v1alpha1.DefaultServicePercent)) / 100,
		FleetShare:         float64(or(d.FleetPercent, v1alpha1.DefaultFleetPercent)) / 100,
	}
}

// Ledger reads a disruption ledger; [LedgerStatus] is the way back.
func Ledger(d *v1alpha1.DisruptionLedger) fleet.Ledger {
	l := fleet.Ledger{WindowStart: d.WindowStart.UTC(), Evictions: int(d.Evictions), Recalls: int(d.Recalls), SpanStart: d.SpanStart.UTC()}
	for _, o := range d.Owners {
		l.Owners = append(l.Owners, fleet.Disrupted{Owner: o.Owner, Pods: int(o.Pods)})
	}
	slices.SortFunc(l.Owners, func(a, b fleet.Disrupted) int { return cmp.Compare(a.Owner, b.Owner) })
	return l
}

// LedgerStatus writes a disruption ledger. Times of the API are whole seconds.
func LedgerStatus(l *fleet.Ledger) v1alpha1.DisruptionLedger {
	at := func(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }
	d := v1alpha1.DisruptionLedger{WindowStart: at(l.WindowStart), Evictions: int32(l.Evictions), Recalls: int32(l.Recalls), SpanStart: at(l.SpanStart)}
	for _, o := range l.Owners {
		d.Owners = append(d.Owners, v1alpha1.DisruptedOwner{Owner: o.Owner, Pods: int32(o.Pods)})
	}
	return d
}
