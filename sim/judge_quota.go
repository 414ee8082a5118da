package sim

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
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

// keptOf is what of a tenant's promise can be kept: children hold at most what is kept of their parent's. Guarantees come before what slices lift them
// by, and where one of the two does not fit, all of its kind are scaled down alike.
func (c *controller) keptOf(t *fleet.Tenant, at time.Time) fleet.MilliCPU {
	top := slices.IndexFunc(c.tenants, func(o fleet.Tenant) bool { return o.ID == t.Parent })
	if top < 0 {
		return c.guaranteeOf(t, at)
	}
	var own, lifts fleet.MilliCPU
	for i := range c.tenants {
		if o := &c.tenants[i]; o.Parent == t.Parent {
			own, lifts = own+o.Guarantee.CPU, lifts+c.guaranteeOf(o, at)-o.Guarantee.CPU
		}
	}
	part := func(g, all, there fleet.MilliCPU) fleet.MilliCPU {
		if all <= there {
			return g
		}
		return fleet.MilliCPU(float64(g) * float64(max(there, 0)) / float64(all))
	}
	has := c.keptOf(&c.tenants[top], at)
	return part(t.Guarantee.CPU, own, has) + part(c.guaranteeOf(t, at)-t.Guarantee.CPU, lifts, has-own)
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

// raises are what a plan came to raise.
type raises struct {
	services []fleet.ServiceID
	jobs     []fleet.JobID
}

// add notes an action that was done, if it is a raise.
func (r *raises) add(action planner.Action) {
	switch a := action.(type) {
	case *planner.Scale:
		if a.To > a.From {
			r.services = append(r.services, a.Service)
		}
	case *planner.JobScale:
		if a.To > a.From {
			r.jobs = append(r.jobs, a.Job)
		}
	}
}

// checkQuota: the raises of a plan that happened take no tenant beyond what the division lets its online services and
// its offline work request. An earlier plan may have been allowed more.
func (c *controller) checkQuota(p *planner.Plan, r raises) {
	beyond, unused := map[fleet.TenantID]fleet.MilliCPU{}, fleet.MilliCPU(0)
	for i := range c.tenants {
		t := &c.tenants[i]
		share := p.Division.Share(t.ID)
		if share == nil {
			continue
		}
		if asked := c.asks(t); c.raisedOf(t, r.services) && asked > share.Limit.CPU {
			c.breaks("tenant %s was raised to %v cores, its quota lets it request %v", t.ID, asked.Cores(), share.Limit.CPU.Cores())
		}
		if over := c.worked(t, p) - share.OfflineLimit.CPU; over < 0 {
			unused -= over
		} else if grewOf(t, r.jobs) {
			beyond[t.ID] = over
		}
	}
	// Room that one tenant's offline work cannot use goes to the others in the same plan.
	for i := range c.tenants {
		if t := &c.tenants[i]; beyond[t.ID] > unused {
			c.breaks("the jobs of tenant %s were raised to %v cores, %v more than its quota lets them request, and others leave %v of theirs", t.ID,
				c.worked(t, p).Cores(), beyond[t.ID].Cores(), unused.Cores())
		}
	}
}

// checkSold: what was raised takes no tenant, with all below it, beyond what it may ever have: raised services with the services alone, which stand
// before offline work, and raised jobs with everything.
func (c *controller) checkSold(r raises) {
	if len(r.services) == 0 && len(r.jobs) == 0 {
		return
	}
	for i := range c.tenants {
		top := &c.tenants[i]
		online, all, raised, grew := fleet.MilliCPU(0), fleet.MilliCPU(0), false, false
		for k := range c.tenants {
			if t := &c.tenants[k]; c.below(t, top.ID) {
				asks := c.asks(t)
				online, all = online+asks, all+asks+c.works(t)
				raised, grew = raised || c.raisedOf(t, r.services), grew || grewOf(t, r.jobs)
			}
		}
		g := c.guaranteeOf(top, c.Now())
		most := g + top.BorrowingLimit.Value.CPU + g*fleet.MilliCPU(top.Burst.Percent)/100
		switch {
		case !top.BorrowingLimit.OK:
		case raised && online > most:
			c.breaks("tenant %s and those below it were raised to %v cores, beyond the %v of its guarantee, loans and burst", top.ID, online.Cores(), most.Cores())
		case grew && all > most:
			c.breaks("tenant %s and those below it came to %v cores with their jobs, beyond the %v of its guarantee, loans and burst", top.ID, all.Cores(), most.Cores())
		}
	}
}

// works is what the jobs of a tenant request, or hold while members end.
func (c *controller) works(t *fleet.Tenant) fleet.MilliCPU {
	sum := fleet.MilliCPU(0)
	for k := range c.w.jobs {
		if j := &c.w.jobs[k]; slices.Contains(t.Namespaces, j.name.Namespace) {
			sum += fleet.MilliCPU(1000 * j.spec.Cores * max(int(j.desired), len(j.members)+j.ending))
		}
	}
	return sum
}

// worked is what the jobs of a tenant request by a plan, as far as it could see them: what another plan raised, behind a stale cache or in the seconds of a hand-over, no
// version guards, and the next plan sees.
func (c *controller) worked(t *fleet.Tenant, p *planner.Plan) fleet.MilliCPU {
	s := c.seen()
	if s == nil {
		return c.works(t)
	}
	pods := map[fleet.JobID]int{}
	for i := range s.Pods {
		if x := &s.Pods[i]; x.Class == fleet.PodOffline {
			pods[x.Job]++
		}
	}
	sum := fleet.MilliCPU(0)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if !slices.Contains(t.Namespaces, fleet.ParseName(string(j.ID)).Namespace) {
			continue
		}
		for k := range j.Members {
			mem := &j.Members[k]
			n := int(mem.Desired)
			for x := range p.Jobs {
				if a := &p.Jobs[x]; a.Job == j.ID && a.Role == mem.Role {
					n = max(n, int(a.To))
				}
			}
			sum += mem.Request.CPU * fleet.MilliCPU(max(n, pods[j.ID]))
		}
	}
	return sum
}

