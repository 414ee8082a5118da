package share

import (
	"slices"
	"strconv"
	"time"

	"github.com/springtide/springtide/fleet"
)

// DefaultMargin is how long a parcel must have been free behind closed marks before it is Clean. A scheduler that decided by older marks
// binds within this time, and an agent moves the pods that stay to other cells within it.
const DefaultMargin = 30 * time.Second

// Wait is what a parcel waits for.
type Wait string

// The waits, in the order in which they are looked for.
const (
	WaitNone      Wait = ""
	WaitPools     Wait = "Pools"     // a pool: neither the holder nor the next one is known
	WaitAgent     Wait = "Agent"     // a part of a machine, on a machine where no agent confines the rest
	WaitReady     Wait = "Ready"     // the kubelet does not report, so the API server does not know what runs there
	WaitPods      Wait = "Pods"      // pods of the side that leaves
	WaitBinds     Wait = "Binds"     // pods that were bound and that the watches have not shown yet
	WaitMarks     Wait = "Marks"     // marks behind which pods of the side that leaves may still land
	WaitProcesses Wait = "Processes" // processes that outlived their pods
	WaitMemory    Wait = "Memory"    // memory of the side that leaves
	WaitAcks      Wait = "Acks"      // a bundled scheduler that may still bind by an older share
	WaitMargin    Wait = "Margin"    // binds that were decided before the marks closed
)

// Acks is what the bundled schedulers said to the share as it is.
type Acks int8

// The answers.
const (
	// AcksNone: other schedulers bind here, or no bundled one ever ran. The margin covers what they decided before.
	AcksNone Acks = iota
	// AcksOwed: an instance that lives has not acknowledged the share. No margin stands for its answer.
	AcksOwed
	// AcksGiven: only bundled schedulers bind here and each of them acknowledged the share, or is dead and its last request over. No bind that was decided
	// before is under way, and the API server's facts need no margin.
	AcksGiven
)

// Options are the terms of a decision.
type Options struct {
	// Margin is how long a parcel must have been free.
	Margin time.Duration
	// MemoryLeft is how much memory of the side that leaves may stay on a cell: page tables and shared pages never go wholly.
	MemoryLeft fleet.Bytes
}

// Occupant is one pod on the machine, or the pods of one class in sum. A pod that ends counts until it is gone.
type Occupant struct {
	Name  string
	Class fleet.PodClass
	Ask   fleet.Resources
	// Cells are those that the pod is confined to; empty where nothing confines it, or it is unknown.
	Cells []int
}

// Process is a process that an agent found outside of every pod: it outlived its own.
type Process struct {
	Name  string
	Class fleet.PodClass
	Cells []int
}

// Resident is memory of a class on one cell.
type Resident struct {
	Class fleet.PodClass
	Cell  int
	Bytes fleet.Bytes
}

// Machine is what the node side of one machine knows.
type Machine struct {
	// Node gives home pool, cells, marks and share.
	Node *fleet.Node
	// ClassOf is the class of a pool; empty for one that is not known.
	ClassOf func(fleet.PoolID) fleet.Class
	// ByCells says that online pods are placed by the cells of the share here: while their side keeps cells, no taint need keep them off the others.
	ByCells bool
	// Agent says that an agent confines pods to cells here. Without one the API server's facts decide: Ready says that the kubelet reports.
	Agent, Ready bool
	// Acks counts without an agent alone. With one the margin stays, since the agent moves pods within it.
	Acks      Acks
	Occupants []Occupant
	// Unseen are pods that are bound here and whose side is not known yet.
	Unseen []string
	// Processes and Memory are what only an agent knows.
	Processes []Process
	Memory    []Resident
}

// Handover identifies one hand-over of a parcel. Observations of it say nothing about the next one.
type Handover struct {
	Loan  fleet.LoanID
	Epoch int64
}

// HandoverOf is the hand-over that an entry of a share asks for.
func HandoverOf(p *fleet.ShareParcel) Handover { return Handover{p.Loan, p.Epoch} }

// Verdict is the decision on one parcel.
type Verdict struct {
	Clean bool
	// Wait is what the parcel waits for, Names the pods, processes or cells with memory that are in the way.
	Wait  Wait
	Names []string
	// Free is since when nothing is in the way; zero while something is. It is handed in with the next decision on the
	// same hand-over.
	Free time.Time
}

