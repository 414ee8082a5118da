package quota

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// WindowOpen reports whether a window is open at a time. Windows are evaluated by the caller's package of schedules, so that cron is
// known in one place.
type WindowOpen func(w fleet.Window, at time.Time) bool

// Divide says how much each tenant may use now, given what each wants and what there is.
//
// For a tenant t with guarantee G (slices included) and demand W, per resource:
//
//	used of its own   = min(W, G)
//	lent              = min(G − used, lending limit)
//	wish to borrow    = min(W − G, borrowing limit), at least 0
//	limit             = G + what it was granted + an equal part of what nobody wished for, bounded by the borrowing limit
//
// What a tree has to lend is the sum of what its tenants lend plus the supply that no guarantee names. It is given out by need in the
// order of tenant ids after an equal split, so that no tenant gets more than it asks for while another asks in vain. Tenants that were
// not accepted (a parent cycle, say) are left out and bound nobody.
//
// The same is reckoned for each step that wants reach ahead, with the slices open by then, so that a tenant that will be short knows it now.
func Divide(tree []fleet.Tenant, wants []Want, supply fleet.Resources, now time.Time, open WindowOpen) Division {
	d := divide(rowsOf(tree, wants, -1, now, open), supply, now)
	steps := 0
	for i := range wants {
		steps = max(steps, len(wants[i].Ahead))
	}
	for k := 1; k < steps; k++ { // the first step is now
		at := now.Add(time.Duration(k) * AheadStep)
		for _, s := range divide(rowsOf(tree, wants, k, at, open), supply, at).Short {
			if !slices.ContainsFunc(d.Short, func(x Short) bool { return x.Tenant == s.Tenant }) {
				d.Short = append(d.Short, s)
			}
		}
	}
	return d
}

// divide divides at one time.
func divide(rows []row, supply fleet.Resources, at time.Time) Division {
	var promised fleet.Resources
	for i := range rows {
		if rows[i].leaf {
			promised = promised.Add(rows[i].guarantee)
		}
	}
	unnamed := supply.Sub(promised).Floor()

	var d Division
	for _, members := range treesOf(rows) {
		lendable := unnamed
		for _, r := range members {
			lendable = lendable.Add(r.lent)
		}
		giveOut(members, lendable)
	}
	for i := range rows {
		r := &rows[i]
		s := Share{Tenant: r.id, Entitled: r.guarantee, Borrowed: r.borrowed, Lent: r.lent, Limit: r.guarantee.Add(r.mayBorrow)}
		s.Why = fmt.Sprintf("guaranteed %s, wants %s, borrows %s, lends %s", s.Entitled, r.want, s.Borrowed, s.Lent)
		d.Shares = append(d.Shares, s)
		if missing := r.wish.Sub(r.borrowed).Floor(); !missing.IsZero() {
			d.Short = append(d.Short, Short{Tenant: r.id, From: at, By: missing,
				Why: fmt.Sprintf("wants %s, guarantee and what kin can lend give %s", r.want, r.guarantee.Add(r.borrowed))})
		}
	}
	return d
}

// row is one tenant's reckoning.
type row struct {
	id, parent fleet.TenantID
	leaf       bool
	guarantee  fleet.Resources
	want       fleet.Resources
	lent, wish fleet.Resources
	// borrowed is what of the wish was granted, mayBorrow how far the tenant may go at all.
	borrowed, mayBorrow fleet.Resources
	limit               fleet.Known[fleet.Resources]
}

// rowsOf are the rows of a step ahead, or of now where it is negative, with the slices that are open at a time.
func rowsOf(tree []fleet.Tenant, wants []Want, step int, at time.Time, open WindowOpen) []row {
	byID := make(map[fleet.TenantID]fleet.Resources, len(wants))
	for i := range wants {
		byID[wants[i].Tenant] = wants[i].at(step)
	}
	parents := make(map[fleet.TenantID]bool, len(tree))
	for i := range tree {
		if tree[i].Accepted {
			parents[tree[i].Parent] = true
		}
	}
	var rows []row
	for i := range tree {
		t := &tree[i]
		if !t.Accepted {
			continue
		}
		g := Guarantee(t, at, open)
		want := byID[t.ID]
		r := row{id: t.ID, parent: t.Parent, leaf: !parents[t.ID], guarantee: g, want: want, limit: t.BorrowingLimit}
		if r.leaf {
			r.lent = g.Sub(want).Floor()
			if t.LendingLimit.OK {
				r.lent = r.lent.Min(t.LendingLimit.Value)
			}
			r.wish = want.Sub(g).Floor()
			if r.limit.OK {
				r.wish = r.wish.Min(r.limit.Value)
			}
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	return rows
}

// Guarantee is a tenant's guarantee at a time: the largest of its own and those of its open slices.
func Guarantee(t *fleet.Tenant, at time.Time, open WindowOpen) fleet.Resources {
	g := t.Guarantee
	for _, s := range t.Slices {
		if open != nil && open(s.Window, at) {
			g = g.Max(s.Guarantee)
		}
	}
	return g
}

// treesOf are the leaves of each tree, in the order of the trees' first rows; a tenant whose parent does not exist is a root of its own.
func treesOf(rows []row) [][]*row {
	var out [][]*row
	tree := map[fleet.TenantID]int{}
	for i := range rows {
		root := rootOf(rows, rows[i].id)
		k, seen := tree[root]
		if !seen {
			k = len(out)
			tree[root] = k
			out = append(out, nil)
		}
		if rows[i].leaf {
			out[k] = append(out[k], &rows[i])
		}
	}
	return out
}

// rootOf climbs to the root. The climb is bounded by the number of tenants: a cycle, which acceptance refuses, ends where it began.
func rootOf(rows []row, id fleet.TenantID) fleet.TenantID {
	find := func(id fleet.TenantID) (int, bool) {
		return slices.BinarySearchFunc(rows, id, func(r row, id fleet.TenantID) int { return cmp.Compare(r.id, id) })
	}
	for range rows {
		i, ok := find(id)
		if !ok || rows[i].parent == "" {
			return id
		}
		if _, ok := find(rows[i].parent); !ok {
			return id
		}
		id = rows[i].parent
	}
	return id
}

// giveOut grants wishes from lendable: first an equal split, each capped by its wish, then the rest in order of ids.
func giveOut(members []*row, lendable fleet.Resources) {
	left := lendable
	open := 0
	for _, r := range members {
		if !r.wish.IsZero() {
			open++
		}
	}
	if open > 0 {
		equal := part(left, open)
		for _, r := range members {
			r.borrowed = r.wish.Min(equal)
			left = left.Sub(r.borrowed)
		}
		for _, r := range members {
			more := r.wish.Sub(r.borrowed).Min(left).Floor()
			r.borrowed = r.borrowed.Add(more)
			left = left.Sub(more)
		}
	}
	// What nobody wished for is split equally, so that all limits together never exceed what there is to lend.
	spare := part(left.Floor(), len(members))
	for _, r := range members {
		r.mayBorrow = r.borrowed.Add(spare)
		if r.limit.OK {
			r.mayBorrow = r.mayBorrow.Min(r.limit.Value)
		}
	}
}

// part is one of n equal parts, rounded down.
func part(r fleet.Resources, n int) fleet.Resources {
	if n <= 0 {
		return fleet.Resources{}
	}
	return fleet.Resources{CPU: r.CPU / fleet.MilliCPU(n), Memory: r.Memory / fleet.Bytes(n), GPU: r.GPU / int64(n), Pods: r.Pods / int64(n)}
}
