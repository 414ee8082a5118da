package planner

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/place"
)

// waiting is what online pods that the scheduler found no room for ask for.
func (l *ledger) waiting() fleet.Resources {
	var sum fleet.Resources
	for _, v := range l.services {
		for i := range v.svc.Pods {
			if p := &v.svc.Pods[i]; waits(p) {
				sum = sum.Add(p.Requests)
			}
		}
	}
	return sum
}

// waits reports whether the scheduler found no room for a pod.
func waits(p *fleet.Pod) bool { return p.NodeName == "" && p.Unschedulable && !p.Deleting }

// lacking is what machines must hold for the pods that wait and fit none of those that online has. Free room does not
// say so in sums: 16 free cores on each of two machines are no room for 24. A pod that would not even fit an empty
// machine lacks something else, and so does one that fits. A pod that would fit but for its GPUs lacks GPUs alone: CPU
// is asked for on top only where there is none for it either.
func (m *maker) lacking(l *ledger) fleet.Resources {
	if l.lacks == nil {
		r := grossUp(m.unplaced(l), l.unfilled())
		l.lacks = &r
	}
	return *l.lacks
}

func (m *maker) unplaced(l *ledger) fleet.Resources {
	var sum fleet.Resources
	var pods []*fleet.Pod
	away := m.gpusAway(l)
	for _, v := range l.services {
		for i := range v.svc.Pods {
			if p := &v.svc.Pods[i]; waits(p) && l.holdsOne(p.Requests) && (p.Requests.GPU == 0 || away > 0) {
				pods = append(pods, p)
			}
		}
	}
	if len(pods) == 0 {
		return sum
	}
	slices.SortStableFunc(pods, func(a, b *fleet.Pod) int {
		return largestFirst(a.Requests, b.Requests)
	})
	t := m.online(l)
	for _, p := range pods {
		r := withGPUs(p.Requests)
		if _, ok := t.Place(t.Class(place.Shape{Requests: r, Side: fleet.Online})); ok {
			continue
		}
		if l.claimant == "" {
			l.claimant = p.Service // of the largest: it is the one whose room others would take first
		}
		if r.GPU > 0 && fitsNow(t, r.CPUAndMemory()) {
			r = fleet.Resources{GPU: r.GPU}
		}
		sum = sum.Add(r)
	}
	sum.GPU = min(sum.GPU, away)
	return sum
}

// gpusAway is how many GPUs can come home, which is all that is asked for: pods that want more of them than there are do not hold lending up,
// nor what forecasts ask for.
func (m *maker) gpusAway(l *ledger) int64 {
	var sum int64
	for i := range m.in.Snapshot.Nodes {
		n := &m.in.Snapshot.Nodes[i]
		if on := m.on(n.ID); n.Pool == l.pool.ID && n.Lasts() && on.Moves.Live > 0 && on.Moves.Lost == 0 {
			if room := on.Coming(); room.CPU >= leastRoom {
				sum += room.GPU
			}
		}
	}
	return sum
}

// fitsNow reports whether a pod fits somewhere, and leaves the table as it is.
func fitsNow(t *place.Table, r fleet.Resources) bool {
	t.Begin()
	defer t.Rollback()
	_, ok := t.Place(t.Class(place.Shape{Requests: r, Side: fleet.Online}))
	return ok
}

// withGPUs is only with the GPUs that pods wait for: an emergency asks for these too.
func withGPUs(r fleet.Resources) fleet.Resources {
	return fleet.Resources{CPU: r.CPU, Memory: r.Memory, GPU: r.GPU}
}

// holdsOne reports whether some machine of the pool could hold a pod if no other service were there.
func (l *ledger) holdsOne(r fleet.Resources) bool {
	if r.GPU > 0 { // rooms know of none
		return slices.ContainsFunc(l.in.Snapshot.Nodes, func(n fleet.Node) bool {
			return n.Pool == l.pool.ID && withGPUs(r).Fits(withGPUs(n.Allocatable))
		})
	}
	for room := range l.Rooms {
		if onePod(r).Fits(room) {
			return true
		}
	}
	return false
}

// online is what fits on the machines that online has: those of the pool, and borrowed ones. One that is home and whose taint this plan takes off is open.
func (m *maker) online(l *ledger) *place.Table {
	s := m.in.Snapshot
	var machines []*fleet.Node
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Pool == l.pool.ID {
			machines = append(machines, n)
		}
	}
	for _, x := range l.Borrowed {
		if n := s.Node(x.Node); n != nil {
			machines = append(machines, n)
		}
	}
	t := place.FromMachines(s, machines)
	for _, n := range machines {
		if n.Pool != l.pool.ID || !n.Ready || !n.Marks.HolderTaint {
			continue
		}
		if access := m.access(n); access.Whole(fleet.Online) {
			t.SetOpen(n.ID, fleet.Online, true)
		}
	}
	return t
}

// waitsLately reports whether an online pod has waited for room for less than a time. A machine on its way home for it
// covers its need, and is not lent again before it was taken; but a pod that has waited for longer waits for something
// that no machine has.
func (l *ledger) waitsLately(within time.Duration) bool {
	at := l.in.Snapshot.At
	for _, v := range l.services {
		for i := range v.svc.Pods {
			if p := &v.svc.Pods[i]; waits(p) && at.Sub(p.Created) < within {
				return true
			}
		}
	}
	return false
}
