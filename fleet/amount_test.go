package fleet

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// exact is x brought into the range of int64 by big arithmetic: the reference for what saturates.
func exact(x *big.Int) int64 {
	switch {
	case x.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return math.MaxInt64
	case x.Cmp(big.NewInt(math.MinInt64)) < 0:
		return math.MinInt64
	}
	return x.Int64()
}

func TestArithmeticSaturates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		x, y := big.NewInt(a), big.NewInt(b)
		if got, want := int64(SatAdd(MilliCPU(a), MilliCPU(b))), exact(new(big.Int).Add(x, y)); got != want {
			t.Fatalf("%d + %d = %d, want %d", a, b, got, want)
		}
		if got, want := int64(satMul(MilliCPU(a), b)), exact(new(big.Int).Mul(x, y)); got != want {
			t.Fatalf("%d × %d = %d, want %d", a, b, got, want)
		}
		if got, want := int64(satNeg(MilliCPU(a))), exact(new(big.Int).Neg(x)); got != want {
			t.Fatalf("−%d = %d, want %d", a, got, want)
		}
	})
}

func TestCount(t *testing.T) {
	room := Resources{CPU: 64000, Memory: 256 * GiB, GPU: 8, Pods: 110}
	for _, c := range []struct {
		unit Resources
		want int64
	}{
		{Resources{CPU: 4000}, 16},
		{Resources{CPU: 4000, Memory: 64 * GiB}, 4},
		{Resources{CPU: 4000, GPU: 3}, 2},
		{Resources{CPU: 100000}, 0},
		{Resources{}, 0},
	} {
		if got := room.Count(c.unit); got != c.want {
			t.Errorf("%v holds %v %d times, want %d", room, c.unit, got, c.want)
		}
	}
	if got := (Resources{CPU: -1}).Count(Resources{CPU: 1}); got != 0 {
		t.Errorf("negative room holds nothing, got %d", got)
	}
}

func TestFromCores(t *testing.T) {
	for cores, want := range map[float64]MilliCPU{0: 0, -3: 0, 0.5: 500, 1.2345: 1235, math.Inf(1): math.MaxInt64} {
		if got := FromCores(cores); got != want {
			t.Errorf("FromCores(%v) = %d, want %d", cores, got, want)
		}
	}
	if got := FromCores(math.NaN()); got != 0 {
		t.Errorf("FromCores(NaN) = %d, want 0", got)
	}
}

func TestUnknownIsNeverFresh(t *testing.T) {
	var unknown Known[float64]
	if unknown.Fresh(time.Time{}, math.MaxInt64) {
		t.Error("an unknown value must not be fresh at any age")
	}
	if k := KnownAt(0.0, t0); !k.Fresh(t0.Add(time.Minute), time.Minute) || k.Fresh(t0.Add(time.Minute+1), time.Minute) {
		t.Error("freshness ends at the maximum age, and a zero that was seen is known")
	}
}

func FuzzParcelID(f *testing.F) {
	f.Add("5f0c:0,1")
	f.Add("n:3")
	f.Add(":")
	f.Add("n:-1")
	f.Fuzz(func(t *testing.T, s string) {
		node, cells, err := ParcelID(s).Split()
		if err != nil {
			return
		}
		id := MakeParcelID(node, cells)
		node2, cells2, err := id.Split()
		if err != nil || node2 != node {
			t.Fatalf("%q -> %q does not read back: %v", s, id, err)
		}
		slices.Sort(cells)
		if !slices.Equal(cells, cells2) {
			t.Fatalf("%q: cells %v came back as %v", s, cells, cells2)
		}
	})
}

// The memory of a cell is its own, whatever its share of the CPUs.
func TestMemoryOfCells(t *testing.T) {
	cells := func(memory ...Bytes) Node {
		n := Node{Allocatable: Resources{CPU: 62000, Memory: 248 * GiB, Pods: 110}}
		for i, m := range memory {
			n.Cells = append(n.Cells, Cell{ID: i, Socket: i, Capacity: Resources{CPU: 32000, Memory: m}})
		}
		return n
	}
	alone := cells(128*GiB, 128*GiB, 256*GiB) // the last one has memory alone
	alone.Allocatable.Memory, alone.Cells[2].Capacity.CPU = 496*GiB, 0
	reserved := cells(64*GiB, 64*GiB) // more is allocatable than the cells have
	for _, c := range []struct {
		name string
		node Node
		cell int
		want Resources
	}{
		{"the smaller cell", cells(64*GiB, 192*GiB), 0, Resources{CPU: 31000, Memory: 62 * GiB, Pods: 55}},
		{"the larger cell", cells(64*GiB, 192*GiB), 1, Resources{CPU: 31000, Memory: 186 * GiB, Pods: 55}},
		{"a cell without memory", cells(0, 256*GiB), 0, Resources{CPU: 31000, Pods: 55}},
		{"memory alone", alone, 2, Resources{Memory: 248 * GiB}},
		{"next to memory alone", alone, 0, Resources{CPU: 31000, Memory: 124 * GiB, Pods: 55}},
		{"no more than the cell has", reserved, 0, Resources{CPU: 31000, Memory: 64 * GiB, Pods: 55}},
		{"memory of cells unknown", cells(0, 0), 0, Resources{CPU: 31000, Memory: 124 * GiB, Pods: 55}},
	} {
		if got := c.node.CapacityOf([]int{c.cell}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCapacityOfCells(t *testing.T) {
	n := Node{Allocatable: Resources{CPU: 62000, Memory: 248 * GiB, GPU: 8, Pods: 110}}
	for i := range 4 {
		c := Cell{ID: i, Socket: i / 2, Capacity: Resources{CPU: 16000, Memory: 64 * GiB}}
		if i < 2 {
			c.Capacity.GPU = 4
		}
		n.Cells = append(n.Cells, c)
	}
	if got := n.CapacityOf(n.AllCells()); got != n.Allocatable {
		t.Errorf("all cells hold %v, want all that is allocatable", got)
	}
	first, second := n.CapacityOf(n.CellsOf(0)), n.CapacityOf(n.CellsOf(1))
	if first.GPU != 8 || second.GPU != 0 || first.CPU != 31000 {
		t.Errorf("socket 0 holds %v, socket 1 %v", first, second)
	}
	if sum := first.Add(second); !sum.Fits(n.Allocatable) {
		t.Errorf("the parts hold %v, more than the whole %v", sum, n.Allocatable)
	}
}

// TestPartSaturates: a fraction of the largest amount is no negative one, and a fraction that is no number is none.
func TestPartSaturates(t *testing.T) {
	all := Resources{CPU: math.MaxInt64, Memory: math.MaxInt64}
	for f, want := range map[float64]int64{1: math.MaxInt64, 2: math.MaxInt64, -2: math.MinInt64, 0: 0,
		math.Inf(1): math.MaxInt64} {
		if got := all.Part(f); int64(got.CPU) != want || int64(got.Memory) != want {
			t.Errorf("part %g: %+v, want %d", f, got, want)
		}
	}
	if got := all.Part(math.NaN()); !got.IsZero() {
		t.Errorf("part NaN: %+v", got)
	}
	m := Machine{Node: &Node{Allocatable: Resources{CPU: 64_000}}, Pods: []*Pod{{Requests: all}, {Requests: all}}}
	if got := m.Ungranted(); got >= 0 {
		t.Errorf("%d may still be granted next to two pods of all", got)
	}
}
