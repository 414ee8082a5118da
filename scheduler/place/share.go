package place

import (
	"cmp"
	"slices"
)

// sharesCells reports whether a pod holds several cells by its binding, the last of which others may share.
func (t *Table) sharesCells(p *pod) bool {
	return len(p.named) > 1 && p.role != awaits && !t.classes[p.class].shape.Exclusive
}

// shareCells says again what the pods that hold several cells of a machine hold of each. A binding names the cells of a pod and not how much it takes of
// which, so this follows from who is there alone: a pod fills the cells that no other pod names first, then those on which the others ask for least.
// When a pod was placed, all of its cells but one were free, so this is a placement too.
func (t *Table) shareCells(i int32) {
	var sharers []PodRef
	for row := 2 * i; row < 2*i+2; row++ {
		for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
			if t.sharesCells(&t.pods[ref]) {
				sharers = append(sharers, ref)
			}
		}
	}
	for _, ref := range sharers {
		p := &t.pods[ref]
		ids := t.byOthers(i, ref)
		holds := t.holdsOn(&t.classes[p.class], i, ids)
		if slices.Equal(holds, p.holds) {
			continue
		}
		for _, h := range p.holds {
			t.cells[h.cell].take(h.amount, -1)
		}
		for _, h := range holds {
			t.cells[h.cell].take(h.amount, 1)
		}
		p.holds = holds
	}
}

// byOthers orders the cells that a pod names by what other pods ask for there.
func (t *Table) byOthers(i int32, ref PodRef) []int {
	type claimed struct {
		id, pods int
		amount   vec // of pods that hold this cell alone
	}
	mine := t.pods[ref].named
	cells := make([]claimed, len(mine))
	for k, id := range mine {
		cells[k].id = id
		for row := 2 * i; row < 2*i+2; row++ {
			for o := t.first[row]; o != none; o = t.pods[o].next {
				x := &t.pods[o]
				if o == ref || !slices.Contains(x.named, id) {
					continue
				}
				cells[k].pods++
				if len(x.named) == 1 {
					for d, v := range t.classes[x.class].want {
						cells[k].amount[d] += v
					}
				}
			}
		}
	}
	slices.SortFunc(cells, func(a, b claimed) int {
		return cmp.Or(cmp.Compare(min(a.pods, 1), min(b.pods, 1)), cmp.Compare(a.amount[cpu], b.amount[cpu]), cmp.Compare(a.amount[memory], b.amount[memory]),
			cmp.Compare(a.amount[gpus], b.amount[gpus]), cmp.Compare(a.id, b.id))
	})
	out := make([]int, len(cells))
	for k := range cells {
		out[k] = cells[k].id
	}
	return out
}
