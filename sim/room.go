package sim

import (
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/place"
)

// rooms are the machines as the product's own placement sees them: free CPU, memory and pods of the cells that each side holds, by zone. Pods
// of a service are spread over the zones, and go to the fullest machine of a zone on which they fit.
type rooms struct {
	table *place.Table
	ids   []fleet.NodeID // a machine keeps its place here when it comes back as another
	at    map[fleet.NodeID]int32
	cells []int // of each machine: they are alike
	// services, members and guests are the shapes of each service's replicas and each job's members; guests use what online leaves free.
	services, members, guests []place.ClassID
	filler                    map[int32]place.ClassID
	// decides: the bundled scheduler's decisions place pods, in place of the planner's packing.
	decides bool
}

// buildRooms makes the rooms of empty machines.
func (w *World) buildRooms() {
	s := fleet.Snapshot{Nodes: slices.Clone(w.facts), Pools: []fleet.Pool{{ID: offlinePool, Class: fleet.Offline}, {ID: onlinePool, Class: fleet.Online}}}
	r := &w.rooms
	r.table, r.at, r.filler = place.FromSnapshot(&s), make(map[fleet.NodeID]int32, len(w.facts)), map[int32]place.ClassID{}
	for i := range w.facts {
		r.ids, r.at[w.facts[i].ID] = append(r.ids, w.facts[i].ID), int32(i)
	}
	r.cells, r.decides = w.facts[0].AllCells(), w.b.Fleet.Scheduler != ""
	for i := range w.b.Services {
		o := &w.b.Services[i]
		r.services = append(r.services, r.table.Class(place.Shape{Requests: o.Request(), Side: fleet.Online, Group: string(o.ID()), Zones: true}))
	}
}

// jobShapes adds the shapes of the jobs, in their order.
func (w *World) jobShapes() {
	for i := range w.jobs {
		request := w.jobs[i].request
		w.rooms.members = append(w.rooms.members, w.rooms.table.Class(place.Shape{Requests: request, Side: fleet.Offline}))
		w.rooms.guests = append(w.rooms.guests, w.rooms.table.Class(place.Shape{Requests: request, Side: fleet.Online}))
	}
}

// shape is that of a pod.
func (w *World) shape(p *pod) place.ClassID {
	switch p.kind {
	case online:
		return w.rooms.services[p.owner]
	case offline:
		return w.rooms.members[p.owner]
	}
	id, ok := w.rooms.filler[p.cores]
	if !ok {
		id = w.rooms.table.Class(place.Shape{Requests: coresRequest(int(p.cores)), Side: fleet.Online})
		w.rooms.filler[p.cores] = id
	}
	return id
}

// find room for one more pod of a shape, and take it.
func (r *rooms) place(c place.ClassID) (ref place.PodRef, n int32, ok bool) {
	if r.decides {
		d, ok := r.table.Decide(c)
		if !ok {
			return 0, none, false
		}
		return d.Pod, r.at[d.Node], true
	}
	p, ok := r.table.Place(c)
	if !ok {
		return 0, none, false
	}
	return p.Pod, r.at[p.Node], true
}

// gang finds room for so many pods of a shape at once, or takes none.
func (r *rooms) gang(c place.ClassID, pods int) (refs []place.PodRef, at []int32, ok bool) {
	if r.decides {
		g, ok := r.table.DecideGang(place.GangRequest{Roles: []place.Role{{Class: c, Min: pods, Count: pods}}})
		for _, role := range g.Pods {
			for _, d := range role {
				refs, at = append(refs, d.Pod), append(at, r.at[d.Node])
			}
		}
		return refs, at, ok
	}
	placed, ok := r.table.Gang(slices.Repeat([]place.ClassID{c}, pods))
	for _, p := range placed {
		refs, at = append(refs, p.Pod), append(at, r.at[p.Node])
	}
	return refs, at, ok
}

// handCells gives the cells of a machine to who has them by its share. The bundled scheduler follows the share in all it says.
func (w *World) handCells(n int32) {
	m, access := &w.machines[n], w.access(n)
	var away []int
	for _, c := range w.rooms.cells {
		if side, _ := access.Holder(c); side != classOfPool(m.home) {
			away = append(away, c)
		}
	}
	if !slices.Equal(away, m.away) || w.rooms.decides {
		m.away = away
		w.open(n)
	}
}

// access is what the share of a machine says.
func (w *World) access(n int32) fleet.Access {
	return fleet.AccessOf(&w.facts[n], w.facts[n].Share.Parcels, classOfPool)
}

// byShare reports whether pods are placed on a machine by its share: the bundled scheduler does so. The cluster's own uses the marks, and so do the lenders of peers,
// which write no shares.
func (w *World) byShare(n int32) bool { return w.rooms.decides && w.facts[n].Share.Exists }

// mayLand reports whose pods may land on a machine.
func (w *World) mayLand(n int32) (toOnline, toOffline bool) {
	if !w.byShare(n) {
		return w.machines[n].toOnline, w.machines[n].toOffline
	}
	access := w.access(n)
	return access.Open(fleet.Online), access.Open(fleet.Offline)
}

// open brings a machine's room to who may land there, and to the cells that each side holds.
func (w *World) open(n int32) {
	m, id, t := &w.machines[n], w.rooms.ids[n], w.rooms.table
	holder, other := fleet.Online, fleet.Offline
	if m.home == offlinePool {
		holder, other = other, holder
	}
	for _, c := range w.rooms.cells {
		if slices.Contains(m.away, c) {
			t.Assign(id, []int{c}, other)
		} else {
			t.Assign(id, []int{c}, holder)
		}
	}
	toOnline, toOffline := w.mayLand(n)
	if w.byShare(n) {
		access := w.access(n)
		for _, c := range w.rooms.cells {
			if side, moves := access.Holder(c); moves && access.Open(side) { // its side may land, and not on this cell
				t.Assign(id, []int{c}, map[fleet.Class]fleet.Class{fleet.Online: fleet.Offline, fleet.Offline: fleet.Online}[side])
			}
		}
	}
	ready := w.facts[n].Ready
	t.SetOpen(id, fleet.Online, toOnline && !m.gone && ready)
	t.SetOpen(id, fleet.Offline, toOffline && !m.gone && ready)
}
