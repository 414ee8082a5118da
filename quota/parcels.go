package quota

import (
	"github.com/springtide/springtide/fleet"
)

// parcels divides each class of parcels among the offline work of all tenants, in whole numbers: first what each is entitled to, then what
// is left, to each alike. The same tree and the same rules hold as for resources; the counts stand in [fleet.Resources.Pods].
func (d *divider) parcels(shares []Share) {
	for _, s := range d.in.Parcels {
		d.class(s, shares)
	}
}

func (d *divider) class(s ParcelSupply, shares []Share) {
	n := func(n int64) fleet.Resources { return fleet.Resources{Pods: n} }
	terms := func(t *fleet.Tenant) fleet.ParcelQuota {
		for _, q := range t.Parcels {
			if q.Class == s.Class {
				return q
			}
		}
		return fleet.ParcelQuota{}
	}
	known := func(k fleet.Known[int64]) fleet.Known[fleet.Resources] {
		return fleet.Known[fleet.Resources]{Value: n(k.Value), At: k.At, OK: k.OK}
	}
	tr := newTree(d.in.Tenants, func(t *fleet.Tenant) (lend, borrow fleet.Known[fleet.Resources]) {
		q := terms(t)
		return known(q.LendingLimit), known(q.BorrowingLimit)
	})
	tr.entitle(func(t *fleet.Tenant) (base, more, names fleet.Resources) {
		g := n(max(terms(t).Guarantee, 0))
		return g, fleet.Resources{}, g
	}, fleet.KnownAt(n(s.Firm), d.in.At), n(s.Lent))
	used, wish, borrow := make([]fleet.Resources, len(tr.nodes)), make([]fleet.Resources, len(tr.nodes)), make([]fleet.Resources, len(tr.nodes))
	for i := range tr.nodes {
		borrow[i] = tr.nodes[i].borrow
		if i == 0 {
			continue
		}
		w := d.wants[i]
		for _, p := range w.Parcels {
			if p.Class == s.Class {
				used[i] = n(p.N)
			}
		}
		wants := used[i]
		if _, most := w.offline(); !most.Fits(w.Offline) {
			wants = n(s.Firm + s.Lent) // Work that could grow could use any of them.
		}
		wish[i] = wants.Sub(tr.nodes[i].own).Floor()
		if !wish[i].IsZero() {
			used[i] = wants
		}
	}
	f := newFlow(tr)
	f.begin(used, borrow)
	newFilling(len(f.tr.nodes)).fill(f, wish, n(s.Firm+s.Lent))
	for k, i := range tr.byID {
		node := &tr.nodes[i]
		shares[k].Parcels = append(shares[k].Parcels, ParcelShare{Class: s.Class, Guarantee: node.base.Pods, Entitled: node.entitled.Pods,
			Used: d.usedParcels(i, s.Class), Limit: node.own.Add(f.granted[i]).Pods})
	}
}

func (d *divider) usedParcels(i int, class fleet.ParcelClass) int64 {
	for _, p := range d.wants[i].Parcels {
		if p.Class == class {
			return p.N
		}
	}
	return 0
}
