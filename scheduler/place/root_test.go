package place

import (
	"slices"
	"testing"

	"github.com/springtide/springtide/fleet"
)

// TestOneRoot: GPUs and NIC hang on one PCIe root, of the pod's cell where it has one, and are taken once.
func TestOneRoot(t *testing.T) {
	m := plain("a")
	m.Allocatable.GPU, m.GPUModel = 4, "a100"
	for c := range 4 {
		m.Cells[c].Capacity.GPU = 1
		m.Roots = append(m.Roots, Root{Cell: c, GPUs: 1, NICs: int64(c / 2)})
	}
	m.Roots[0] = Root{Cell: 0, GPUs: 2}
	tab := New()
	tab.SetMachine(m)
	one := Shape{Side: fleet.Online, Requests: fleet.Resources{CPU: 1000, GPU: 1}, OneRoot: true, Needs: &Needs{NICs: 1}}
	c := tab.Class(one)
	bound := one
	bound.Cells = OneCell
	d, ok := tab.Decide(tab.Class(bound))
	if !ok || !slices.Equal(d.Cells, []int{2}) && !slices.Equal(d.Cells, []int{3}) || !slices.Equal(d.Roots, d.Cells) {
		t.Fatalf("a pod with a NIC was bound to %+v", d)
	}
	if n := fill(tab, c); len(n) != 1 {
		t.Errorf("of two roots with a GPU and a NIC one is taken, and %d more pods fit", len(n))
	}
	if e := tab.Explain(c); e.Removed[FilterRoot] != 1 {
		t.Errorf("explained as %+v", e)
	}
	two := one
	two.Requests.GPU, two.Needs = 2, nil
	if d, ok := tab.Decide(tab.Class(two)); !ok || !slices.Equal(d.Roots, []int{0}) {
		t.Errorf("two GPUs on one root: %v, %+v", ok, d)
	}
}

// TestUnevenCells: the cells of a restricted pod are counted by the choice that takes them, so a pod that the empty machine holds is placed there. Memory of a
// cell is its own, and a cell of memory alone is taken for its memory only.
func TestUnevenCells(t *testing.T) {
	big := func(gib int64) fleet.Resources {
		return fleet.Resources{CPU: 4000, Memory: fleet.Bytes(gib) * fleet.GiB}
	}
	for _, c := range []struct {
		name   string
		cpus   []int
		memory []int64 // GiB
		taken  []int
		shape  Shape
		want   []int
	}{
		{"the small cell is left out", []int{14, 16, 16, 16}, nil, nil, Shape{Cells: Restricted, Requests: cores(48)}, []int{1, 2, 3}},
		{"wherever it is", []int{16, 16, 14, 16}, nil, nil, Shape{Cells: Restricted, Requests: cores(48)}, []int{0, 1, 3}},
		{"exclusive", []int{14, 16, 16, 16}, nil, nil, Shape{Cells: Restricted, Requests: cores(48), Exclusive: true}, []int{1, 2, 3}},
		{"a few are fewest, too", []int{8, 8, 16, 16}, nil, nil, Shape{Cells: FewCells, Requests: cores(32)}, []int{2, 3}},
		{"more cells than on the empty machine", []int{8, 8, 16, 16}, nil, []int{3}, Shape{Cells: Restricted, Requests: cores(32)}, nil},
		{"as many as on the empty machine", []int{14, 16, 16, 16}, nil, []int{3}, Shape{Cells: Restricted, Requests: cores(32)}, []int{1, 2}},
		{"by memory", []int{16, 16, 16, 16}, []int64{64, 192, 192, 64}, nil, Shape{Cells: Restricted, Requests: big(384)}, []int{1, 2}},
		{"100 GiB and a cell of 64", []int{16, 16, 16, 16}, []int64{64, 192, 64, 64}, nil, Shape{Cells: OneCell, Requests: big(100)}, []int{1}},
		{"100 GiB and no cell of it", []int{16, 16, 16, 16}, []int64{64, 64, 64, 64}, nil, Shape{Cells: OneCell, Requests: big(100)}, nil},
		{"memory alone is no cell of a pod", []int{16, 0, 16, 0}, []int64{64, 192, 64, 192}, nil, Shape{Cells: OneCell, Requests: big(100)}, nil},
		{"its memory is", []int{16, 0, 16, 0}, []int64{64, 192, 64, 192}, nil, Shape{Cells: FewCells, Requests: big(100)}, []int{0, 1}},
		{"and not without need", []int{16, 0, 16, 0}, []int64{64, 192, 64, 192}, nil, Shape{Cells: Restricted, Requests: cores(32), Exclusive: true}, []int{0, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := plain("a")
			m.Allocatable.CPU, m.Allocatable.Memory = 0, 0
			for i := range m.Cells {
				x := &m.Cells[i].Capacity
				if x.CPU = fleet.MilliCPU(1000 * c.cpus[i]); c.memory != nil {
					x.Memory = fleet.Bytes(c.memory[i]) * fleet.GiB
				}
				m.Allocatable.CPU, m.Allocatable.Memory = m.Allocatable.CPU+x.CPU, m.Allocatable.Memory+x.Memory
			}
			tab := New()
			tab.SetMachine(m)
			for _, cell := range c.taken {
				tab.Bound(Shape{Side: fleet.Online, Cells: OneCell, Requests: cores(int64(c.cpus[cell]))}, m.ID, "first", []int{cell})
			}
			c.shape.Side = fleet.Online
			d, ok := tab.Decide(tab.Class(c.shape))
			if slices.Sort(d.Cells); ok != (c.want != nil) || !slices.Equal(d.Cells, c.want) {
				t.Errorf("on cells %v (%v), want %v", d.Cells, ok, c.want)
			}
		})
	}
}

