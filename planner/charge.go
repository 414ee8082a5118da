package planner

import (
	"github.com/springtide/springtide/fleet"
)

// chargedTo is the pool whose budget bounds what is taken off a machine.
func (m *maker) chargedTo(node fleet.NodeID) fleet.PoolID {
	return m.in.Snapshot.DisruptionPool(m.in.Snapshot.Node(node), m.on(node).Loans)
}

// charge adds pods on a machine to what an action takes.
func (m *maker) charge(charges []Charge, node fleet.NodeID, pods int, due bool) []Charge {
	if m.in.Snapshot.Node(node) == nil {
		return charges // whose machine is gone is gone already
	}
	c := Charge{Pool: m.chargedTo(node), Pods: pods, Due: due}
	for i := range charges {
		if charges[i].Pool == c.Pool && charges[i].Due == due {
			charges[i].Pods += pods
			return charges
		}
	}
	return append(charges, c)
}

// spending is what this plan spends of a pool's disruption budget. Pods on a machine of no pool must not be taken at
// all.
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
