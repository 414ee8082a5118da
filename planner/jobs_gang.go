package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/scheduler/place"
)

// minima sees to the gangs: what each job cannot do without, whole or not at all, one job after the other. Those that were given room come
// first within their priority, since a promise is not taken back for who came earlier and waits. Then what divisible members are to have at
// least, pod by pod.
func (x *staffing) minima() {
	order := slices.Clone(x.list)
	slices.SortStableFunc(order, func(a, b *staff) int {
		return cmp.Or(cmp.Compare(b.job.Priority, a.job.Priority), fleet.TrueFirst(a.begun(), b.begun()))
	})
	yields := map[string]*staff{} // by namespace, the last of the gangs that are refused in part
	for _, st := range order {
		if st.inPart() {
			yields[fleet.ParseName(string(st.job.ID)).Namespace] = st
		}
	}
	var head *staff // a gang that waited so long that none passes it any more
	for _, st := range order {
		if !st.hasGang() {
			continue
		}
		peer := yields[fleet.ParseName(string(st.job.ID)).Namespace]
		if peer == st {
			peer = nil
		}
		x.form(st, head, peer)
		if head == nil && x.isHead(st) {
			head = st
		}
	}
	for _, st := range x.list {
		for i := range st.roles {
			mem, c := &st.job.Members[i], &st.roles[i]
			for st.held.None() && st.sated() && mem.Divisible && c.want < int(leastOf(mem)) && !c.stuck {
				x.more(st, i)
			}
		}
	}
}

// sated reports whether a job may have more than its minimum.
func (st *staff) sated() bool { return st.gang.Phase == "" || st.gang.Phase == fleet.GangWhole }

// begun reports whether anything of the gang is asked for or runs.
func (st *staff) begun() bool {
	for i := range st.roles {
		mem, c := &st.job.Members[i], &st.roles[i]
		if gangs(mem) && (int(mem.Desired) > c.leaving || c.stay > 0) || c.stay > 0 && mem.Sized() && !mem.Divisible && st.unbound() {
			return true
		}
	}
	return false
}

// unbound reports whether a launcher, or whatever else has one size alone, waits for a machine.
func (st *staff) unbound() bool {
	return slices.ContainsFunc(st.roles, func(c roleState) bool { return c.unbound > 0 })
}

// whole reports whether the whole gang runs. A fixed member lacks what waits for room, and nothing else: its workload alone knows when it is made
// and when it is over.
func (st *staff) whole() bool {
	for i := range st.roles {
		if mem := &st.job.Members[i]; gangs(mem) && st.roles[i].running < int(leastOf(mem)) {
			return false
		}
	}
	return !st.unbound()
}

// lack is what each member needs beyond what stays.
func (st *staff) lack() []int {
	out := make([]int, len(st.roles))
	for i := range st.roles {
		if mem, c := &st.job.Members[i], &st.roles[i]; gangs(mem) {
			out[i] = max(int(leastOf(mem))-c.stay, 0)
		} else {
			out[i] = c.unbound
		}
	}
	return out
}

