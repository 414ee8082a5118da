package reclaim

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// lossUnit is the work below which a loss is none: six core-minutes.
const lossUnit = 6 * time.Minute

// lossStep brings losses that differ by less than a factor of two together. The age of a checkpoint is known to a cycle
// at best and what is lost next to it (a restart, a ring to be built again) not at all, so smaller differences decide
// nothing.
func lossStep(lost time.Duration) int { return bits.Len64(uint64(max(lost, 0) / lossUnit)) }

// memberKey names a role of a job.
type memberKey struct {
	job  fleet.JobID
	role string
}

// memberPods are the pods of one role on a machine.
type memberPods struct {
	memberKey
	pods int32
}

// member counts a pod of a role.
func (g *group) member(key memberKey) {
	for i := range g.members {
		if g.members[i].memberKey == key {
			g.members[i].pods++
			return
		}
	}
	g.members = append(g.members, memberPods{key, 1})
}

// costs is what its leaving costs offline.
func (g *group) costs() reason.Reason {
	lost := fmt.Sprintf("%.1f", g.lost.Hours())
	if g.broken > 0 {
		return reason.Of(reason.GangsGiveWay, len(g.jobs), g.priority, g.broken, lost)
	}
	return reason.Of(reason.GiveWay, len(g.jobs), g.priority, lost)
}

// Standing is one machine whose loans may be recalled.
type Standing struct {
	Loans []*fleet.Loan
	// Gain is what its recall frees for online: nothing while the machine is not ready.
	Gain fleet.Resources
}

// Order lists the machines with lent parcels of a pool in the order in which [Choose] would recall all of them.
func Order(s *fleet.Snapshot, pool *fleet.Pool, o Options) []Standing {
	live, dead := groupsOf(s, pool, o)
	q := newQueue(s, live)
	var out []Standing
	for g := q.next(); g != nil; g = q.next() {
		out = append(out, Standing{g.loans, g.gain})
	}
	q = newQueue(s, dead)
	for g := q.next(); g != nil; g = q.next() {
		out = append(out, Standing{Loans: g.loans})
	}
	return out
}

// queue hands out groups, best first. A group's breakage depends on what was taken before it: members that a role has
// above its minimum are spent by one machine after another, and once a gang is broken its other machines break nothing
// more.
type queue struct {
	groups []*group
	at     map[*group]int
	// spare is how many pods each role may lose before its gang breaks; roles of divisible work and of no minimum are not in it.
	spare map[memberKey]int32
	of    map[memberKey][]*group
	// gpus puts machines with GPUs first.
	gpus bool
}

// preferGPUs puts machines with GPUs first, or no longer.
func (q *queue) preferGPUs(on bool) {
	if q.gpus != on {
		q.gpus = on
		heap.Init(q)
	}
}

// hasGPUs reports whether a machine with GPUs is left.
func (q *queue) hasGPUs() bool {
	return slices.ContainsFunc(q.groups, func(g *group) bool { return g.gain.GPU > 0 })
}

func newQueue(s *fleet.Snapshot, groups []*group) *queue {
	q := &queue{groups: groups, at: make(map[*group]int, len(groups)), spare: map[memberKey]int32{}, of: map[memberKey][]*group{}}
	for i := range s.Jobs {
		for _, m := range s.Jobs[i].Members {
			if m.Min > 0 && !m.Divisible && m.Active >= m.Min {
				q.spare[memberKey{s.Jobs[i].ID, m.Role}] = m.Active - m.Min
			}
		}
	}
	for i, g := range groups {
		q.at[g] = i
		g.broken = q.breaks(g)
		for _, m := range g.members {
			if _, gang := q.spare[m.memberKey]; gang {
				q.of[m.memberKey] = append(q.of[m.memberKey], g)
			}
		}
	}
	heap.Init(q)
	return q
}

// breaks counts the gangs that a group's recall would break now.
func (q *queue) breaks(g *group) int {
	n := 0
	for _, m := range g.members {
		if spare, gang := q.spare[m.memberKey]; gang && m.pods > spare {
			n++
		}
	}
	return n
}

// next takes the best group; nil when there is none left. Only a broken gang makes other groups better, and they are looked at again then;
// that others became worse is seen when their turn comes.
func (q *queue) next() *group {
	for q.Len() > 0 {
		g := heap.Pop(q).(*group)
		if now := q.breaks(g); now > g.broken {
			g.broken = now
			heap.Push(q, g)
			continue
		}
		q.take(g)
		return g
	}
	return nil
}

func (q *queue) take(g *group) {
	for _, m := range g.members {
		spare, gang := q.spare[m.memberKey]
		switch {
		case !gang:
		case m.pods <= spare:
			q.spare[m.memberKey] = spare - m.pods
		default:
			delete(q.spare, m.memberKey)
			for _, o := range q.of[m.memberKey] {
				if i, waits := q.at[o]; waits {
					o.broken = q.breaks(o)
					heap.Fix(q, i)
				}
			}
		}
	}
}

// Len implements heap.Interface, as do Less, Swap, Push and Pop.
func (q *queue) Len() int { return len(q.groups) }

// Less orders as [Choose] says.
func (q *queue) Less(i, j int) bool {
	a, b := q.groups[i], q.groups[j]
	return cmp.Or(
		fleet.TrueFirst(q.gpus && a.gain.GPU > 0, q.gpus && b.gain.GPU > 0),
		cmp.Compare(a.priority, b.priority),
		fleet.TrueFirst(a.expired, b.expired),
		cmp.Compare(lossStep(a.lost), lossStep(b.lost)),
		cmp.Compare(a.broken, b.broken),
		fleet.TrueFirst(!a.parts, !b.parts),
		fleet.TrueFirst(!a.rested, !b.rested),
		cmp.Compare(b.gain.CPU, a.gain.CPU),
		cmp.Compare(a.node, b.node),
	) < 0
}

// Swap implements heap.Interface.
func (q *queue) Swap(i, j int) {
	q.groups[i], q.groups[j] = q.groups[j], q.groups[i]
	q.at[q.groups[i]], q.at[q.groups[j]] = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	g := x.(*group)
	q.at[g] = len(q.groups)
	q.groups = append(q.groups, g)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(q.groups) - 1
	g := q.groups[last]
	q.groups = q.groups[:last]
	delete(q.at, g)
	return g
}
