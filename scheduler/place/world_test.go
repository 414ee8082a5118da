package place

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// smallFleet draws up to six machines, with and without cells and GPUs, some with a socket lent, and pods that may overdraw them.
func smallFleet(t *rapid.T) *fleet.Snapshot {
	s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "a", Class: fleet.Online}, {ID: "b", Class: fleet.Offline}, {ID: "c", Class: fleet.Online}},
		Services: []fleet.Service{{ID: "web"}, {ID: "db"}},
		Jobs:     []fleet.Job{{ID: "train", Members: []fleet.Member{{Role: "server", Stable: true}, {Role: "worker"}}}}}
	for i := range rapid.IntRange(2, 6).Draw(t, "machines") {
		n := fleet.Node{ID: fleet.NodeID(fmt.Sprint("n", i)), Name: fmt.Sprint("n", i), Zone: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "zone"),
			Pool: rapid.SampledFrom([]fleet.PoolID{"a", "a", "a", "b", "c", ""}).Draw(t, "pool"), Ready: some(t, "ready", 1, 1, 1, 1, 1, 1, 0) == 1}
		each := fleet.Resources{CPU: fleet.MilliCPU(rapid.IntRange(2, 6).Draw(t, "cpu")), Memory: fleet.Bytes(rapid.IntRange(2, 6).Draw(t, "memory"))}
		if rapid.IntRange(0, 3).Draw(t, "gpu") == 0 {
			each.GPU, n.GPUModel = 2, rapid.SampledFrom([]string{"g", "h"}).Draw(t, "model")
		}
		cells := rapid.SampledFrom([]int{0, 2, 4}).Draw(t, "cells")
		for c := range cells {
			n.Cells = append(n.Cells, fleet.Cell{ID: c, Socket: c * 2 / cells, Capacity: each})
		}
		n.Allocatable = each.Times(int64(max(cells, 1))).Add(fleet.Resources{Pods: int64(some(t, "pods", 20, 20, 20, 5))})
		s.Nodes = append(s.Nodes, n)
		if cells > 0 && rapid.Bool().Draw(t, "lent") {
			lendSocket(t, s, &s.Nodes[i])
		}
		for k := range rapid.IntRange(0, 3).Draw(t, "on") {
			s.Pods = append(s.Pods, somePod(t, &n, k))
		}
	}
	s.Sort()
	return s
}

func lendSocket(t *rapid.T, s *fleet.Snapshot, n *fleet.Node) {
	l := fleet.Loan{ID: fleet.LoanID("l-" + n.Name), Node: n.ID, Cells: n.CellsOf(1), From: n.Pool, To: "b",
		Phase: rapid.SampledFrom([]fleet.Phase{fleet.Emptying, fleet.Lent, fleet.Lent, fleet.Noticed, fleet.Returned}).Draw(t, "phase")}
	if n.Pool == "b" {
		l.To = "a"
	}
	s.Loans = append(s.Loans, l)
	n.Marks.HolderTaint = !l.Phase.Ended() && n.Pool != "b"
}

func somePod(t *rapid.T, n *fleet.Node, k int) fleet.Pod {
	id := fmt.Sprint(n.Name, "-", k)
	p := fleet.Pod{ID: fleet.UID(id), Name: fleet.Name{Name: id}, Node: n.ID, NodeName: n.Name, Phase: fleet.PodRunning, Deleting: rapid.IntRange(0, 5).Draw(t, "deleting") == 0,
		Class:    rapid.SampledFrom([]fleet.PodClass{fleet.PodOnline, fleet.PodOnline, fleet.PodOffline, fleet.PodFiller, fleet.PodSystem}).Draw(t, "class"),
		Requests: amount(t)}
	switch p.Class {
	case fleet.PodOnline:
		p.Service = rapid.SampledFrom([]fleet.ServiceID{"", "web", "db"}).Draw(t, "service")
	case fleet.PodOffline:
		p.Job, p.Role = "train", rapid.SampledFrom([]string{"server", "worker"}).Draw(t, "role")
	}
	return p
}

func amount(t *rapid.T) fleet.Resources {
	r := fleet.Resources{CPU: fleet.MilliCPU(some(t, "cpu", 0, 1, 1, 1, 2, 2, 3, 5, 7)), Memory: fleet.Bytes(some(t, "memory", 0, 0, 1, 1, 1, 2, 5))}
	if rapid.IntRange(0, 6).Draw(t, "gpu") == 0 {
		r.GPU = 1
	}
	return r
}

// some draws one of a few numbers, the usual ones being named more often.
func some(t *rapid.T, name string, from ...int) int { return rapid.SampledFrom(from).Draw(t, name) }

func someShape(t *rapid.T) Shape {
	s := Shape{Requests: amount(t), Side: rapid.SampledFrom([]fleet.Class{fleet.Online, fleet.Offline}).Draw(t, "side"),
		Pool: rapid.SampledFrom([]fleet.PoolID{"", "", "", "", "a", "b"}).Draw(t, "pool"), Stable: some(t, "stable", 0, 0, 0, 1) == 1,
		Cells: rapid.SampledFrom([]CellPolicy{Float, OneCell, FewCells}).Draw(t, "cells"), Group: rapid.SampledFrom([]string{"", "web", "web", "other"}).Draw(t, "group"),
		Zones: rapid.Bool().Draw(t, "zones"), PerHost: int32(some(t, "host", 0, 0, 0, 1, 2))}
	if s.Requests.GPU > 0 {
		s.GPUModel = rapid.SampledFrom([]string{"", "g"}).Draw(t, "model")
	}
	return s
}

