package quota

import (
	"slices"

	"github.com/springtide/springtide/fleet"
)

// Memo keeps how demands ahead were divided, for the divisions to come: from one minute to the next hardly any step of
// a week asks for anything else. A division is the same with it and without it: what is kept is found by all that it
// was computed from, the demands of every tenant and the ground that they were divided on. The zero value is ready. One
// caller may use it at a time.
type Memo struct {
	grounds []*rounds
	held    int // demands of tenants
}

// rounds are what was divided on one ground.
type rounds struct {
	memo   *Memo
	ground ground
	of     map[uint64][]*round
}

// ground is all that a round ahead depends on next to its demands: the tree with its edges, and what shares are
// measured by.
type ground struct {
	tenants []fleet.TenantID
	parents []int
	amounts []amount
}

func (d *divider) ground() ground {
	n := len(d.tree.nodes)
	g := ground{tenants: make([]fleet.TenantID, n), parents: make([]int, n), amounts: make([]amount, 0, 3*n+1)}
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

// mostGrounds bounds the grounds that are kept: slices that open and close make one each, a supply that changes makes all of them new.
const mostGrounds = 32

// on is what was divided on a ground.
func (m *Memo) on(g ground) *rounds {
	if m.held > memoMost {
		m.grounds, m.held = nil, 0
	}
	for _, r := range m.grounds {
		if r.ground.equal(&g) {
			return r
		}
	}
	if len(m.grounds) >= mostGrounds {
		m.grounds, m.held = nil, 0
	}
	r := &rounds{memo: m, ground: g, of: map[uint64][]*round{}}
	m.grounds = append(m.grounds, r)
	return r
}

// round is how demands were divided, by divide where they are new. It takes a copy of them.
func (x *rounds) round(demands []demand, divide func(demands []demand) *round) *round {
	key := keyOf(demands)
	for _, r := range x.of[key] {
		if slices.Equal(r.demands, demands) {
			return r
		}
	}
	r := divide(slices.Clone(demands))
	x.of[key] = append(x.of[key], r)
	x.memo.held += len(demands)
	return r
}

// keyOf mixes what online services ask for (FNV-1a by words): offline work asks for the same in all steps.
func keyOf(demands []demand) uint64 {
	h := uint64(14695981039346656037)
	for i := range demands {
		r := &demands[i].online
		for _, v := range [...]uint64{uint64(r.cpu), uint64(r.memory), uint64(r.gpu), uint64(r.parcels)} {
			h = (h ^ v) * 1099511628211
		}
	}
	return h
}