// grewOf reports whether a job of a tenant's own is among some.
func grewOf(t *fleet.Tenant, jobs []fleet.JobID) bool {
	return slices.ContainsFunc(jobs, func(id fleet.JobID) bool { return slices.Contains(t.Namespaces, fleet.ParseName(string(id)).Namespace) })
}

// owedWithin is how long a tenant may wait for what it was promised while others hold more than that: their notice, a new leader's window, and the
// plans and starts on both sides.
const owedWithin = drainTime + 15*time.Minute

// checkPromises: no promise is sold twice. While the machines hold what all tenants are promised, no pod of one that asks for no more than what is kept
// for it waits long for others whose pods hold more than that: to ask for more takes no other tenant's place. A demand that grows is reported again, so it is single
// pods that are timed.
func (c *controller) checkPromises() {
	w := c.w
	var roots fleet.MilliCPU
	var lender, borrower fleet.TenantID
	var waited time.Duration
	for i := range c.tenants {
		t := &c.tenants[i]
		if t.Parent == "" {
			roots += c.guaranteeOf(t, w.now)
		}
		switch kept := c.keptOf(t, w.now); {
		case c.runs(t) > kept:
			borrower = t.ID
		case c.waits(t) && c.asks(t) <= kept:
			lender, waited = t.ID, max(waited, c.oldest(t))
		}
	}
	if lender == "" || borrower == "" || !w.steady() || w.blind() || roots > c.there() {
		c.judge.owed = 0
		return
	}
	if c.judge.owed++; min(time.Duration(c.judge.owed)*tick, waited) > owedWithin {
		c.breaks("tenant %s has waited for %s for what it was promised, while tenant %s holds more than that", lender, owedWithin, borrower)
	}
}

// runs is what the pods of a tenant's services hold on machines.
func (c *controller) runs(t *fleet.Tenant) fleet.MilliCPU {
	sum := fleet.MilliCPU(0)
	for k := range c.w.services {
		if s := &c.w.services[k]; slices.Contains(t.Namespaces, s.Name.Namespace) {
			sum += fleet.MilliCPU(1000 * s.Cores * (s.ready + s.standing + s.starting + s.leaving))
		}
	}
	return sum
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
		if !c.w.machines[i].gone && c.w.facts[i].Ready {
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
