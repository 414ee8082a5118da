package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reason"
)

// travel is the time from the moment at which the tide leaves room to the members' running. Parcels are begun to be emptied EmptyFor before that, and are
// empty as soon as the pods on them have left: at once, or as late as the load goes. A step of the outlook is a quarter of an hour, which is the
// least that the earliest is uncertain by.
func (o Options) travel(band int) time.Duration {
	start := o.Interval + o.Clean + o.StartUp
	switch band {
	case bandEarly:
		return -o.EmptyFor - quarter
	case bandLate:
		return o.EmptyFor/2 + start
	}
	return -o.EmptyFor*3/4 + start
}

// least is the time that passes in any case.
func (o Options) least(band int) time.Duration {
	if band == bandEarly {
		return 0
	}
	return o.Interval + o.Clean + o.StartUp
}

// etas says of each job that waits when it will begin. Without an outlook nothing is said of those that the tide decides on.
func (m *maker) etas(x *staffing) {
	if !slices.ContainsFunc(x.list, (*staff).waiting) {
		return
	}
	e := newEstimate(x)
	e.order = slices.Clone(x.list)
	slices.SortStableFunc(e.order, func(a, b *staff) int {
		return cmp.Or(cmp.Compare(b.job.Priority, a.job.Priority), fleet.TrueFirst(a.begun(), b.begun()),
			a.job.Created.Compare(b.job.Created), cmp.Compare(a.job.ID, b.job.ID))
	})
	for k, st := range e.order {
		if !st.waiting() || !st.held.None() {
			continue // nothing is foreseen of a job that is paused
		}
		eta := e.of(k)
		eta.Job = st.job.ID
		m.plan.ETAs = append(m.plan.ETAs, m.steady(eta))
	}
	slices.SortFunc(m.plan.ETAs, func(a, b ETA) int { return cmp.Compare(a.Job, b.Job) })
}

// waiting reports whether nothing of a job that has work is asked for.
func (st *staff) waiting() bool {
	work := false
	for i := range st.roles {
		mem, c := &st.job.Members[i], &st.roles[i]
		if c.want > 0 || c.running > 0 {
			return false
		}
		work = work || mostOf(mem) > 0 && mem.Sized()
	}
	return work
}

// estimate is what the ETAs of one plan depend on.
type estimate struct {
	x *staffing
	// home is what the machines of offline pools hold, lent what online lends now; loose is what offline pods of no job we know ask for.
	home, lent, loose fleet.Resources
	// out are the loans by which online has machines of offline pools.
	out []*fleet.Loan
	// gpus are those that online pods do not ask for: whether a machine that is lent brings any is not foreseen.
	gpus int64
	// stable and any are the kinds of machines on which stable members, and all others, may land.
	stable, any []machineKind
	order       []*staff
	// quotas bound what begins; behind are the jobs that wait for a quota: they take no room from those after them.
	quotas *quotaBounds
	behind map[*staff]bool
}

// machineKind is a number of machines that hold the same.
type machineKind struct {
	holds fleet.Resources
	n     int64
}

func newEstimate(x *staffing) *estimate {
	m, s := x.m, x.m.in.Snapshot
	e := &estimate{x: x, quotas: newQuotaBounds(m.tenants), behind: map[*staff]bool{}}
	stable, any := map[fleet.Resources]int64{}, map[fleet.Resources]int64{}
	for i := range s.Pools {
		p := &s.Pools[i]
		own := m.room.Pool(p.ID)
		e.gpus += own.Lasting.GPU
		if p.Class == fleet.Offline {
			e.home = e.home.Add(own.Lasting)
		}
		for _, k := range own.Kinds {
			if p.Class == fleet.Offline && k.Lasting > 0 {
				stable[k.Holds] += k.Lasting
			}
			if (p.Class == fleet.Offline || p.Mode.Acts()) && k.Lasting > 0 {
				any[k.Holds] += k.Lasting
			}
		}
	}
	e.stable, e.any = kindsOf(stable), kindsOf(any)
	for i := range s.Loans {
		switch l := &s.Loans[i]; {
		case m.fromOffline(l):
			if !l.Phase.Ended() && s.Node(l.Node) != nil && s.Node(l.Node).Lasts() {
				e.out = append(e.out, l)
			}
		case l.Phase == fleet.Lent && !m.recalled[l.Node]:
			e.lent = e.lent.Add(l.Capacity)
		}
	}
	for i := range s.Pods {
		switch p := &s.Pods[i]; {
		case !p.Occupies():
		case p.Class != fleet.PodOffline:
			e.gpus -= p.Requests.GPU
		case !p.Deleting && s.Job(p.Job) == nil:
			e.loose = e.loose.Add(p.Requests)
		}
	}
	return e
}

// kindsOf lists kinds of machines, the largest first.
func kindsOf(count map[fleet.Resources]int64) []machineKind {
	var out []machineKind
	for holds, n := range count {
		out = append(out, machineKind{holds, n})
	}
	slices.SortFunc(out, func(a, b machineKind) int {
		x, y := &a.holds, &b.holds
		return cmp.Or(cmp.Compare(y.CPU, x.CPU), cmp.Compare(y.Memory, x.Memory), cmp.Compare(y.GPU, x.GPU), cmp.Compare(y.Pods, x.Pods))
	})
	return out
}

