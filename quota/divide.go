package quota

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// Divide says how much each tenant may use now, what it must give back by when, and who will be short when, given what each wants and
// what there is. The package comment has the rules.
func Divide(in Input) Division {
	d := &divider{in: &in, tree: newTree(in.Tenants, resourceLimits)}
	d.filling = newFilling(len(d.tree.nodes))
	d.wants = make([]*Want, len(d.tree.nodes))
	for i := range d.wants {
		d.wants[i] = &Want{}
	}
	at := make(map[fleet.TenantID]int, len(d.tree.nodes))
	for _, i := range d.tree.byID {
		at[d.tree.nodes[i].tenant.ID] = i
	}
	for k := range in.Wants {
		if i, ok := at[in.Wants[k].Tenant]; ok {
			d.wants[i] = &in.Wants[k]
		}
	}
	return d.divide()
}

// divider is the work of one division.
type divider struct {
	in   *Input
	tree *tree
	// wants are the demands by node.
	wants  []*Want
	bursts []burst
	// filling is the room that wishes are filled in, one after another: the look ahead does it hundreds of times.
	filling *filling
}

func (d *divider) divide() Division {
	out := Division{Level: d.in.Level}
	d.entitle(d.in.At, d.in.At)
	d.bursts = d.judgeBursts()
	now := d.round(d.demands(nil), d.borrowing(d.in.At))
	lent := now.flow.lent()
	for _, i := range d.tree.byID {
		out.Shares = append(out.Shares, d.share(i, now, lent[i]))
	}
	outlook := newOutlook(d)
	outlook.see(d.in.At, now)
	d.exits(out.Shares)
	d.parcels(out.Shares)
	d.report(out.Shares)
	d.lookAhead(outlook)
	out.Short, out.Oversold = outlook.lists()
	for i := range out.Shares {
		out.Shares[i].Why = out.Shares[i].why()
	}
	return out
}

func (d *divider) entitle(from, to time.Time) {
	d.tree.entitle(d.in.promised(from, to), d.supply(), amount{})
}

// demand is what one tenant wants for itself.
type demand struct {
	online amount
	// need and wish are the least and the most that its offline work wants.
	need, wish amount
	// beyond bounds what of the wish may be borrowed.
	beyond amount
	// keeps is the part of its own that it does not lend next to that: see [Want.Fragments].
	keeps amount
	// stuck is what its waiting pods ask for, holes what is free and fits none of them, beyond what it keeps of its own for them.
	stuck, holes amount
}

// demands are the present demands by node; edit changes each before it counts.
func (d *divider) demands(edit func(w *Want, x *demand)) []demand {
	out := make([]demand, len(d.wants))
	for i, w := range d.wants {
		x := &out[i]
		x.online = w.online()
		x.need, x.wish = w.offline()
		x.beyond = x.wish
		if edit != nil {
			edit(w, x)
		}
		x.keeps = amountOf(w.Fragments).min(d.tree.nodes[i].own.sub(x.online).sub(x.need)).floor()
		if x.holes = amountOf(w.Fragments).sub(x.keeps).floor(); !x.holes.isZero() {
			x.stuck = amountOf(w.Stuck)
		}
	}
	return out
}

// round is one division at one time.
type round struct {
	demands []demand
	// wish is what online services want beyond their tenant's own, online what of it was granted; offline what offline work was granted
	// beyond its own, held what it has of its own.
	wish, online, offline, held []amount
	// bounds names what keeps each node's online services from all that they wish for; nil where all have it.
	bounds []reason.Reason
	flow   *flow
}

// round divides among demands. Everyone uses its own first: online services, then what offline work cannot do without. Then online
// services borrow; then offline work takes what is left of its own tenant's, and at last it borrows too.
func (d *divider) round(demands []demand, borrow []amount) *round {
	n := len(demands)
	f := newFlow(d.tree)
	r := d.online(f, demands, borrow)
	r.flow = f
	r.held = make([]amount, n)
	more, rest := make([]amount, n), make([]amount, n)
	for i := range demands {
		x := &demands[i]
		left := d.tree.nodes[i].own.sub(x.online).sub(x.keeps).floor()
		r.held[i] = x.need.min(left)
		more[i] = x.wish.min(left).sub(r.held[i]).floor()
		rest[i] = x.beyond.sub(left).floor()
	}
	whole := d.whole()
	for i, got := range d.take(f, more, whole) {
		// A tenant's own is no loan.
		f.granted[i], f.surplus[i] = f.granted[i].sub(got), f.surplus[i].sub(got)
		r.held[i] = r.held[i].add(got)
	}
	r.offline = d.take(f, rest, whole)
	return r
}

// online is the part of a round that online services see: everyone uses its own, and online services borrow. f is begun
// again for it.
func (d *divider) online(f *flow, demands []demand, borrow []amount) *round {
	n := len(demands)
	all := make([]amount, 2*n)
	r := &round{demands: demands, wish: all[:n:n]}
	used := all[n:]
	for i := range demands {
		x := &demands[i]
		r.wish[i] = x.online.sub(d.tree.nodes[i].own).floor()
		used[i] = x.online.add(x.need).add(x.keeps)
	}
	f.begin(used, borrow)
	r.online = d.take(f, r.wish, d.whole())
	r.bounds = f.bounds(r)
	d.freeFragments(r)
	return r
}

