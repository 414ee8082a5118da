package planner

import (
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/quota"
)

// crumbs finds tenants whose pods wait though they ask for no more than they are guaranteed, and the free CPU and memory of machines that online has
// for itself and that none of these pods fits. Sums of cores say that there is room; borrowers would hold what they do fit for as long as they like.
func (t *tenants) crumbs() {
	s := t.in.Snapshot
	waiting := map[fleet.TenantID][]fleet.Resources{}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Class == fleet.PodOnline && waits(p) {
			if id := t.tenancy.Of(p.Name.Namespace); id != "" && !slices.Contains(waiting[id], only(p.Requests)) {
				waiting[id] = append(waiting[id], only(p.Requests))
			}
		}
	}
	for i := range t.input.Wants {
		w := &t.input.Wants[i]
		if !quota.Fits(w.Now, quota.Guarantee(&s.Tenants[i], s.At, t.input.Open)) {
			delete(waiting, w.Tenant)
		}
	}
	if len(waiting) == 0 {
		return
	}
	free, large := t.holes()
	for i := range t.input.Wants {
		w := &t.input.Wants[i]
		shapes := slices.DeleteFunc(waiting[w.Tenant], func(r fleet.Resources) bool { return !r.Fits(large) })
		if len(shapes) == 0 {
			continue
		}
		for node, room := range free {
			if !slices.ContainsFunc(shapes, func(r fleet.Resources) bool { return r.Fits(room) }) {
				w.Crumbs = w.Crumbs.Add(room)
				delete(free, node) // what one keeps back for is kept
			}
		}
	}
}

// holes is what is free on each machine that online has for itself, and the most that any of them could hold.
func (t *tenants) holes() (free map[fleet.NodeID]fleet.Resources, large fleet.Resources) {
	s := t.in.Snapshot
	free = map[fleet.NodeID]fleet.Resources{}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Ready {
			if p := s.Pool(n.Pool); p != nil && p.Class == fleet.Online {
				free[n.ID], large = only(n.Allocatable), large.Max(only(n.Allocatable))
			}
		}
	}
	for i := range s.Loans {
		if l := &s.Loans[i]; !l.Phase.Ended() {
			delete(free, l.Node)
		}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if room, ours := free[p.Node]; ours && p.Occupies() {
			free[p.Node] = room.Sub(only(p.Requests)).Floor()
		}
	}
	return free, large
}
