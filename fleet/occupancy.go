package fleet

import "slices"

// Occupancy is who is on each machine of a snapshot, what they ask for there, and what that leaves. It is made once a snapshot and never
// changed: what a plan decides on top of it, the plan keeps.
//
// The words of room have one meaning each:
//
//   - asked is what online and system pods request of a machine: it stays when a borrower leaves;
//   - free is what no pod at all requests of it; a pod in standby counts with what it requests in service;
//   - coming is what online gets of it once its borrower has left: all that is not asked;
//   - usable is where online pods of a pool may land, or are already;
//   - ungranted is what its kubelet may still grant, where a pod in standby counts with what is left of its request;
//   - above a watermark is what is usable, less the part of the pool's capacity that the watermark keeps.
type Occupancy struct {
	machines map[NodeID]*Machine
	pools    map[PoolID]*PoolRoom
}

// Machine is one machine of an [Occupancy]. The sums are of the requests of its pods, and count those pods.
type Machine struct {
	// Node is nil for a machine that only pods or loans still name.
	Node  *Node
	Pods  []*Pod
	Loans []*Loan // in any phase
	Moves Moves
	// Online and System are what these pods ask for, Bare the part of both that is of no service.
	Online, System, Bare Resources
	// Others are what offline pods and fillers ask for.
	Others Resources
}

// Moves counts the loans of one machine that are not over, and the parcels that a share alone knows of.
type Moves struct {
	// Live are all of them. Homeward are on their way home, Lost those that did not come. Those whose home is offline are counted apart: Out are on
	// their way to online, Borrowed are there, Back are on their way home.
	Live, Homeward, Emptying, Lost, Out, Borrowed, Back int
}

// EmptyingAlone reports whether all that is under way on the machine is that it is being emptied: calling that off brings it home.
func (m Moves) EmptyingAlone() bool { return m.Emptying > 0 && m.Live == m.Emptying }

// Leaving reports whether something of the machine must be left by its borrower.
func (m Moves) Leaving() bool { return m.Homeward+m.Lost+m.Out > 0 }

// PoolRoom is what the machines of a pool hold, and what of it is room for the pool's own side, with that of machines that it borrows.
type PoolRoom struct {
	// Machines are those of the pool; Holds is their capacity, Ready that of those that are ready, Lasting that of those that will stay so.
	Machines              int
	Holds, Ready, Lasting Resources
	Kinds                 []MachineKind
	// Capacity is what watermarks are shares of: ready machines, and of one that did not come home what online still uses there.
	Capacity Resources
	// Usable is where online pods can be, or already are; Coming the room of machines that are on their way home.
	Usable, Coming Resources
	// Other is what pods of no service ask for on these machines, Asked what all online and system pods do.
	Other, Asked Resources
	// Rooms are how many of the pool's machines have so much for services; see [Machine.ForServices].
	Rooms map[Resources]int64
	// On are the machines whose pods Asked counts, Borrowed the loans of others' machines to the pool that are not over.
	On       []*Machine
	Borrowed []*Loan
}

// MachineKind is how many machines of a pool hold the same, and how many of them will stay ready.
type MachineKind struct {
	Holds         Resources
	GPUModel      string
	Each, Lasting int64
}

// OccupancyOf counts a snapshot.
func OccupancyOf(s *Snapshot) *Occupancy {
	o := &Occupancy{machines: make(map[NodeID]*Machine, len(s.Nodes)), pools: make(map[PoolID]*PoolRoom, len(s.Pools))}
	all := make([]Machine, len(s.Nodes))
	for i := range s.Nodes {
		all[i].Node = &s.Nodes[i]
		o.machines[s.Nodes[i].ID] = &all[i]
	}
	for id, pods := range s.PodsByNode() {
		o.make(id).count(pods)
	}
	for id, loans := range s.LoansByNode() {
		o.make(id).Loans = loans
	}
	o.countMoves(s)
	for i := range s.Pools {
		o.pools[s.Pools[i].ID] = &PoolRoom{Rooms: map[Resources]int64{}}
	}
	for i := range all {
		m := &all[i]
		if own := o.pools[m.Node.Pool]; own != nil {
			own.add(m)
		}
		if m.Moves.Out+m.Moves.Borrowed+m.Moves.Back > 0 {
			o.addBorrowed(s, m)
		}
	}
	return o
}