// dump is every byte of a table that a placement can depend on.
func dump(t *Table) string {
	t.settle()
	var b strings.Builder
	for i := range t.nodes {
		n := &t.nodes[i]
		fmt.Fprintln(&b, n.id, n.zone, n.home, n.from, n.to)
	}
	fmt.Fprintln(&b, t.zones, t.free, t.open, t.first, t.domainOf)
	fmt.Fprintf(&b, "%+v\n%+v\n%+v\n%+v\n", t.cells, t.domains, t.index, t.classes)
	fmt.Fprintln(&b, t.groupOf, t.groupZones, t.pods, t.spare, t.log, t.marks)
	return b.String()
}

// complain says what is wrong with a table: what its own columns say is compared with the pods that are on it.
func complain(t *Table) error {
	for ref := range t.pods {
		for _, h := range t.pods[ref].holds {
			if t.cells[h.cell].side != side(t.pods[ref].row&1) {
				return fmt.Errorf("pod %d holds cell %d of the other side", ref, h.cell)
			}
		}
	}
	for i, c := range t.cells {
		for d := range c.free {
			if c.free[d] < 0 {
				return fmt.Errorf("cell %d: %v free of %v", i, c.free, c.capacity)
			}
		}
	}
	return complainOfSums(t)
}

// complainOfSums says so of a table whose facts may overdraw it.
func complainOfSums(t *Table) error {
	zones := make([][]int32, len(t.groupZones))
	for g := range zones {
		zones[g] = make([]int32, len(t.zones))
	}
	held := make([][perCell]int64, len(t.cells))
	for row := range int32(len(t.open)) {
		want := t.capacity(row)
		for i := range t.claims {
			if x := &t.claims[i]; x.claimant != "" && x.row == row {
				for d := range t.free {
					want[d] -= x.left[d]
				}
				for _, h := range x.holds {
					for d, v := range h.amount {
						held[h.cell][d] += v
					}
				}
			}
		}
		if h, ok := t.held[row>>1]; ok {
			for d := range t.free {
				want[d] -= h.rows[row&1][d]
			}
			for _, x := range h.cells {
				for d, v := range x.amount {
					if row&1 == 0 {
						held[x.cell][d] += v
					}
				}
			}
		}
		before := PodRef(none)
		for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
			p := &t.pods[ref]
			if p.row != row || p.prev != before {
				return fmt.Errorf("row %d: its list is broken at pod %d", row, ref)
			}
			before = ref
			c, amount := &t.classes[p.class], t.amountOf(p)
			var sum [perCell]int64
			for _, h := range p.holds {
				for d, v := range h.amount {
					sum[d] += v
				}
			}
			if p.role != awaits {
				for d := range t.free {
					want[d] -= amount[d]
				}
				for _, h := range p.holds {
					for d, v := range h.amount {
						held[h.cell][d] += v
					}
				}
			}
			if len(p.holds) > 0 && sum != [perCell]int64(amount[:perCell]) {
				return fmt.Errorf("pod %d asks for %v and holds %v", ref, c.want, sum)
			}
			if c.group != none && (p.role == stays || p.role == awaits) && t.nodes[row>>1].known {
				zones[c.group][t.nodes[row>>1].zoneAt]++
			}
		}
		for d := range t.free {
			if t.free[d][row] != want[d] {
				return fmt.Errorf("row %d: %d of resource %d are free, and %d should be", row, t.free[d][row], d, want[d])
			}
		}
	}
	for i, c := range t.cells {
		for d := range held[i] {
			if c.free[d] != c.capacity[d]-held[i][d] {
				return fmt.Errorf("cell %d: %v free of %v, %v held", i, c.free, c.capacity, held[i])
			}
		}
	}
	if fmt.Sprint(zones) != fmt.Sprint(t.groupZones) {
		return fmt.Errorf("pods by zone: %v, and %v were counted", t.groupZones, zones)
	}
	return complainOfTrees(t)
}

func complainOfTrees(t *Table) error {
	t.settle()
	seen := make([]bool, len(t.open))
	for d := range t.domains {
		last := int32(none)
		var walk func(r int32) (vec, error)
		walk = func(r int32) (m vec, err error) {
			if r == none {
				return vec{-most, -most, -most, -most, -most}, nil
			}
			l, err := walk(t.index.left[r])
			if err != nil {
				return m, err
			}
			if t.domainOf[r] != int32(d) || !t.index.in[r] || seen[r] || t.index.room[r] != t.room(r) || last != none && !t.index.before(last, r) {
				return m, fmt.Errorf("row %d is wrong in the tree of domain %d", r, d)
			}
			seen[r], last = true, r
			m, err = walk(t.index.right[r])
			for i := range m {
				m[i] = max(m[i], l[i], t.index.room[r][i])
			}
			if err == nil && m != t.index.most[r] {
				err = fmt.Errorf("row %d: most is %v, and should be %v", r, t.index.most[r], m)
			}
			return m, err
		}
		if _, err := walk(t.domains[d].root); err != nil {
			return err
		}
	}
	for row, open := range t.open {
		if open != seen[row] {
			return fmt.Errorf("row %d is open: %v, in a tree: %v", row, open, seen[row])
		}
	}
	return nil
}

// CanPlace reports whether a pod of a class fits somewhere now.
func (t *Table) CanPlace(c ClassID) bool { return t.best(c) != none }
