package reclaim

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// Candidate is one parcel that could be lent.
type Candidate struct {
	Node     *fleet.Node
	Kind     fleet.ParcelKind
	Cells    []int
	Capacity fleet.Resources
	// Loses is the room that online gives up by it: for a socket also the free room of what it keeps, since nothing new lands there.
	Loses fleet.Resources
	// Free is the part of it that is free now, and gone for online as soon as the loan begins.
	Free fleet.Resources
	// Victims are online pods that must leave by scale-in before the parcel is empty, by service.
	Victims map[fleet.ServiceID]int
	Why     reason.Reason
}

// LendAsk is what may be lent at most.
type LendAsk struct {
	Pool *fleet.Pool
	// Room is how much online can give up at most; Drops how many pods of each service its own tide will take away soon and keep away for
	// the minimum term.
	Room  fleet.Resources
	Drops map[fleet.ServiceID]int
	// Now is the part of what is free now that online can do without until the parcels are empty.
	Now fleet.Resources
	// Count is the move budget that is left, Pins how many of the machines that stay are named at least, if there are so many.
	Count, Pins int
	// On is who is on the machines of the snapshot.
	On *fleet.Occupancy
	// Held says of machines why they are not offered.
	Held map[fleet.NodeID]reason.Reason
	// Frees says whether cells of a machine can be freed: whether what is on it fits its other cells. A pool that lends sockets needs it.
	Frees func(n *fleet.Node, cells []int) bool
}

// Lendable picks parcels of the pool, best first: whole machines before sockets, and among equals those with the fewest
// pods to wait for, so that what scale-in must empty costs least. The result fits into the ask as a whole. It also
// names nodes that stay and what pins them, as many as are asked for.
//
// A machine that online cannot do without yet, and soon can, is waited for: one that is fuller takes longer to be empty, and what it holds
// meanwhile would keep the emptier one from going. Only smaller machines pass it.
func Lendable(s *fleet.Snapshot, ask LendAsk) (take []Candidate, pinned []Pinned) {
	if ask.Count <= 0 {
		return nil, nil
	}
	m := newFleetView(s, &ask)
	drops := m.dropsLeft(ask.Drops)
	room, now := ask.Room, ask.Now
	var waits []fleet.Resources // what the machines hold that are waited for

	fewest := m.byFewestPods()
	for _, n := range fewest {
		// Most machines of a large fleet can neither go nor be named any more.
		loses := m.loses(n)
		fits := len(take) < ask.Count && loses.Fits(room) && !slices.ContainsFunc(waits, func(w fleet.Resources) bool { return w.Fits(loses) })
		if !fits && len(pinned) >= ask.Pins {
			continue
		}
		c, pin := m.allOf(n, drops)
		if !pin.None() && len(pinned) < ask.Pins {
			if ask.Pool.Unit == fleet.UnitSocket && n.Agentless() && len(n.Sockets()) > 1 {
				pin = reason.Of(reason.SocketsStay, pin)
			}
			pinned = append(pinned, Pinned{Node: n.Name, By: pin})
		}
		if !pin.None() || !fits {
			continue
		}
		if !c.Free.Fits(now) {
			waits = append(waits, c.Loses)
			continue
		}
		take = append(take, c)
		room, now = room.Sub(c.Loses), now.Sub(c.Free)
		for svc, k := range c.Victims {
			drops[svc] -= k
		}
		m.leave(n, c.Victims)
	}
	pinned = append(pinned, m.heldBack()...)
	if ask.Pool.Unit == fleet.UnitSocket {
		for _, c := range m.sockets(fewest) {
			if len(take) >= ask.Count {
				break
			}
			if !c.Loses.Fits(room) || !c.Free.Fits(now) || !ask.Frees(c.Node, c.Cells) {
				continue
			}
			take = append(take, c)
			room, now = room.Sub(c.Loses), now.Sub(c.Free)
		}
	}
	return take, pinned
}

// Pinned is a node that stays, and the reason.
type Pinned struct {
	Node string
	By   reason.Reason
}

// fleetView is the snapshot turned towards one lending pool.
type fleetView struct {
	s    *fleet.Snapshot
	pool *fleet.Pool
	on   *fleet.Occupancy
	// leaving are nodes whose parcels are emptying or were just picked: their pods do not count for spread.
	leaving map[fleet.NodeID]bool
	busy    map[fleet.NodeID]bool          // nodes with a loan of any phase, but for those of which other sockets are lent and nothing moves
	parts   map[fleet.NodeID][]*fleet.Loan // the loans of these
	// byZone is the spread of each service over zones, byHost over machines; nil until first asked for: most machines are pinned by something else.
	byZone map[fleet.ServiceID]map[string]int
	byHost map[fleet.ServiceID]*hosts
	drops  map[fleet.ServiceID]int
	stay   map[fleet.NodeID]reason.Reason // why machines are not offered
}