// Judge decides on one parcel of the machine's share. free is what the last verdict on the same hand-over said, or
// zero. A Clean report holds for its epoch, whatever comes later.
func (m *Machine) Judge(p *fleet.ShareParcel, free, now time.Time, o Options) Verdict {
	if p.Next == "" {
		return Verdict{}
	}
	if p.IsClean(p.Epoch) {
		return Verdict{Clean: true}
	}
	if wait, names := m.inTheWay(p, o); wait != WaitNone {
		return Verdict{Wait: wait, Names: names}
	}
	if free.IsZero() {
		free = now
	}
	switch {
	case !m.Agent && m.Acks == AcksOwed:
		return Verdict{Wait: WaitAcks, Free: free}
	case now.Sub(free) < o.Margin && (m.Agent || m.Acks != AcksGiven):
		return Verdict{Wait: WaitMargin, Free: free}
	}
	return Verdict{Clean: true, Free: free}
}

// inTheWay is what stands between a parcel and its next holder now.
func (m *Machine) inTheWay(p *fleet.ShareParcel, o Options) (Wait, []string) {
	leaves := m.leaves(p)
	switch {
	case leaves == "":
		return WaitPools, nil
	case !m.Agent && len(p.Cells) < len(m.Node.AllCells()):
		return WaitAgent, nil
	case !m.Agent && !m.Ready:
		return WaitReady, nil
	case !m.confined(p, leaves):
		return WaitPods, m.names(leaves)
	case len(m.Unseen) > 0:
		return WaitBinds, sorted(m.Unseen)
	case !m.keptOff(leaves):
		return WaitMarks, nil
	}
	var left []string
	for i := range m.Processes {
		if x := &m.Processes[i]; x.Class == podClass(leaves) && fleet.Overlap(x.Cells, p.Cells) {
			left = append(left, x.Name)
		}
	}
	if len(left) > 0 {
		return WaitProcesses, sorted(left)
	}
	for _, x := range m.Memory {
		if x.Class == podClass(leaves) && x.Bytes > o.MemoryLeft && slices.Contains(p.Cells, x.Cell) {
			left = append(left, "memory on cell "+strconv.Itoa(x.Cell)) // the amount would be a new report in each cycle
		}
	}
	if len(left) > 0 {
		return WaitMemory, sorted(left)
	}
	return WaitNone, nil
}

// keptOff reports whether no more pods of the class that leaves may land on its cells.
func (m *Machine) keptOff(leaves fleet.Class) bool {
	if m.Node.Marks.KeepOff(leaves) || leaves != fleet.Online {
		return m.Node.Marks.KeepOff(leaves)
	}
	access := fleet.AccessOf(m.Node, m.Node.Share.Parcels, m.ClassOf)
	return !access.Taints(m.ByCells)
}

// leaves is the side whose pods must go; empty where neither pool is known.
func (m *Machine) leaves(p *fleet.ShareParcel) fleet.Class { return fleet.HolderOf(p, m.ClassOf) }

// confined reports whether the pods of the class that leaves fit the cells that their side holds and keeps, and none of them is known to use a
// cell of the parcel. Where their side keeps nothing, every pod must have gone, however little it asks for. GPUs are not counted: pods
// that fit by CPU and memory ask for no more of them than their cells have.
func (m *Machine) confined(p *fleet.ShareParcel, leaves fleet.Class) bool {
	var ask fleet.Resources
	any := false
	for i := range m.Occupants {
		x := &m.Occupants[i]
		if x.Class != podClass(leaves) {
			continue
		}
		if fleet.Overlap(x.Cells, p.Cells) {
			return false
		}
		ask, any = ask.Add(x.Ask), true
	}
	if !any {
		return true
	}
	kept := m.kept(leaves)
	room := m.Node.CapacityOf(kept)
	return len(kept) > 0 && ask.CPU <= room.CPU && ask.Memory <= room.Memory
}

// kept are the cells that a side holds and keeps. Cells that move are kept by neither.
func (m *Machine) kept(side fleet.Class) []int {
	access := fleet.AccessOf(m.Node, m.Node.Share.Parcels, m.ClassOf)
	return slices.DeleteFunc(m.Node.AllCells(), func(cell int) bool { return access.Side(cell) != side })
}

// names are the pods of a class.
func (m *Machine) names(c fleet.Class) []string {
	var out []string
	for i := range m.Occupants {
		if x := &m.Occupants[i]; x.Class == podClass(c) && x.Name != "" {
			out = append(out, x.Name)
		}
	}
	slices.Sort(out)
	return out
}

func sorted(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return out
}

func podClass(c fleet.Class) fleet.PodClass {
	if c == fleet.Online {
		return fleet.PodOnline
	}
	return fleet.PodOffline
}
