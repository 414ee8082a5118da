package shape

import (
	"fmt"
	"testing"
)

// TestBurstOfBoundPods: as many pods as there are cells, bound and each as large as one, all find a cell of their own. (A scheduler that charges
// a pod to every cell of the machine refuses the second one.)
func TestBurstOfBoundPods(t *testing.T) {
	var pods []Pod
	for i := range 4 {
		pods = append(pods, pod(fmt.Sprint("p", i), OnlineSide, Dedicated, 4000).with(func(p *Pod) { p.Terms.Bind = true }))
	}
	l := input(pods...).Lay()
	cells := Set{}
	for i := range pods {
		h := holding(t, l, pods[i].Name)
		if !h.Own || len(h.CPUs) != 4 || len(h.Cells) != 1 || cells.Has(h.Cells[0]) {
			t.Errorf("%s has %s of cells %s", pods[i].Name, h.CPUs, h.Cells)
		}
		cells = cells.Union(h.Cells)
	}
	if len(l.Problems) > 0 {
		t.Error(l.Problems)
	}
}
