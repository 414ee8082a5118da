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
