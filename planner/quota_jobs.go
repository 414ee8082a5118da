package planner

import (
	"math"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reason"
)

// allowances is how far the offline work of each tenant may still grow in this plan. A tenant that is not there is bound by nothing.
type allowances struct {
	tenancy quota.Tenancy
	of      map[fleet.TenantID]*allowance
	// on are the tenants whose offline pods are on a machine already.
	on map[fleet.NodeID]map[fleet.TenantID]bool
	// entered is the order in which they came to be there.
	entered []entry
	// leaves are the machines that a tenant had to leave.
	leaves map[entry]bool
}

type entry struct {
	node   fleet.NodeID
	tenant fleet.TenantID
}

type allowance struct {
	left, taken fleet.Resources
	parcels     []quota.ParcelShare
}

// allow reads what a division leaves to the offline work of each tenant.
func (m *maker) allow(shares []quota.Share) *allowances {
	s := m.in.Snapshot
	a := &allowances{tenancy: m.tenants.tenancy, of: map[fleet.TenantID]*allowance{}, on: map[fleet.NodeID]map[fleet.TenantID]bool{},
		leaves: map[entry]bool{}}
	bounded := false
	for i := range shares {
		x := &shares[i]
		left := x.OfflineLimit.Sub(m.tenants.offlineUsed[x.Tenant]).Floor()
		left.Pods = math.MaxInt64 // what quotas are not kept in
		a.of[x.Tenant] = &allowance{left: left, parcels: slices.Clone(x.Parcels)}
		bounded = bounded || len(x.Parcels) > 0
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; bounded && p.Class == fleet.PodOffline && p.Occupies() {
			a.enter(p.Node, a.tenancy.Of(p.Name.Namespace))
		}
	}
	return a
}

// unused divides once more where a tenant could not place what it was allowed while the quota binds another: what cannot be used is no
// reason to hold anybody up. It returns what is allowed then, less what was taken already; nil where nothing is to be gained.
func (m *maker) unused(a *allowances, list []*staff) *allowances {
	idle, bound := map[fleet.TenantID]bool{}, false
	for _, st := range list {
		g := a.grow(st.job)
		for i := range st.roles {
			mem := &st.job.Members[i]
			switch {
			case g.x == nil || st.roles[i].want >= int(mostOf(mem)):
			case st.affords(i):
				idle[g.id] = true
			default:
				bound = true
			}
		}
	}
	if len(idle) == 0 || !bound {
		return nil
	}
	in := m.tenants.input
	in.Ahead, in.Wants = nil, slices.Clone(in.Wants)
	for i := range in.Wants {
		if w := &in.Wants[i]; idle[w.Tenant] {
			w.OfflineWish = w.Offline.Add(a.of[w.Tenant].taken)
		}
	}
	again := m.allow(quota.Divide(in).Shares)
	again.on, again.entered, again.leaves = a.on, a.entered, a.leaves
	for id, x := range again.of {
		was := a.of[id]
		x.left, x.taken, x.parcels = x.left.Sub(was.taken).Floor(), was.taken, was.parcels
		x.left.Pods = math.MaxInt64
	}
	return again
}

func (a *allowances) enter(n fleet.NodeID, id fleet.TenantID) {
	if a.on[n] == nil {
		a.on[n] = map[fleet.TenantID]bool{}
	}
	if !a.on[n][id] {
		a.on[n][id] = true
		a.entered = append(a.entered, entry{n, id})
	}
}

// leave shuts a machine to a tenant for this plan.
func (a *allowances) leave(n fleet.NodeID, id fleet.TenantID) { a.leaves[entry{n, id}] = true }

// grow is what one member of a job may take while its tenant's allowance lasts.
type grow struct {
	a  *allowances
	id fleet.TenantID
	x  *allowance // nil where nothing binds
}

func (a *allowances) grow(j *fleet.Job) grow {
	id := a.tenancy.Of(fleet.ParseName(string(j.ID)).Namespace)
	return grow{a, id, a.of[id]}
}

// most is how many of k members the allowance is enough for.
func (g grow) most(unit fleet.Resources, k int) int {
	if g.x == nil || k <= 0 {
		return k
	}
	return min(k, int(min(g.x.left.Count(unit), math.MaxInt32)))
}

