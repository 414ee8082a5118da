package snapshot

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/scheduler/rules"
)

// repelledShare is the part of the CPU of a pool's services that must not tolerate a taint for a machine to be no room: as many may be blind before
// lending stops. A pool whose services tolerate the taint of its machines, as dedicated pools have it, is room.
const repelledShare = 0.1

// shutTainted says of the machines of online pools whether a taint of others keeps the pool's services off. Such a machine is as one that is cordoned:
// what runs there goes on, and nothing of it is room. Of a machine of an offline pool it says which online pools it would be no room for.
func (a *assembly) shutTainted() {
	tainted := map[fleet.NodeID]*watch.NodeFacts{}
	for _, f := range a.c.Nodes.All() {
		if f.ForeignText != "" {
			tainted[f.Node.ID] = f
		}
	}
	if len(tainted) == 0 {
		return
	}
	homes := planner.PoolsOf(a.s)
	type key struct {
		pool  fleet.PoolID
		taint string
	}
	known := map[key]bool{}
	repels := func(f *watch.NodeFacts, pool fleet.PoolID) bool {
		if f.Goes {
			return true // what tolerates the taint would not run there for long
		}
		k := key{pool, f.ForeignText}
		off, judged := known[k]
		if !judged {
			off = a.repels(f.Foreign, pool, homes)
			known[k] = off
		}
		return off
	}
	for i := range a.s.Nodes {
		n := &a.s.Nodes[i]
		f := tainted[n.ID]
		p := a.s.Pool(n.Pool)
		switch {
		case f == nil || !n.Ready || p == nil:
		case p.Class == fleet.Online:
			if repels(f, n.Pool) {
				n.Ready, n.Shut = false, fleet.Shut{By: fleet.ShutByTaint, Taint: f.ForeignText}
			}
		case p.Class == fleet.Offline:
			for k := range a.s.Pools {
				if q := &a.s.Pools[k]; q.Class == fleet.Online && repels(f, q.ID) {
					n.Repels = append(n.Repels, q.ID)
				}
			}
		}
	}
}

// repels reports whether taints keep so much of a pool's services off that a machine with them is no room. Where no service is known they keep all off that
// tolerates nothing.
func (a *assembly) repels(taints []rules.Taint, pool fleet.PoolID, homes map[fleet.ServiceID]fleet.PoolID) bool {
	var all, off float64
	for i := range a.s.Services {
		svc := &a.s.Services[i]
		if homes[svc.ID] != pool {
			continue
		}
		asks := float64(max(svc.Request.CPU, 1)) * float64(max(svc.Standing(), int(svc.Desired.Value), 1))
		all += asks
		if !rules.Admits(a.tolerations[svc.ID], taints, false) {
			off += asks
		}
	}
	return all == 0 || off > repelledShare*all
}
