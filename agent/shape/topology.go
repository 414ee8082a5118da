package shape

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// CPU is one logical CPU that is online.
type CPU struct {
	ID, Core, Socket, Cell int
	// Siblings are the CPUs of the same core, this one included.
	Siblings Set
	// Kind is "performance" or "efficiency" on a hybrid machine, else empty.
	Kind string
}

// HugePages are the huge pages of one size on a cell.
type HugePages struct {
	Bytes fleet.Bytes
	Count int64
}

// Cell is one NUMA cell. A cell without CPUs (CXL memory) belongs to the socket of the nearest cell with CPUs.
type Cell struct {
	ID, Socket int
	CPUs       Set
	Memory     fleet.Bytes
	HugePages  []HugePages
	// Distances are those to each cell of the machine, in the order of the cells.
	Distances []int
}

// Cache is one cache and the CPUs that share it.
type Cache struct {
	Level int
	Type  string
	Bytes fleet.Bytes
	CPUs  Set
}

// Kinds of devices.
const (
	DeviceGPU = "GPU"
	DeviceNIC = "NIC"
)

// Device is a device on the PCI bus. Cell is -1 where the firmware does not say. Resource is what pods request of it; empty for a NIC.
type Device struct {
	Kind, Name, Address, Root, Resource string
	Cell                                int
}

// Topology is the inside of a machine.
type Topology struct {
	CPUs    []CPU
	Offline Set
	Cells   []Cell
	Caches  []Cache
	Devices []Device
}

// AllCPUs are the CPUs that are online.
func (t *Topology) AllCPUs() Set {
	out := make([]int, len(t.CPUs))
	for i := range t.CPUs {
		out[i] = t.CPUs[i].ID
	}
	return SetOf(out...)
}

// AllCells are the cells of the machine.
func (t *Topology) AllCells() Set {
	out := make([]int, len(t.Cells))
	for i := range t.Cells {
		out[i] = t.Cells[i].ID
	}
	return SetOf(out...)
}

// CPUsOf are the CPUs of some cells.
func (t *Topology) CPUsOf(cells Set) Set {
	var out []int
	for i := range t.Cells {
		if cells.Has(t.Cells[i].ID) {
			out = append(out, t.Cells[i].CPUs...)
		}
	}
	return SetOf(out...)
}

// Mems are those of some cells that have memory: the kernel refuses a cell without any in cpuset.mems.
func (t *Topology) Mems(cells Set) Set {
	var out []int
	for i := range t.Cells {
		if c := &t.Cells[i]; cells.Has(c.ID) && c.Memory > 0 {
			out = append(out, c.ID)
		}
	}
	return SetOf(out...)
}

// CellsOf are the cells of some CPUs.
func (t *Topology) CellsOf(cpus Set) Set {
	var out []int
	for i := range t.CPUs {
		if c := &t.CPUs[i]; cpus.Has(c.ID) {
			out = append(out, c.Cell)
		}
	}
	return SetOf(out...)
}

// Sockets lists the sockets that have a cell.
func (t *Topology) Sockets() Set {
	var out []int
	for i := range t.Cells {
		out = append(out, t.Cells[i].Socket)
	}
	return SetOf(out...)
}

// FleetCells are the cells in the words of the planner.
func (t *Topology) FleetCells() []fleet.Cell {
	var out []fleet.Cell
	for i := range t.Cells {
		c := &t.Cells[i]
		cell := fleet.Cell{ID: c.ID, Socket: c.Socket, Capacity: fleet.Resources{CPU: fleet.MilliCPU(1000 * len(c.CPUs)), Memory: c.Memory}}
		for _, h := range c.HugePages {
			cell.Capacity.Memory -= h.Bytes * fleet.Bytes(h.Count)
		}
		cell.Capacity.Memory = max(cell.Capacity.Memory, 0)
		for _, d := range t.Devices {
			if d.Kind == DeviceGPU && d.Cell == c.ID {
				cell.Capacity.GPU++
			}
		}
		out = append(out, cell)
	}
	return out
}

// take chooses n CPUs of free: those that were held before, then whole free cores, then single threads, in a total
// order. Held CPUs stay, so that growth of one pod moves no other.
func (t *Topology) take(n int, free, held Set) Set {
	out := held.Intersect(free)
	if len(out) > n {
		out = out[:n]
	}
	type core struct{ ids Set }
	var cores []core
	seen := map[int]bool{}
	for i := range t.CPUs {
		c := &t.CPUs[i]
		left := free.Minus(out)
		if seen[c.ID] || !left.Has(c.ID) {
			continue
		}
		ids := c.Siblings.Intersect(left)
		if len(ids) == 0 {
			ids = Set{c.ID}
		}
		for _, id := range ids {
			seen[id] = true
		}
		cores = append(cores, core{ids})
	}
	// Whole cores first; among equals the lower number.
	slices.SortStableFunc(cores, func(a, b core) int { return cmp.Compare(len(b.ids), len(a.ids)) })
	for _, c := range cores {
		if len(out) >= n {
			break
		}
		if want := n - len(out); want < len(c.ids) {
			continue
		}
		out = out.Union(c.ids)
	}
	for _, c := range slices.Backward(cores) {
		for _, id := range c.ids {
			if len(out) < n && !out.Has(id) {
				out = out.Union(Set{id})
			}
		}
	}
	return out
}