// starts is how many members of a role a job needs to begin: its minimum, or one where it has none at all.
func (st *staff) starts(i int) int {
	mem := &st.job.Members[i]
	if st.hasGang() {
		if gangs(mem) {
			return int(leastOf(mem))
		}
		return st.roles[i].unbound
	}
	return min(max(int(leastOf(mem)), 1), int(mostOf(mem)))
}

// of estimates the job at a place in the order.
func (e *estimate) of(k int) ETA {
	st := e.order[k]
	var eta ETA
	var need, stable, asks fleet.Resources
	for i := range st.roles {
		mem, n := &st.job.Members[i], st.starts(i)
		if n == 0 {
			continue
		}
		unit, ok := e.unit(mem)
		if !ok {
			return ETA{Members: n, Kind: WaitsForSize, Why: reason.Of(reason.TooLarge, mem.Role, mem.Request)}
		}
		eta.Members += n
		need, asks = need.Add(unit.Times(int64(n))), asks.Add(mem.Request.Times(int64(n)))
		if mem.Stable {
			stable = stable.Add(unit.Times(int64(n)))
		}
	}
	if eta.Why = e.never(st, asks); !eta.Why.None() {
		eta.Kind, e.behind[st] = WaitsForQuota, true
		return eta
	}
	held, heldAtHome, before := e.held(k)
	if free := e.home.Sub(heldAtHome).Floor(); !quota.Fits(stable, free) {
		eta.Kind, eta.Why = WaitsForHome, reason.Of(reason.NeedsHome, stable, free)
		return eta
	}
	kin, names := e.kin(k)
	if eta.Why = e.full(st.grow.id, asks, kin, names); !eta.Why.None() {
		eta.Kind, e.behind[st] = WaitsForQuotaRoom, true
		return eta
	}
	e.along(&eta, st, need, held, before, asks.Add(kin))
	if eta.Kind == WaitsForQuotaRoom {
		e.behind[st] = true
	}
	return eta
}

// borrowedAt is what online still has of offline's machines at a time: each until it is due.
func (e *estimate) borrowedAt(at time.Time) fleet.Resources {
	var sum fleet.Resources
	for _, l := range e.out {
		if l.Due.IsZero() || l.Due.After(at) {
			sum = sum.Add(l.Capacity)
		}
	}
	return sum
}

// along looks for the first step of each band in which there is room, and in which the tenant may use so much.
func (e *estimate) along(eta *ETA, st *staff, need, held fleet.Resources, before int, uses fleet.Resources) {
	m := e.x.m
	look := m.in.Outlook
	if look == nil {
		eta.Kind, eta.Why = WaitsForOutlook, reason.Of(reason.NotComputed)
		return
	}
	now, o := m.in.Snapshot.At, m.in.Options
	shut := e.quotas.shut(st.grow.id, uses, look.At, now)
	var begin [bands]time.Time
	var most fleet.Resources
	allowed := false
	for b := range bands {
		lent := e.lent
		var opened time.Time // when the quota was seen to let it begin, after it did not
		for k := range outlookSteps {
			at := look.At.Add(stepStart(k))
			if k+1 < outlookSteps && !look.At.Add(stepStart(k+1)).After(now) {
				continue // over
			}
			// A lent machine stays until it must come home; a new loan must have a free term.
			lent = lent.CPUAndMemory().Min(look.Stay[b][k]).Max(look.Begin[b][k])
			if shut != nil && shut(k) {
				opened = look.At.Add(stepStart(k + 1))
				continue
			}
			allowed = true
			free := e.home.Sub(e.borrowedAt(at)).Add(lent).Sub(held).Floor()
			most = most.Max(free)
			if need.CPU <= free.CPU && need.Memory <= free.Memory && need.GPU <= e.gpus-held.GPU {
				begin[b] = later(at.Add(o.travel(b)), later(opened, later(now, st.gang.RetryAt)).Add(o.least(b)))
				break
			}
		}
	}
	eta.Earliest, eta.Expected, eta.Latest = inOrder(begin)
	eta.Kind = WaitsForTide
	if st.gang.Phase == fleet.GangBackedOff {
		eta.Kind = WaitsForRetry
	}
	var slice, short reason.Reason
	if shut != nil {
		slice = reason.Of(reason.SliceOpen)
	}
	switch week := int(stepStart(outlookSteps) / (24 * time.Hour)); {
	case !allowed:
		eta.Kind = WaitsForQuotaRoom
		short = reason.Of(reason.NoSliceEnough, week)
	case eta.Expected.IsZero():
		eta.Kind = WaitsForRoom
		short = reason.Of(reason.NotExpected, week, most.CPUAndMemory())
	}
	eta.Why = reason.Of(reason.NeedsToBegin, need, before, held, slice, short)
}

