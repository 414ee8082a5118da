package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// jobs sizes offline work to the room that is stable or lent. Between jobs, in this order:
//
//  1. What runs stays, unless its tenant's deadline has passed, a waiting minimum needs the room, or another's fair share does.
//  2. Minima, one job after the other, each of them whole or not at all: on stable room first, on loans where the member allows it.
//  3. Growth of those whose minimum runs, by priority, and among equals so that the least dominant share grows first.
//  4. Divisible work of the same priority fills what is left.
//
// Room is promised once: what a step has placed is taken for those after it. Pods on parcels that are going home are left alone here: they
// are evicted, and the parallelism follows while they end, so that the workload's own controller never picks other pods to delete.
func (m *maker) jobs() {
	if len(m.in.Snapshot.Jobs) == 0 {
		return
	}
	x := m.newStaffing()
	m.shed(x.list)
	x.shedParcels()
	x.minima()
	x.growth()
	if again := m.unused(x.allowed, x.list); again != nil {
		x.allow(again)
		x.growth()
	}
	x.rebalance()
	for _, st := range x.list {
		for i := range st.roles {
			m.scaleJob(st, i)
		}
	}
	m.etas(x)
	slices.SortFunc(x.list, func(a, b *staff) int { return cmp.Compare(a.job.ID, b.job.ID) })
	for _, st := range x.list {
		if st.gang.Phase != "" {
			m.plan.Gangs = append(m.plan.Gangs, GangView{Job: st.job.ID, Gang: st.gang, Note: st.note})
		}
	}
}

// mostOf is how many members could work.
//
// While a workload waits until all of its members are ready, each further one would put its beginning off.
func mostOf(mem *fleet.Member) int32 {
	most := min(mem.Max, wanted(mem))
	if mem.Gathering {
		most = min(most, max(mem.Min, 1))
	}
	return most
}

// leastOf is how many members a job cannot do without, as long as there is work for them.
func leastOf(mem *fleet.Member) int32 { return min(mem.Min, mostOf(mem)) }

// wanted is the most members that there is still work for.
func wanted(mem *fleet.Member) int32 {
	if mem.Remaining < 0 {
		return mem.Max
	}
	return mem.Remaining
}

// staff is one job while it is sized.
type staff struct {
	job   *fleet.Job
	roles []roleState // by member
	grow  grow
	gang  fleet.Gang
	// note says why the gang is not whole, shed why members had to go, owes why all of the gang has to.
	note, shed, owes reason.Reason
	// held says that the job is paused: it keeps what it has, and gets nothing more.
	held reason.Reason
	// bundled says that pods of it wait for the bundled scheduler, gangTimedOut is when that last reported that the gang waited for too long.
	bundled      bool
	gangTimedOut time.Time
}

// roleState is where the pods of one member role are, and how many there should be.
type roleState struct {
	// stay are on room that stays, leaving on room that is going home; going have a notice and are not gone.
	stay, leaving, going int
	// running are at work, wherever they are.
	running int
	// pledged are those that were asked for and have no place yet, as far as the tenant's quota was enough for them: it is charged with them.
	pledged int
	// asked is when the newest member was made that still waits for a machine.
	asked time.Time
	// want is how many there should be besides those that leave, hoped how many more there will be room for when others made it.
	want, hoped int
	// stuck says that there was no room, or no quota, for one more; leaves that members leave a parcel, or a machine that is kept for a gang: a size
	// says how many there are, not where, and one that were made elsewhere before those are gone would keep them.
	stuck, leaves bool
	// pods are those that stay or have a notice; the first to go stands first.
	pods []*fleet.Pod
	// unbound are pods of a fixed member that wait for a machine: this workload did not ask for them, and without them
	// the others idle.
	unbound int
	// parting is above the highest index among the leaving; ended are those that end, and those that never began where a size names who leaves.
	parting int
	ended   []string
	// charges are those that this plan takes for others.
	charges []Charge
}

