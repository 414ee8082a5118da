package quota

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// unlimited is the limit of who has none.
var unlimited = amount{cpu: math.MaxInt64, memory: math.MaxInt64, gpu: math.MaxInt64, parcels: math.MaxInt64}

// node is one tenant in its tree.
type node struct {
	tenant   *fleet.Tenant // nil at the top, which stands above all roots and belongs to no tenant
	parent   int
	children []int
	// base is what the tenant is promised at all times, lift what open slices add to it.
	base, lift amount
	// entitled is what of both is kept, own what its children do not hold of that.
	entitled, own amount
	// lend and borrow bound what the tenant and all below it let out and take in together.
	lend, borrow amount
}

// tree is all accepted tenants below the top, nodes[0]. Parents stand before their children, and children are in the order of their ids,
// so that a loop forwards goes down and a loop backwards goes up.
type tree struct {
	nodes []node
	// byID lists the nodes in the order of tenant ids, the top left out.
	byID []int
}

// limits are what a tenant and all below it may let out and take in together.
type limits func(t *fleet.Tenant) (lend, borrow fleet.Known[amount])

func resourceLimits(t *fleet.Tenant) (lend, borrow fleet.Known[amount]) {
	known := func(k fleet.Known[fleet.Resources]) fleet.Known[amount] {
		return fleet.Known[amount]{Value: amountOf(k.Value), At: k.At, OK: k.OK}
	}
	return known(t.LendingLimit), known(t.BorrowingLimit)
}

// newTree joins the tenants that were accepted. One whose parent does not exist is a root of its own; acceptance refuses circles, and one
// that comes here all the same is cut open at its first id.
func newTree(tenants []fleet.Tenant, limits limits) *tree {
	accepted := make([]*fleet.Tenant, 0, len(tenants))
	for i := range tenants {
		if tenants[i].Accepted {
			accepted = append(accepted, &tenants[i])
		}
	}
	slices.SortFunc(accepted, func(a, b *fleet.Tenant) int { return cmp.Compare(a.ID, b.ID) })
	below := map[fleet.TenantID][]*fleet.Tenant{}
	known := make(map[fleet.TenantID]bool, len(accepted))
	for _, t := range accepted {
		known[t.ID] = true
	}
	for _, t := range accepted {
		below[t.Parent] = append(below[t.Parent], t)
	}
	tr := &tree{nodes: make([]node, 1, len(accepted)+1)}
	at := make(map[fleet.TenantID]int, len(accepted))
	var add func(t *fleet.Tenant, parent int)
	add = func(t *fleet.Tenant, parent int) {
		if _, seen := at[t.ID]; seen {
			return
		}
		i := len(tr.nodes)
		at[t.ID] = i
		lend, borrow := limits(t)
		tr.nodes = append(tr.nodes, node{tenant: t, parent: parent, lend: orUnlimited(lend), borrow: orUnlimited(borrow)})
		tr.nodes[parent].children = append(tr.nodes[parent].children, i)
		for _, c := range below[t.ID] {
			add(c, i)
		}
	}
	for _, t := range accepted {
		if t.Parent == "" || !known[t.Parent] {
			add(t, 0)
		}
	}
	for _, t := range accepted {
		add(t, 0)
	}
	for _, t := range accepted {
		tr.byID = append(tr.byID, at[t.ID])
	}
	for _, r := range tr.nodes[0].children {
		tr.nodes[r].lend = amount{} // Trees do not lend to each other: they share what no guarantee names.
	}
	return tr
}

func orUnlimited(k fleet.Known[amount]) amount {
	if !k.OK {
		return unlimited
	}
	return k.Value.floor()
}

// promise is what a tenant is promised of its own: at all times, beyond that by slices, and the most at any time.
type promise func(t *fleet.Tenant) (base, more, names amount)

