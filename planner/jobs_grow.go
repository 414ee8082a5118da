package planner

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// tier is a set of members that grow side by side: those of one priority, divisible ones after the others.
type tier struct {
	priority  fleet.JobPriority
	divisible bool
}

// tiers are in the order in which they grow.
func (x *staffing) tiers() []tier {
	var out []tier
	for _, st := range x.list { // by priority
		for _, divisible := range [...]bool{false, true} {
			if t := (tier{st.job.Priority, divisible}); !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// holds reports whether a member grows in the tier. One of which pods are refused grows in none.
func (t tier) holds(st *staff, i int) bool {
	mem := &st.job.Members[i]
	return st.job.Priority == t.priority && mem.Divisible == t.divisible && mem.PodsRefused == ""
}

// below reports whether what the other tier has above its minima gives way to this one.
func (t tier) below(o tier) bool {
	return o.priority < t.priority || o.priority == t.priority && o.divisible && !t.divisible
}

// share is the dominant share of what a job has above its minimum: the largest part of the room for offline work in any resource (Ghodsi et
// al., Dominant Resource Fairness, NSDI 2011). Minima are left out, since a job that needs a large gang has no more of a claim to growth, nor less.
func (x *staffing) share(st *staff, divisible bool) float64 {
	var sum fleet.Resources
	for i := range st.roles {
		mem, c := &st.job.Members[i], &st.roles[i]
		if mem.Divisible == divisible {
			sum = sum.Add(mem.Request.Times(int64(max(c.want+c.hoped-int(leastOf(mem)), 0))))
		}
	}
	return mostPart(sum, x.capacity)
}

// growth lets jobs grow beyond their minima into what is free.
func (x *staffing) growth() {
	for _, t := range x.tiers() {
		x.fill(t)
	}
}

// claim is a job that could grow in a tier.
type claim struct {
	st    *staff
	asked bool
	share float64
	order int
}

type claims []claim

func (c claims) Len() int { return len(c) }
func (c claims) Less(i, k int) bool {
	return cmp.Or(fleet.TrueFirst(c[i].asked, c[k].asked), cmp.Compare(c[i].share, c[k].share), cmp.Compare(c[i].order, c[k].order)) < 0
}
func (c claims) Swap(i, k int) { c[i], c[k] = c[k], c[i] }

// Push implements heap.Interface.
func (c *claims) Push(v any) { *c = append(*c, v.(claim)) }

// Pop implements heap.Interface.
func (c *claims) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// fill gives one member after the other to the job with the least share, after those that were asked for and wait, until there is no room or no wish left: shares are max-min fair, but
// for the size of a member.
func (x *staffing) fill(t tier) {
	var open claims
	for k, st := range x.list {
		if st.sated() && st.next(t) >= 0 {
			x.room() // shares are measured by it
			open = append(open, claim{st, x.asked(st, t), x.share(st, t.divisible), k})
		}
	}
	heap.Init(&open)
	for len(open) > 0 {
		c := &open[0]
		i := c.st.next(t)
		if i < 0 {
			heap.Pop(&open)
			continue
		}
		if x.more(c.st, i) {
			c.asked, c.share = x.asked(c.st, t), x.share(c.st, t.divisible)
			heap.Fix(&open, 0)
		}
	}
}

// next is the member of a tier that grows next: the one that has the smallest part of what it could use. It is below zero where none can.
func (st *staff) next(t tier) int {
	best, least := -1, 0.0
	if !st.held.None() {
		return best
	}
	for i := range st.roles {
		mem, c := &st.job.Members[i], &st.roles[i]
		most := int(mostOf(mem))
		if !t.holds(st, i) || c.stuck || c.want >= most {
			continue
		}
		if part := float64(c.want) / float64(most); best < 0 || part < least {
			best, least = i, part
		}
	}
	return best
}

// more grows a member by one, or notes that it cannot.
func (x *staffing) more(st *staff, i int) bool {
	c := &st.roles[i]
	ok := !c.leaves
	if ok {
		_, ok = x.one(st, i, false)
	}
	if !ok {
		c.stuck = true
		return false
	}
	c.want++
	return true
}

// Growth is taken from one job for another's only where that is worth a restart: from a lower tier, or where the other is left with a share that
// is still larger by levelBand, so that what was moved never comes back. And in steps of levelPace of what a job has, at least one member, so
// that an error is seen while most of it still works; but no step is less than one member of the other needs. The disruption ledgers bound them.
const (
	levelBand = 0.25
	levelPace = 0.1
)

// rebalance shrinks what has more than its fair share for those who have less and found no room. It asks for nothing:
// the room comes free, and growth gives it to who has least. Members that are ending already are computed with first,
// so that no job makes room twice.
func (x *staffing) rebalance() {
	if !x.m.mayTake() || !slices.ContainsFunc(x.list, func(st *staff) bool { return st.sated() && st.wantsRoom() }) {
		return
	}
	t := x.room()
	t.Begin()
	defer t.Rollback()
	for _, ref := range x.ending {
		t.Remove(ref)
	}
	v := &leveller{x: x, spent: map[*roleState]int{}, gone: map[*fleet.Pod]bool{}, held: map[fleet.JobID]bool{}}
	for _, tr := range x.tiers() {
		v.level(tr)
	}
}

// wantsRoom reports whether a member found no room for one more that it could use.
func (st *staff) wantsRoom() bool {
	for i := range st.roles {
		if c := &st.roles[i]; c.stuck && !c.leaves && c.want < int(mostOf(&st.job.Members[i])) {
			return true
		}
	}
	return false
}

// leveller is the work of one rebalancing.
type leveller struct {
	x *staffing
	// spent is how many members a role loses in this plan, gone the pods that make room.
	spent map[*roleState]int
	gone  map[*fleet.Pod]bool
	// held are the jobs of which a ledger lets no more go, in this plan.
	held map[fleet.JobID]bool
}

// level serves a tier, the least share first, one member at a time.
func (v *leveller) level(t tier) {
	x := v.x
	over := map[*roleState]bool{}
	for {
		var poor *staff
		member, least := -1, 0.0
		for _, st := range x.list {
			for i := range st.roles {
				mem, c := &st.job.Members[i], &st.roles[i]
				if !t.holds(st, i) || !c.stuck || c.leaves || over[c] || c.want+c.hoped >= int(mostOf(mem)) {
					continue
				}
				if s := x.share(st, t.divisible); poor == nil || s < least {
					poor, member, least = st, i, s
				}
			}
		}
		if poor == nil {
			return
		}
		c := &poor.roles[member]
		if _, ok := x.one(poor, member, false); ok || v.takeFor(poor, member, t, least) {
			c.hoped++
		} else {
			over[c] = true
		}
	}
}

// takeFor makes room for one more member and places it there.
func (v *leveller) takeFor(poor *staff, member int, t tier, has float64) bool {
	x := v.x
	mem := &poor.job.Members[member]
	if !poor.affords(member) {
		return false // what binds it is no lack of room
	}
	after := has + mostPart(mem.Request, x.capacity)
	limit := after * (1 + levelBand)
	// Whose machines are being recalled is not made up for that: what he got would be recalled next, and who makes room
	// here gets no notice.
	ebbs := has > 0 && poor.job.LastRecalled.Fresh(x.m.in.Snapshot.At, x.m.in.Options.RecallRest)
	if has == 0 {
		limit = after // who has nothing need not wait for much
	}
	for _, st := range v.rich(t) {
		for i := range st.roles {
			own := tier{st.job.Priority, st.job.Members[i].Divisible}
			lower := t.below(own)
			if st == poor || !st.held.None() || !lower && (own != t || ebbs) {
				continue
			}
			n := v.budget(st, i, times(mem.Request, st.job.Members[i].Request))
			if unit := mostPart(st.job.Members[i].Request, x.capacity); !lower && unit > 0 {
				n = min(n, int((x.share(st, own.divisible)-limit)/unit+1e-9))
			}
			if n > 0 && v.free(poor, member, st, i, n, lower) {
				return true
			}
		}
	}
	return false
}

// rich are the jobs that could give way to a tier, the lowest tier and the largest share first.
func (v *leveller) rich(t tier) []*staff {
	out := slices.Clone(v.x.list)
	slices.SortStableFunc(out, func(a, b *staff) int {
		return cmp.Or(cmp.Compare(a.job.Priority, b.job.Priority), cmp.Compare(v.x.share(b, t.divisible), v.x.share(a, t.divisible)))
	})
	return out
}

// budget is how many members of a role may make room now, of which need make room for one of the other's.
func (v *leveller) budget(st *staff, i, need int) int {
	c := &st.roles[i]
	pace := max(int(levelPace*float64(c.stay)), need) - v.spent[c]
	return min(pace, c.above(&st.job.Members[i]))
}

// triedMachines bounds the machines that are looked at for one member. The freed room of pods that are alike is alike.
const triedMachines = 16

// free looks for a machine on which at most n pods of a role make room for one more member of the poor, and takes them:
// the youngest, which have lost least. Among equals, only pods that have stayed for a while.
func (v *leveller) free(poor *staff, member int, st *staff, i, n int, lower bool) bool {
	x := v.x
	s, o, t := x.m.in.Snapshot, x.m.in.Options, x.room()
	mem, c := &st.job.Members[i], &st.roles[i]
	byNode := map[fleet.NodeID][]*fleet.Pod{}
	var nodes []fleet.NodeID
	for _, p := range c.kept() {
		if _, ok := x.ref(p); !ok || v.gone[p] || !lower && s.At.Sub(p.Created) < o.MemberStay {
			continue
		}
		if byNode[p.Node] == nil {
			nodes = append(nodes, p.Node)
		}
		byNode[p.Node] = append(byNode[p.Node], p)
	}
	for _, id := range nodes[:min(len(nodes), triedMachines)] {
		pods, budget := byNode[id][:min(len(byNode[id]), n)], x.m.spending(x.m.chargedTo(id))
		for k := range pods {
			if by := budget.Refuses(st.job.ID.Owner(), st.here(), k+1); by != "" {
				v.hold(st, poor, by)
				break
			}
			if !t.Try(func() bool {
				for _, ref := range x.refs(pods[:k+1]) {
					t.Remove(ref)
				}
				_, ok := x.one(poor, member, false)
				return ok
			}) {
				continue
			}
			for _, p := range pods[:k+1] {
				v.gone[p] = true
				c.goNext(mem, p)
			}
			budget.Take(st.job.ID.Owner(), st.here(), k+1)
			c.charges = x.m.charge(c.charges, id, k+1, false)
			v.spent[c] += k + 1
			return true
		}
	}
	return false
}

// hold notes once that a ledger keeps members of a job from making room.
func (v *leveller) hold(st, poor *staff, by string) {
	if v.held[st.job.ID] {
		return
	}
	v.held[st.job.ID] = true
	v.x.m.withhold(Subject{SubjectJob, string(st.job.ID)}, reason.Of(reason.MakeRoomFor, poor.job.ID),
		reason.Of(reason.DisruptionBudget, by),
		reason.Of(reason.BelowFairShare, poor.job.ID))
}

// here counts the pods of a job without a notice.
func (st *staff) here() int {
	n := 0
	for i := range st.roles {
		n += len(st.roles[i].pods) + st.roles[i].leaving
	}
	return n
}

// askFor is how long the next room goes to members that were asked for and wait for a machine.
const askFor = 10 * time.Minute

// asked reports whether the next member of a tier was asked for lately and waits. It gets room before shares are compared: otherwise two jobs
// with nearly equal shares take one free place from each other in turn, and each turn is two writes and starts a member that finds no room.
func (x *staffing) asked(st *staff, t tier) bool {
	i := st.next(t)
	if i < 0 {
		return false
	}
	c := &st.roles[i]
	return !c.asked.IsZero() && x.m.in.Snapshot.At.Sub(c.asked) < askFor && c.want+c.leaving < int(st.job.Members[i].Desired)
}
