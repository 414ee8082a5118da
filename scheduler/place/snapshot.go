package place

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// FromSnapshot builds the table of a moment. Where its lists are in another order than [fleet.Snapshot.Sort] gives them, the table is the same.
//
// Which cells a pod runs on is no fact of a snapshot, so the pods that are there float. Pods may land as the scheduler would let them: where the bundled one serves
// the home pool, by [fleet.AccessOf] alone. The cluster's own knows the marks of the node and no cells, so online pods land at home only where online has the whole
// machine, and nowhere behind a taint. Machines of no pool are not ours.
func FromSnapshot(s *fleet.Snapshot) *Table {
	machines := make([]*fleet.Node, len(s.Nodes))
	for i := range s.Nodes {
		machines[i] = &s.Nodes[i]
	}
	return FromMachines(s, machines)
}

// FromMachines builds the table of the given machines of a snapshot alone, and of what is on them.
func FromMachines(s *fleet.Snapshot, machines []*fleet.Node) *Table {
	t := New()
	b := builder{t: t, loans: map[fleet.NodeID][]*fleet.Loan{}, pools: map[fleet.PoolID]*fleet.Pool{},
		services: map[fleet.ServiceID]*fleet.Service{}, stable: map[roleKey]bool{}, classes: map[podKey]ClassID{}}
	b.read(s)
	b.machines(machines)
	b.pods(s)
	return t
}

// builder is the snapshot turned towards machines and shapes.
type builder struct {
	t        *Table
	loans    map[fleet.NodeID][]*fleet.Loan
	pools    map[fleet.PoolID]*fleet.Pool
	services map[fleet.ServiceID]*fleet.Service
	stable   map[roleKey]bool
	classes  map[podKey]ClassID
	// lastKey and lastClass are those of the pod before.
	lastKey   podKey
	lastClass ClassID
}

type roleKey struct {
	job  fleet.JobID
	role string
}

// podKey is all of a pod that its shape depends on.
type podKey struct {
	class    fleet.PodClass
	service  fleet.ServiceID
	roleKey  roleKey
	requests fleet.Resources
}

func (b *builder) read(s *fleet.Snapshot) {
	for i := range s.Loans {
		if l := &s.Loans[i]; !l.Phase.Ended() {
			b.loans[l.Node] = append(b.loans[l.Node], l)
		}
	}
	for i := range s.Pools {
		b.pools[s.Pools[i].ID] = &s.Pools[i]
	}
	for i := range s.Services {
		b.services[s.Services[i].ID] = &s.Services[i]
	}
	for i := range s.Jobs {
		for _, m := range s.Jobs[i].Members {
			b.stable[roleKey{s.Jobs[i].ID, m.Role}] = m.Stable
		}
	}
}

func (b *builder) machines(facts []*fleet.Node) {
	byTheirID := func(a, b *fleet.Node) int { return cmp.Compare(a.ID, b.ID) }
	if !slices.IsSortedFunc(facts, byTheirID) {
		facts = slices.SortedFunc(slices.Values(facts), byTheirID)
	}
	b.t.reserve(len(facts))
	for _, n := range facts {
		b.t.SetMachine(b.machine(n))
	}
}

// machine says of a machine what the snapshot says. Between equal machines the id decides, as everywhere in a plan, and so it stands for the name.
func (b *builder) machine(n *fleet.Node) Machine {
	m := Machine{ID: n.ID, Name: string(n.ID), Pool: n.Pool, Home: fleet.Online, Zone: n.Zone, GPUModel: n.GPUModel, Allocatable: n.Allocatable}
	if p := b.pools[n.Pool]; p != nil {
		m.Home = p.Class
	}
	access := fleet.AccessOf(n, n.Parcels(b.loans[n.ID]), b.sideOfPool)
	for _, c := range n.Cells {
		m.Cells = append(m.Cells, Cell{Cell: c, Holder: b.holderOf(n, &access, c.ID)})
	}
	if len(n.Cells) == 0 {
		m.Holder = b.holderOf(n, &access, 0)
	}
	m.Closed = Sides{Online: !b.mayLand(n, &access, fleet.Online), Offline: !b.mayLand(n, &access, fleet.Offline)}
	return m
}

