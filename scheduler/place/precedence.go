package place

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// precedence is the standing of pods against preemption: by priority, and of equal priority guaranteed pods stand above all others.
type precedence struct {
	priority   int32
	guaranteed bool
}

func (s *Shape) precedence() precedence { return precedence{s.Priority, s.Guaranteed} }

func (l precedence) compare(o precedence) int {
	return cmp.Or(cmp.Compare(l.priority, o.priority), fleet.TrueFirst(o.guaranteed, l.guaranteed))
}

// levels are, for each standing that pods have, lowest first, what its pods take from each row. Added up from the lowest they say at once what a
// preemption could free on a machine. They are kept from the first question on: a table that is never asked has none.
type levels struct {
	on   bool
	all  []precedence
	sums [][]vec // by level and row
}

// number finds a level.
func (l *levels) number(x precedence) (int, bool) {
	return slices.BinarySearchFunc(l.all, x, precedence.compare)
}

// levelsOn starts to keep the levels.
func (t *Table) levelsOn() {
	if t.levels.on {
		return
	}
	t.levels.on = true
	for ref := range t.pods {
		if t.pods[ref].role != 0 {
			t.chargeLevel(&t.pods[ref], 1)
		}
	}
}

// chargeLevel adds what a pod takes to the sums of its level.
func (t *Table) chargeLevel(p *pod, times int64) {
	if !t.levels.on || p.role != stays {
		return
	}
	x := t.classes[p.class].shape.precedence()
	k, ok := t.levels.number(x)
	if !ok {
		t.levels.all = slices.Insert(t.levels.all, k, x)
		t.levels.sums = slices.Insert(t.levels.sums, k, nil)
		t.weightsVersion++ // the levels above it have other numbers now
	}
	for len(t.levels.sums[k]) <= int(p.row) {
		t.levels.sums[k] = append(t.levels.sums[k], make([]vec, len(t.open)-len(t.levels.sums[k]))...)
	}
	v, sum := t.amountOf(p), &t.levels.sums[k][p.row]
	for d := range resources {
		sum[d] += times * v[d]
	}
}

// freeable finds the lowest level such that without its pods and those below a pod of a class would have the room of a row, and how many pods that
// are; false where even without all pods below the class's own level it would not.
func (t *Table) freeable(c *class, row int32, below int) (lowest int, count int64, ok bool) {
	var room [resources]int64
	t.asIf(c, row>>1, true, func() {
		for d := range room {
			room[d] = t.avail[row&1].free[d][row>>1]
		}
	})
	for k := range below {
		if int(row) >= len(t.levels.sums[k]) {
			continue
		}
		sum := &t.levels.sums[k][row]
		if sum[pods] == 0 {
			continue
		}
		fits := true
		for d := range room {
			room[d] += sum[d]
			fits = fits && (c.want[d] == 0 || room[d] >= c.want[d])
		}
		if count += sum[pods]; fits {
			return k, count, true
		}
	}
	return 0, 0, false
}
