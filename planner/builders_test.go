package planner

import (
	"fmt"

	"github.com/springtide/springtide/fleet"
)

// machineOf is the i-th machine of a test's fleet: 64 cores in two sockets of two cells each, ready, with a live agent.
func machineOf(i int, pool fleet.PoolID) fleet.Node {
	n := fleet.Node{ID: fleet.NodeID(fmt.Sprintf("uid-%02d", i)), Name: fmt.Sprintf("m%02d", i), Zone: fmt.Sprintf("z%d", i%3), Pool: pool,
		Allocatable: fleet.Resources{CPU: 64000, Memory: 256 * fleet.GiB, Pods: 110}, Ready: true, AgentAlive: true, AgentKnown: true}
	for c := range 4 {
		n.Cells = append(n.Cells, fleet.Cell{ID: c, Socket: c / 2, Capacity: fleet.Resources{CPU: 16000, Memory: 64 * fleet.GiB}})
	}
	return n
}

// loanOf is a loan of a whole online machine to the offline pool, in a phase since t0.
func loanOf(n *fleet.Node, phase fleet.Phase, epoch int64) fleet.Loan {
	return fleet.Loan{ID: fleet.LoanID("loan-" + n.Name), Kind: fleet.KindNode, Node: n.ID, NodeName: n.Name, Cells: n.AllCells(), Capacity: n.Allocatable,
		From: "online", To: "offline", Phase: phase, Epoch: epoch, Created: t0, Since: t0, Parcel: fleet.MakeParcelID(n.ID, n.AllCells())}
}

// shareOf is the share that agrees with a loan.
func shareOf(l *fleet.Loan) fleet.Share {
	return fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{{Cells: l.Cells, Holder: l.Holder(), Next: l.Next(), Loan: l.ID, Epoch: l.Epoch}}}
}

// wide is a budget that binds no plan.
func wide() fleet.DisruptionBudget {
	return fleet.DisruptionBudget{EvictionsPerMinute: 1000, ServiceShare: 1, FleetShare: 1}
}

// member is a role of a job whose pods ask for some cores each.
func member(role string, cores, least, most int) fleet.Member {
	return fleet.Member{Role: role, Min: int32(least), Max: int32(most), Remaining: -1, Request: fleet.Resources{CPU: fleet.MilliCPU(1000 * cores)}}
}
