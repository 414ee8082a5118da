package planner

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// Nothing of a shut machine counts as room, as of one that is not ready: what runs there may have to go elsewhere at any time, since a foreign taint or a
// cordon is mostly the beginning of a drain. It still counts as the pool's machine where services share a full pool (caproom.go), so none is cut for it.

// shut counts the pool's machines on which no online pod may land, by what keeps them off, the most first.
func (l *ledger) shut() []ShutMachines {
	count := map[fleet.Shut]int{}
	for i := range l.in.Snapshot.Nodes {
		if n := &l.in.Snapshot.Nodes[i]; n.Pool == l.pool.ID && !n.Ready && n.Shut.By != "" {
			count[n.Shut]++
		}
	}
	out := make([]ShutMachines, 0, len(count))
	for by, nodes := range count {
		out = append(out, ShutMachines{By: by, Nodes: nodes})
	}
	slices.SortFunc(out, func(a, b ShutMachines) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.By.By, b.By.By), cmp.Compare(a.By.Taint, b.By.Taint))
	})
	return out
}

// shutNote says how many machines are no room, for the reason why nothing is lent, or why loans are recalled.
func (l *ledger) shutNote() reason.Reason {
	all := l.shut()
	if len(all) == 0 {
		return reason.Reason{}
	}
	n := 0
	for _, x := range all {
		n += x.Nodes
	}
	return reason.Of(reason.MachinesShut, n, l.Machines, all[0].By)
}