// form takes a gang one step: it is asked for as a whole once all of it has a place, and given up when it did not run in time.
//
// The next gang of a namespace lacks what one holds of a ResourceQuota. If all gave it back at once, all would lack it
// again: the peer gives it back first, the others keep their time, and those that gave back before are not asked for
// until they are whole.
func (x *staffing) form(st, head, peer *staff) {
	o, now := x.m.in.Options, x.m.in.Snapshot.At
	was, lack, refused := x.m.gangBefore(st.job), st.lack(), st.refused()
	st.gang = was
	switch {
	case !st.owes.None():
		x.giveUp(st, st.owes)
	case !st.held.None():
		st.keepAsIs(now)
	case st.whole():
		st.enter(fleet.GangWhole, now)
		st.gang.Tries, st.gang.Ran = 0, true
		st.keepAsked()
		if !x.ask(st, lack) { // members on room that goes home need another place
			x.makeRoom(st, lack)
		}
	case was.Phase == fleet.GangBackedOff && now.Before(was.RetryAt):
		again := was.RetryAt.UTC().Format("15:04:05 MST")
		if st.note = reason.Of(reason.GaveBackOnce, again); was.Tries != 1 {
			st.note = reason.Of(reason.GaveBack, was.Tries, again)
		}
		st.release()
	case !refused.None() && !st.begun():
		st.enter(fleet.GangWaiting, now)
		st.release()
		st.note = reason.Of(reason.NotAskedFor, refused)
	case st.begun():
		st.enter(fleet.GangForming, now)
		if st.gang.Since.Before(x.m.in.Thawed) {
			st.gang.Since = x.m.in.Thawed // none could form under a freeze
		}
		if !refused.None() && (!st.inPart() || peer != nil) {
			st.gang.Since = now // it holds nothing, or another one yields: time that it cannot use does not count
		}
		if timeout := cmp.Or(st.job.GangTimeout, o.GangTimeout); st.timedOut(now, timeout) && x.m.mayTake() {
			x.giveUp(st, reason.Of(reason.DidNotRun, timeout, st.short(), refused))
			return
		}
		st.keepAsked()
		if !refused.None() {
			st.note = reason.Of(reason.NoRoomKept, refused)
			return
		}
		var room reason.Reason
		if !x.ask(st, lack) {
			room = x.makeRoom(st, lack)
		}
		st.note = reason.Of(reason.AskedFor, st.short(), room)
	case peer != nil && was.Tries > 0:
		st.enter(fleet.GangWaiting, now)
		st.release()
		st.note = reason.Of(reason.PeerRefused, peer.job.ID)
	case head != nil:
		st.enter(fleet.GangWaiting, now)
		st.release()
		st.note = reason.Of(reason.WaitsBehind, head.job.ID, o.GangPatience)
	case x.ask(st, lack):
		st.enter(fleet.GangForming, now)
		st.note = reason.Of(reason.HasPlace, st.short())
	default:
		st.enter(fleet.GangWaiting, now)
		st.release()
		st.note = reason.Of(reason.WaitsForRoom, st.short(), x.makeRoom(st, lack))
	}
}

// keepAsIs is the step of a gang whose job is paused: what it has stays, and nothing more is asked for. Time that it
// cannot use does not count against it.
func (st *staff) keepAsIs(now time.Time) {
	switch {
	case st.whole():
		st.enter(fleet.GangWhole, now)
		st.gang.Tries, st.gang.Ran = 0, true
		st.keepAsked()
		return
	case st.begun() && st.gang.Phase != fleet.GangBackedOff:
		st.enter(fleet.GangForming, now)
		st.gang.Since = now
		st.keepAsked()
	case st.gang.Phase == fleet.GangBackedOff:
		st.release()
	default:
		st.enter(fleet.GangWaiting, now)
		st.release()
	}
	st.note = reason.Of(reason.NotAskedFor, st.held)
}

// inPart reports whether a part of the gang is there whose rest is refused: it holds room and quota, and nothing of it works.
func (st *staff) inPart() bool {
	return !st.refused().None() && slices.ContainsFunc(st.job.Members, func(m fleet.Member) bool { return gangs(&m) && m.Active > 0 })
}

// refused says that pods of the gang cannot be made, and why; none where they can.
func (st *staff) refused() reason.Reason {
	for i := range st.job.Members {
		if m := &st.job.Members[i]; m.PodsRefused != "" && (gangs(m) || m.Fixed) {
			return reason.Of(reason.PodsRefused, m.Role, m.PodsRefused)
		}
	}
	return reason.Reason{}
}

// timedOut reports whether a gang that forms was given its time. Where pods of it wait for the bundled scheduler, that scheduler measures the time and
// reports its end on them. A scheduler that says nothing for twice the time is taken not to run.
func (st *staff) timedOut(now time.Time, timeout time.Duration) bool {
	if st.bundled {
		if !st.gangTimedOut.IsZero() && !st.gangTimedOut.Before(st.gang.Since) {
			return true
		}
		timeout *= 2
	}
	return now.Sub(st.gang.Since) >= timeout
}

// gangBefore is how a gang stood after the last plan.
func (m *maker) gangBefore(j *fleet.Job) fleet.Gang {
	if g, ok := m.in.Gangs[j.ID]; ok {
		return g
	}
	return j.Gang
}

// mayTake reports whether this plan may take anything away.
func (m *maker) mayTake() bool {
	return m.in.permit(permitted{}, takes).None()
}