func newCell(capacity fleet.Resources, id, socket int) cell {
	v := vecOf(capacity)
	c := cell{capacity: [perCell]int64(v[:perCell]), id: id, socket: socket}
	c.free = c.capacity
	return c
}

func (b *builder) sideOfPool(id fleet.PoolID) fleet.Class {
	if p := b.pools[id]; p != nil {
		return p.Class
	}
	return ""
}

// holderOf is the side that has a cell. One that moves holds what is there still; nothing more lands on it, since its machine is closed or [Moving]. No side has a cell
// whose pool is gone.
func (b *builder) holderOf(n *fleet.Node, a *fleet.Access, cell int) Holder {
	side, moves := a.Holder(cell)
	switch {
	case moves && a.Open(side), side == "" && b.pools[n.Pool] != nil:
		return Moving
	case side == fleet.Online:
		return HeldOnline
	case side == fleet.Offline:
		return HeldOffline
	}
	return AtHome
}

func (b *builder) mayLand(n *fleet.Node, a *fleet.Access, side fleet.Class) bool {
	pool := b.pools[n.Pool]
	if pool == nil || !n.Ready || !a.Open(side) {
		return false
	}
	return side != fleet.Online || pool.Scheduler != "" || !n.Marks.HolderTaint && (pool.Class != fleet.Online || a.Whole(fleet.Online))
}

func (b *builder) pods(s *fleet.Snapshot) {
	type on struct {
		pod  *fleet.Pod
		node int32
	}
	byName := make([]on, 0, len(s.Pods))
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Occupies() {
			if n, ours := b.t.byID[p.Node]; ours {
				byName = append(byName, on{p, n})
			}
		}
	}
	byTheirName := func(a, b on) int { return a.pod.Name.Compare(b.pod.Name) }
	if !slices.IsSortedFunc(byName, byTheirName) {
		slices.SortFunc(byName, byTheirName)
	}
	b.t.pods = slices.Grow(b.t.pods, len(byName)+len(byName)/8)
	for _, x := range byName {
		p, row := x.pod, 2*x.node+int32(b.t.nodes[x.node].home)
		switch p.Class {
		case fleet.PodOnline:
			row = 2*x.node + int32(onlineSide)
		case fleet.PodOffline:
			row = 2*x.node + int32(offlineSide)
		}
		b.t.put(pod{uid: p.ID, class: b.class(p), row: row, role: roleOf(p)})
	}
}

func roleOf(p *fleet.Pod) role {
	switch {
	case p.Class == fleet.PodSystem:
		return system
	case p.Class == fleet.PodFiller:
		return filler
	case p.Deleting:
		return leaves
	}
	return stays
}

// class interns the shape of a pod that is there.
func (b *builder) class(p *fleet.Pod) ClassID {
	k := podKey{p.Class, p.Service, roleKey{p.Job, p.Role}, p.Requests}
	if k == b.lastKey && len(b.classes) > 0 {
		return b.lastClass // pods of one owner follow each other
	}
	id, ok := b.classes[k]
	if !ok {
		id = b.classOf(k, p)
		b.classes[k] = id
	}
	b.lastKey, b.lastClass = k, id
	return id
}

func (b *builder) classOf(k podKey, p *fleet.Pod) ClassID {
	shape := Shape{Requests: p.Requests, Side: fleet.Online}
	switch svc := b.services[p.Service]; {
	case p.Class == fleet.PodOffline:
		shape.Side, shape.Stable = fleet.Offline, b.stable[k.roleKey]
	case p.Class == fleet.PodOnline && svc != nil:
		shape = ReplicaShape(svc)
		shape.Requests = p.Requests
	}
	return b.t.Class(shape)
}

// ReplicaShape is the shape of one more replica of a service. It keeps the spread that emptying must keep: over zones, and at most a
// fifth of the replicas on one machine, or one.
func ReplicaShape(svc *fleet.Service) Shape {
	return Shape{Requests: svc.Request, Side: fleet.Online, Group: string(svc.ID), Zones: true, PerHost: int32(fleet.MostPerHost(svc.Standing()))}
}

// MemberShape is the shape of one more member of a job.
func MemberShape(m *fleet.Member) Shape {
	return Shape{Requests: m.Request, Side: fleet.Offline, Stable: m.Stable}
}
