package quota

import (
	"slices"

	"github.com/springtide/springtide/fleet"
)

// Memo keeps how demands ahead were divided, for the divisions to come: from one minute to the next hardly any step of a week asks for anything
// else. A division is the same with it and without it: what is kept is found by all that it was reckoned from, the demands of every tenant and
// the ground that they were divided on. The zero value is ready. One caller may use it at a time.
type Memo struct {
	ground ground
	rounds map[uint64][]*round
	held   int
}

// ground is all that a round ahead depends on beside its demands: the tree with its edges, and what shares are measured by.
type ground struct {
	tenants []fleet.TenantID
	parents []int
	amounts []fleet.Resources
}

func (d *divider) ground() ground {
	n := len(d.tree.nodes)
	g := ground{tenants: make([]fleet.TenantID, n), parents: make([]int, n), amounts: make([]fleet.Resources, 0, 3*n+1)}
	for i := range d.tree.nodes {
		x := &d.tree.nodes[i]
		if x.tenant != nil {
			g.tenants[i] = x.tenant.ID
		}
		g.parents[i] = x.parent
		g.amounts = append(g.amounts, x.own, x.lend, x.borrow)
	}
	g.amounts = append(g.amounts, d.whole())
	return g
}

func (g *ground) equal(o *ground) bool {
	return slices.Equal(g.tenants, o.tenants) && slices.Equal(g.parents, o.parents) && slices.Equal(g.amounts, o.amounts)
}

// memoMost bounds the demands of tenants that are kept: some ten megabytes.
const memoMost = 1 << 16

// on forgets what was divided on another ground.
func (m *Memo) on(g ground) {
	if m.rounds == nil || m.held > memoMost || !m.ground.equal(&g) {
		m.ground, m.rounds, m.held = g, map[uint64][]*round{}, 0
	}
}

// round is how demands were divided, by divide where they are new. It takes a copy of them.
func (m *Memo) round(demands []demand, divide func(demands []demand) *round) *round {
	key := keyOf(demands)
	for _, r := range m.rounds[key] {
		if slices.Equal(r.demands, demands) {
			return r
		}
	}
	r := divide(slices.Clone(demands))
	m.rounds[key] = append(m.rounds[key], r)
	m.held += len(demands)
	return r
}

// keyOf mixes what online services ask for (FNV-1a by words): offline work asks for the same in all steps.
func keyOf(demands []demand) uint64 {
	h := uint64(14695981039346656037)
	for i := range demands {
		r := &demands[i].online
		for _, v := range [...]uint64{uint64(r.CPU), uint64(r.Memory), uint64(r.GPU), uint64(r.Pods)} {
			h = (h ^ v) * 1099511628211
		}
	}
	return h
}
