package planner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// jobs sizes offline work to the room that is stable or lent: minima first, then growth, both in the order of priority and id. Pods on
// parcels that are going home are left alone here: they are evicted, and the parallelism follows while they end, so that the workload's
// own controller never picks other pods to delete.
func (m *maker) jobs() {
	s := m.in.Snapshot
	room := m.offlineRoom()
	order := make([]*fleet.Job, 0, len(s.Jobs))
	for i := range s.Jobs {
		if s.Jobs[i].Blocked == "" {
			order = append(order, &s.Jobs[i])
		}
	}
	slices.SortFunc(order, func(a, b *fleet.Job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	crews := m.crews()
	allowed, shed := m.allow(m.plan.Division.Shares), m.shed(order, crews)
	grow := func(allowed *allowances, most func(*fleet.Member) int32) {
		for _, j := range order {
			for i := range j.Members {
				mem, k := &j.Members[i], crewKey{j.ID, j.Members[i].Role}
				c := crews[k]
				c.want += room.take(mem, int(most(mem))-c.want, allowed.grow(j))
				crews[k] = c
			}
		}
	}
	for k, c := range crews {
		c.want = c.stay
		crews[k] = c
	}
	grow(allowed, func(mem *fleet.Member) int32 { return mem.Min })
	grow(allowed, mostOf)
	if again := m.unused(allowed, order, crews); again != nil {
		grow(again, mostOf)
	}
	for _, j := range order {
		for i := range j.Members {
			m.scaleJob(j, &j.Members[i], crews[crewKey{j.ID, j.Members[i].Role}], shed[j.ID])
		}
	}
}

// mostOf is how many members could work.
func mostOf(mem *fleet.Member) int32 { return min(mem.Max, wanted(mem)) }

// wanted is the most members that there is still work for.
func wanted(mem *fleet.Member) int32 {
	if mem.Remaining < 0 {
		return mem.Max
	}
	return mem.Remaining
}

func (m *maker) scaleJob(j *fleet.Job, mem *fleet.Member, c crew, shed string) {
	if mem.Remaining == 0 || mem.SelfSized {
		return
	}
	// Members that leave are counted until they end.
	to := max(int32(c.want), mem.Min) + int32(c.leaving)
	to = min(to, mem.Max)
	if to == mem.Desired {
		return
	}
	a := JobScale{Job: j.ID, Role: mem.Role, Workload: mem.Workload, Kind: mem.Kind, From: mem.Desired, To: to, Version: mem.Version,
		Why: Why{"OfflineRoom", fmt.Sprintf("%d members stay, %d leave, room for %d more%s", c.stay, c.leaving, c.want-c.stay, shed)}}
	if f := m.in.Snapshot.Frozen; f != "" {
		m.withhold("job "+string(j.ID), fmt.Sprintf("parallelism %d -> %d", mem.Desired, to), "freeze: "+f, a.Why)
		return
	}
	m.plan.Jobs = append(m.plan.Jobs, a)
}

type crewKey struct {
	job  fleet.JobID
	role string
}

// crew is where the pods of one member role are: on room that stays, or on room that is going home.
type crew struct{ stay, leaving, want int }

func (m *maker) crews() map[crewKey]crew {
	s := m.in.Snapshot
	out := map[crewKey]crew{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Class != fleet.PodOffline || p.Job == "" || p.Deleting || !p.Occupies() {
			continue
		}
		k := crewKey{p.Job, p.Role}
		c := out[k]
		if m.state[p.Node].leaving() || m.recalled[p.Node] {
			c.leaving++
		} else {
			c.stay++
		}
		out[k] = c
	}
	return out
}

// offlineRoom is the free room of machines on which offline pods may land.
type offlineRoom struct{ stable, lent []room }

// room is that of one machine, and the whole machines and sockets that it stands for.
type room struct {
	free                   fleet.Resources
	node                   *fleet.Node
	lentNodes, lentSockets int64
}

func (m *maker) offlineRoom() *offlineRoom {
	s := m.in.Snapshot
	r := &offlineRoom{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		pool := s.Pool(n.Pool)
		if pool == nil || !n.Ready || !m.open(n) {
			continue
		}
		free := n.Allocatable
		for _, p := range m.pods[n.ID] {
			free = free.Sub(p.Requests).Sub(fleet.Resources{Pods: 1})
		}
		if pool.Class == fleet.Offline {
			r.stable = append(r.stable, room{free: free.Floor(), node: n, lentNodes: 1})
			continue
		}
		// What online keeps of the machine is no room of ours, whether its fillers are up already or not.
		free = free.Min(m.lentRoom(n))
		lent := room{free: free.Floor(), node: n}
		for _, l := range m.loans[n.ID] {
			switch {
			case l.Phase == fleet.Lent && l.Kind == fleet.KindNode:
				lent.lentNodes++
			case l.Phase == fleet.Lent:
				lent.lentSockets++
			}
		}
		r.lent = append(r.lent, lent)
	}
	return r
}

// lentRoom is what of a machine's lent cells offline pods do not use yet.
func (m *maker) lentRoom(n *fleet.Node) fleet.Resources {
	room := n.CapacityOf(m.cells(n, fleet.Lent))
	for _, p := range m.pods[n.ID] {
		if p.Class == fleet.PodOffline {
			room = room.Sub(p.Requests).Sub(fleet.Resources{Pods: 1})
		}
	}
	return room
}

// cells lists the cells of a machine's loans in one phase.
func (m *maker) cells(n *fleet.Node, phase fleet.Phase) []int {
	var out []int
	for _, l := range m.loans[n.ID] {
		if l.Phase == phase {
			out = append(out, l.Cells...)
		}
	}
	return out
}

// take finds room for up to k members and takes it: lent room first for elastic members, so that stable room stays for those who need it.
func (r *offlineRoom) take(mem *fleet.Member, k int, g grow) int {
	unit := mem.Request.Add(fleet.Resources{Pods: 1})
	k = g.most(unit, k)
	if k <= 0 {
		return 0
	}
	got := 0
	if !mem.Stable {
		got = takeFrom(r.lent, unit, k, g)
	}
	return got + takeFrom(r.stable, unit, k-got, g)
}

func takeFrom(rooms []room, unit fleet.Resources, k int, g grow) int {
	got := 0
	for i := range rooms {
		if got >= k {
			break
		}
		r := &rooms[i]
		if !g.may(r) {
			continue
		}
		n := min(int(r.free.Count(unit)), k-got)
		r.free = r.free.Sub(unit.Times(int64(n)))
		g.took(r, unit, n)
		got += n
	}
	return got
}
