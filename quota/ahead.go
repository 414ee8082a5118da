package quota

import (
	"fmt"
	"time"

	"github.com/springtide/springtide/fleet"
)

// outlook collects what will be short and what is oversold, step by step.
type outlook struct {
	d        *divider
	short    []*Short    // by node: its first stretch of shortage
	oversold []*Oversold // by node: the first time
}

func newOutlook(d *divider) *outlook {
	n := len(d.tree.nodes)
	return &outlook{d: d, short: make([]*Short, n), oversold: make([]*Oversold, n)}
}

// see takes a division at a time in.
func (o *outlook) see(at time.Time, r *round) {
	for _, i := range o.d.tree.byID {
		n := &o.d.tree.nodes[i]
		var missing fleet.Resources
		if r != nil {
			missing = r.wish[i].Sub(r.online[i]).Floor()
		}
		switch s := o.short[i]; {
		case s == nil && !missing.IsZero():
			o.short[i] = &Short{Tenant: n.tenant.ID, From: at, By: missing, Why: fmt.Sprintf("wants %s, guarantee and what kin can lend give %s",
				r.demands[i].online, n.own.Add(r.online[i]))}
		case s != nil && s.Until.IsZero() && missing.IsZero():
			s.Until = at
		case s != nil && s.Until.IsZero():
			s.By = s.By.Max(missing)
		}
		if promised := n.base.Add(n.lift); o.oversold[i] == nil && !promised.Fits(n.entitled) {
			o.oversold[i] = &Oversold{Tenant: n.tenant.ID, From: at, Promised: promised, Kept: n.entitled, Why: o.d.tooMuch(n)}
		}
	}
}

// tooMuch says what a tenant's promise does not fit into.
func (d *divider) tooMuch(n *node) string {
	p := &d.tree.nodes[n.parent]
	var all fleet.Resources
	for _, c := range p.children {
		all = all.Add(d.tree.nodes[c].base).Add(d.tree.nodes[c].lift)
	}
	if p.tenant == nil {
		return fmt.Sprintf("all guarantees come to %s, and the machines hold %s: lower some, or add machines", all, p.entitled)
	}
	return fmt.Sprintf("the guarantees under CapacityQuota %s come to %s of its %s: lower some, or raise its own", p.tenant.ID, all, p.entitled)
}

func (o *outlook) lists() (short []Short, oversold []Oversold) {
	for _, i := range o.d.tree.byID {
		if s := o.short[i]; s != nil {
			short = append(short, *s)
		}
		if s := o.oversold[i]; s != nil {
			oversold = append(oversold, *s)
		}
	}
	return short, oversold
}

// lookAhead divides each step to come, with the slices of then and without bursts, which nobody can count on.
func (d *divider) lookAhead(o *outlook) {
	sliced := false
	for _, i := range d.tree.byID {
		sliced = sliced || len(d.tree.nodes[i].tenant.Slices) > 0
	}
	d.entitle(d.in.At, d.in.At)
	borrow := make([]fleet.Resources, len(d.tree.nodes))
	for i := range borrow {
		borrow[i] = d.tree.nodes[i].borrow
	}
	flow, demands := newFlow(d.tree), make([]demand, len(d.wants))
	divide := func(demands []demand) *round { return d.online(flow, demands, borrow) }
	memo := d.in.Memo
	if memo == nil {
		memo = &Memo{}
	}
	memo.on(d.ground())
	for k := 1; k < len(d.in.Ahead); k++ {
		from := d.in.Ahead[k]
		to := from
		if k+1 < len(d.in.Ahead) {
			to = d.in.Ahead[k+1].Add(-time.Second)
		}
		if sliced {
			d.entitle(from, to)
		}
		switch wishes := d.demandsAhead(k, demands); {
		case !wishes:
			o.see(from, nil) // nobody wishes for more than its own: there is nothing to divide
		case sliced:
			o.see(from, divide(demands)) // the ground may be another one in each step
		default:
			o.see(from, memo.round(demands, divide))
		}
	}
}

// demandsAhead fills out with the demands of a step ahead, and reports whether anybody wishes for more than its own. What offline work grows
// to by then is nobody's need, and is left out.
func (d *divider) demandsAhead(step int, out []demand) (wishes bool) {
	for i, w := range d.wants {
		out[i] = demand{online: w.ahead(step)}
		out[i].need, _ = w.offline()
		wishes = wishes || !out[i].online.Fits(d.tree.nodes[i].own)
	}
	return wishes
}
