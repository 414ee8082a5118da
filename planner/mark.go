package planner

import (
	"fmt"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// access is who may land on a machine as its loans say, and as this plan changes them: what it begins or recalls is
// open to neither side from now on. A loan that was called off has no part in it any more; one that came home has,
// until it is forgotten.
func (m *maker) access(n *fleet.Node) fleet.Access {
	var parcels []fleet.ShareParcel
	for _, l := range m.on(n.ID).Loans {
		if l.Phase == fleet.Cancelled {
			continue
		}
		p := fleet.ParcelOf(l)
		if l.Phase == fleet.Lent && m.recalled[n.ID] {
			p.Next = l.From
		}
		parcels = append(parcels, p)
	}
	for i := range n.Share.Parcels {
		// A parcel that only a share knows goes home: no pod lands on it.
		if e := n.Share.Parcels[i]; !fleet.SameSide(e.Holder, n.Pool, m.in.Snapshot.ClassOf) && fleet.Overlap(e.Cells, n.AllCells()) && m.in.Snapshot.Orphaned(&e) {
			e.Next = n.Pool
			parcels = append(parcels, e)
		}
	}
	if cells := m.begun[n.ID]; len(cells) > 0 {
		parcels = append(parcels, fleet.ShareParcel{Cells: cells, Holder: n.Pool, Next: "begun"})
	}
	return fleet.AccessOf(n, parcels, m.in.Snapshot.ClassOf)
}

// open reports whether offline pods may land on a machine: all of an offline machine is at home, or a parcel of it is lent, nothing of it is on its way home or came
// home and is claimed, and the room that online keeps of it is held by fillers.
func (m *maker) open(n *fleet.Node) bool {
	access := m.access(n)
	return m.opens(n, &access)
}

func (m *maker) opens(n *fleet.Node, access *fleet.Access) bool {
	if m.in.Snapshot.ClassOf(n.Pool) == fleet.Offline {
		return access.Whole(fleet.Offline)
	}
	return access.Open(fleet.Offline) && m.keptIsHeld(n)
}

// kept is the free room of the cells that online keeps of a machine with lent cells: what they hold less what online pods ask for.
func (m *maker) kept(n *fleet.Node) fleet.Resources {
	if m.in.Snapshot.ByCells(n.Pool) {
		return fleet.Resources{} // its scheduler knows whose the room is
	}
	away := m.cells(n, fleet.Lent)
	cells := slices.DeleteFunc(n.AllCells(), func(c int) bool { return slices.Contains(away, c) })
	if len(away) == 0 || len(cells) == 0 {
		return fleet.Resources{}
	}
	return withGPUs(n.CapacityOf(cells).Sub(m.on(n.ID).Asked())).Floor()
}

// leastRoom is the free room that is worth a filler: below a core no offline pod of note would fit.
const leastRoom fleet.MilliCPU = 1000

// keptIsHeld reports whether fillers hold the kept room, but for fragments.
func (m *maker) keptIsHeld(n *fleet.Node) bool {
	var bound fleet.Resources
	for _, p := range m.fillers[n.Name] {
		if p.Occupies() {
			bound = bound.Add(p.Requests)
		}
	}
	return m.kept(n).CPU-bound.CPU < leastRoom
}

// fill holds the kept room of machines with lent sockets, where the cluster's own scheduler serves the pool: nothing else keeps offline pods off it. Room that
// comes free later gets a further filler; all of them go when nothing of the machine is lent any more.
func (m *marker) fill() {
	s := m.in.Snapshot
	for i := range s.Nodes {
		n := &s.Nodes[i]
		pods := m.fillers[n.Name]
		kept := m.kept(n)
		if kept.CPU < leastRoom {
			for _, p := range pods {
				m.plan.Fillers = append(m.plan.Fillers, Filler{Name: p.Name.Name, Node: n.Name, Delete: true, ID: p.ID})
			}
			continue
		}
		for _, p := range pods {
			kept = kept.Sub(p.Requests)
		}
		kept = fleet.Resources{CPU: kept.CPU, Memory: max(kept.Memory, 0)}
		if kept.CPU < leastRoom {
			continue
		}
		m.plan.Fillers = append(m.plan.Fillers, Filler{Name: fmt.Sprintf("filler-%s-%d-%d", n.Name, len(pods), kept.CPU), Node: n.Name, Room: kept,
			Loan: m.lentLoan(n.ID), Purpose: reason.KeptSocket})
	}
}

// mark brings every machine's marks to what its loans say. Machines outside of our pools are left alone, once no loan names them any more.
func (m *marker) mark() {
	s := m.in.Snapshot
	for i := range s.Nodes {
		n := &s.Nodes[i]
		pool := s.Pool(n.Pool)
		if pool == nil && len(m.on(n.ID).Loans) == 0 {
			continue
		}
		if pool != nil && !pool.Mode.Acts() && !m.used[n.ID].None() && len(m.on(n.ID).Loans) == 0 {
			continue // nothing but a share says that a part of it is away, and the pool only observes
		}
		if want := m.wantMarks(n, pool); want != n.Marks {
			m.plan.Marks = append(m.plan.Marks, Mark{Node: n.Name, ID: n.ID, Want: want})
		}
	}
}

func (m *marker) wantMarks(n *fleet.Node, pool *fleet.Pool) fleet.NodeMarks {
	// A loan that this plan begins counts: its taint goes up in the same cycle, so that nothing new lands there.
	live := m.on(n.ID).Moves.Live > 0 || len(m.begun[n.ID]) > 0
	access := m.access(n)
	return fleet.NodeMarks{
		// Where no pool answers for the machine, only the loan shows that the taint is ours.
		HolderTaint:  access.Taints(m.in.Snapshot.ByCells(n.Pool)) && (pool != nil || live),
		OfflineLabel: m.opens(n, &access),
		HomeLabel:    pool != nil && pool.Class == fleet.Offline,
		KeepNode:     live,
		Fence:        m.fence(n),
	}
}

// fence cuts off a machine with a parcel that did not come home. Where online pods share it, or a component of ours, they stay, and only nothing
// new lands.
func (m *marker) fence(n *fleet.Node) fleet.Fence {
	if m.on(n.ID).Moves.Lost == 0 {
		return fleet.FenceNone
	}
	// None goes up for a parcel that this plan takes home: until it was up, online could have landed. One that is up goes with the next plan.
	if !slices.ContainsFunc(m.on(n.ID).Loans, func(l *fleet.Loan) bool { return l.Phase.Lost() && !m.returning[l.ID] }) {
		return n.Marks.Fence
	}
	if slices.ContainsFunc(m.on(n.ID).Pods, func(p *fleet.Pod) bool { return p.Class == fleet.PodOnline || p.Own }) {
		return fleet.FenceSchedule
	}
	return fleet.FenceExecute
}

// lentLoan is the first lent loan of a machine.
func (m *marker) lentLoan(node fleet.NodeID) fleet.LoanID {
	for _, l := range m.on(node).Loans {
		if l.Phase == fleet.Lent {
			return l.ID
		}
	}
	return ""
}