// inOrder brings the band in order: a high top empties more machines on its way down, so that room for a high load may come first.
func inOrder(begin [bands]time.Time) (earliest, expected, latest time.Time) {
	earliest, expected, latest = begin[bandEarly], begin[bandExpected], begin[bandLate]
	if !latest.IsZero() && (expected.IsZero() || expected.After(latest)) {
		expected = latest
	}
	if !expected.IsZero() && (earliest.IsZero() || earliest.After(expected)) {
		earliest = expected
	}
	return earliest, expected, latest
}

// precedes reports whether what a job cannot do without makes no room for another one, both by their places in the order: it has begun, or
// comes before it and no quota keeps it from beginning.
func (e *estimate) precedes(i, k int) bool {
	v := e.order[i]
	return i != k && !e.behind[v] && (i < k || v.begun() || v.sated() && !v.waiting())
}

// keeps is how many members of a role a job keeps from another one: its minimum, or all that runs where it is of higher priority.
func (st *staff) keeps(from *staff, role int) int64 {
	n := int(leastOf(&st.job.Members[role]))
	if st.job.Priority > from.job.Priority {
		n = max(n, st.roles[role].stay)
	}
	return int64(n)
}

// held is what others have that does not make room for the job at a place in the order: work of no job, and what jobs that precede it keep. It
// counts the jobs among them.
func (e *estimate) held(k int) (all, atHome fleet.Resources, jobs int) {
	for i, v := range e.order {
		if !e.precedes(i, k) {
			continue
		}
		var sum fleet.Resources
		for r := range v.roles {
			mem, n := &v.job.Members[r], v.keeps(e.order[k], r)
			if n == 0 {
				continue
			}
			unit, ok := e.unit(mem)
			if !ok {
				continue // it never begins
			}
			sum = sum.Add(unit.Times(n))
			if mem.Stable {
				atHome = atHome.Add(unit.Times(n))
			}
		}
		if !sum.IsZero() {
			jobs++
			all = all.Add(sum)
		}
	}
	return all.Add(e.loose), atHome.Add(e.loose), jobs
}

// unit is what one member takes of the machines that suit it best, with what it leaves unusable of them; false where it fits none.
func (e *estimate) unit(mem *fleet.Member) (fleet.Resources, bool) {
	unit, kinds := mem.Request.OnePod(), e.any
	if mem.Stable {
		kinds = e.stable
	}
	best, holds := fleet.Resources{}, int64(0)
	for _, k := range kinds {
		if n := k.holds.Count(unit) * k.n; n > holds {
			best, holds = k.holds, n
		}
	}
	if holds == 0 {
		return fleet.Resources{}, false
	}
	n := best.Count(unit)
	out := mem.Request
	if int64(best.CPU)/max(int64(unit.CPU), 1) == n && unit.CPU > 0 {
		out.CPU = best.CPU / fleet.MilliCPU(n)
	}
	if int64(best.Memory)/max(int64(unit.Memory), 1) == n && unit.Memory > 0 {
		out.Memory = best.Memory / fleet.Bytes(n)
	}
	return out, true
}

// steady keeps what was said while it is about right, so that no user reads a new time every minute, and rounds what is
// said again: the farther off, the coarser.
func (m *maker) steady(eta ETA) ETA {
	now := m.in.Snapshot.At
	if was, ok := m.in.ETAs[eta.Job]; ok && was.stillTrue(&eta, now) {
		return was
	}
	eta.Earliest, eta.Latest = eta.Earliest.Truncate(coarse(eta.Earliest, now)), roundUp(eta.Latest, coarse(eta.Latest, now))
	eta.Expected = eta.Expected.Round(coarse(eta.Expected, now))
	if !eta.Latest.IsZero() && eta.Expected.After(eta.Latest) {
		eta.Expected = eta.Latest
	}
	return eta
}

func coarse(t, now time.Time) time.Duration {
	switch lead := t.Sub(now); {
	case lead < 2*time.Hour:
		return 5 * time.Minute
	case lead < 12*time.Hour:
		return quarter
	}
	return time.Hour
}

func roundUp(t time.Time, to time.Duration) time.Time {
	if r := t.Truncate(to); r.Before(t) {
		return r.Add(to)
	}
	return t
}

// stillTrue reports whether what was said differs from what is computed now by no more than a tenth of the time until
// then, and ten minutes.
func (e *ETA) stillTrue(now *ETA, at time.Time) bool {
	if e.Kind != now.Kind || e.Members != now.Members {
		return false
	}
	for _, p := range [...][2]time.Time{{e.Earliest, now.Earliest}, {e.Expected, now.Expected}, {e.Latest, now.Latest}} {
		if p[0].IsZero() != p[1].IsZero() {
			return false
		}
		if p[0].IsZero() {
			continue
		}
		// A time that has come says no more than now does.
		was, is := later(p[0], at), later(p[1], at)
		if was.Sub(is).Abs() > 10*time.Minute+is.Sub(at)/10 {
			return false
		}
	}
	return e.Latest.IsZero() || e.Latest.After(at)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