func (st *staff) enter(p fleet.GangPhase, now time.Time) {
	if st.gang.Phase != p {
		st.gang.Phase, st.gang.Since, st.gang.RetryAt = p, now, time.Time{}
	}
}

// keepAsked keeps what was asked for, up to the minimum, whether it runs or not: a gang that lost a member is not whole, and neither less nor a part of
// it is asked for instead.
func (st *staff) keepAsked() {
	for i := range st.roles {
		mem, c := &st.job.Members[i], &st.roles[i]
		if gangs(mem) {
			c.want = max(c.want, min(int(mem.Desired), int(leastOf(mem)))-c.leaving)
		}
	}
}

// release asks for nothing. The stable capacity of a gang that ran once stays, as parameter servers do: ending them
// would end the work that they hold. It gives way to a gang that waits for long.
func (st *staff) release() {
	for i := range st.roles {
		mem, c, kept := &st.job.Members[i], &st.roles[i], 0
		if st.gang.Ran && holdsWork(mem) {
			kept = min(c.want, c.stay)
		}
		c.want = kept
	}
}

// holdsWork reports whether a member stays while its gang, which ran, backs off.
func holdsWork(mem *fleet.Member) bool { return mem.Stable && gangs(mem) }

// ask asks for the whole gang if what it lacks has a place.
func (x *staffing) ask(st *staff, lack []int) bool {
	if _, ok := x.seat(st, lack); !ok {
		return false
	}
	for i := range st.roles {
		if mem, c := &st.job.Members[i], &st.roles[i]; gangs(mem) {
			c.want = max(c.want, int(leastOf(mem)))
		}
	}
	return true
}

// giveUp rolls a gang back: all that it holds is free for others, and it is tried again later, each time later.
func (x *staffing) giveUp(st *staff, why reason.Reason) {
	o, now := x.m.in.Options, x.m.in.Snapshot.At
	wait := o.GangBackoff
	for range min(st.gang.Tries, 30) {
		wait = min(2*wait, o.GangBackoffMax)
	}
	st.note = reason.Of(reason.GivesUp, why, wait)
	st.gang = fleet.Gang{Phase: fleet.GangBackedOff, Since: now, RetryAt: now.Add(wait), Tries: st.gang.Tries + 1, Ran: st.gang.Ran}
	st.release()
}

// short says how much of a gang runs.
func (st *staff) short() reason.Reason {
	out := reason.Of(reason.GangShort)
	for i := range st.roles {
		mem, c := &st.job.Members[i], &st.roles[i]
		if !gangs(mem) && c.unbound == 0 {
			continue
		}
		part := reason.Of(reason.MemberUnbound, mem.Role)
		if gangs(mem) {
			part = reason.Of(reason.MembersRun, min(c.running, int(leastOf(mem))), leastOf(mem), mem.Role)
		}
		out.Parts = append(out.Parts, part)
	}
	return out
}

// isHead reports whether a gang has waited for so long that no other may pass it. One that would not fit even if all
// offline work were gone holds no other up.
func (x *staffing) isHead(st *staff) bool {
	waits := x.m.in.Snapshot.At.Sub(st.gang.Since)
	if !st.held.None() || st.gang.Phase != fleet.GangWaiting || waits < x.m.in.Options.GangPatience {
		return false
	}
	x.room()
	all := slices.Clone(x.ending)
	for _, other := range x.list {
		for i := range other.roles {
			all = append(all, x.refs(other.roles[i].standing())...)
		}
	}
	return x.would(st, st.lack(), all)
}

