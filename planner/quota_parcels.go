package planner

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reason"
)

// shedParcels has tenants leave the parcels whose notice is over: first those that members above the minima alone are
// on, then, where a lender's job waits, those that whole gangs are on. A tenant does not come back to a parcel that it
// left.
func (x *staffing) shedParcels() {
	for i := range x.m.plan.Division.Shares {
		share := &x.m.plan.Division.Shares[i]
		due := map[fleet.ParcelClass]int64{}
		for _, p := range share.Parcels {
			if p.Due > 0 {
				due[p.Class] = p.Due
			}
		}
		if len(due) == 0 {
			continue
		}
		v := &departure{x: x, id: share.Tenant, share: share, due: due, parcels: quota.NewParcels(x.m.in.Snapshot)}
		v.going()
		for _, all := range [...]bool{false, true} {
			if all && !x.m.lenderWaits(x.list, share.Tenant, v.lender) {
				break
			}
			for v.leave(all) {
			}
		}
	}
}

// departure is the work of one tenant that leaves parcels.
type departure struct {
	x       *staffing
	id      fleet.TenantID
	share   *quota.Share
	parcels *quota.Parcels
	// due is what is still to be left, by class.
	due map[fleet.ParcelClass]int64
}

// lender reports whether parcels of a class that is due are another tenant's own.
func (v *departure) lender(g grow) bool {
	return g.x != nil && slices.ContainsFunc(g.x.parcels, func(p quota.ParcelShare) bool { return v.due[p.Class] > 0 && p.Used < min(p.Entitled, p.Limit) })
}

// presence is what offline work has on one machine.
type presence struct {
	node *fleet.Node
	// stays are pods of the tenant without a notice, stuck those of them that no size governs; others says that
	// another's stay there.
	stays, stuck int
	others       bool
}

// presences are the machines that the tenant is on, in the order of the machines.
func (v *departure) presences() []*presence {
	m := v.x.m
	stays := map[*fleet.Pod]bool{} // and whether its size is ours
	for _, st := range v.x.list {
		sized, works := st.works()
		for i := range st.roles {
			mem := &st.job.Members[i]
			if mem.Fixed && sized && !works {
				continue // a launcher ends when its gang is gone
			}
			for _, p := range st.roles[i].standing() {
				stays[p] = mem.Sized() || mem.Fixed && sized
			}
		}
	}
	var out []*presence
	for i := range m.in.Snapshot.Nodes {
		h := &presence{node: &m.in.Snapshot.Nodes[i]}
		mine := false
		for _, p := range m.on(h.node.ID).Pods {
			if p.Class != fleet.PodOffline || !p.Occupies() {
				continue
			}
			sized, known := stays[p]
			stay := known || !p.Deleting && v.x.unmanaged(p)
			switch own := m.tenants.tenancy.Of(p.Name.Namespace) == v.id; {
			case !own:
				h.others = h.others || stay
			default:
				mine = true
				if stay {
					h.stays++
				}
				if stay && !sized {
					h.stuck++
				}
			}
		}
		if mine {
			out = append(out, h)
		}
	}
	return out
}

// works reports whether the job has members whose size is ours, and whether any of them stays.
func (st *staff) works() (sized, works bool) {
	for i := range st.roles {
		if st.job.Members[i].Sized() {
			sized, works = true, works || st.roles[i].stay > 0
		}
	}
	return sized, works
}

// unmanaged reports whether a pod belongs to no job whose members are counted here, so that no size can end it.
func (x *staffing) unmanaged(p *fleet.Pod) bool {
	return !slices.ContainsFunc(x.list, func(st *staff) bool {
		return st.job.ID == p.Job && slices.ContainsFunc(st.job.Members, func(mem fleet.Member) bool { return mem.Role == p.Role })
	})
}

// left notes that the tenant leaves a machine, and what that gives back.
func (v *departure) left(n *fleet.Node) {
	for _, st := range v.mine() {
		for i := range st.roles {
			c := &st.roles[i]
			c.leaves = c.leaves || slices.ContainsFunc(c.pods[:c.going], func(p *fleet.Pod) bool { return p.Node == n.ID })
		}
	}
	for class := range v.due {
		firm, lent, _ := v.parcels.On(n, class)
		v.due[class] -= firm + lent
	}
	v.x.allowed.leave(n.ID, v.id)
}

// going counts what the tenant leaves already: machines whose pods all have a notice. One that goes home is no
// lender's.
func (v *departure) going() {
	m := v.x.m
	for _, h := range v.presences() {
		if h.stays == 0 && !m.on(h.node.ID).Moves.Leaving() && !m.recalled[h.node.ID] {
			v.left(h.node)
		}
	}
}