func newFleetView(s *fleet.Snapshot, ask *LendAsk) *fleetView {
	pool := ask.Pool
	v := &fleetView{s: s, pool: pool, on: ask.On, leaving: map[fleet.NodeID]bool{}, busy: map[fleet.NodeID]bool{},
		parts: map[fleet.NodeID][]*fleet.Loan{}, drops: ask.Drops, stay: ask.Held}
	emptying := map[fleet.NodeID]bool{}
	for i := range s.Loans {
		l := &s.Loans[i]
		v.parts[l.Node] = append(v.parts[l.Node], l)
		emptying[l.Node] = emptying[l.Node] || l.Phase == fleet.Emptying
		if pool.Unit != fleet.UnitSocket || l.Phase != fleet.Lent || l.Kind != fleet.KindSocket || l.From != pool.ID {
			v.busy[l.Node] = true
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if loans := v.parts[n.ID]; len(loans) > 0 && fleet.TakeAll(n, loans) {
			v.busy[n.ID] = true
			if emptying[n.ID] {
				v.leaving[n.ID] = true
			}
		}
	}
	return v
}

// dropsLeft takes what nodes that are already emptying wait for out of the drops.
func (v *fleetView) dropsLeft(drops map[fleet.ServiceID]int) map[fleet.ServiceID]int {
	left := make(map[fleet.ServiceID]int, len(drops))
	for svc, k := range drops {
		left[svc] = k
	}
	for id := range v.leaving {
		for _, p := range v.on.On(id).Pods {
			if p.Class == fleet.PodOnline && p.Service != "" && !p.Deleting {
				left[p.Service]--
			}
		}
	}
	return left
}

// likeness is what machines of one borrower should have in common.
type likeness struct{ network, gpu string }

func likenessOf(n *fleet.Node) likeness { return likeness{n.Network, n.GPUModel} }

// lent counts the machines of each likeness that offline has, or is to get, from the pool.
func (v *fleetView) lent() map[likeness]int {
	out := map[likeness]int{}
	for i := range v.s.Nodes {
		if n := &v.s.Nodes[i]; n.Pool == v.pool.ID && len(v.parts[n.ID]) > 0 {
			out[likenessOf(n)]++
		}
	}
	return out
}

// askStep is how much less a machine's online pods must request for it to be cheaper to empty: a sidecar more or less is none.
const askStep = fleet.MilliCPU(1000)

// byFewestPods lists the pool's nodes that could be lent, those with the least online requests first, by whole cores; among equals those of the network
// pod and the GPU model of which most are lent already, so that a gang finds its machines side by side and alike.
func (v *fleetView) byFewestPods() []*fleet.Node {
	type loaded struct {
		asked fleet.MilliCPU
		alike int
		node  *fleet.Node
	}
	lent := v.lent()
	all := make([]loaded, 0, len(v.s.Nodes))
	for i := range v.s.Nodes {
		n := &v.s.Nodes[i]
		if n.Pool == v.pool.ID && n.Ready && !v.busy[n.ID] && v.held(n).None() {
			all = append(all, loaded{v.on.On(n.ID).Online.CPU, lent[likenessOf(n)], n})
		}
	}
	slices.SortFunc(all, func(a, b loaded) int {
		return cmp.Or(cmp.Compare((a.asked+askStep-1)/askStep, (b.asked+askStep-1)/askStep), cmp.Compare(b.alike, a.alike),
			cmp.Compare(a.node.Network, b.node.Network), cmp.Compare(a.node.GPUModel, b.node.GPUModel), cmp.Compare(a.asked, b.asked),
			cmp.Compare(a.node.Name, b.node.Name))
	})
	out := make([]*fleet.Node, len(all))
	for i := range all {
		out[i] = all[i].node
	}
	return out
}

// held says why a machine is not offered now; empty where it is. One whose node agent is silent would never be reported clean, and keep others from
// going meanwhile. For a machine that never had one the controller decides, as long as the whole machine goes.
func (v *fleetView) held(n *fleet.Node) reason.Reason {
	if !n.AgentAlive && n.AgentKnown {
		return reason.Of(reason.AgentNeverClean)
	}
	if n.Leaving != "" {
		return reason.Of(reason.AboutToLeave, n.Leaving)
	}
	if by := v.stay[n.ID]; !by.None() {
		return by
	}
	return resting(n, v.s.At)
}

// heldBack lists the pool's nodes that would be judged if nothing held them.
func (v *fleetView) heldBack() []Pinned {
	var out []Pinned
	for i := range v.s.Nodes {
		if n := &v.s.Nodes[i]; n.Pool == v.pool.ID && n.Ready && !v.busy[n.ID] {
			if by := v.held(n); !by.None() {
				out = append(out, Pinned{Node: n.Name, By: by})
			}
		}
	}
	return out
}

// loses is what online gives up by a machine, or by what others of its sockets have left of it. Nothing new of online
// lands next to a lent socket, so that is no more than its pods there hold.
func (v *fleetView) loses(n *fleet.Node) fleet.Resources {
	if len(v.parts[n.ID]) > 0 {
		return v.on.On(n.ID).Asked()
	}
	return n.Allocatable
}

// allOf judges a machine, or what others of its sockets have left of it: every online pod on it must belong to a service whose own tide will
// take that many pods away, and the service must neither crowd other machines by it nor lose a zone, unless fewer replicas stay than zones: scale-in
// takes the last pod of a zone then, too. A machine that carries a component of ours stays. pin says what keeps the machine otherwise.
func (v *fleetView) allOf(n *fleet.Node, drops map[fleet.ServiceID]int) (c Candidate, pin reason.Reason) {
	victims := map[fleet.ServiceID]int{}
	for _, p := range v.on.On(n.ID).Pods {
		switch {
		case p.Own && !p.Deleting:
			return c, reason.Of(reason.OwnPod, p.Name)
		case p.Class == fleet.PodSystem || p.Class == fleet.PodFiller || p.Deleting:
			continue
		case p.Class == fleet.PodOffline && len(v.parts[n.ID]) > 0:
			continue // it works on the sockets that are lent
		case p.Class != fleet.PodOnline || p.Service == "":
			return c, reason.Of(reason.NotScaled, p.Name)
		}
		if svc := v.s.Service(p.Service); svc == nil || !svc.Steerable {
			return c, reason.Of(reason.NotSteerable, p.Name)
		}
		victims[p.Service]++
	}
	for _, svc := range sortedKeys(victims) {
		if k := victims[svc]; k > drops[svc] {
			return c, reason.Of(reason.ServiceKeeps, svc, k-max(drops[svc], 0), k)
		}
		h := v.hosts(svc)
		if zones := v.spread(svc); len(zones) > 1 && zones[n.Zone] == victims[svc] && occupied(zones) <= h.stay {
			return c, reason.Of(reason.LeavesZone, svc, n.Zone)
		}
		if h.crowds(n.ID) {
			return c, reason.Of(reason.CrowdsMachines, svc, h.most, h.stay)
		}
	}
	c = Candidate{
		Node: n, Kind: fleet.KindNode, Cells: n.AllCells(), Capacity: n.Allocatable, Loses: v.loses(n), Free: v.on.On(n.ID).Free().CPUAndMemory(), Victims: victims,
		Why: reason.Of(reason.LeaveByScaleIn, total(victims), reason.Reason{}),
	}
	if away := v.parts[n.ID]; len(away) > 0 {
		if !n.AgentAlive {
			return c, reason.Of(reason.SocketsNotEmptied)
		}
		c.Kind, c.Free = fleet.KindSocket, fleet.Resources{} // nothing new of online lands there
		c.Cells = slices.DeleteFunc(c.Cells, func(cell int) bool {
			return slices.ContainsFunc(away, func(l *fleet.Loan) bool { return slices.Contains(l.Cells, cell) })
		})
		c.Capacity = n.CapacityOf(c.Cells)
		c.Why = reason.Of(reason.LeaveByScaleIn, total(victims), reason.Of(reason.FollowsSockets))
	}
	return c, pin
}

// sockets lists the sockets that could be lent of machines that stay, those first that leave least idle next to them:
// room that neither side has then. The machines with few pods, which may yet be emptied, come last by that.
func (v *fleetView) sockets(fewest []*fleet.Node) []Candidate {
	var out []Candidate
	for _, n := range fewest {
		if c, ok := v.oneSocket(n); ok {
			out = append(out, c)
		}
	}
	idle := func(c *Candidate) fleet.MilliCPU { return c.Loses.CPU - c.Capacity.CPU }
	slices.SortStableFunc(out, func(a, b Candidate) int { return cmp.Compare(idle(&a), idle(&b)) })
	return out
}

// oneSocket is the last socket of a node that stays, if its pods are few enough for the others; whether they fit there is asked when it is
// taken. The node side must be alive, since it confines them.
func (v *fleetView) oneSocket(n *fleet.Node) (Candidate, bool) {
	sockets := n.Sockets()
	// A socket with a free one next to it would better be lent as a whole machine, once the tide allows.
	stays := slices.ContainsFunc(v.on.On(n.ID).Pods, func(p *fleet.Pod) bool { return p.Class == fleet.PodOnline })
	if len(sockets) < 2 || !n.AgentAlive || !stays || len(v.parts[n.ID]) > 0 || v.leaving[n.ID] {
		return Candidate{}, false
	}
	away := n.CellsOf(sockets[len(sockets)-1])
	kept := n.CapacityOf(slices.DeleteFunc(n.AllCells(), func(c int) bool { return slices.Contains(away, c) }))
	used := v.on.On(n.ID).Asked()
	return Candidate{
		Node: n, Kind: fleet.KindSocket, Cells: away, Capacity: n.CapacityOf(away), Loses: n.Allocatable.Sub(used), Free: v.on.On(n.ID).Free().CPUAndMemory(),
		Why: reason.Of(reason.FitsSockets, used, kept),
	}, used.Fits(kept)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func total(m map[fleet.ServiceID]int) int {
	n := 0
	for _, k := range m {
		n += k
	}
	return n
}
