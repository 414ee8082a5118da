package planner

import (
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/quota"
)

// fragments finds tenants whose pods wait though they hold no more than they are guaranteed with any of them, and the
// free CPU and memory of machines that online has for itself and that none of these pods fits. Sums of cores say that
// there is room; borrowers would hold what they do fit for as long as they like.
func (t *tenants) fragments() {
	s := t.in.Snapshot
	waiting, asked := map[fleet.TenantID][]fleet.Resources{}, map[fleet.TenantID]fleet.Resources{}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Class == fleet.PodOnline && waits(p) {
			id, r := t.tenancy.Of(p.Name.Namespace), p.Requests.CPUAndMemory()
			if id == "" {
				continue
			}
			if asked[id] = asked[id].Add(r); !slices.Contains(waiting[id], r) {
				waiting[id] = append(waiting[id], r)
			}
		}
	}
	for i := range t.input.Wants {
		w := &t.input.Wants[i]
		if len(waiting[w.Tenant]) == 0 {
			continue
		}
		// A tenant's demand beyond its guarantee takes nothing from what it is owed within it.
		g := quota.Guarantee(&s.Tenants[i], s.At, t.input.Open)
		waiting[w.Tenant] = slices.DeleteFunc(waiting[w.Tenant], func(r fleet.Resources) bool { return !quota.Fits(w.Used.Add(r), g) })
		asked[w.Tenant] = asked[w.Tenant].Min(g.Sub(w.Used).Floor())
		if len(waiting[w.Tenant]) == 0 {
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
				w.Fragments = w.Fragments.Add(lackingIn(room, shapes))
				delete(free, node) // count each fragment once
			}
		}
		w.Stuck = asked[w.Tenant]
	}
}

// lackingIn is what of a hole none of the shapes fits by: 8 free cores are no room for 24, and the memory next to them
// is some. Where each of them fits one of the shapes, it is both.
func lackingIn(room fleet.Resources, shapes []fleet.Resources) fleet.Resources {
	cpu := slices.ContainsFunc(shapes, func(r fleet.Resources) bool { return r.CPU <= room.CPU })
	memory := slices.ContainsFunc(shapes, func(r fleet.Resources) bool { return r.Memory <= room.Memory })
	switch {
	case cpu && !memory:
		room.CPU = 0
	case memory && !cpu:
		room.Memory = 0
	}
	return room
}

// holes is what is free on each machine that online has for itself, and the most that any of them could hold.
func (t *tenants) holes() (free map[fleet.NodeID]fleet.Resources, large fleet.Resources) {
	s := t.in.Snapshot
	free = map[fleet.NodeID]fleet.Resources{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if on := t.room.On(n.ID); n.Ready && on.OnlineAlone(s.ClassOf(n.Pool)) {
			free[n.ID], large = on.Free().CPUAndMemory(), large.Max(n.Allocatable.CPUAndMemory())
		}
	}
	return free, large
}
