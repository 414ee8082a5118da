package planner

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reason"
)

// tenants is what the fleet's facts say of its tenants, and how the services are bound by it.
type tenants struct {
	in      *Input
	room    *fleet.Occupancy
	tenancy quota.Tenancy
	input   quota.Input
	// owing are the indices of services that are brought down for others, after the notice.
	owing map[int]bool
	// linked is what services of chains ask for beyond the day, by index: nil where no service of their chain has
	// plans.
	linked map[int][]int32
	// services are the indices of each tenant's services; used is what its online pods request, other what those of no service do,
	// and offlineUsed what its offline pods do.
	services                 map[fleet.TenantID][]int
	week                     week
	used, other, offlineUsed map[fleet.TenantID]fleet.Resources
}

// tenants gathers what is to be divided; linked are the chains that raised the targets.
func (in *Input) tenants(room *fleet.Occupancy, targets []hpa.Target, linked []chain) *tenants {
	s := in.Snapshot
	t := &tenants{in: in, room: room, tenancy: quota.TenancyOf(s.Tenants), owing: map[int]bool{}, services: map[fleet.TenantID][]int{}, linked: map[int][]int32{},
		used: map[fleet.TenantID]fleet.Resources{}, other: map[fleet.TenantID]fleet.Resources{}, offlineUsed: map[fleet.TenantID]fleet.Resources{}}
	t.input = quota.Input{Tenants: s.Tenants, Supply: t.supply(), At: s.At, Open: newOpener().open, Level: t.lowPriorityLevel(), Memo: in.Shares}
	if len(s.Tenants) == 0 {
		return t
	}
	usage := quota.UsageOf(t.tenancy, s.Pods)
	classes := classesOf(s.Tenants)
	supply, parcels := quota.ParcelsOf(t.tenancy, s, classes)
	t.missingParcels(classes, parcels)
	t.input.Parcels = supply
	t.week = weekAhead(s.At, s.Tenants)
	t.input.Ahead = t.week.edges[:len(t.week.edges)-1]
	for i := range s.Services {
		if id := t.tenancy.Of(s.Services[i].Target.Namespace); id != "" {
			t.services[id] = append(t.services[id], i)
		}
	}
	for i := range linked {
		c := &linked[i]
		if t.tenancy.Of(s.Services[c.members[0]].Target.Namespace) == "" { // a group is of one namespace
			continue
		}
		for k, steps := range c.week(t, targets) {
			t.linked[c.members[k]] = steps
		}
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; quota.BesideServices(p) {
			id := t.tenancy.Of(p.Name.Namespace)
			t.other[id] = t.other[id].Add(p.Requests)
		}
	}
	offline := t.offline()
	for i := range s.Tenants {
		id := s.Tenants[i].ID
		t.used[id], t.offlineUsed[id] = usage[id].Online, usage[id].Offline
		w := quota.Want{Tenant: id, Now: t.other[id], Used: usage[id].Online, Offline: usage[id].Offline,
			OfflineNeed: offline[id].need, OfflineWish: offline[id].wish, Parcels: parcels[id]}
		t.demand(&w, targets)
		t.input.Wants = append(t.input.Wants, w)
	}
	t.fragments()
	return t
}

// demand adds what a tenant's services ask for, now and ahead. Beyond the day, each hour repeats that of the day before it, but for services
// with windows or festival lifts, which are looked up, and for those that are on a chain with such.
func (t *tenants) demand(w *quota.Want, targets []hpa.Target) {
	s := t.in.Snapshot
	if len(t.services[w.Tenant]) == 0 {
		return
	}
	day := t.week.day
	w.Ahead = make([]fleet.Resources, len(t.week.of))
	later := make([]fleet.Resources, len(t.week.parts)-day)
	for k := range w.Ahead {
		w.Ahead[k] = t.other[w.Tenant]
	}
	for _, i := range t.services[w.Tenant] {
		svc := &s.Services[i]
		w.Now = w.Now.Add(svc.Replica().Times(int64(targets[i].Replicas)))
		most := mostInEach(&targets[i], t.week.parts)
		addTimes(w.Ahead[:day], svc.Replica(), most[:day])
		steps, ok := t.linked[i]
		if !ok {
			steps = t.planned(i)
		}
		if steps != nil {
			addTimes(w.Ahead[day:], svc.Replica(), steps)
			continue
		}
		addTimes(later, svc.Replica(), most[day:])
	}
	for k := day; k < len(w.Ahead); k++ {
		w.Ahead[k] = w.Ahead[k].Add(later[t.week.of[k]-day])
	}
}

// planned is what a service with windows or festival lifts asks for beyond the day by itself; nil for one without, of which each day is as the first.
func (t *tenants) planned(i int) []int32 {
	s, edges := t.in.Snapshot, t.week.edges
	svc := &s.Services[i]
	if !hpa.Planned(svc, s.Festivals, s.At, edges[len(edges)-1]) {
		return nil
	}
	p, tide := t.in.Portraits[svc.ID], t.in.Tides[svc.ID]
	return hpa.NewCurve(svc, &p, &tide, s.Festivals, s.At, edges[len(edges)-1]).Most(edges[t.week.day:])
}