// makeRoom finds room for a gang among what others have above their minima: growth is lent, a minimum is not, so that the ledger counts it with
// the recalls; a part of the room would be of no use to the gang, and of none to others meanwhile. The room is kept free of
// others in this plan; the gang itself is asked for once the room is free. It says so for the note.
func (x *staffing) makeRoom(st *staff, lack []int) reason.Reason {
	x.room()
	if x.would(st, lack, x.ending) {
		x.reserve(st, lack, x.ending)
		return reason.Of(reason.MembersEnd)
	}
	if !x.m.mayTake() {
		return reason.Reason{}
	}
	spare := x.spare(st)
	gone := func(n int) []place.PodRef {
		out := slices.Clone(x.ending)
		for _, v := range spare[:n] {
			if ref, ok := x.ref(v.pod); ok {
				out = append(out, ref)
			}
		}
		return out
	}
	if !x.would(st, lack, gone(len(spare))) {
		return reason.Reason{}
	}
	// The fewest of them, in their order: more room never seats less but by the accidents of packing, which the check above has ruled out for all.
	lo, hi := 1, len(spare)
	for lo < hi {
		if mid := (lo + hi) / 2; x.would(st, lack, gone(mid)) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	for _, v := range spare[:lo] {
		c := &v.st.roles[v.member]
		c.goNext(&v.st.job.Members[v.member], v.pod)
		c.charges = x.m.charge(c.charges, v.pod.Node, 1, true)
	}
	x.reserve(st, lack, gone(lo))
	return reason.Of(reason.MembersMakeRoom, lo)
}

// reserve keeps the machines on which a gang will find room from all others in this plan. A role that leaves them does
// not grow elsewhere meanwhile: its size would rise again, and no pod would leave.
func (x *staffing) reserve(st *staff, lack []int, gone []place.PodRef) {
	var on []place.Placement
	t, undo := x.room(), st.save()
	t.Would(func() bool {
		for _, ref := range gone {
			t.Remove(ref)
		}
		on, _ = x.seat(st, lack)
		return true
	})
	undo()
	kept := make(map[fleet.NodeID]bool, len(on))
	for _, p := range on {
		t.SetOpen(p.Node, fleet.Offline, false)
		kept[p.Node] = true
	}
	for _, other := range x.list {
		for i := range other.roles {
			other.roles[i].holdStill(func(id fleet.NodeID) bool { return kept[id] })
		}
	}
}

// spareMember is a member that could make room.
type spareMember struct {
	st     *staff
	member int
	pod    *fleet.Pod
}

// spare lists what jobs of no higher priority have above their minima, the first to give way in front: divisible work,
// then the lower priority, then the larger share. Of a workload that accepts names, machine by machine, so that room
// comes free in one piece; of others in the order in which their operator takes them, since a size names no pod. (A
// plain Job's controller takes those that were ready last: that the ones that were made last are the same is an
// approximation.) To a gang that waits for long the room that others keep while they back off gives way, too.
func (x *staffing) spare(by *staff) []spareMember {
	type source struct {
		st     *staff
		member int
		share  float64
		spare  int
	}
	now := x.m.in.Snapshot.At
	patient := by.gang.Phase == fleet.GangWaiting && now.Sub(by.gang.Since) >= x.m.in.Options.GangPatience
	var from []source
	for _, st := range x.list {
		if st.job.Priority > by.job.Priority || !st.held.None() {
			continue
		}
		before := x.m.gangBefore(st.job)
		idle := patient && before.Ran && before.Phase == fleet.GangBackedOff && now.Before(before.RetryAt)
		for i := range st.roles {
			mem, c := &st.job.Members[i], &st.roles[i]
			spare := c.above(mem)
			if idle && holdsWork(mem) {
				spare = min(c.want, c.stay)
			}
			if spare > 0 {
				from = append(from, source{st, i, x.share(st, mem.Divisible), spare})
			}
		}
	}
	slices.SortStableFunc(from, func(a, b source) int {
		return cmp.Or(fleet.TrueFirst(a.st.job.Members[a.member].Divisible, b.st.job.Members[b.member].Divisible),
			cmp.Compare(a.st.job.Priority, b.st.job.Priority), cmp.Compare(b.share, a.share))
	})
	var out []spareMember
	for _, f := range from {
		pods := slices.Clone(f.st.roles[f.member].kept())
		if f.st.job.Members[f.member].Leaves == fleet.LeavesNamed {
			pods = slices.DeleteFunc(pods, func(p *fleet.Pod) bool { _, ok := x.ref(p); return !ok }) // on a machine that is closed: frees nothing
			slices.SortStableFunc(pods, func(a, b *fleet.Pod) int { return cmp.Compare(a.Node, b.Node) })
		}
		for _, p := range pods[:min(f.spare, len(pods))] {
			out = append(out, spareMember{f.st, f.member, p})
		}
	}
	return out
}

// above is how many of the members that stay are more than the minimum, and can get a notice.
func (c *roleState) above(mem *fleet.Member) int {
	if !mem.Sized() {
		return 0
	}
	return max(min(c.want, c.stay)-int(leastOf(mem)), 0)
}