// gangs reports whether a role of the job needs all of its minimum at once, and has it from here.
func gangs(mem *fleet.Member) bool { return !mem.Divisible && mem.Sized() && leastOf(mem) > 0 }

// hasGang reports whether the job has a minimum that works as a whole or not at all.
func (st *staff) hasGang() bool {
	for i := range st.job.Members {
		if gangs(&st.job.Members[i]) {
			return true
		}
	}
	return st.unbound()
}

// newStaffing counts who is where. The list is in the order in which jobs are served: by priority, then by age, so that none that waits is
// passed by one that came later.
func (m *maker) newStaffing() *staffing {
	s := m.in.Snapshot
	x := &staffing{m: m}
	of := make(map[fleet.JobID]*staff, len(s.Jobs))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if !j.Blocked.Any() {
			st := &staff{job: j, roles: make([]roleState, len(j.Members))}
			if j.Hold.Any() {
				st.held = m.in.permit(growthOf(j), gives)
			}
			of[j.ID], x.list = st, append(x.list, st)
		}
	}
	slices.SortFunc(x.list, func(a, b *staff) int {
		return cmp.Or(cmp.Compare(b.job.Priority, a.job.Priority), a.job.Created.Compare(b.job.Created), cmp.Compare(a.job.ID, b.job.ID))
	})
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Class == fleet.PodOffline && of[p.Job] != nil {
			m.count(of[p.Job], p)
		}
	}
	for _, st := range x.list {
		st.settle()
	}
	x.allow(m.allow(m.plan.Division.Shares))
	for _, st := range x.list {
		st.pledge()
	}
	return x
}

func (m *maker) count(st *staff, p *fleet.Pod) {
	i := slices.IndexFunc(st.job.Members, func(mem fleet.Member) bool { return mem.Role == p.Role })
	if i < 0 {
		return
	}
	mem, c := &st.job.Members[i], &st.roles[i]
	waits := p.NodeName == "" && p.Phase == fleet.PodPending
	if waits && p.Bundled && !p.Deleting && !mem.Divisible {
		st.bundled, st.gangTimedOut = true, later(st.gangTimedOut, p.GangTimedOut.Value)
	}
	switch {
	case p.Deleting || waits && mem.Leaves == fleet.LeavesNamed:
		c.ended = append(c.ended, p.Name.Name)
		return
	case waits && mem.Fixed:
		c.unbound++
		return
	case !p.Occupies():
		if waits {
			c.asked = later(c.asked, p.Created)
		}
		return
	}
	if p.Phase == fleet.PodRunning {
		c.running++
	}
	if m.on(p.Node).Moves.Leaving() || m.recalled[p.Node] {
		c.leaving++
		if p.Index() < int(mem.Desired) {
			c.parting = max(c.parting, p.Index()+1)
		}
		return
	}
	c.stay++
	c.pods = append(c.pods, p)
}

// settle separates those that stay from those that must end: a parallelism that was lowered is carried out by the
// workload's controller, and until it is, its pods are no members to compute with.
func (st *staff) settle() {
	for i := range st.roles {
		mem, c := &st.job.Members[i], &st.roles[i]
		indexed := mem.Leaves == fleet.LeavesHighest
		slices.Reverse(c.pods) // names mostly rise with age, and what is sorted already costs little
		slices.SortStableFunc(c.pods, func(a, b *fleet.Pod) int {
			if indexed {
				return cmp.Compare(b.Index(), a.Index())
			}
			if d := b.Created.Compare(a.Created); d != 0 {
				return d
			}
			return b.Name.Compare(a.Name)
		})
		going := max(c.stay-max(int(mem.Desired)-c.leaving, 0), 0)
		if indexed {
			for going = 0; going < c.stay && c.pods[going].Index() >= int(mem.Desired); {
				going++
			}
		}
		c.want = c.stay
		c.markEnding(going)
	}
}

// tellToGo makes room of the youngest of those that stay.
func (c *roleState) markEnding(n int) { c.going, c.stay, c.want = c.going+n, c.stay-n, c.want-n }

