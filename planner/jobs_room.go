package planner

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/place"
)

// staffing is the offline work of one plan in the making, and the room that it may have.
type staffing struct {
	m       *maker
	list    []*staff
	allowed *allowances
	// The table knows only the machines on which offline pods may land: they are few, and the others have no room for them. It is built when
	// first asked for.
	built bool
	table *place.Table
	pods  map[fleet.UID]place.PodRef
	// ending are the pods that have a notice and still hold room; capacity is all room for offline work, used or not:
	// what shares are measured by.
	ending   []place.PodRef
	capacity fleet.Resources
}

func (x *staffing) allow(a *allowances) {
	x.allowed = a
	for _, st := range x.list {
		st.grow = a.grow(st.job)
		for i := range st.roles {
			st.roles[i].stuck = false
		}
	}
}

// room is the table of the machines that are open to offline work.
func (x *staffing) room() *place.Table {
	if x.built {
		return x.table
	}
	x.built = true
	m, s := x.m, x.m.in.Snapshot
	machines := make([]*fleet.Node, 0, len(s.Loans))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		pool := s.Pool(n.Pool)
		if pool == nil || !n.Lasts() || !m.open(n) {
			continue
		}
		machines = append(machines, n)
		if pool.Class == fleet.Offline {
			x.capacity = x.capacity.Add(n.Allocatable)
		} else {
			x.capacity = x.capacity.Add(n.CapacityOf(m.cells(n, fleet.Lent)))
		}
	}
	x.table = place.FromMachines(s, machines)
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Class == fleet.PodOffline && p.Deleting {
			if ref, ok := x.ref(p); ok {
				x.ending = append(x.ending, ref)
			}
		}
	}
	for _, st := range x.list {
		for i := range st.roles {
			c := &st.roles[i]
			x.ending = append(x.ending, x.refs(c.pods[:c.going])...)
		}
	}
	return x.table
}

// refs are the pods of a list that are in the table.
func (x *staffing) refs(pods []*fleet.Pod) []place.PodRef {
	if len(pods) == 0 {
		return nil
	}
	out := make([]place.PodRef, 0, len(pods))
	for _, p := range pods {
		if ref, ok := x.ref(p); ok {
			out = append(out, ref)
		}
	}
	return out
}

// ref finds a pod in the table. Most plans ask for none, so the pods are listed when first one is asked for; by then
// pods may have been placed, which belong to no job yet.
func (x *staffing) ref(p *fleet.Pod) (place.PodRef, bool) {
	if x.pods == nil {
		x.pods = map[fleet.UID]place.PodRef{}
		for at := range x.table.Pods() {
			if at.UID != "" {
				x.pods[at.UID] = at.Pod
			}
		}
	}
	ref, ok := x.pods[p.ID]
	return ref, ok
}

// one places one more member where its tenant may be, and charges the tenant. At home it is kept off loans though it may run there.
func (x *staffing) one(st *staff, i int, home bool) (place.Placement, bool) {
	t, shape := x.room(), place.MemberShape(&st.job.Members[i])
	if !st.affords(i) {
		return place.Placement{}, false
	}
	shape.Stable = shape.Stable || home
	class := t.Class(shape)
	var shut []fleet.NodeID
	defer func() {
		for _, id := range shut {
			t.SetOpen(id, fleet.Offline, true)
		}
	}()
	for {
		p, ok := t.Place(class)
		if !ok {
			return place.Placement{}, false
		}
		if on := x.parcels(p.Node); st.grow.may(on) {
			st.take(i, on)
			return p, true
		}
		t.Remove(p.Pod)
		t.SetOpen(p.Node, fleet.Offline, false)
		shut = append(shut, p.Node)
	}
}

// seat places what members lack, all of it or nothing: those first that may run at home alone, then the largest, each at home where there is
// room.
func (x *staffing) seat(st *staff, lack []int) ([]place.Placement, bool) {
	order := make([]int, 0, len(lack))
	for i, n := range lack {
		if n > 0 {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return nil, true
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &st.job.Members[a], &st.job.Members[b]
		return cmp.Or(fleet.TrueFirst(x.Stable, y.Stable), largestFirst(x.Request, y.Request), cmp.Compare(a, b))
	})
	undo := st.save()
	var out []place.Placement
	ok := x.room().Try(func() bool {
		for _, i := range order {
			home := true
			for range lack[i] {
				p, ok := x.one(st, i, home)
				if !ok && home && !st.job.Members[i].Stable {
					home = false // full for the rest of them too
					p, ok = x.one(st, i, false)
				}
				if !ok {
					return false
				}
				out = append(out, p)
			}
		}
		return true
	})
	if !ok {
		undo()
		return nil, false
	}
	return out, true
}

// would asks whether a gang could be seated if pods were gone.
func (x *staffing) would(st *staff, lack []int, gone []place.PodRef) bool {
	undo := st.save()
	defer undo()
	t := x.room()
	return t.Would(func() bool {
		for _, ref := range gone {
			t.Remove(ref)
		}
		_, ok := x.seat(st, lack)
		return ok
	})
}

// machine is a machine and what it stands for to a tenant: whole machines and sockets.
type machine struct {
	node                   *fleet.Node
	lentNodes, lentSockets int64
}

func (x *staffing) parcels(id fleet.NodeID) machine {
	m := x.m
	on := machine{node: m.in.Snapshot.Node(id)}
	if pool := m.in.Snapshot.Pool(on.node.Pool); pool.Class == fleet.Offline {
		on.lentNodes = 1
		return on
	}
	for _, l := range m.on(id).Loans {
		switch {
		case l.Phase == fleet.Lent && l.Kind == fleet.KindNode:
			on.lentNodes++
		case l.Phase == fleet.Lent:
			on.lentSockets++
		}
	}
	return on
}

// cells lists the cells of a machine's loans in one phase.
func (m *maker) cells(n *fleet.Node, phase fleet.Phase) []int {
	var out []int
	for _, l := range m.on(n.ID).Loans {
		if l.Phase == phase {
			out = append(out, l.Cells...)
		}
	}
	return out
}