// may reports whether the tenant's work may be on a machine: it is already and need not leave, or every class that the machine's parcels belong
// to has some left for it.
func (g grow) may(r machine) bool {
	if g.a.leaves[entry{r.node.ID, g.id}] {
		return false
	}
	if g.x == nil || g.a.on[r.node.ID][g.id] {
		return true
	}
	for _, p := range g.x.parcels {
		if n := r.parcels(p.Class); n > 0 && p.Used+n > p.Limit {
			return false
		}
	}
	return true
}

// enter has the tenant's work be on a machine.
func (g grow) enter(r machine) {
	if g.x == nil || g.a.on[r.node.ID][g.id] {
		return
	}
	g.a.enter(r.node.ID, g.id)
	for i := range g.x.parcels {
		g.x.parcels[i].Used += r.parcels(g.x.parcels[i].Class)
	}
}

// charge takes n members off the allowance, wherever they will be.
func (g grow) charge(unit fleet.Resources, n int) {
	if g.x == nil || n <= 0 {
		return
	}
	took := unit.Times(int64(n))
	g.x.left, g.x.taken = g.x.left.Sub(took).Floor(), g.x.taken.Add(took)
}

// pledge charges the tenant for requests without a place yet: a scheduler seats it in the moment that room comes, and
// if this plan asks for less, the size might not fall at the first try. No other job may have grown into that quota by
// then.
func (st *staff) pledge() {
	for i := range st.roles {
		mem, c := &st.job.Members[i], &st.roles[i]
		asked := c.unbound
		switch {
		case mem.PodsRefused != "": // no room is kept for pods that cannot be made
			asked = 0
		case mem.Sized():
			asked = int(min(mem.Desired, mostOf(mem))) - c.leaving - c.stay
		}
		c.pledged = max(st.grow.most(mem.Request, asked), 0)
		st.grow.charge(mem.Request, asked)
	}
}

// affords reports whether the tenant's quota is enough for one more member, pledged or not.
func (st *staff) affords(i int) bool {
	return st.roles[i].pledged > 0 || st.grow.most(st.job.Members[i].Request, 1) == 1
}

// take charges one more member, who has a place on a machine.
func (st *staff) take(i int, on machine) {
	if c := &st.roles[i]; c.pledged > 0 {
		c.pledged--
	} else {
		st.grow.charge(st.job.Members[i].Request, 1)
	}
	st.grow.enter(on)
}

// save remembers what the job and its tenant may take, and returns what brings it back.
func (st *staff) save() (undo func()) {
	g := st.grow
	if g.x == nil {
		return func() {}
	}
	was, parcels, entered := *g.x, slices.Clone(g.x.parcels), len(g.a.entered)
	pledged := make([]int, len(st.roles))
	for i := range st.roles {
		pledged[i] = st.roles[i].pledged
	}
	return func() {
		*g.x = was
		g.x.parcels = parcels
		for _, e := range g.a.entered[entered:] {
			delete(g.a.on[e.node], e.tenant)
		}
		g.a.entered = g.a.entered[:entered]
		for i := range st.roles {
			st.roles[i].pledged = pledged[i]
		}
	}
}

// parcels is how many parcels of a class a machine is made of.
func (r *machine) parcels(c fleet.ParcelClass) int64 {
	var n int64
	if r.lentNodes > 0 && c.Holds(fleet.KindNode, r.node.GPUModel) {
		n += r.lentNodes
	}
	if r.lentSockets > 0 && c.Holds(fleet.KindSocket, r.node.GPUModel) {
		n += r.lentSockets
	}
	return n
}

// shed lowers the members of tenants whose notice is over, of the least important jobs first: those above the minima,
// and then, since less than its minimum no job can work with, whole gangs, if another tenant waits for what his quota
// lets him have. Else a minimum that was borrowed once would keep its lender from its own for ever; where no job waits,
// the rest of the excess is shown and stays.
func (m *maker) shed(list []*staff) {
	tenancy := m.tenants.tenancy
	for i := range m.plan.Division.Shares {
		x := &m.plan.Division.Shares[i]
		if x.DueOffline.IsZero() {
			continue
		}
		over := x.DueOffline.Sub(m.going(tenancy, x.Tenant, list)).Floor()
		why := reason.Of(reason.QuotaDue, x.Tenant, x.DueOffline, x.DueBy.UTC().Format("15:04:05 MST"))
		for _, all := range [...]bool{false, true} {
			if all && !m.lenderWaits(list, x.Tenant, func(grow) bool { return true }) {
				break
			}
			for _, st := range slices.Backward(list) {
				if tenancy.Of(fleet.ParseName(string(st.job.ID)).Namespace) == x.Tenant && !over.IsZero() {
					over = m.giveBackMembers(st, over, all, why)
				}
			}
		}
	}
}

