package planner

import (
	"fmt"

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
			if svc.Steerable && !m.steer(svc, &a) {
				continue
			}
			m.plan.Lowers = append(m.plan.Lowers, a)
		} else {
			m.plan.Raises = append(m.plan.Raises, a)
		}
	}
}

// heldNewLeader is why a leader of less than a window holds back what takes away.
const heldNewLeader = "a new leader watches one window before it takes anything away"

// heldBack names what keeps an action from being carried out; empty when nothing does.
func (m *maker) heldBack(svc *fleet.Service, t *hpa.Target, in bool) string {
	s := m.in.Snapshot
	switch {
	case s.Frozen != "":
		return "freeze: " + s.Frozen
	case !svc.Mode.Acts():
		return fmt.Sprintf("mode %s", svc.Mode)
	case in && !s.Watching(m.in.Options.Window):
		return heldNewLeader
	case in && !t.DataFresh && !t.LiveAlone:
		return "stale metrics"
	}
	return ""
}

// steer chooses the pods that a scale-in takes. Pods that the disruption ledgers refuse to take off emptying machines stay, and others leave in
// their place; where there are no others the scale-in waits for that part, and steer reports whether anything of it is left.
func (m *maker) steer(svc *fleet.Service, a *Scale) bool {
	var refused int32
	var by string
	a.Leavers, a.Charges, refused, by = m.leavers(svc, a.From-a.To)
	if refused == 0 {
		return true
	}
	m.withhold("service "+string(svc.ID), fmt.Sprintf("scale %d -> %d", a.From, a.To), by, a.Why)
	a.To += refused
	a.Why.Message += fmt.Sprintf("; %d pods on emptying machines wait: %s", refused, by)
	return a.To < a.From
}

// emptying reports whether a pod is on a machine of which a parcel is being emptied.
func (m *maker) emptying(p *fleet.Pod) bool {
	st := m.state[p.Node]
	return st.emptying+st.back > 0 && m.in.Snapshot.Node(p.Node) != nil
}

// chargedTo is the pool whose budget bounds what is taken off a machine: its home, or the online pool that borrowed it.
func (m *maker) chargedTo(node fleet.NodeID) fleet.PoolID {
	for _, l := range m.loans[node] {
		if m.fromOffline(l) && !l.Phase.Ended() {
			return l.To
		}
	}
	return m.in.Snapshot.Node(node).Pool
}

// charge adds one pod to the charges on a pool.
func charge(charges []Charge, pool fleet.PoolID) []Charge {
	for i := range charges {
		if charges[i].Pool == pool {
			charges[i].Pods++
			return charges
		}
	}
	return append(charges, Charge{Pool: pool, Pods: 1})
}

// spending is what this plan spends of a pool's disruption budget. Pods on a machine of no pool may not be taken at all.
func (m *maker) spending(id fleet.PoolID) *fleet.Spending {
	if m.budgets == nil {
		s := m.in.Snapshot
		pods := s.PodsByPool()
		m.budgets = map[fleet.PoolID]*fleet.Spending{"": (&fleet.Pool{}).Spend(s.At, 0)}
		for i := range s.Pools {
			m.budgets[s.Pools[i].ID] = s.Pools[i].Spend(s.At, pods[s.Pools[i].ID])
		}
	}
	if b := m.budgets[id]; b != nil {
		return b
	}
	return m.budgets[""]
}
