package reclaim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// BorrowAsk is capacity that online wants from an offline pool.
type BorrowAsk struct {
	Pool   *fleet.Pool
	Amount fleet.Resources
	// Count is the move budget that is left.
	Count int
	// TakeStable lets members at or below their minimum go, and stable ones: an approved festival plan says so.
	TakeStable bool
	// Idle takes machines on which nobody works, and no others.
	Idle bool
	// Begun are machines that are being borrowed already though no loan of the snapshot says so: the same plan took them.
	Begun map[fleet.NodeID]bool
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
// that were picked; pods of no job, and stable members, stay where they are. The order: machines with GPUs where these are short, lowest job priority, least work lost, jobs that were
// not recalled lately, fewest pods, then the name.
func Borrowable(s *fleet.Snapshot, ask BorrowAsk, o Options) (take []Borrowed, short fleet.Resources) {
	short = ask.Amount
	spare, groups := spareOf(s), idleFirst(s, ask, o)
	for _, g := range groups {
		if ask.Begun[g.machine.ID] {
			spend(spare, g)
		}
	}
	for _, g := range groups {
		if short.Floor().IsZero() || len(take) >= ask.Count {
			break
		}
		if ask.Begun[g.machine.ID] || !Helps(g.gain, short) {
			continue
		}
		if !ask.TakeStable && !spend(spare, g) {
			continue
		}
		notice := noticeOf(ask.Pool, g.save)
		if ask.Emergency {
			notice = EmergencyNotice
		}
		c := Candidate{Node: g.machine, Kind: fleet.KindNode, Cells: g.machine.AllCells(), Capacity: g.machine.Allocatable,
			Why: fmt.Sprintf("%d jobs of priority %d give way, about %.1f core-hours since their checkpoints", len(g.jobs), g.priority, g.lost.Hours())}
		if g.pods == 0 {
			c.Why = "nobody works on it"
		}
		take = append(take, Borrowed{c, notice})
		short = short.Sub(g.gain)
	}
	return take, short.Floor()
}

// spareOf is how many members each role has above its minimum.
func spareOf(s *fleet.Snapshot) map[memberKey]int32 {
	out := map[memberKey]int32{}
	for i := range s.Jobs {
		for _, m := range s.Jobs[i].Members {
			spare := int32(0)
			if !m.Stable {
				spare = max(m.Active-m.Min, 0)
			}
			out[memberKey{s.Jobs[i].ID, m.Role}] = spare
		}
	}
	return out
}

// spend takes a group's members from what is to spare, or none of them.
func spend(spare map[memberKey]int32, g *group) bool {
	if g.homeless || slices.ContainsFunc(g.members, func(m memberPods) bool { return m.pods > spare[m.memberKey] }) {
		return false
	}
	for _, m := range g.members {
		spare[m.memberKey] -= m.pods
	}
	return true
}

// idleFirst lists the machines of the pool that could go.
func idleFirst(s *fleet.Snapshot, ask BorrowAsk, o Options) []*group {
	busy := map[fleet.NodeID]bool{}
	for i := range s.Loans {
		busy[s.Loans[i].Node] = true
	}
	pods, c := o.pods(s), newCosts(s, ask.Pool, o)
	var out []*group
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool != ask.Pool.ID || !n.Ready || busy[n.ID] {
			continue
		}
		g := &group{node: n.Name, machine: n}
		g.fill(n, pods[n.ID], c)
		if ask.Idle && g.pods > 0 {
			continue
		}
		if g.pods == 0 {
			g.priority = math.MinInt
		}
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *group) int {
		return cmp.Or(fleet.TrueFirst(ask.Amount.GPU > 0 && a.gain.GPU > 0, ask.Amount.GPU > 0 && b.gain.GPU > 0), cmp.Compare(a.priority, b.priority), cmp.Compare(lossStep(a.lost), lossStep(b.lost)), fleet.TrueFirst(!a.rested, !b.rested),
			cmp.Compare(a.pods, b.pods), cmp.Compare(a.node, b.node))
	})
	return out
}