// addTimes adds as many units to each sum as there are replicas. They seldom differ from step to step.
func addTimes(sums []fleet.Resources, unit fleet.Resources, replicas []int32) {
	last, amount := int32(0), fleet.Resources{}
	for k, n := range replicas {
		if n != last {
			last, amount = n, unit.Times(int64(n))
		}
		sums[k] = sums[k].Add(amount)
	}
}

// offlineWant is what a tenant's elastic jobs cannot do without, and what they could use.
type offlineWant struct{ need, wish fleet.Resources }

func (t *tenants) offline() map[fleet.TenantID]offlineWant {
	out := map[fleet.TenantID]offlineWant{}
	for i := range t.in.Snapshot.Jobs {
		j := &t.in.Snapshot.Jobs[i]
		id := t.tenancy.Of(fleet.ParseName(string(j.ID)).Namespace)
		if id == "" || j.Blocked.Any() {
			continue
		}
		w := out[id]
		for k := range j.Members {
			mem := &j.Members[k]
			most := mostOf(mem)
			w.need = w.need.Add(mem.Request.Times(int64(min(mem.Min, most))))
			w.wish = w.wish.Add(mem.Request.Times(int64(most)))
		}
		out[id] = w
	}
	return out
}

// supply is what all machines of the pools hold, less what pods of no tenant use there. A machine that is not ready
// counts, since one that restarts must not take anybody's promise away; what is not there now shows as a shortage of
// its pool. Until an online pool has machines, the machines of services are unknown, and the supply is not known
// either.
func (t *tenants) supply() fleet.Known[fleet.Resources] {
	s := t.in.Snapshot
	var sum fleet.Resources
	online := false
	for i := range s.Pools {
		own := t.room.Pool(s.Pools[i].ID)
		online = online || s.Pools[i].Class == fleet.Online && own.Machines > 0
		sum = sum.Add(own.Holds)
	}
	if !online {
		return fleet.Known[fleet.Resources]{}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Class == fleet.PodFiller || !p.Occupies() || t.tenancy.Of(p.Name.Namespace) != "" {
			continue
		}
		if n := t.room.On(p.Node).Node; n != nil && s.Pool(n.Pool) != nil {
			sum = sum.Sub(p.Requests)
		}
	}
	return fleet.KnownAt(sum.Floor(), s.At)
}

// lowPriorityLevel is the level of the low-priority capacity: the CPU of ready machines of offline pools and of what is lent to them, as a
// share of all machines of pools. Its watermarks are those of the first offline pool.
func (t *tenants) lowPriorityLevel() quota.Level {
	s := t.in.Snapshot
	pool := s.Pool(borrowerOf(s))
	if pool == nil {
		return quota.Level{}
	}
	l := quota.Level{Pool: pool.ID, Low: pool.LowWatermark, High: pool.HighWatermark}
	var has, all fleet.MilliCPU
	for i := range s.Pools {
		own := t.room.Pool(s.Pools[i].ID)
		all += own.Holds.CPU
		if s.Pools[i].Class == fleet.Offline {
			has += own.Ready.CPU
		}
	}
	for i := range s.Loans {
		if loan := &s.Loans[i]; loan.Phase == fleet.Lent {
			if from, to := s.Pool(loan.From), s.Pool(loan.To); from != nil && from.Class == fleet.Online && to != nil && to.Class == fleet.Offline {
				has += loan.Capacity.CPU
			}
		}
		if loan := &s.Loans[i]; loan.Phase.Away() {
			if from := s.Pool(loan.From); from != nil && from.Class == fleet.Offline {
				has -= loan.Capacity.CPU
			}
		}
	}
	if all > 0 {
		l.Share = fleet.KnownAt(float64(has)/float64(all), s.At)
	}
	return l
}

