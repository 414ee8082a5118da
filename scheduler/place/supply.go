package place

import (
	"slices"

	"github.com/springtide/springtide/scheduler/rules"
)

// supply is a resource that belongs to a machine as a whole, whatever side holds its cells: a column of what there is
// and one of what is free. Pods still hold a resource that is gone, so free may be negative. A column ends at the last
// machine that ever had the resource.
type supply struct {
	name           string
	capacity, free []int64 // by node
}

// ephemeral is the number of the supply that every machine may have: local ephemeral storage, in bytes. The others are the extended resources.
const (
	ephemeral     = 0
	ephemeralName = "ephemeral-storage"
)

// ask is how much of a supply one pod takes.
type ask struct {
	supply int32
	amount int64
}

// supplyNumber interns the name of an extended resource.
func (t *Table) supplyNumber(name string) int32 {
	s, fresh := intern(t.supplyOf, name)
	if fresh {
		t.supplies = append(t.supplies, supply{name: name})
	}
	return s
}

// at makes the columns reach to a machine.
func (s *supply) at(i int32) {
	if more := int(i) + 1 - len(s.free); more > 0 {
		s.capacity, s.free = append(s.capacity, make([]int64, more)...), append(s.free, make([]int64, more)...)
	}
}

// set says what a machine has.
func (s *supply) set(i int32, capacity int64) {
	capacity = min(max(capacity, 0), most)
	if int(i) >= len(s.free) && capacity == 0 {
		return
	}
	s.at(i)
	s.free[i] += capacity - s.capacity[i]
	s.capacity[i] = capacity
}

// take gives an amount of a machine to a pod, or takes it back with a negative one.
func (s *supply) take(i int32, amount int64) {
	s.at(i)
	s.free[i] -= amount
}

// left is what is free on a machine.
func (s *supply) left(i int32) int64 {
	if int(i) >= len(s.free) {
		return 0
	}
	return s.free[i]
}

// setSupplies says what a machine has of everything that belongs to it as a whole.
func (t *Table) setSupplies(i int32, m *Machine) {
	t.supplies[ephemeral].set(i, int64(m.Ephemeral))
	for s := ephemeral + 1; s < len(t.supplies); s++ {
		if !has(m.Extended, t.supplies[s].name) {
			t.supplies[s].set(i, 0)
		}
	}
	for _, a := range m.Extended {
		t.supplies[t.supplyNumber(a.Name)].set(i, a.Value)
	}
}

func has(all rules.Amounts, name string) bool {
	return slices.ContainsFunc(all, func(a rules.Amount) bool { return a.Name == name })
}

// asksOf is what a shape asks of supplies.
func (t *Table) asksOf(n *Needs) []ask {
	var out []ask
	if n.Ephemeral > 0 {
		out = append(out, ask{ephemeral, min(int64(n.Ephemeral), most)})
	}
	for _, a := range n.Extended {
		if a.Value > 0 {
			out = append(out, ask{t.supplyNumber(a.Name), min(a.Value, most)})
		}
	}
	return out
}

func (a ask) filter() Filter {
	if a.supply == ephemeral {
		return FilterEphemeral
	}
	return FilterExtended
}

// lacks is the filter that a machine fails without a supply, or none.
func (t *Table) lacks(c *class, i int32) Filter {
	for _, a := range c.asks {
		if a.amount > t.supplies[a.supply].left(i) {
			return a.filter()
		}
	}
	return FilterNone
}

// lackAll is lacks for all machines that a pod fits otherwise, one column after the other.
func (t *Table) lackAll(c *class, scores []int32) {
	for _, a := range c.asks {
		free, refused := t.supplies[a.supply].free, refusedBy(a.filter())
		for i, s := range scores {
			if fits(s) && (i >= len(free) || free[i] < a.amount) {
				scores[i] = refused
			}
		}
	}
}
