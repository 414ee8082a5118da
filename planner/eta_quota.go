package planner

import (
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reason"
)

// quotaBounds are the bounds that waiting jobs meet: with all slices open, with none, and step by step, of which each is made when first asked for.
type quotaBounds struct {
	t            *tenants
	ever, always *quota.Bounds
	steps        [outlookSteps]*quota.Bounds
	classes      []fleet.ParcelClass
	parcels      []*quota.Bounds // by class
}

func newQuotaBounds(t *tenants) *quotaBounds {
	all := t.input.Tenants
	q := &quotaBounds{t: t, ever: quota.NewBounds(all), classes: classesOf(all)}
	q.always = q.ever.At(t.input.At, nil)
	for _, c := range q.classes {
		q.parcels = append(q.parcels, quota.NewParcelBounds(all, c))
	}
	return q
}

// shut returns the steps of an outlook in which a tenant must not use so much, though it may at some other time; nil
// where it may at any.
func (q *quotaBounds) shut(id fleet.TenantID, uses fleet.Resources, from, now time.Time) func(step int) bool {
	if q.always.Refuse(id, uses) == nil {
		return nil
	}
	return func(k int) bool {
		if q.steps[k] == nil {
			q.steps[k] = q.ever.At(later(from.Add(stepStart(k)), now), q.t.input.Open)
		}
		return q.steps[k].Refuse(id, uses) != nil
	}
}

// never names the limit that keeps a job from ever beginning as quotas are: even if no other tenant used anything, and
// all slices were open.
func (e *estimate) never(st *staff, asks fleet.Resources) reason.Reason {
	id := st.grow.id
	if x := e.quotas.ever.Refuse(id, asks); x != nil {
		return reason.Of(reason.QuotaTooSmall, asks, limitOf(id, x))
	}
	for i, c := range e.quotas.classes {
		n := e.parcels(st, c)
		if x := e.quotas.parcels[i].RefuseParcels(id, n); x != nil {
			var kept reason.Reason
			if x.KeptParcels > 0 {
				kept = reason.Of(reason.OthersKeep, x.KeptParcels)
			}
			return reason.Of(reason.ParcelsTooFew, n, c, mayUse(id, x, x.MostParcels, kept))
		}
	}
	return reason.Reason{}
}

// full names the jobs of a tenant that leave too little of what it may ever use for one that comes after them.
func (e *estimate) full(id fleet.TenantID, asks, kin fleet.Resources, names []string) reason.Reason {
	x := e.quotas.ever.Refuse(id, asks.Add(kin))
	if x == nil {
		return reason.Reason{}
	}
	others := reason.Of(reason.JobsNamed, strings.Join(names, ", "))
	if more := len(names) - 3; more > 0 {
		others = reason.Of(reason.JobsAndMore, strings.Join(names[:3], ", "), more)
	}
	return reason.Of(reason.QuotaTaken, asks, kin, others, limitOf(id, x))
}

// limitOf is the limit that is in the way of a tenant: the most that it lets through, and what of that others keep, if anything.
func limitOf(id fleet.TenantID, x *quota.InTheWay) reason.Reason {
	var kept reason.Reason
	if !x.Kept.IsZero() {
		kept = reason.Of(reason.OthersKeep, x.Kept)
	}
	return mayUse(id, x, x.Most, kept)
}

func mayUse(id fleet.TenantID, x *quota.InTheWay, most any, kept reason.Reason) reason.Reason {
	if x.Tenant != id {
		return reason.Of(reason.ParentMayUse, x.Tenant, id, most, kept)
	}
	return reason.Of(reason.MayUse, x.Tenant, most, kept)
}

// kin is what jobs of the same tenant that precede the one at a place in the order ask for, and which they are.
func (e *estimate) kin(k int) (sum fleet.Resources, names []string) {
	id := e.order[k].grow.id
	for i, v := range e.order {
		if id == "" || v.grow.id != id || !e.precedes(i, k) {
			continue
		}
		var one fleet.Resources
		for r := range v.roles {
			one = one.Add(v.job.Members[r].Request.Times(v.keeps(e.order[k], r)))
		}
		if !one.IsZero() {
			sum, names = sum.Add(one), append(names, string(v.job.ID))
		}
	}
	return sum, names
}

// parcels is how many parcels of a class a job needs at least to begin: those that the members fill which fit on
// nothing else. A machine that may be lent by the socket as well as whole binds no job here.
func (e *estimate) parcels(st *staff, class fleet.ParcelClass) int64 {
	var need, largest fleet.Resources
	for i := range st.roles {
		mem, n := &st.job.Members[i], st.starts(i)
		if machine, all := e.within(mem, class); n > 0 && all {
			need, largest = need.Add(mem.Request.Times(int64(n))), largest.Max(machine)
		}
	}
	return int64(times(need, largest))
}

// within reports whether all machines that a member may land on are parcels of a class, and the most that one of them holds.
func (e *estimate) within(mem *fleet.Member, class fleet.ParcelClass) (largest fleet.Resources, all bool) {
	s := e.x.m.in.Snapshot
	unit := mem.Request.OnePod()
	for i := range s.Pools {
		p := &s.Pools[i]
		offline := p.Class == fleet.Offline
		if !offline && (mem.Stable || !p.Mode.Acts()) {
			continue
		}
		for _, k := range e.x.m.room.Pool(p.ID).Kinds {
			switch {
			case k.Lasting == 0 || k.Holds.Count(unit) == 0:
				continue
			case !class.Holds(fleet.KindNode, k.GPUModel) || !offline && p.Unit == fleet.UnitSocket:
				return fleet.Resources{}, false
			}
			largest = largest.Max(k.Holds)
		}
	}
	return largest, true
}
