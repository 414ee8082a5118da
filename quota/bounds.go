package quota

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Bounds say how much tenants may use at most if no other used anything. The machines' capacity is no bound here: they
// may be added to, while a quota stays as it is until it is edited. The bias is towards too much.
type Bounds struct {
	tree *tree
	at   map[fleet.TenantID]int
	most most
	// charge is what a node and all below it cost those above it even while they use nothing: what their lending limits keep. below is the sum of
	// its children's.
	charge, below []amount
}

// most is the most that a tenant is promised.
type most func(t *fleet.Tenant) amount

// InTheWay is a limit that does not let a tenant use what it would: of a tenant and all below it, of which Kept is not lent out to it. Bounds on
// parcels name MostParcels and KeptParcels instead.
type InTheWay struct {
	Tenant                   fleet.TenantID
	Most, Kept               fleet.Resources
	MostParcels, KeptParcels int64
}

// NewBounds are the bounds on resources, with all slices open and every burst running.
func NewBounds(tenants []fleet.Tenant) *Bounds {
	return newBounds(tenants, resourceLimits, func(t *fleet.Tenant) amount { return amountOf(t.Guarantee) }, func(t *fleet.Tenant) amount {
		g := amountOf(t.Guarantee)
		for i := range t.Slices {
			g = g.max(amountOf(t.Slices[i].Guarantee))
		}
		return g
	})
}

// NewParcelBounds are the bounds on parcels of a class: [Bounds.RefuseParcels] asks them.
func NewParcelBounds(tenants []fleet.Tenant, class fleet.ParcelClass) *Bounds {
	guarantee := func(t *fleet.Tenant) amount { return count(parcelTerms(t, class).Guarantee) }
	return newBounds(tenants, parcelLimits(class), guarantee, guarantee)
}

func newBounds(tenants []fleet.Tenant, limits limits, least, most most) *Bounds {
	b := &Bounds{tree: newTree(tenants, limits), at: map[fleet.TenantID]int{}, most: most}
	n := len(b.tree.nodes)
	b.charge, b.below = make([]amount, n), make([]amount, n)
	// The kept part is computed without slices, by what can be kept of the guarantees.
	b.tree.entitle(func(t *fleet.Tenant) (base, more, names amount) {
		return least(t).floor(), amount{}, most(t)
	}, fleet.Known[amount]{}, amount{})
	for i := n - 1; i > 0; i-- {
		x := &b.tree.nodes[i]
		b.at[x.tenant.ID] = i
		b.charge[i] = b.below[i].max(x.entitled.sub(x.lend).floor())
		b.below[x.parent] = b.below[x.parent].add(b.charge[i])
	}
	b.promise(most)
	return b
}

// promise computes what each is promised at most, not scaled to what is above it: that bounds by itself.
func (b *Bounds) promise(of most) {
	b.tree.entitle(func(t *fleet.Tenant) (base, more, names amount) {
		return of(t).floor(), amount{}, b.most(t)
	}, fleet.Known[amount]{}, amount{})
}

// At are the bounds at a time: with the slices that are open then, none where nothing says which are.
func (b *Bounds) At(at time.Time, open WindowOpen) *Bounds {
	tree := *b.tree
	tree.nodes = slices.Clone(tree.nodes)
	out := &Bounds{tree: &tree, at: b.at, most: b.most, charge: b.charge, below: b.below}
	out.promise(func(t *fleet.Tenant) amount { return amountOf(Guarantee(t, at, open)) })
	return out
}

// Refuse names the first limit, from the tenant's own upwards, that does not let it use so much itself; nil where none is in the way. A tenant
// and all below it use at most what they are promised and what they may borrow:
//
//	use + what others below keep ≤ promise + borrowing limit
//
// and what passes on to the tenant above is what they use beyond what their lending limit keeps in any case.
func (b *Bounds) Refuse(id fleet.TenantID, use fleet.Resources) *InTheWay {
	return b.refuse(id, amountOf(use))
}

// RefuseParcels is [Bounds.Refuse] for a number of parcels.
func (b *Bounds) RefuseParcels(id fleet.TenantID, n int64) *InTheWay { return b.refuse(id, count(n)) }

func (b *Bounds) refuse(id fleet.TenantID, use amount) *InTheWay {
	i, ok := b.at[id]
	if !ok {
		return nil
	}
	for below := b.below[i]; i > 0; {
		n := &b.tree.nodes[i]
		promised := n.base.add(n.lift)
		limit := promised.add(n.borrow)
		if x := n.tenant.Burst; x.Percent > 0 && x.Duration > 0 {
			limit = limit.add(percent(promised, x.Percent))
		}
		if !below.add(use).fits(limit) {
			return &InTheWay{n.tenant.ID, limit.resources(), below.resources(), limit.parcels, below.parcels}
		}
		use = below.add(use).max(b.charge[i]).sub(b.charge[i])
		i = n.parent
		below = b.below[i]
	}
	return nil
}
