package planner

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/reason"
)

// scales turns targets into actions.
func (m *scaler) scales() {
	s := m.in.Snapshot
	for i := range s.Services {
		svc, t := &s.Services[i], &m.plan.Targets[i]
		w := m.stage(svc, t, m.tenants.owing[i])
		d := directionOf(w.from, w.to)
		if d == stays {
			continue
		}
		a := Scale{Service: svc.ID, Target: svc.Target, Kind: svc.TargetKind, By: svc.Actuation, From: w.from, To: w.to,
			Version: svc.Version, Why: reason.Of(reason.Sized, t.Why(), w.note)}
		if svc.Actuation == fleet.ByHPAFloor {
			a.Target, a.Kind, a.Version = fleet.Name{Namespace: svc.Target.Namespace, Name: svc.HPA.Name}, "HorizontalPodAutoscaler", svc.HPA.Version
		}
		if by := m.in.permit(scaleOf(svc, t).windowed(svc, m.tenants.owing[i]), d); !by.None() {
			m.withhold(Subject{SubjectService, string(svc.ID)}, a.Summary(), by, a.Why)
			continue
		}
		if d == takes {
			if !m.tenants.owing[i] && !m.withinChanges(svc, &a) {
				continue
			}
			if w.over != nil {
				w.over = w.over[:min(len(w.over), int(a.From-a.To))]
			}
			if w.over != nil && !m.release(svc, t, &a, w.over) || w.over == nil && !m.steer(svc, t, &a, m.tenants.owing[i]) {
				continue
			}
			m.plan.Lowers = append(m.plan.Lowers, a)
		} else {
			m.plan.Raises = append(m.plan.Raises, a)
		}
	}
}

// withinChanges makes a scale-in smaller by what the windows of change of the service's pool do not let go at a time,
// and reports whether any of it is left.
func (m *scaler) withinChanges(svc *fleet.Service, a *Scale) bool {
	most, why := m.in.changes.most(m.in.homes[svc.ID], fleet.ChangeScaleIn, int(a.From))
	if over := int(a.From-a.To) - most; over > 0 && !svc.Pinned().OK {
		m.withhold(Subject{SubjectService, string(svc.ID)}, a.Summary(), why, a.Why)
		a.To += int32(over)
	}
	return a.To < a.From
}

// steer chooses the pods that a scale-in takes. Pods that the disruption ledgers refuse to take off emptying machines
// stay, and others leave in their place; where there are no others the scale-in waits for that part, and steer reports
// whether anything of it is left. Pods that a quota takes back after its notice wait for no ledger: an announced
// deadline comes before rates, and others wait for the room.
func (m *scaler) steer(svc *fleet.Service, t *hpa.Target, a *Scale, owes bool) bool {
	switch {
	case svc.Steerable && owes:
		a.Victims, a.Charges, _, _ = m.victims(svc, a.From-a.To, true)
		return true
	case owes && a.By == fleet.ByScale:
		a.Charges = m.highest(svc, a.From-a.To)
		return true
	case !svc.Steerable:
		return true
	}
	var refused int32
	var by string
	a.Victims, a.Charges, refused, by = m.victims(svc, a.From-a.To, false)
	if refused == 0 {
		return true
	}
	return m.eased(svc, t, a, refused, by)
}

// eased makes a scale-in smaller by the pods that a disruption ledger refuses, and reports whether any of it is left.
func (m *scaler) eased(svc *fleet.Service, t *hpa.Target, a *Scale, refused int32, by string) bool {
	m.withhold(Subject{SubjectService, string(svc.ID)}, a.Summary(),
		reason.Of(reason.DisruptionBudget, by), a.Why)
	a.To += refused
	a.Why = reason.Of(reason.Sized, t.Why(), reason.Of(reason.EmptyingWaits, refused, by))
	return a.To < a.From
}

// highest charges what goes back of a target that chooses its pods itself: those of the highest ordinals.
func (m *scaler) highest(svc *fleet.Service, k int32) (charges []Charge) {
	pods := make([]*fleet.Pod, 0, len(svc.Pods))
	for i := range svc.Pods {
		if p := &svc.Pods[i]; !p.Deleting {
			pods = append(pods, p)
		}
	}
	slices.SortStableFunc(pods, func(a, b *fleet.Pod) int { return cmp.Compare(b.Index(), a.Index()) })
	for _, p := range pods[:min(int(k), len(pods))] {
		charges = m.charge(charges, p.Node, 1, true)
	}
	return charges
}
