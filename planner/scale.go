package planner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// scales turns targets into actions. Whether a service may act at all is judged here and nowhere else.
func (m *maker) scales() {
	s := m.in.Snapshot
	for i := range s.Services {
		svc, t := &s.Services[i], &m.plan.Targets[i]
		from, to := t.Current, t.Replicas
		if svc.Actuation == fleet.ByHPAFloor {
			if svc.HPA == nil {
				continue
			}
			from, to = svc.HPA.Min, min(t.Replicas, svc.HPA.Max)
		} else if !svc.Desired.OK {
			continue
		}
		if svc.Blocked != "" || from == to {
			continue
		}
		a := Scale{Service: svc.ID, Target: svc.Target, Kind: svc.TargetKind, By: svc.Actuation, From: from, To: to,
			Version: svc.Version, Why: Why{Reason: "Sized", Message: t.Reason}}
		if svc.Actuation == fleet.ByHPAFloor {
			a.Target, a.Kind, a.Version = fleet.Name{Namespace: svc.Target.Namespace, Name: svc.HPA.Name}, "HorizontalPodAutoscaler", svc.HPA.Version
		}
		if by := m.heldBack(svc, t, to < from); by != "" {
			m.withhold("service "+string(svc.ID), fmt.Sprintf("scale %d -> %d", from, to), by, a.Why)
			continue
		}
		if to < from {
			if svc.Steerable {
				a.Leavers = m.leavers(svc, int(from-to))
			}
			m.plan.Lowers = append(m.plan.Lowers, a)
		} else {
			m.plan.Raises = append(m.plan.Raises, a)
		}
	}
}

// heldBack names what keeps an action from being carried out; empty when nothing does.
func (m *maker) heldBack(svc *fleet.Service, t *hpa.Target, in bool) string {
	s := m.in.Snapshot
	switch {
	case s.Frozen != "":
		return "freeze: " + s.Frozen
	case !svc.Mode.Acts():
		return fmt.Sprintf("mode %s", svc.Mode)
	case in && !s.Watching(m.in.Options.Window):
		return "a new leader watches one window before it takes anything away"
	case in && !t.DataFresh:
		return "stale metrics"
	}
	return ""
}

// leavers picks the k pods that a scale-in should take: pods that are not ready go first by the ReplicaSet's own rule and need no cost, so
// they only count; then pods on machines that are being emptied, then pods on the machines with the least online work, so that whole
// machines come free. The deletion cost is written on these k pods alone.
func (m *maker) leavers(svc *fleet.Service, k int) []PodRef {
	var ready []*fleet.Pod
	for i := range svc.Pods {
		p := &svc.Pods[i]
		switch {
		case p.Deleting || p.Phase == fleet.PodSucceeded || p.Phase == fleet.PodFailed:
		case !p.Ready:
			k--
		default:
			ready = append(ready, p)
		}
	}
	if k <= 0 {
		return nil
	}
	slices.SortFunc(ready, func(a, b *fleet.Pod) int {
		return cmp.Or(
			-cmpBool(m.state[a.Node].emptying > 0, m.state[b.Node].emptying > 0),
			cmp.Compare(m.asked[a.Node], m.asked[b.Node]),
			cmp.Compare(a.NodeName, b.NodeName),
			a.Name.Compare(b.Name),
		)
	})
	refs := make([]PodRef, 0, k)
	for _, p := range ready[:min(k, len(ready))] {
		refs = append(refs, PodRef{Name: p.Name, ID: p.ID})
	}
	return refs
}

func cmpBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
