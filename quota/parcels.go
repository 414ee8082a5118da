package quota

import (
	"github.com/springtide/springtide/fleet"
)

// parcels divides each class of parcels among the offline work of all tenants, in whole numbers: first what each is entitled to, then what
// is left, to each alike. The same tree and the same rules hold as for resources; the counts stand in [amount].
func (d *divider) parcels(shares []Share) {
	for _, s := range d.in.Parcels {
		d.class(s, shares)
	}
}

// parcelTerms are what a tenant's quota says of a class.
func parcelTerms(t *fleet.Tenant, class fleet.ParcelClass) fleet.ParcelQuota {
	for _, q := range t.Parcels {
		if q.Class == class {
			return q
		}
	}
	return fleet.ParcelQuota{}
}

// parcelLimits are the limits of tenants on parcels of a class.
func parcelLimits(class fleet.ParcelClass) limits {
	known := func(k fleet.Known[int64]) fleet.Known[amount] {
		return fleet.Known[amount]{Value: count(k.Value), At: k.At, OK: k.OK}
	}
	return func(t *fleet.Tenant) (lend, borrow fleet.Known[amount]) {
		q := parcelTerms(t, class)
		return known(q.LendingLimit), known(q.BorrowingLimit)
	}
}

// classTree is the tree of a class, with what each is entitled to.
func (d *divider) classTree(s ParcelSupply) *tree {
	tr := newTree(d.in.Tenants, parcelLimits(s.Class))
	tr.entitle(func(t *fleet.Tenant) (base, more, names amount) {
		g := count(max(parcelTerms(t, s.Class).Guarantee, 0))
		return g, amount{}, g
	}, fleet.KnownAt(count(s.Firm), d.in.At), count(s.Lent))
	return tr
}

// class divides one class twice: by what each could use, which says how far it may grow, and by what each is on, which says what it must leave.
// As with resources, who only grows beyond its own takes nothing from others there; a lender that lacks parcels of its own does.
func (d *divider) class(s ParcelSupply, shares []Share) {
	tr := d.classTree(s)
	n, whole := len(tr.nodes), s.Firm+s.Lent
	has, grows, stands := make([]ParcelCount, n), make([]int64, n), make([]int64, n)
	var lack int64
	for k, i := range tr.byID {
		w := d.wants[i]
		for _, p := range w.Parcels {
			if p.Class == s.Class {
				has[i] = p
			}
		}
		grows[i], stands[i] = has[i].N, has[i].N
		_, most := w.offline()
		if !most.fits(amountOf(w.Offline)) {
			grows[i] = max(has[i].N, whole) // Work that could grow could use any of them.
		}
		// A tenant that must not grow by its resources has no use for more parcels.
		if uses := amountOf(w.Offline); !most.min(amountOf(shares[k].OfflineLimit)).sub(uses).floor().isZero() {
			stands[i] = max(has[i].N, min(has[i].N+has[i].More, tr.nodes[i].own.parcels))
			lack += stands[i] - has[i].N
		}
	}
	f := begun(tr, grows)
	f.share(grows, whole)
	limits := f.has()
	// Standing on a parcel next to another costs no tenant its own; on those that lenders lack, which must come free,
	// it ends for all.
	if clears := min(max(lack-max(whole-s.Held, 0), 0), s.Held); s.Held > 0 {
		tr.nodes[0].own = tr.nodes[0].own.add(count(s.Beside * (s.Held - clears) / s.Held))
	}
	f = begun(tr, stands)
	within := make([]int64, n)
	for i := range within {
		within[i] = min(stands[i], limits[i])
	}
	f.share(within, whole) // who is within its limit owes nothing: it would take again what it left
	f.share(stands, whole)
	keeps := f.has()
	// Parcels that others stand on are not there to grow into, though they are on more than their part of what is
	// borrowed: a taker would have them leave it, one deadline after the other. And what comes free is the lenders'
	// first.
	f.share(limits, whole)
	for i, most := range f.has() {
		limits[i] = min(limits[i], most)
	}
	for k, i := range tr.byID {
		node := &tr.nodes[i]
		shares[k].Parcels = append(shares[k].Parcels, ParcelShare{Class: s.Class, Guarantee: node.base.parcels, Entitled: node.entitled.parcels,
			Used: has[i].N, Limit: limits[i], Over: max(has[i].N-keeps[i], 0)})
	}
}

// classFlow is how parcels of a class pass the tree.
type classFlow struct{ *flow }

// begun is a flow in which each uses what it wants of its own.
func begun(tr *tree, wants []int64) classFlow {
	used, borrow := make([]amount, len(wants)), make([]amount, len(wants))
	for i := range wants {
		used[i], borrow[i] = count(wants[i]), tr.nodes[i].borrow
	}
	f := newFlow(tr)
	f.begin(used, borrow)
	return classFlow{f}
}

// share grants each what it wants beyond what it has, as far as it goes, to each alike.
func (f classFlow) share(wants []int64, whole int64) {
	has, wish := f.has(), make([]amount, len(wants))
	for i := range wants {
		wish[i] = count(max(wants[i]-has[i], 0))
	}
	newFilling(len(wish)).fill(f.flow, wish, count(whole))
	for i, n := range f.has() {
		f.grant(i, count(min(max(wants[i]-n, 0), 1))) // parts of parcels make whole ones, for who comes first
	}
}

// has is what each may be on: its own, and what it was granted.
func (f classFlow) has() []int64 {
	out := make([]int64, len(f.granted))
	for i := range out {
		out[i] = f.tr.nodes[i].own.add(f.granted[i]).parcels
	}
	return out
}

// left is the part of the noticed parcels that is not given back.
func (p *ParcelShare) left(n *fleet.QuotaNotice) int64 {
	for _, x := range n.Parcels {
		if x.Class == p.Class {
			return x.N - max(x.Used-p.Used, 0)
		}
	}
	return 0
}

// parcelsGrew reports whether parcels of any class are owed beyond the notices.
func (s *Share) parcelsGrew(noticed []fleet.QuotaNotice) bool {
	for i := range s.Parcels {
		p := &s.Parcels[i]
		var most int64
		for k := range noticed {
			most = max(most, p.left(&noticed[k]))
		}
		if p.Over > most {
			return true
		}
	}
	return false
}

// parcelsDue makes due what of a notice that is over is owed still.
func (s *Share) parcelsDue(n *fleet.QuotaNotice) {
	for i := range s.Parcels {
		p := &s.Parcels[i]
		p.Due = max(p.Due, min(p.left(n), p.Over))
	}
}

// parcelDebts lists the classes of which something is owed.
func (s *Share) parcelDebts(owed func(*ParcelShare) int64) []fleet.ParcelDebt {
	var out []fleet.ParcelDebt
	for i := range s.Parcels {
		if p := &s.Parcels[i]; owed(p) > 0 {
			out = append(out, fleet.ParcelDebt{Class: p.Class, N: owed(p), Used: p.Used})
		}
	}
	return out
}
