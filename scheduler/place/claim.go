package place

import (
	"cmp"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Claim reserves room of a side of a machine for those who wait for it, until their pods have taken it or its time is over.
type Claim struct {
	Node fleet.NodeID
	Side fleet.Class
	// Claimant names those who may use the room: shapes of the same Claimant or ClaimantPool.
	Claimant string
	// Room is how much is reserved, Cells of which cells; empty for any.
	Room  fleet.Resources
	Cells []int
	Until time.Time
}

// ClaimID names a claim for as long as it is there.
type ClaimID int32

// claim is a claim as the table holds it: what is left of it.
type claim struct {
	claimant string // empty for a free slot
	row      int32
	left     vec
	cells    []int
	holds    []cellHold
	until    time.Time
}

// Reserve sets room aside. Others keep what they hold of it already: a claim may overdraw its machine, which then has
// no room for others.
func (t *Table) Reserve(c Claim) ClaimID {
	t.outside()
	if c.Claimant == "" {
		panic("place: a claim names who may use it")
	}
	i, ok := t.byID[c.Node]
	if !ok {
		i = t.newNode(c.Node)
	}
	x := claim{claimant: c.Claimant, row: 2*i + int32(sideOf(c.Side)), left: vecOf(c.Room), cells: slices.Clone(c.Cells), until: c.Until}
	x.left[hole] = 0
	id := slices.IndexFunc(t.claims, func(y claim) bool { return y.claimant == "" })
	if id < 0 {
		id = len(t.claims)
		t.claims = append(t.claims, claim{})
	}
	t.claims[id] = x
	t.claimed[i]++
	t.setAside(ClaimID(id), 1)
	return ClaimID(id)
}

// Release gives the room of a claim back. It may be gone already.
func (t *Table) Release(id ClaimID) {
	t.outside()
	if int(id) < len(t.claims) && t.claims[id].claimant != "" {
		t.endClaim(id)
	}
}

// Expire releases the claims whose time is over, or of which nothing is left, and returns them, by number.
func (t *Table) Expire(now time.Time) []ClaimID {
	t.outside()
	var out []ClaimID
	for id := range t.claims {
		if x := &t.claims[id]; x.claimant != "" && (!now.Before(x.until) || x.left[cpu]|x.left[memory]|x.left[gpus] == 0) {
			out = append(out, ClaimID(id))
			t.endClaim(ClaimID(id))
		}
	}
	return out
}

// Claims lists what is left of the claims, by number.
func (t *Table) Claims() []Claim {
	var out []Claim
	for id := range t.claims {
		if x := &t.claims[id]; x.claimant != "" {
			side := fleet.Online
			if x.row&1 == int32(offlineSide) {
				side = fleet.Offline
			}
			out = append(out, Claim{Node: t.nodes[x.row>>1].id, Side: side, Claimant: x.claimant, Room: x.left.resources(), Cells: x.cells, Until: x.until})
		}
	}
	return out
}

func (t *Table) endClaim(id ClaimID) {
	i := t.claims[id].row >> 1
	t.setAside(id, -1)
	t.claims[id] = claim{}
	if t.claimed[i]--; t.claimed[i] == 0 {
		delete(t.claimed, i)
	}
	t.changed(2 * i)
	t.release(i)
}

// setAside takes the room of a claim from its machine, or gives it back. It holds the free room of its cells, in their
// order.
func (t *Table) setAside(id ClaimID, times int64) {
	x := &t.claims[id]
	for d := range t.free {
		t.free[d][x.row] -= times * x.left[d]
	}
	if times > 0 {
		x.holds = t.freeOn(x)
	}
	for _, h := range x.holds {
		t.cells[h.cell].take(h.amount, times)
	}
	if times < 0 {
		x.holds = nil
	}
	t.changed(x.row)
}

func (t *Table) freeOn(x *claim) []cellHold {
	var out []cellHold
	n := &t.nodes[x.row>>1]
	rest := [perCell]int64(x.left[:perCell])
	for k := n.from; k < n.to; k++ {
		if c := &t.cells[k]; slices.Contains(x.cells, c.id) {
			h := cellHold{cell: k}
			for d := range rest {
				h.amount[d] = min(rest[d], max(c.free[d], 0))
				rest[d] -= h.amount[d]
			}
			out = append(out, h)
		}
	}
	return out
}

// usable lists the claims on a machine that a class may use, by number.
func (t *Table) usable(c *class, i int32) []ClaimID {
	if t.claimed[i] == 0 || c.shape.Claimant == "" && c.shape.ClaimantPool == "" {
		return nil
	}
	var out []ClaimID
	for id := range t.claims {
		if x := &t.claims[id]; x.row == 2*i+int32(c.side) && x.serves(c) {
			out = append(out, ClaimID(id))
		}
	}
	return out
}

func (x *claim) serves(c *class) bool {
	return x.claimant != "" && (x.claimant == c.shape.Claimant || x.claimant == c.shape.ClaimantPool)
}

// lend gives claims back for as long as do looks at the machine.
func (t *Table) lend(ids []ClaimID, do func()) {
	for _, id := range ids {
		for _, h := range t.claims[id].holds {
			t.lent = append(t.lent, h.cell)
		}
		t.setAside(id, -1)
	}
	do()
	t.lent = t.lent[:0]
	for _, id := range ids {
		t.setAside(id, 1)
	}
}

// claimedBest finds the best of the machines with claims that a class may use. They are few, and looked at one by one: they are what was freed for
// such pods, and come before all others.
func (t *Table) claimedBest(c *class) (best []scored) {
	if len(t.claimed) == 0 || c.shape.Claimant == "" && c.shape.ClaimantPool == "" {
		return nil
	}
	zones := t.zonesOf(c)
	seen := map[int32]bool{}
	for id := range t.claims {
		x := &t.claims[id]
		i := x.row >> 1
		if !x.serves(c) || x.row&1 != int32(c.side) || seen[i] {
			continue
		}
		seen[i] = true
		t.lend(t.usable(c, i), func() {
			f, holds := t.judge(c, x.row)
			if f == FilterNone && zones.allow(t.nodes[i].zoneAt) && t.spreads(c, i) {
				best = append(best, scored{x.row, t.score(c, x.row, holds).Total + zones.score(t.nodes[i].zoneAt)})
			}
		})
	}
	t.rankNames()
	slices.SortFunc(best, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(t.rank[a.row>>1], t.rank[b.row>>1]))
	})
	return best
}

// spend takes what a pod took out of the claims that it used, in their order; what is left of none is gone.
func (t *Table) spend(ids []ClaimID, took vec) {
	for _, id := range ids {
		x := &t.claims[id]
		t.note(change{kind: spent, claim: id, left: x.left})
		for d := range t.free {
			part := min(took[d], x.left[d])
			x.left[d] -= part
			took[d] -= part
		}
	}
}
