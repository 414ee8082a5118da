package reclaim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// BorrowAsk is capacity that online wants from an offline pool.
type BorrowAsk struct {
	Pool *fleet.Pool
	// To is the pool that borrows. A machine whose taints keep its services off is of no use to it.
	To     fleet.PoolID
	Amount fleet.Resources
	// Count is the move budget that is left.
	Count int
	// TakeStable lets members at or below their minimum go, stable ones, and pods of no job, once all others have: an approved festival plan says so.
	TakeStable bool
	// Idle takes machines without work, and no others.
	Idle bool
	// Begun are the cells, by machine, that are being borrowed already though no loan of the snapshot says so: the same plan took them.
	Begun map[fleet.NodeID][]int
	// Emergency shortens the notice to EmergencyNotice.
	Emergency bool
}

// Borrowed is one machine that offline can give, and the notice that its work gets.
type Borrowed struct {
	Candidate
	Notice time.Duration
}

// Borrowable picks machines of an offline pool until the ask is covered, and says what stays short. Whole machines go, since online pods land
// wherever a machine lets them. A machine is offered while each role on it has as many members above its minimum as it would lose, over all
// that were picked; pods of no job, and stable members, stay where they are. The order: machines with GPUs where these are short, lowest job
// priority, least work lost, jobs that were not recalled lately, fewest pods, then the name. Where that does not cover the ask, TakeStable offers
// the other machines as well: those first that break the fewest gangs, where a role that fell below its minimum breaks no more, then in the same order.
func Borrowable(s *fleet.Snapshot, ask BorrowAsk, o Options) (take []Borrowed, short fleet.Resources) {
	short = ask.Amount
	spare, groups := spareOf(s, o), idleFirst(s, ask, o)
	for _, g := range groups {
		if ask.Begun[g.machine.ID] != nil {
			spare.spend(g)
		}
	}
	wanted := func(g *group) bool {
		return ask.Begun[g.machine.ID] == nil && Helps(g.gain, short) && len(take) < ask.Count && !short.Floor().IsZero()
	}
	give := func(g *group) {
		take = append(take, g.borrowed(ask, spare.breaks(g)))
		short = short.Sub(g.gain)
		spare.spend(g)
	}
	var others []*group
	for _, g := range groups {
		switch {
		case !wanted(g):
		case spare.has(g):
			give(g)
		case ask.TakeStable:
			others = append(others, g)
		}
	}
	for len(others) > 0 {
		g := slices.MinFunc(others, func(a, b *group) int { return cmp.Compare(spare.breaks(a), spare.breaks(b)) })
		if wanted(g) {
			give(g)
		}
		others = slices.DeleteFunc(others, func(x *group) bool { return x == g || !wanted(x) })
	}
	return take, short.Floor()
}

// borrowed is the group's machine with the notice that its work gets, and what its leaving costs.
func (g *group) borrowed(ask BorrowAsk, breaks int) Borrowed {
	notice := noticeOf(ask.Pool, g.save)
	if ask.Emergency {
		notice = EmergencyNotice
	}
	g.broken = breaks
	c := Candidate{Node: g.machine, Kind: fleet.KindNode, Cells: g.machine.AllCells(), Capacity: g.machine.Allocatable,
		Why: g.costs()}
	if g.pods == 0 {
		c.Why = reason.Of(reason.Idle)
	}
	return Borrowed{c, notice}
}

// spares is how many members each role has above its minimum, a stable one none; less than none where it fell below it.
type spares map[memberKey]int32

// spareOf counts who is to spare of those who stay: who is on a machine that goes to online was given away by an earlier plan.
func spareOf(s *fleet.Snapshot, o Options) spares {
	out := spares{}
	for i := range s.Jobs {
		for _, m := range s.Jobs[i].Members {
			spare := m.Active - m.Min
			if m.Stable {
				spare = 0
			}
			out[memberKey{s.Jobs[i].ID, m.Role}] = spare
		}
	}
	leaves := map[fleet.NodeID]bool{}
	for i := range s.Loans {
		if l := &s.Loans[i]; l.Phase.Moving() && s.FromOffline(l) == (l.Phase == fleet.Emptying) {
			leaves[l.Node] = true
		}
	}
	on := o.on(s)
	for id := range leaves {
		for _, p := range on.On(id).Pods {
			if p.Class == fleet.PodOffline && p.Occupies() && !p.Deleting {
				out[memberKey{p.Job, p.Role}]--
			}
		}
	}
	return out
}

// has reports whether all that works on a group's machine is to spare.
func (sp spares) has(g *group) bool {
	return !g.homeless && !slices.ContainsFunc(g.members, func(m memberPods) bool { return m.pods > sp[m.memberKey] })
}

// breaks counts the roles that would fall below their minimum by a group's leaving.
func (sp spares) breaks(g *group) (n int) {
	for _, m := range g.members {
		if left := sp[m.memberKey]; left >= 0 && m.pods > left {
			n++
		}
	}
	return n
}

// spend takes a group's members from what is to spare.
func (sp spares) spend(g *group) {
	for _, m := range g.members {
		sp[m.memberKey] -= m.pods
	}
}

// idleFirst lists the machines of the pool that could go, in the order in which they do.
func idleFirst(s *fleet.Snapshot, ask BorrowAsk, o Options) []*group {
	busy := map[fleet.NodeID]bool{}
	for i := range s.Loans {
		busy[s.Loans[i].Node] = true
	}
	on, c := o.on(s), newCosts(s, ask.Pool, o)
	var out []*group
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool != ask.Pool.ID || !n.Lasts() || busy[n.ID] || !n.Admits(ask.To) {
			continue
		}
		g := &group{node: n.Name, machine: n}
		g.fill(on.On(n.ID), c)
		if ask.Idle && g.pods > 0 {
			continue
		}
		if g.pods == 0 {
			g.priority = math.MinInt
		}
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *group) int {
		return cmp.Or(
			fleet.TrueFirst(ask.Amount.GPU > 0 && a.gain.GPU > 0, ask.Amount.GPU > 0 && b.gain.GPU > 0),
			cmp.Compare(a.priority, b.priority),
			cmp.Compare(lossStep(a.lost), lossStep(b.lost)),
			fleet.TrueFirst(!a.rested, !b.rested),
			cmp.Compare(a.pods, b.pods),
			cmp.Compare(a.node, b.node),
		)
	})
	return out
}