// lenderWaits reports whether a job of another tenant waits, though his quota has room for it, and he is one who lends.
func (m *maker) lenderWaits(list []*staff, id fleet.TenantID, lends func(grow) bool) bool {
	return slices.ContainsFunc(list, func(st *staff) bool {
		if m.tenants.tenancy.Of(fleet.ParseName(string(st.job.ID)).Namespace) == id || !lends(st.grow) {
			return false
		}
		need := st.waitsFor(m.gangBefore(st.job).Phase)
		return !need.IsZero() && st.grow.most(need, 1) == 1
	})
}

// waitsFor is what a job needs to begin: the whole of a gang that waits, or, where no minimum is, one member of who has none.
func (st *staff) waitsFor(gang fleet.GangPhase) (need fleet.Resources) {
	if !st.held.None() {
		return need
	}
	if gang == fleet.GangWaiting {
		for i, n := range st.lack() {
			need = need.Add(st.job.Members[i].Request.OnePod().Times(int64(n)))
		}
		return need
	}
	for i := range st.roles {
		mem, c := &st.job.Members[i], &st.roles[i]
		switch {
		case gangs(mem) || c.stay > 0 || c.leaving > 0:
			return fleet.Resources{}
		case need.IsZero() && mem.Sized() && mostOf(mem) > 0:
			need = mem.Request.OnePod()
		}
	}
	return need
}

// giveBackMembers tells members to go until an amount is covered: those above the minima, or the whole of what the job holds. It returns what is
// left.
func (m *maker) giveBackMembers(st *staff, over fleet.Resources, all bool, why reason.Reason) fleet.Resources {
	for k := range st.roles {
		mem, c := &st.job.Members[k], &st.roles[k]
		n := min(times(over, mem.Request), max(c.stay-int(mem.Min), 0))
		if all {
			n = c.stay
		}
		if n == 0 || !mem.Sized() {
			continue
		}
		m.shedMembers(c, n)
		over = over.Sub(mem.Request.Times(int64(n))).Floor()
		st.shed = why
		if all && st.hasGang() {
			st.owes = why
		}
	}
	return over
}

// going is what offline pods of a tenant still hold that have a notice, or whose parcel goes home: these leave by
// themselves, and lowering the parallelism for them too would take others.
func (m *maker) going(tenancy quota.Tenancy, id fleet.TenantID, list []*staff) fleet.Resources {
	var sum fleet.Resources
	for i := range m.in.Snapshot.Pods {
		if p := &m.in.Snapshot.Pods[i]; p.Class == fleet.PodOffline && p.Deleting && p.Occupies() && tenancy.Of(p.Name.Namespace) == id {
			sum = sum.Add(p.Requests)
		}
	}
	for _, st := range list {
		if tenancy.Of(fleet.ParseName(string(st.job.ID)).Namespace) != id {
			continue
		}
		for i := range st.roles {
			sum = sum.Add(st.job.Members[i].Request.Times(int64(st.roles[i].leaving + st.roles[i].going)))
		}
	}
	return sum
}

// times is how many units cover an amount.
func times(r, unit fleet.Resources) int {
	n := int64(0)
	for _, p := range [...][2]int64{{int64(r.CPU), int64(unit.CPU)}, {int64(r.Memory), int64(unit.Memory)}, {r.GPU, unit.GPU}} {
		if p[0] > 0 && p[1] > 0 {
			n = max(n, (p[0]+p[1]-1)/p[1])
		}
	}
	return int(min(n, math.MaxInt32))
}

// shedMembers tells members to go for others. They were given notice, so no ledger holds them back.
func (m *maker) shedMembers(c *roleState, n int) {
	for _, p := range c.standing()[:n] {
		c.charges = m.charge(c.charges, p.Node, 1, true)
	}
	c.markEnding(n)
}