// none stands for each machine without pods that no loan names.
var none = &Machine{}

// On is a machine; an empty one for a name that nothing is known of.
func (o *Occupancy) On(id NodeID) *Machine {
	if m := o.machines[id]; m != nil {
		return m
	}
	return none
}

// Pool is the room of a pool; that of no machine for one that is not known.
func (o *Occupancy) Pool(id PoolID) *PoolRoom {
	if p := o.pools[id]; p != nil {
		return p
	}
	return &PoolRoom{}
}

func (o *Occupancy) make(id NodeID) *Machine {
	m := o.machines[id]
	if m == nil {
		m = &Machine{}
		o.machines[id] = m
	}
	return m
}

func (m *Machine) count(pods []*Pod) {
	m.Pods = pods
	for _, p := range pods {
		r := p.Reserves().OnePod()
		switch p.Class {
		case PodOnline:
			m.Online = m.Online.Add(r)
		case PodSystem:
			m.System = m.System.Add(r)
		default:
			m.Others = m.Others.Add(r)
			continue
		}
		if p.Service == "" {
			m.Bare = m.Bare.Add(r)
		}
	}
}

func (o *Occupancy) countMoves(s *Snapshot) {
	for i := range s.Loans {
		l := &s.Loans[i]
		if l.Phase.Ended() {
			continue
		}
		st := &o.make(l.Node).Moves
		st.Live++
		fromOffline := s.FromOffline(l)
		switch {
		case fromOffline && l.Phase == Emptying:
			st.Out++
		case fromOffline && l.Phase == Lent:
			st.Borrowed++
		case fromOffline:
			st.Back++
		case st.Out+st.Borrowed+st.Back > 0: // a loan of ours on a machine that is borrowed: the other one says how it stands
		case l.Phase == Noticed || l.Phase == Draining:
			st.Homeward++
		case l.Phase.Lost():
			st.Lost++
		case l.Phase == Emptying:
			st.Emptying++
		}
	}
	// A parcel that only a share knows is away too, and on no way home before a loan says so.
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for k := range n.Share.Parcels {
			e := &n.Share.Parcels[k]
			home := SameSide(e.Holder, n.Pool, s.ClassOf)
			if home && e.Next == "" || !Overlap(e.Cells, n.AllCells()) || !s.Orphaned(e) {
				continue
			}
			st := &o.make(n.ID).Moves
			if st.Live++; !home {
				st.Lost++
			}
		}
	}
}

// add counts a machine of the pool's own.
func (p *PoolRoom) add(m *Machine) {
	n, asked := m.Node, m.Asked()
	p.Machines++
	p.Holds = p.Holds.Add(n.Allocatable)
	p.addKind(n)
	p.Rooms[m.ForServices()]++
	p.On = append(p.On, m)
	p.Asked, p.Other = p.Asked.Add(asked), p.Other.Add(m.Bare)
	if !n.Ready {
		return
	}
	p.Ready = p.Ready.Add(n.Allocatable)
	if n.Lasts() {
		p.Lasting = p.Lasting.Add(n.Allocatable)
	}
	if m.Moves.Lost > 0 {
		// The part that online still uses counts; the rest counts for no side.
		p.Usable, p.Capacity = p.Usable.Add(asked), p.Capacity.Add(asked)
		return
	}
	p.Capacity = p.Capacity.Add(n.Allocatable)
	if m.Moves.Live == 0 {
		p.Usable = p.Usable.Add(n.Allocatable)
		return
	}
	p.Usable = p.Usable.Add(asked)
	if m.Moves.Live == m.Moves.Homeward && n.Lasts() {
		p.Coming = p.Coming.Add(m.Coming())
	}
}

