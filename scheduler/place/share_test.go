package place

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// TestSharedCellsAfterARestart: what decisions hold of cells is never more than they have, and a table that gets the cells of each pod alone, in any
// order, holds the same.
func TestSharedCellsAfterARestart(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := plain("a")
		tab := New()
		tab.SetMachine(m)
		var shapes []Shape
		for range 4 {
			cpu, policy := int64(some(r, "cores", 4, 8, 12, 20, 24, 40)), FewCells
			if cpu <= 16 && rapid.Bool().Draw(r, "one cell") {
				policy = OneCell
			}
			shapes = append(shapes, Shape{Side: fleet.Online, Requests: cores(cpu), Cells: policy})
		}
		there := map[PodRef]fact{}
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			s := rapid.SampledFrom(shapes).Draw(r, "shape")
			if d, ok := tab.Decide(tab.Class(s)); ok {
				there[d.Pod] = fact{s, d.Node, d.Cells}
			} else if len(there) > 0 {
				var refs []PodRef
				for p := range tab.Pods() {
					refs = append(refs, p.Pod)
				}
				gone := rapid.SampledFrom(refs).Draw(r, "gone")
				tab.Forget(gone)
				delete(there, gone)
			}
			if err := complain(tab); err != nil {
				r.Fatal(err)
			}
		}
		again := New()
		again.SetMachine(m)
		var facts []fact
		for p := range tab.Pods() {
			facts = append(facts, there[p.Pod])
		}
		for _, f := range rapid.Permutation(facts).Draw(r, "order") {
			again.Bound(f.shape, f.node, "u", f.cells)
		}
		if got, want := fmt.Sprint(again.cells), fmt.Sprint(tab.cells); got != want {
			r.Fatalf("after a restart the cells are\n%s\nand were\n%s\n%v", got, want, facts)
		}
	})
}