// cost is what it takes to leave a machine; the least is left first.
type cost struct {
	hold *presence
	// gangs is how many gangs break, last the place of the most important job that loses anything, members how many end.
	gangs, last, members int
}

// leave leaves the machine that costs least, and reports whether there was one.
func (v *departure) leave(all bool) bool {
	var best *cost
	for _, h := range v.presences() {
		if !v.owed(h.node) || h.stays == 0 || h.stuck > 0 {
			continue
		}
		if c, ok := v.price(h, all); ok && (best == nil || c.less(best)) {
			best = c
		}
	}
	if best == nil {
		return false
	}
	why := v.why()
	for _, st := range v.mine() {
		whole := all && !v.spares(st, best.hold.node.ID)
		for i := range st.roles {
			c, n := &st.roles[i], st.depth(i, best.hold.node.ID)
			if whole {
				n = c.stay
			}
			if n > 0 && st.job.Members[i].Sized() {
				st.first(i, best.hold.node.ID)
				v.x.m.shedMembers(c, n)
				st.shed = why
			}
		}
		if whole && st.hasGang() {
			st.owes = why
		}
	}
	v.left(best.hold.node)
	return true
}

// why says what was to be left by when.
func (v *departure) why() reason.Reason {
	why := reason.Of(reason.ParcelsDue, v.id, v.share.DueBy.UTC().Format("15:04:05 MST"))
	for _, p := range v.share.Parcels {
		if p.Due > 0 {
			why.Parts = append(why.Parts, reason.Of(reason.ParcelsOf, p.Due, p.Used, p.Class))
		}
	}
	return why
}

// owed reports whether a machine is of a class of which something is still to be left.
func (v *departure) owed(n *fleet.Node) bool {
	for class, left := range v.due {
		if firm, lent, _ := v.parcels.On(n, class); left > 0 && firm+lent > 0 {
			return true
		}
	}
	return false
}

// mine are the tenant's jobs.
func (v *departure) mine() []*staff {
	return slices.DeleteFunc(slices.Clone(v.x.list), func(st *staff) bool {
		return v.x.m.tenants.tenancy.Of(fleet.ParseName(string(st.job.ID)).Namespace) != v.id
	})
}

// price computes what leaving a machine costs; false where it would break a gang and must not.
func (v *departure) price(h *presence, all bool) (*cost, bool) {
	out := &cost{hold: h, last: len(v.x.list)}
	for k, st := range v.mine() {
		lost := 0
		for i := range st.roles {
			lost += st.depth(i, h.node.ID)
		}
		if lost > 0 && !v.spares(st, h.node.ID) {
			if !all {
				return nil, false
			}
			out.gangs++
			lost = 0
			for i := range st.roles {
				lost += st.roles[i].stay
			}
		}
		if lost > 0 {
			out.last = min(out.last, k)
		}
		out.members += lost
	}
	return out, true
}

func (c *cost) less(o *cost) bool {
	return cmp.Or(cmp.Compare(c.gangs, o.gangs), fleet.TrueFirst(o.hold.others, c.hold.others), cmp.Compare(o.last, c.last), cmp.Compare(c.members, o.members),
		cmp.Compare(c.hold.node.ID, o.hold.node.ID)) < 0
}

// spares reports whether a job leaves a machine with members above its minima alone.
func (v *departure) spares(st *staff, id fleet.NodeID) bool {
	for i := range st.roles {
		mem, c := &st.job.Members[i], &st.roles[i]
		if n := st.depth(i, id); n > 0 && (!mem.Sized() || n > c.stay-int(mem.Min)) {
			return false
		}
	}
	return true
}

// depth is how many members of a role must leave until none of those that stay is on a machine: all that its operator
// takes before them, except where the plan names them.
func (st *staff) depth(i int, id fleet.NodeID) int {
	pods := st.roles[i].standing()
	if st.job.Members[i].Leaves == fleet.LeavesNamed {
		return len(slices.DeleteFunc(slices.Clone(pods), func(p *fleet.Pod) bool { return p.Node != id }))
	}
	for k, p := range slices.Backward(pods) {
		if p.Node == id {
			return k + 1
		}
	}
	return 0
}

// first puts the members on a machine in front of the others, where who goes is named.
func (st *staff) first(i int, id fleet.NodeID) {
	if st.job.Members[i].Leaves == fleet.LeavesNamed {
		slices.SortStableFunc(st.roles[i].standing(), func(a, b *fleet.Pod) int { return fleet.TrueFirst(a.Node == id, b.Node == id) })
	}
}