// classesOf are the classes of parcels that any tenant names, in order.
func classesOf(ts []fleet.Tenant) []fleet.ParcelClass {
	var out []fleet.ParcelClass
	for i := range ts {
		for _, q := range ts[i].Parcels {
			if ts[i].Accepted && !slices.Contains(out, q.Class) {
				out = append(out, q.Class)
			}
		}
	}
	slices.SortFunc(out, func(a, b fleet.ParcelClass) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// bound sizes a tenant's services again where its share binds them: growth is cut while they wish for more than the limit, each to the
// same part of its growth; and what other online services wait for is brought down once its notice is over, from each in proportion to what
// it runs above its minimum.
func (t *tenants) bound(z *sizing, share *quota.Share) {
	if !share.Due.IsZero() {
		t.drain(z, share)
		return
	}
	targets := z.targets
	var want, now fleet.Resources
	var growing []int
	for _, i := range t.services[share.Tenant] {
		x, unit := &targets[i], t.in.Snapshot.Services[i].Request
		// A service that shrinks holds what it runs until it is seen gone: its cut may be held back or fail, and the growth would stand.
		want = want.Add(unit.Times(int64(max(x.Current, x.Replicas))))
		now = now.Add(unit.Times(int64(x.Current)))
		if x.Replicas > x.Current {
			growing = append(growing, i)
		}
	}
	limit := share.Limit.Sub(t.other[share.Tenant]).Floor()
	if quota.Fits(want, limit) || len(growing) == 0 {
		return
	}
	asks := make([]ask, len(growing))
	for k, i := range growing {
		asks[k] = ask{unit: t.in.Snapshot.Services[i].Request, replicas: targets[i].Replicas - targets[i].Current}
	}
	grants := apportion(limit.Sub(now).Floor(), asks)
	for k, i := range growing {
		most := targets[i].Current + grants[k]
		z.bind(i, func(b *hpa.Bounds) {
			b.Quota, b.QuotaWhy = max(most, 1), reason.Of(reason.QuotaLeaves, share.Tenant, share.Limit, share.Why)
		})
	}
}

// ask is how many replicas a service would like to have more, and what one of them takes.
type ask struct {
	unit     fleet.Resources
	replicas int32
}

// apportion shares out room: the same part of what it asks for to each, and what rounding leaves replica by replica,
// first to the one that rounding took the most room from. Without it the last room would stay empty as long as several
// wait for it.
func apportion(room fleet.Resources, asks []ask) []int32 {
	var sum fleet.Resources
	for _, a := range asks {
		sum = sum.Add(a.unit.Times(int64(a.replicas)))
	}
	part := leastPart(room, sum)
	out, order, cut := make([]int32, len(asks)), make([]int, len(asks)), make([]float64, len(asks))
	left := room
	for k, a := range asks {
		whole, rest := math.Modf(part * float64(a.replicas))
		out[k], order[k], cut[k] = int32(whole), k, rest*mostPart(a.unit, room)
		left = left.Sub(a.unit.Times(int64(out[k])))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cut[b], cut[a]) })
	for given := true; given; {
		given = false
		for _, k := range order {
			if a := asks[k]; out[k] < a.replicas && quota.Fits(a.unit, left) {
				out[k], left, given = out[k]+1, left.Sub(a.unit), true
			}
		}
	}
	return out
}

// drain brings a tenant's services down by what is due, less what is on its way out already: pods hold their room until they are gone. Replicas
// that found no machine hold none, and go first: they would take what is given back.
func (t *tenants) drain(z *sizing, share *quota.Share) {
	targets := z.targets
	var above fleet.Resources
	stays := t.other[share.Tenant]
	list := t.services[share.Tenant]
	running, give := make([]int32, len(list)), make([]int32, len(list))
	for k, i := range list {
		svc := &t.in.Snapshot.Services[i]
		running[k] = min(targets[i].Current, int32(svc.Landed()))
		give[k] = max(running[k]-max(svc.Min, 1), 0)
		above = above.Add(svc.Replica().Times(int64(give[k])))
		stays = stays.Add(svc.Replica().Times(int64(running[k])))
	}
	going := t.used[share.Tenant].Sub(stays).Floor()
	part := mostPart(share.Due.Sub(going).Floor(), above)
	for k, i := range list {
		svc := &t.in.Snapshot.Services[i]
		most := running[k] - int32(math.Ceil(part*float64(give[k])-1e-9))
		if targets[i].Replicas <= most || svc.Replica().IsZero() {
			continue
		}
		t.owing[i] = true
		z.bind(i, func(b *hpa.Bounds) {
			b.Quota, b.Drain = max(most, 1), max(most, 1)
			b.QuotaWhy = reason.Of(reason.QuotaDue, share.Tenant, share.Due, share.DueBy.UTC().Format(time.RFC3339))
		})
	}
}

// leastPart is the part of what is asked that there is room for in every resource, 0 to 1.
func leastPart(room, ask fleet.Resources) float64 {
	part := 1.0
	for _, p := range [...][2]int64{{int64(room.CPU), int64(ask.CPU)}, {int64(room.Memory), int64(ask.Memory)}, {room.GPU, ask.GPU}} {
		if p[1] > 0 {
			part = min(part, float64(p[0])/float64(p[1]))
		}
	}
	return part
}

// mostPart is the part of what there is that what is asked makes up in any resource, 0 to 1.
func mostPart(ask, have fleet.Resources) float64 {
	part := 0.0
	for _, p := range [...][2]int64{{int64(ask.CPU), int64(have.CPU)}, {int64(ask.Memory), int64(have.Memory)}, {ask.GPU, have.GPU}} {
		if p[0] > 0 && p[1] > 0 {
			part = max(part, float64(p[0])/float64(p[1]))
		}
	}
	return min(part, 1)
}