// freeFragments has borrowers leave the holes that stuck pods of others do not fit, since sums show room there that is
// none: each a part by what it borrows, until they use as much less as those pods ask for.
func (d *divider) freeFragments(r *round) {
	var holes, stuck, have amount
	for i := range r.demands {
		if x := &r.demands[i]; !x.stuck.isZero() {
			holes, stuck = holes.add(x.holes), stuck.add(x.stuck)
		}
	}
	if stuck.isZero() {
		return // as in every step of the look ahead
	}
	for i := range r.demands {
		if r.demands[i].stuck.isZero() {
			have = have.add(r.online[i])
		}
	}
	for i := range r.demands {
		part := r.online[i]
		if !r.demands[i].stuck.isZero() || part.isZero() {
			continue
		}
		least := amountOf(d.wants[i].Used).sub(d.tree.nodes[i].own).sub(portion(part, stuck, have)).floor()
		r.online[i] = part.sub(portion(part, holes, have)).max(part.min(least))
		if r.online[i] == part {
			continue
		}
		if r.bounds == nil {
			r.bounds = make([]reason.Reason, len(r.demands))
		}
		if r.bounds[i].None() {
			r.bounds[i] = reason.Of(reason.HolesTooSmall)
		}
	}
}

// take fills wishes and returns what of each was granted. CPU and memory of a wish belong together; but a tenant that gets no more GPUs has
// work that needs none as well, and goes on with that.
func (d *divider) take(f *flow, wish []amount, whole amount) []amount {
	before := slices.Clone(f.granted)
	d.filling.fill(f, wish, whole)
	var rest []amount
	for i := range wish {
		if left := wish[i].sub(f.granted[i].sub(before[i])); left.gpu > 0 {
			left.gpu = 0
			if rest == nil {
				rest = make([]amount, len(wish))
			}
			rest[i] = left
		}
	}
	if rest != nil {
		d.filling.fill(f, rest, whole)
	}
	for i := range before {
		before[i] = f.granted[i].sub(before[i])
	}
	return before
}

// supply is what is known of the supply.
func (d *divider) supply() fleet.Known[amount] {
	return fleet.Known[amount]{Value: amountOf(d.in.Supply.Value), At: d.in.Supply.At, OK: d.in.Supply.OK}
}

// whole is what dominant shares are measured by: the supply, or all promises while it is unknown.
func (d *divider) whole() amount {
	if d.in.Supply.OK {
		return amountOf(d.in.Supply.Value).floor()
	}
	return d.tree.nodes[0].entitled
}

func (d *divider) share(i int, r *round, lent amount) Share {
	n, w, x := &d.tree.nodes[i], d.wants[i], &r.demands[i]
	return Share{
		Tenant: n.tenant.ID, Guarantee: n.base.add(n.lift).resources(), Entitled: n.entitled.resources(), Own: n.own.resources(),
		Online: x.online.resources(), Offline: x.wish.resources(), Used: amountOf(w.Used).add(amountOf(w.Offline)).resources(), Kept: x.keeps.resources(),
		Borrowed: r.online[i].resources(), BorrowedOffline: r.offline[i].resources(), Lent: lent.resources(),
		Limit: n.own.add(r.online[i]).resources(), OfflineLimit: r.held[i].add(r.offline[i]).resources(),
		Bound: r.boundOf(i), Bursting: d.bursts[i].on, BurstSince: d.bursts[i].since, BurstWhy: d.bursts[i].why,
	}
}

// why describes a share in one sentence.
func (s *Share) why() reason.Reason {
	var kept, own, wish, lacks, offline, keeps, burst reason.Reason
	if s.Entitled != s.Guarantee {
		kept = reason.Of(reason.ShareKept, s.Entitled)
	}
	if s.Own != s.Entitled {
		own = reason.Of(reason.ShareOwn, s.Own)
	}
	if !s.Offline.IsZero() {
		wish = reason.Of(reason.ShareWishes, s.Offline)
	}
	if !s.Bound.None() {
		lacks = reason.Of(reason.ShareLacks, s.Online.Sub(s.Own).Floor(), s.Bound)
	}
	if !s.BorrowedOffline.IsZero() {
		offline = reason.Of(reason.ShareOffline, s.BorrowedOffline)
	}
	if !s.Kept.IsZero() {
		keeps = reason.Of(reason.ShareKeeps, s.Kept)
	}
	switch {
	case s.Bursting:
		burst = reason.Of(reason.ShareBursts, s.BurstSince.UTC().Format(time.RFC3339))
	case !s.BurstWhy.None():
		burst = reason.Of(reason.ShareNoBurst, s.BurstWhy)
	}
	of := []any{s.Guarantee, kept, own, reason.Of(reason.ShareWants, s.Online, wish),
		reason.Of(reason.ShareBorrows, s.Borrowed, lacks, offline), reason.Of(reason.ShareLends, s.Lent, keeps), burst}
	deadline := s.Deadline.UTC().Format(time.RFC3339)
	if over := s.Over(); !over.IsZero() {
		of = append(of, reason.Of(reason.ShareGivesBack, over, deadline))
	}
	for i := range s.Parcels {
		p := &s.Parcels[i]
		if p.Entitled < p.Guarantee {
			of = append(of, reason.Of(reason.ShareParcels, p.Entitled, p.Guarantee, p.Class))
		}
		if p.Over > 0 {
			of = append(of, reason.Of(reason.ShareLeaves, p.Over, p.Used, p.Class, deadline, p.Entitled))
		}
	}
	return reason.Of(reason.ShareOf, of...)
}
