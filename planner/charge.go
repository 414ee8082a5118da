package planner

import (
	"time"

	"github.com/springtide/springtide/fleet"
)

// Charge is what one action takes from the disruption budget of a pool.
type Charge struct {
	Pool fleet.PoolID
	Pods int
	// Due says that the room goes back to whom it was lent by: it is counted on the line of the recalls, shown and never blocked.
	Due bool
}

// On returns a ledger on which the pods of an owner are counted, on the line that is theirs.
func (c Charge) On(l fleet.Ledger, now time.Time, owner string) fleet.Ledger {
	if c.Due {
		return l.ChargeRecalls(now, c.Pods)
	}
	return l.Charge(now, owner, c.Pods)
}

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