func (p *PoolRoom) addKind(n *Node) {
	k := slices.IndexFunc(p.Kinds, func(k MachineKind) bool { return k.Holds == n.Allocatable && k.GPUModel == n.GPUModel })
	if k < 0 {
		k = len(p.Kinds)
		p.Kinds = append(p.Kinds, MachineKind{Holds: n.Allocatable, GPUModel: n.GPUModel})
	}
	p.Kinds[k].Each++
	if n.Lasts() {
		p.Kinds[k].Lasting++
	}
}

// addBorrowed counts a machine of an offline pool for the online pool that borrows it: its whole room while it is lent, what online pods ask for on
// it while it goes back, and its room as coming while it is emptied; nothing of it while it is not ready. One whose taints came later, and keep
// the pool's services off, counts with what runs there. It is no capacity of the pool, so no watermark is computed from it.
func (o *Occupancy) addBorrowed(s *Snapshot, m *Machine) {
	n := m.Node
	for _, l := range m.Loans {
		p := o.pools[l.To]
		if p == nil || l.To == n.Pool || l.Phase.Ended() || !s.FromOffline(l) {
			continue
		}
		p.Borrowed = append(p.Borrowed, l)
		if l.Phase == Emptying {
			if n.Admits(l.To) && n.Lasts() {
				p.Coming = p.Coming.Add(n.Allocatable)
			}
			continue
		}
		asked := m.Asked()
		p.On = append(p.On, m)
		p.Asked, p.Other = p.Asked.Add(asked), p.Other.Add(m.Bare)
		switch {
		case !n.Ready: // as of the pool's own, nothing of it is counted on
		case l.Phase == Lent && n.Admits(l.To):
			p.Usable = p.Usable.Add(n.Allocatable)
		default:
			p.Usable = p.Usable.Add(asked)
		}
	}
}

// Asked is what online and system pods ask for: what stays when a borrower leaves.
func (m *Machine) Asked() Resources { return m.Online.Add(m.System) }

// Free is what no pod asks for.
func (m *Machine) Free() Resources { return m.Node.Allocatable.Sub(m.Asked()).Sub(m.Others).Floor() }

// Coming is what online gets of the machine once its borrower has left.
func (m *Machine) Coming() Resources { return m.Node.Allocatable.Sub(m.Asked()).Floor() }

// ForServices is what the machine has for services next to pods of no service. GPUs are not what lending is computed in.
func (m *Machine) ForServices() Resources {
	r := m.Node.Allocatable.Sub(m.Bare)
	r.GPU = 0
	return r
}

// OnlineAlone reports whether all of a machine of a class of pool is online's: at home, or lent by offline.
func (m *Machine) OnlineAlone(home Class) bool {
	return home == Online && m.Moves.Live == 0 || m.Moves.Borrowed > 0 && m.Moves.Borrowed == m.Moves.Live
}

// Above is the CPU and memory of what is usable that a watermark leaves; less than nothing where the watermark is not kept.
func (p *PoolRoom) Above(watermark float64) Resources {
	return p.Usable.CPUAndMemory().Sub(p.Kept(watermark))
}

// Kept is the CPU and memory that a watermark keeps: a part of the capacity.
func (p *PoolRoom) Kept(watermark float64) Resources { return p.Capacity.Part(watermark) }

// Ungranted is the CPU of a machine that its kubelet may still grant: what it can allocate, less what its pods request
// now. A pod in standby counts with what is left of its request, as its kubelet does.
func (m *Machine) Ungranted() MilliCPU {
	if m.Node == nil {
		return 0
	}
	left := m.Node.Allocatable.CPU
	for _, p := range m.Pods {
		left = SatSub(left, p.Requests.CPU)
	}
	return left
}
