package quota

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/reason"
)

// outlook collects what will be short and what is oversold, step by step.
type outlook struct {
	d               *divider
	short, oversold [][]stretch // by node
}

// stretch is a time in which something lacks, without a break.
type stretch struct {
	from, until, worst time.Time
	by                 amount // at most
	promised, kept     amount // when it is worst, of a promise
	why                reason.Reason
}

func newOutlook(d *divider) *outlook {
	n := len(d.tree.nodes)
	return &outlook{d: d, short: make([][]stretch, n), oversold: make([][]stretch, n)}
}

// see takes a division at a time in.
func (o *outlook) see(at time.Time, r *round) {
	for _, i := range o.d.tree.byID {
		n := &o.d.tree.nodes[i]
		var missing amount
		if r != nil {
			missing = r.wish[i].sub(r.online[i]).floor()
		}
		if s := lacks(&o.short[i], at, missing); s != nil {
			s.why = reason.Of(reason.TenantShort, r.demands[i].online, n.own.add(r.online[i]), r.boundOf(i))
		}
		promised := n.base.add(n.lift)
		if s := lacks(&o.oversold[i], at, promised.sub(n.entitled).floor()); s != nil {
			s.promised, s.kept, s.why = promised, n.entitled, o.d.tooMuch(n)
		}
	}
}

// lacks goes on with the last stretch of a list, ends it or begins the next. It returns the one of which this is the worst so far.
func lacks(list *[]stretch, at time.Time, missing amount) *stretch {
	n := len(*list)
	running := n > 0 && (*list)[n-1].until.IsZero()
	switch {
	case missing.isZero() && running:
		(*list)[n-1].until = at
		return nil
	case missing.isZero():
		return nil
	case !running:
		*list = append(*list, stretch{from: at})
		n++
	}
	s := &(*list)[n-1]
	if missing.fits(s.by) {
		return nil
	}
	s.by, s.worst = s.by.max(missing), at
	return s
}

// tooMuch says what a tenant's promise does not fit into.
func (d *divider) tooMuch(n *node) reason.Reason {
	p := &d.tree.nodes[n.parent]
	var all amount
	for _, c := range p.children {
		all = all.add(d.tree.nodes[c].base).add(d.tree.nodes[c].lift)
	}
	if p.tenant == nil {
		return reason.Of(reason.GuaranteesBeyondSupply, all, p.entitled)
	}
	return reason.Of(reason.GuaranteesBeyondParent, p.tenant.ID, all, p.entitled)
}

// mostStretches bounds the reports of one tenant: a demand that crosses its limit every hour of a week is one trouble.
const mostStretches = 8

func (o *outlook) lists() (short []Short, oversold []Oversold) {
	for _, i := range o.d.tree.byID {
		id := o.d.tree.nodes[i].tenant.ID
		for _, s := range o.worst(o.short[i]) {
			short = append(short, Short{Tenant: id, From: s.from, Until: s.until, Worst: s.worst, By: s.by.resources(), Why: s.why})
		}
		for _, s := range o.worst(o.oversold[i]) {
			oversold = append(oversold, Oversold{Tenant: id, From: s.from, Until: s.until, Worst: s.worst, Promised: s.promised.resources(), Kept: s.kept.resources(), Why: s.why})
		}
	}
	return short, oversold
}

// worst are the first stretch, which is the nearest, and the worst of the others, by what of the supply is missing; of equals the earlier ones.
func (o *outlook) worst(list []stretch) []stretch {
	if len(list) <= mostStretches {
		return list
	}
	whole := amountsOf(o.d.whole())
	size := func(s stretch) (most float64) {
		for d, v := range amountsOf(s.by) {
			most = max(most, v/max(whole[d], 1))
		}
		return most
	}
	rest := slices.Clone(list[1:])
	slices.SortStableFunc(rest, func(a, b stretch) int { return cmp.Compare(size(b), size(a)) })
	rest = rest[:mostStretches-1]
	slices.SortFunc(rest, func(a, b stretch) int { return a.from.Compare(b.from) })
	return append([]stretch{list[0]}, rest...)
}

// lookAhead divides each step to come, with the slices of then and without bursts, which no tenant can count on.
func (d *divider) lookAhead(o *outlook) {
	lifts := make([]amount, len(d.tree.nodes))
	d.lifts(d.in.At, d.in.At, lifts)
	d.entitle(d.in.At, d.in.At)
	borrow := make([]amount, len(d.tree.nodes))
	for i := range borrow {
		borrow[i] = d.tree.nodes[i].borrow
	}
	flow, demands := newFlow(d.tree), make([]demand, len(d.wants))
	divide := func(demands []demand) *round { return d.online(flow, demands, borrow) }
	memo := d.in.Memo
	if memo == nil {
		memo = &Memo{}
	}
	rounds := memo.on(d.ground())
	for k := 1; k < len(d.in.Ahead); k++ {
		from := d.in.Ahead[k]
		to := from
		if k+1 < len(d.in.Ahead) {
			to = d.in.Ahead[k+1].Add(-time.Second)
		}
		if d.lifts(from, to, lifts) {
			d.entitle(from, to)
			rounds = memo.on(d.ground())
		}
		if !d.demandsAhead(k, demands) {
			o.see(from, nil) // no tenant wishes for more than its own: there is nothing to divide
			continue
		}
		o.see(from, rounds.round(demands, divide))
	}
}

// lifts brings out, what slices add for each node, to [from, to], and reports whether anything changed.
func (d *divider) lifts(from, to time.Time, out []amount) (changed bool) {
	of := d.in.promised(from, to)
	for _, i := range d.tree.byID {
		n := &d.tree.nodes[i]
		if len(n.tenant.Slices) == 0 {
			continue
		}
		if _, more, _ := of(n.tenant); more != out[i] {
			out[i], changed = more, true
		}
	}
	return changed
}

// demandsAhead fills out with the demands of a step ahead, and reports whether a tenant wishes for more than its own.
// The growth of offline work by then is no need, and is left out.
func (d *divider) demandsAhead(step int, out []demand) (wishes bool) {
	for i, w := range d.wants {
		out[i] = demand{online: w.ahead(step)}
		out[i].need, _ = w.offline()
		wishes = wishes || !out[i].online.fits(d.tree.nodes[i].own)
	}
	return wishes
}