// TestClosestCells: a pod of several cells gets those that are closest to each other, exclusive or not. Cells 0 to 3 of a socket hang on a ring; one is taken.
func TestClosestCells(t *testing.T) {
	ring := [][]int{{10, 11, 12, 11}, {11, 10, 11, 12}, {12, 11, 10, 11}, {11, 12, 11, 10}}
	for _, c := range []struct {
		name  string
		taken int
		shape Shape
		want  []int
	}{
		{"two next to each other", 0, Shape{Cells: FewCells, Requests: cores(32)}, []int{1, 2}},
		{"across the end of the ring", 1, Shape{Cells: OneSocket, Requests: cores(32)}, []int{0, 3}},
		{"of three free ones, two neighbours", 2, Shape{Cells: FewCells, Exclusive: true, Requests: cores(24)}, []int{0, 1}},
		{"all three", 1, Shape{Cells: Restricted, Exclusive: true, Requests: cores(40)}, []int{0, 2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := plain("a")
			for i := range m.Cells {
				m.Cells[i].Socket, m.Cells[i].Distances = 0, ring[i]
			}
			tab := New()
			tab.SetMachine(m)
			tab.Bound(Shape{Side: fleet.Online, Cells: OneCell, Requests: cores(16)}, m.ID, "first", []int{c.taken})
			c.shape.Side = fleet.Online
			d, ok := tab.Decide(tab.Class(c.shape))
			if slices.Sort(d.Cells); !ok || !slices.Equal(d.Cells, c.want) {
				t.Errorf("on cells %v (%v), want %v", d.Cells, ok, c.want)
			}
		})
	}
	// In the cells' own order 0 and 1 would be first; they are far apart.
	m := plain("a")
	for i := range m.Cells {
		m.Cells[i].Socket, m.Cells[i].Distances = 0, [][]int{{10, 30, 11, 30}, {30, 10, 30, 12}, {11, 30, 10, 30}, {30, 12, 30, 10}}[i]
	}
	tab := New()
	tab.SetMachine(m)
	d, ok := tab.Decide(tab.Class(Shape{Side: fleet.Online, Cells: FewCells, Requests: cores(32)}))
	if slices.Sort(d.Cells); !ok || !slices.Equal(d.Cells, []int{0, 2}) {
		t.Errorf("on cells %v (%v), want 0 and 2, which are closest", d.Cells, ok)
	}
}