// promised are the promises of [from, to]. A slice counts where it is open at both ends: the bias is towards seeing a shortage.
func (in *Input) promised(from, to time.Time) promise {
	return func(t *fleet.Tenant) (base, more, names amount) {
		names = amountOf(t.Guarantee)
		for i := range t.Slices {
			names = names.max(amountOf(t.Slices[i].Guarantee))
		}
		base = amountOf(t.Guarantee).floor()
		more = amountOf(Guarantee(t, from, in.Open))
		if to != from && more != amountOf(t.Guarantee) {
			more = more.min(amountOf(Guarantee(t, to, in.Open)))
		}
		return base, more.sub(base).floor(), names
	}
}

// entitle computes what every tenant is promised and what of it can be kept: at most firm altogether, where that is
// known. A tenant that has others below it and names nothing of a resource passes on what they are promised. The rest
// beyond firm can be borrowed.
func (tr *tree) entitle(of promise, firm fleet.Known[amount], beyond amount) {
	for i := len(tr.nodes) - 1; i >= 0; i-- {
		n := &tr.nodes[i]
		n.base, n.lift = amount{}, amount{}
		for _, c := range n.children {
			n.base, n.lift = n.base.add(tr.nodes[c].base), n.lift.add(tr.nodes[c].lift)
		}
		if n.tenant == nil {
			continue
		}
		base, more, names := of(n.tenant)
		if len(n.children) > 0 {
			base, more = ownOr(base, n.base, names), ownOr(more, n.lift, names)
		}
		n.base, n.lift = base, more
	}
	top := &tr.nodes[0]
	top.entitled = top.base.add(top.lift)
	if firm.OK {
		top.entitled = firm.Value.floor()
	}
	for i := range tr.nodes {
		tr.setKept(&tr.nodes[i])
	}
	top.own = top.own.add(beyond.floor())
}

// ownOr takes each resource from own where the tenant names it, else from below.
func ownOr(own, below, names amount) amount {
	if names.cpu > 0 {
		below.cpu = own.cpu
	}
	if names.memory > 0 {
		below.memory = own.memory
	}
	if names.gpu > 0 {
		below.gpu = own.gpu
	}
	if names.parcels > 0 {
		below.parcels = own.parcels
	}
	return below
}

// setKept entitles the children of a node: to their guarantees first, scaled down alike where they do not fit, then to their lifts in what is
// left, again alike.
func (tr *tree) setKept(n *node) {
	var base, lift amount
	for _, c := range n.children {
		base, lift = base.add(tr.nodes[c].base), lift.add(tr.nodes[c].lift)
	}
	room := n.entitled
	left := room
	for _, c := range n.children {
		tr.nodes[c].entitled = scaled(tr.nodes[c].base, room, base)
		left = left.sub(tr.nodes[c].entitled)
	}
	n.own = left
	for _, c := range n.children {
		more := scaled(tr.nodes[c].lift, left, lift)
		tr.nodes[c].entitled = tr.nodes[c].entitled.add(more)
		n.own = n.own.sub(more)
	}
}

// scaled is part × room / whole where whole is more than room, rounded down, so that all parts together fit.
func scaled(part, room, whole amount) amount {
	return amount{cpu: scale(part.cpu, room.cpu, whole.cpu), memory: scale(part.memory, room.memory, whole.memory),
		gpu: scale(part.gpu, room.gpu, whole.gpu), parcels: scale(part.parcels, room.parcels, whole.parcels)}
}

func scale[T ~int64](part, room, whole T) T {
	if whole <= room {
		return part
	}
	// Whole may be a sum that saturated, below a part's double; the product has 128 bits, and part ≤ whole keeps the quotient in 64.
	hi, lo := bits.Mul64(uint64(part), uint64(max(room, 0)))
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return T(q)
}

// Guarantee is what a tenant is promised at a time: the largest of its own guarantee and those of its open slices.
func Guarantee(t *fleet.Tenant, at time.Time, open WindowOpen) fleet.Resources {
	g := t.Guarantee
	for _, s := range t.Slices {
		if open != nil && open(s.Window, at) {
			g = g.Max(s.Guarantee)
		}
	}
	return g
}
