package sim

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/sim/scenario"
)

// guaranteeOf is what a tenant is promised at a time: open slices lift it.
func (c *controller) guaranteeOf(t *fleet.Tenant, at time.Time) fleet.MilliCPU {
	g := t.Guarantee.CPU
	for _, s := range t.Slices {
		if c.judge.isOpen(s.Window, at) {
			g = max(g, s.Guarantee.CPU)
		}
	}
	return g
}

// below reports whether a tenant is another one, or under it.
func (c *controller) below(t *fleet.Tenant, top fleet.TenantID) bool {
	for t.ID != top {
		i := slices.IndexFunc(c.tenants, func(o fleet.Tenant) bool { return o.ID == t.Parent })
		if i < 0 {
			return false
		}
		t = &c.tenants[i]
	}
	return true
}

// checkSold: what was raised takes no tenant, with all below it, beyond what it may ever have.
func (c *controller) checkSold(raises []fleet.ServiceID) {
	if len(raises) == 0 {
		return
	}
	for i := range c.tenants {
		top := &c.tenants[i]
		sum, raised := fleet.MilliCPU(0), false
		for k := range c.tenants {
			if t := &c.tenants[k]; c.below(t, top.ID) {
				sum += c.asks(t)
				raised = raised || c.raisedOf(t, raises)
			}
		}
		g := c.guaranteeOf(top, c.Now())
		if most := g + top.BorrowingLimit.Value.CPU + g*fleet.MilliCPU(top.Burst.Percent)/100; raised && top.BorrowingLimit.OK && sum > most {
			c.breaks("tenant %s and those below it were raised to %v cores, beyond the %v of its guarantee, loans and burst", top.ID, sum.Cores(), most.Cores())
		}
	}
}

// owedWithin is how long a tenant may wait for what it was promised while others hold more than that: their notice, a new leader's window, and the
// plans and starts on both sides.
const owedWithin = drainTime + 15*time.Minute

// checkPromises: no promise is sold twice. While the machines hold what all tenants are promised, no pod of one that asks for no more than its
// guarantee waits long for others that hold more than theirs. A demand that grows is told anew, so it is single pods that are timed.
func (c *controller) checkPromises() {
	w := c.w
	var roots, all fleet.MilliCPU // the larger is what is promised: slices may lift tenants beyond who is above them
	var lender, borrower fleet.TenantID
	var waited time.Duration
	for i := range c.tenants {
		t := &c.tenants[i]
		g, asks := c.guaranteeOf(t, w.now), c.asks(t)
		if t.Parent == "" {
			roots += g
		}
		if len(t.Namespaces) > 0 {
			all += g
		}
		switch {
		case asks > g:
			borrower = t.ID
		case c.waits(t):
			lender, waited = t.ID, max(waited, c.oldest(t))
		}
	}
	if lender == "" || borrower == "" || !w.steady() || w.blind() || max(roots, all) > c.there() {
		c.judge.owed = 0
		return
	}
	if c.judge.owed++; min(time.Duration(c.judge.owed)*tick, waited) > owedWithin {
		c.breaks("tenant %s has waited for %s for what it was promised, while tenant %s holds more than that", lender, owedWithin, borrower)
	}
}

// waits reports whether pods of a tenant's services find no machine.
func (c *controller) waits(t *fleet.Tenant) bool {
	return slices.ContainsFunc(c.w.services, func(s service) bool { return s.waiting > 0 && slices.Contains(t.Namespaces, s.Name.Namespace) })
}

// oldest is for how long the oldest of a tenant's pods without a machine has been there.
func (c *controller) oldest(t *fleet.Tenant) time.Duration {
	longest, w := int32(0), c.w
	for _, r := range w.waiting {
		if p := &w.pods[r.id]; p.uid == r.uid && slices.Contains(t.Namespaces, w.services[p.owner].Name.Namespace) {
			longest = max(longest, w.tick-p.created)
		}
	}
	return time.Duration(longest) * tick
}

// blind reports whether what is measured, or ends, holds scale-ins up.
func (w *World) blind() bool {
	kinds := []string{scenario.MetricsDown, scenario.MetricsGaps, scenario.MetricsNaN, scenario.StuckPods}
	return slices.ContainsFunc(kinds, func(kind string) bool { return w.on(kind) != nil })
}

// raisedOf reports whether a service of a tenant's own is among some, with more than the least that it needs to run at all.
func (c *controller) raisedOf(t *fleet.Tenant, raises []fleet.ServiceID) bool {
	return slices.ContainsFunc(raises, func(id fleet.ServiceID) bool {
		s := &c.w.services[c.index[id]]
		return slices.Contains(t.Namespaces, s.Name.Namespace) && s.desired > int32(s.Spec.Min)
	})
}

// there is what the machines have.
func (c *controller) there() fleet.MilliCPU {
	sum := fleet.MilliCPU(0)
	for i := range c.w.machines {
		if !c.w.machines[i].gone {
			sum += c.w.facts[i].Allocatable.CPU
		}
	}
	return sum
}

// beyond are the tenants that ask for more than the last division lets them: a window's floor above the least of a service is a wish there.
func (c *controller) beyond() map[string]bool {
	out := map[string]bool{}
	for i := range c.tenants {
		t := &c.tenants[i]
		if limit, divided := c.limits[t.ID]; divided && c.asks(t) > limit {
			for _, n := range t.Namespaces {
				out[n] = true
			}
		}
	}
	return out
}
