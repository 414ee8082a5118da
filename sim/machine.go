package sim

import (
	"fmt"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/place"
	"github.com/springtide/springtide/sim/scenario"
)

// The pools of every fleet.
const (
	onlinePool  fleet.PoolID = "online"
	offlinePool fleet.PoolID = "offline"
)

// cellsPerSocket is the number of NUMA cells of a socket.
const cellsPerSocket = 1

// machine is what placement needs to know of a node; its facts for the controller are in World.facts.
type machine struct {
	free int32
	// online, offline and filled are the cores that pods of each kind hold, leaving ones too.
	online, offline, filled int32
	pods                    []int32
	home                    fleet.PoolID
	gone                    bool
	// toOnline and toOffline say whose pods may land.
	toOnline, toOffline bool
	// away are the cells of an online machine that offline holds.
	away []int
}

// buildMachines makes the machines of a fleet and their facts.
func (w *World) buildMachines() {
	f := &w.b.Fleet
	n := w.b.Online + f.OfflineNodes
	w.machines, w.facts = make([]machine, n), make([]fleet.Node, n)
	for i := range n {
		m := machine{free: int32(f.CoresPerNode), home: onlinePool, toOnline: true}
		if i >= w.b.Online {
			m = machine{free: int32(f.CoresPerNode), home: offlinePool, toOffline: true}
		}
		w.machines[i] = m
		w.facts[i] = w.nodeFacts(i, m.home)
	}
	w.buildRooms()
	for i := range n {
		w.open(int32(i))
	}
}

func (w *World) nodeFacts(i int, home fleet.PoolID) fleet.Node {
	f := &w.b.Fleet
	n := fleet.Node{ID: fleet.NodeID(fmt.Sprintf("uid-%06d", i)), Name: fmt.Sprintf("node-%06d", i), Zone: fmt.Sprintf("zone-%d", i%f.Zones), Pool: home,
		Allocatable: scenario.CoresOf(f.CoresPerNode).Add(fleet.Resources{Pods: 250}), Ready: true, AgentAlive: true, AgentKnown: true}
	for c := range f.Sockets * cellsPerSocket {
		n.Cells = append(n.Cells, fleet.Cell{ID: c, Socket: c / cellsPerSocket, Capacity: scenario.CoresOf(f.CoresPerNode / f.Sockets / cellsPerSocket)})
	}
	if home == offlinePool {
		n.Marks = fleet.NodeMarks{HolderTaint: true, OfflineLabel: true, HomeLabel: true}
	}
	return n
}

// bind lets a pod be on a machine where it found room, bindOn where another component put it; unbind takes it off.
func (w *World) bind(id, n int32, room place.PodRef) {
	p, m := &w.pods[id], &w.machines[n]
	p.node, p.room = n, room
	m.pods = append(m.pods, id)
	m.free -= p.cores
	*m.held(p.kind) += p.cores
	w.holds(m, p, p.cores)
}

// holds counts what offline pods hold, and where.
func (w *World) holds(m *machine, p *pod, cores int32) {
	if p.kind == offline {
		w.offlineHeld += cores
		if m.home == onlinePool {
			w.guests += cores
		}
	}
}

func (w *World) bindOn(id, n int32) {
	w.bind(id, n, w.rooms.table.Put(w.shape(&w.pods[id]), w.rooms.ids[n]).Pod)
}

func (w *World) unbind(id int32) {
	p := &w.pods[id]
	m := &w.machines[p.node]
	i := slices.Index(m.pods, id)
	m.pods = slices.Delete(m.pods, i, i+1)
	m.free += p.cores
	*m.held(p.kind) -= p.cores
	w.holds(m, p, -p.cores)
	w.rooms.table.Remove(p.room)
	p.node = none
}

func (m *machine) held(k kind) *int32 {
	switch k {
	case online:
		return &m.online
	case offline:
		return &m.offline
	}
	return &m.filled
}