// standing are the pods that stay.
func (c *roleState) standing() []*fleet.Pod { return c.pods[c.going:] }

// goes are the pods that a smaller size is about: those that must end, and those that make room. kept are the others.
func (c *roleState) goes() []*fleet.Pod { return c.pods[:c.going+max(c.stay-c.want, 0)] }
func (c *roleState) kept() []*fleet.Pod { return c.pods[len(c.goes()):] }

// goNext has one more make room: the one that is next, whichever was meant, unless the workload accepts names.
func (c *roleState) goNext(mem *fleet.Member, p *fleet.Pod) {
	kept := c.kept()
	if i := slices.Index(kept, p); i > 0 && mem.Leaves == fleet.LeavesNamed {
		copy(kept[1:i+1], kept[:i])
		kept[0] = p
	}
	c.want--
}

// holdStill keeps a role from growing in this plan if any of it leaves one of the machines.
func (c *roleState) holdStill(on func(fleet.NodeID) bool) {
	c.leaves = c.leaves || slices.ContainsFunc(c.goes(), func(p *fleet.Pod) bool { return on(p.Node) })
}

// size is the size to write for what is wanted. Members that leave are counted until they end, but for those beyond the
// present size: they had to end before, and to count them would raise the job by what its tenant gave back. Where the
// operator takes the highest indices, the size stays above those that are there: it falls once they are the ones to go,
// and a pod made again below them waits for room meanwhile.
func (c *roleState) size(mem *fleet.Member) int32 {
	to := c.want + min(c.leaving, int(mem.Desired))
	if mem.Leaves == fleet.LeavesHighest {
		to = max(to, c.parting)
		if kept := c.kept(); len(kept) > 0 {
			to = max(to, kept[0].Index()+1)
		}
	}
	return min(int32(to), mem.Max)
}

// victims names the pods that a smaller size takes, for an operator that would choose by itself, and for a list of
// hosts: those that end, and those that are to.
func (c *roleState) victims(mem *fleet.Member) []string {
	if mem.Leaves != fleet.LeavesNamed && !mem.Listed {
		return nil
	}
	out := slices.Clone(c.ended)
	for _, p := range c.goes() {
		out = append(out, p.Name.Name)
	}
	slices.Sort(out)
	return out
}

func (m *maker) scaleJob(st *staff, i int) {
	j, mem, c := st.job, &st.job.Members[i], &st.roles[i]
	if mem.Remaining == 0 || !mem.Sized() {
		return
	}
	to := c.size(mem)
	if !st.held.None() && c.want >= c.stay && c.leaving == 0 && st.gang.Phase != fleet.GangBackedOff {
		to = min(mem.Desired, mem.Max) // what was asked for stays: a pod that is made again is no growth
	}
	if !st.held.None() {
		to = min(to, mem.Desired)
	}
	if mem.PodsRefused != "" && c.want >= c.stay && st.gang.Phase != fleet.GangBackedOff {
		to = min(mem.Desired, mem.Max) // its controller goes on trying, and neither more nor fewer would help
	}
	if to == mem.Desired {
		return
	}
	why := reason.Of(reason.OfflineRoom, min(c.stay, c.want), c.leaving, max(c.want-c.stay, 0), st.shed)
	switch {
	case !st.note.None():
		why = reason.Of(reason.Code("Gang"+string(st.gang.Phase)), st.note)
	case c.want < c.stay && st.shed.None():
		why = reason.Of(reason.FairShare, c.stay-c.want, c.stay)
	}
	a := JobScale{Job: j.ID, Role: mem.Role, Workload: mem.Workload, Kind: mem.Kind, From: mem.Desired, To: to, Version: mem.Version, Why: why}
	if to < mem.Desired {
		a.Victims, a.Charges = c.victims(mem), c.charges
	}
	m.plan.Jobs = append(m.plan.Jobs, a)
}
