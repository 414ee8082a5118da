package place

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// act does one thing to a table and reports whether anything was done. A placed pod must fit.
func act(r *rapid.T, t *Table) bool {
	someNode := func() fleet.NodeID {
		return t.nodes[rapid.IntRange(0, len(t.nodes)-1).Draw(r, "node")].id
	}
	fits := func(where []Placement) {
		for _, p := range where {
			row := t.pods[p.Pod].row
			if v := t.room(row); slices.Min(v[:]) < 0 {
				r.Fatalf("pod %d was placed on row %d, which has %v left", p.Pod, row, v)
			}
		}
	}
	switch rapid.SampledFrom([]string{"place", "place", "place", "remove", "gang", "open", "empty", "hand over"}).Draw(r, "do") {
	case "place":
		p, ok := t.Place(t.Class(someShape(r)))
		if ok {
			fits([]Placement{p})
		}
		return ok
	case "gang":
		var members []ClassID
		for range rapid.IntRange(1, 4).Draw(r, "members") {
			members = append(members, t.Class(someShape(r)))
		}
		before, log := len(t.pods)-len(t.spare), len(t.log)
		where, ok := t.Gang(members)
		if n := len(t.pods) - len(t.spare) - before; n != len(where) || ok && n != len(members) || !ok && (n != 0 || len(t.log) != log) {
			r.Fatalf("a gang of %d: %v, and %d more pods", len(members), ok, n)
		}
		fits(where)
		return ok
	case "remove":
		var refs []PodRef
		for i := range t.pods {
			if t.pods[i].role != 0 {
				refs = append(refs, PodRef(i))
			}
		}
		if len(refs) == 0 {
			return false
		}
		t.Remove(rapid.SampledFrom(refs).Draw(r, "pod"))
	case "open":
		t.SetOpen(someNode(), rapid.SampledFrom([]fleet.Class{fleet.Online, fleet.Offline}).Draw(r, "side"), rapid.Bool().Draw(r, "open"))
	case "empty":
		id := someNode()
		where, ok := t.Empty(id)
		fits(where)
		if row := t.row(id, fleet.Online); ok && len(t.lift(row, stays))+len(t.lift(row+1, stays)) > 0 {
			r.Fatalf("machine %s was emptied, and pods are on it: %v", id, where)
		}
		return ok
	case "hand over":
		id := someNode()
		c := rapid.SampledFrom(t.cellsOf(t.row(id, fleet.Online))).Draw(r, "cell")
		where, ok := t.HandOver(id, []int{c.id})
		fits(where)
		return ok
	}
	return true
}

// TestTable: whatever is done, the columns, lists, cells and trees say what the pods say; nothing is placed where it does not fit; what
// was refused changed nothing; and undoing restores every byte, however transactions nest.
func TestTable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tab := FromSnapshot(smallFleet(r))
		var was []string
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			switch k := rapid.IntRange(0, 9).Draw(r, "step"); {
			case k == 0:
				was = append(was, state(tab))
				tab.Begin()
			case k == 1 && len(was) > 0:
				tab.Rollback()
				if got, want := state(tab), was[len(was)-1]; got != want {
					r.Fatalf("rolled back to\n%swant\n%s", got, want)
				}
				was = was[:len(was)-1]
			case k == 2 && len(was) > 0:
				tab.Commit()
				was = was[:len(was)-1]
			default:
				before := state(tab)
				if !act(r, tab) && state(tab) != before {
					r.Fatalf("nothing was done, and the table is\n%sinstead of\n%s", state(tab), before)
				}
			}
			if err := complain(tab); err != nil {
				r.Fatal(err)
			}
		}
	})
}

// state is the dump of a table without the words that it learned, which are kept, and without the log.
func state(t *Table) string {
	t.settle()
	words := *t
	words.classes, words.groupOf, words.log, words.marks = nil, nil, nil, nil
	words.groupZones = nil
	for _, z := range t.groupZones {
		if slices.Max(append(z, 0)) > 0 || slices.Min(append(z, 0)) < 0 {
			words.groupZones = append(words.groupZones, z)
		}
	}
	return dump(&words)
}

// TestPlaceIsTheBest: what the trees find is what looking at every row finds.
func TestPlaceIsTheBest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tab := FromSnapshot(smallFleet(r))
		for range rapid.IntRange(0, 5).Draw(r, "steps") {
			act(r, tab)
		}
		shapes := []Shape{someShape(r), someShape(r), someShape(r)}
		for range rapid.IntRange(1, 15).Draw(r, "pods") {
			c := tab.Class(rapid.SampledFrom(shapes).Draw(r, "shape"))
			want := bestByLooking(tab, &tab.classes[c])
			p, ok := tab.Place(c)
			got := int32(none)
			if ok {
				got = tab.pods[p.Pod].row
			}
			if got != want {
				r.Fatalf("placed on row %d, the best is %d", got, want)
			}
		}
	})
}

func bestByLooking(t *Table, c *class) int32 {
	best, s := int32(none), c.shape
	score := func(row int32) []int64 {
		n := t.nodes[row>>1]
		v := t.room(row)
		var k []int64
		if s.Zones && c.group != none {
			k = append(k, int64(t.groupZones[c.group][n.zoneAt]))
		}
		k = append(k, 0)
		if n.kind.Allocatable.GPU > 0 && s.Requests.GPU == 0 {
			k[len(k)-1] += 2
		}
		if side(row&1) == n.home == (s.Side == fleet.Offline) {
			k[len(k)-1]++
		}
		return append(k, v[gpus], v[cpu], int64(row))
	}
	for row := range int32(len(t.open)) {
		n := t.nodes[row>>1]
		v := t.room(row)
		v[hole] = most
		fit := t.open[row] && v.fits(&c.want) && side(row&1) == sideOf(s.Side) && (s.Pool == "" || s.Pool == n.pool) &&
			(!s.Stable || side(row&1) == n.home) && (s.Requests.GPU == 0 || s.GPUModel == "" || s.GPUModel == n.kind.GPUModel) &&
			(c.perHost() == 0 || t.onHost(c.group, row>>1) < s.PerHost)
		if fit && s.Cells != Float {
			_, fit = t.tryCells(slices.Clone(t.cellsOf(row)), &n, side(row&1), &c.want, s.Cells)
		}
		if fit && (best == none || slices.Compare(score(row), score(best)) < 0) {
			best = row
		}
	}
	return best
}

// TestFitsIsWhatPlaceDoes: Fits counts what Place can place, in total, by pool and on each machine.
func TestFitsIsWhatPlaceDoes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tab := FromSnapshot(smallFleet(r))
		for range rapid.IntRange(0, 6).Draw(r, "steps") {
			act(r, tab)
		}
		c := tab.Class(someShape(r))
		f := tab.Fits(c)
		var on, byPool int64
		for i := range tab.nodes {
			on += fitsOn(tab, c, tab.nodes[i].id)
		}
		for _, p := range f.ByPool {
			byPool += p.Pods
		}
		var placed int64
		for _, ok := tab.Place(c); ok; _, ok = tab.Place(c) {
			placed++
		}
		if f.Total != placed || on != placed || byPool != placed {
			r.Fatalf("%d were placed; Fits says %+v, machines %d, pools %d", placed, f, on, byPool)
		}
		if g := f.Fragmentation(); g < 0 || g > 1 {
			r.Fatalf("a fragmentation of %v: %+v", g, f)
		}
	})
}

// TestGangAgainstSearch: a gang of equal pods that float or want one cell is placed exactly when a search over all ways finds one; any
// gang that is placed, the search finds too.
func TestGangAgainstSearch(t *testing.T) {
	refused := 0
	rapid.Check(t, func(r *rapid.T) {
		s := smallFleet(r)
		s.Nodes = s.Nodes[:min(len(s.Nodes), 3)]
		tab := FromSnapshot(s)
		equal := rapid.Bool().Draw(r, "equal")
		shape := func() Shape {
			s := someShape(r)
			s.Cells %= 2 // the search knows Float and OneCell
			s.Requests.CPU = max(s.Requests.CPU, 1)
			return s
		}
		one := tab.Class(shape())
		members := []ClassID{one}
		for range rapid.IntRange(0, 3).Draw(r, "more") {
			if !equal {
				one = tab.Class(shape())
			}
			members = append(members, one)
		}
		slices.SortFunc(members, tab.largestFirst) // PerHost counts who was there first
		possible := search(tab, members)
		_, ok := tab.Gang(members)
		switch {
		case ok && !possible:
			r.Fatal("the gang was placed where there is no way to")
		case !ok && possible && equal:
			r.Fatal("the gang was refused, and there is a way")
		case !ok && possible:
			refused++
		}
	})
	t.Logf("%d gangs of unlike pods were refused that could have been placed", refused)
}

// search tries every row and cell for every member.
func search(t *Table, members []ClassID) bool {
	if len(members) == 0 {
		return true
	}
	c := &t.classes[members[0]]
	for row := range int32(len(t.open)) {
		v := t.room(row)
		v[hole] = most
		if !t.open[row] || !v.fits(&c.want) || !c.shape.mayUse(&t.domains[t.domainOf[row]]) || c.perHost() > 0 && t.onHost(c.group, row>>1) >= c.perHost() {
			continue
		}
		ways := [][]cellHold{nil}
		if c.shape.Cells == OneCell {
			ways = nil
			for i := t.nodes[row>>1].from; i < t.nodes[row>>1].to; i++ {
				amount := [perCell]int64(c.want[:perCell])
				if t.cells[i].side == side(row&1) && t.cells[i].has(amount) {
					ways = append(ways, []cellHold{{i, amount}})
				}
			}
		}
		for _, w := range ways {
			if t.Would(func() bool {
				t.put(pod{class: members[0], row: row, role: stays, holds: w})
				return search(t, members[1:])
			}) {
				return true
			}
		}
	}
	return false
}

// TestOrderOfFactsDoesNotMatter: a snapshot whose lists are shuffled gives the same table, and members given in another order go to the
// same places.
func TestOrderOfFactsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := smallFleet(r)
		var shapes []Shape
		for range rapid.IntRange(1, 5).Draw(r, "members") {
			shapes = append(shapes, someShape(r))
		}
		result := func(s *fleet.Snapshot, order []int) string {
			tab := FromSnapshot(s)
			empty := dump(tab)
			var members []ClassID
			for _, s := range shapes {
				tab.Class(s)
			}
			for _, i := range order {
				members = append(members, tab.Class(shapes[i]))
			}
			where, ok := tab.Gang(members)
			var lines []string
			for i, p := range where {
				lines = append(lines, fmt.Sprint(members[i], p.Node, p.Cells))
			}
			slices.Sort(lines)
			return fmt.Sprint(empty, ok, lines)
		}
		order := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(r, "shuffle")))
		shuffled := fleet.Snapshot{Nodes: shuffle(order, s.Nodes), Pods: shuffle(order, s.Pods), Pools: shuffle(order, s.Pools),
			Services: shuffle(order, s.Services), Jobs: s.Jobs, Loans: shuffle(order, s.Loans)}
		inOrder := make([]int, len(shapes))
		for i := range inOrder {
			inOrder[i] = i
		}
		if got, want := result(&shuffled, order.Perm(len(shapes))), result(s, inOrder); got != want {
			r.Fatalf("shuffled:\n%s\nin order:\n%s", got, want)
		}
	})
}

func shuffle[T any](order *rand.Rand, list []T) []T {
	out := slices.Clone(list)
	order.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// TestSaturation: amounts beyond all measure are bounded, and their sums do not wrap round into room.
func TestSaturation(t *testing.T) {
	s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "online", Class: fleet.Online}}, Nodes: []fleet.Node{machine(0)}}
	for i := range 4000 {
		s.Pods = append(s.Pods, fleet.Pod{Name: fleet.Name{Name: fmt.Sprintf("%04d", i)}, Node: s.Nodes[0].ID, NodeName: "m00", Class: fleet.PodOnline,
			Phase: fleet.PodRunning, Requests: fleet.Resources{CPU: 1 << 62, Memory: 1 << 62, GPU: -3}})
	}
	tab := FromSnapshot(s)
	if v := tab.room(0); v[cpu] >= 0 || v[memory] >= 0 || v[gpus] != 0 {
		t.Errorf("room %v", v)
	}
	if f := tab.Fits(tab.Class(Shape{Side: fleet.Online, Requests: fleet.Resources{CPU: 1}})); f.Total != 0 || f.Fragmentation() != 0 {
		t.Errorf("an overdrawn machine has room: %+v", f)
	}
}

// TestMisuse: what no fact can bring about is a mistake of the caller, and says so.
func TestMisuse(t *testing.T) {
	for name, do := range map[string]func(*Table){
		"unknown machine": func(t *Table) { t.SetOpen("nobody", fleet.Online, true) },
		"unknown cell":    func(t *Table) { t.HandOver("uid-000000", []int{7}) },
		"no transaction":  func(t *Table) { t.Commit() },
		"gone pod": func(t *Table) {
			p, _ := t.Place(t.Class(Shape{Side: fleet.Online}))
			t.Remove(p.Pod)
			t.Remove(p.Pod)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("was accepted")
				}
			}()
			do(FromSnapshot(&fleet.Snapshot{Pools: []fleet.Pool{{ID: "online", Class: fleet.Online}}, Nodes: []fleet.Node{machine(0)}}))
		})
	}
}

// TestSocketFit is what a machine of two sockets with two cells of 16 cores each can keep on one of them.
func TestSocketFit(t *testing.T) {
	for _, c := range []struct {
		name   string
		cores  []int64
		memory fleet.Bytes // of each pod, in GiB
		want   bool
	}{
		{"four of eight cores fill one socket", []int64{8, 8, 8, 8}, 16, true},
		{"three of eleven cores fit no two cells of sixteen", []int64{11, 11, 11}, 1, false},
		{"more than the socket", []int64{16, 16, 1}, 1, false},
		{"a pod larger than a cell takes whole cells", []int64{32}, 1, true},
		{"and what is left of the last one", []int64{20, 12}, 1, true},
		{"their memory is more than the socket's", []int64{1, 1, 1}, 50, false},
		{"their memory fits the socket, and not its cells", []int64{1, 1, 1}, 40, false},
		{"of 36 cores no three fit a socket, and whole cells of both were tried", []int64{36}, 1, false},
		{"nobody", nil, 0, true},
	} {
		s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "online", Class: fleet.Online}}, Nodes: []fleet.Node{machine(0)}}
		for i, cores := range c.cores {
			s.Pods = append(s.Pods, fleet.Pod{ID: fleet.UID(fmt.Sprint(i)), Name: fleet.Name{Name: fmt.Sprint(i)}, Node: s.Nodes[0].ID, NodeName: "m00", Class: fleet.PodOnline,
				Phase: fleet.PodRunning, Requests: fleet.Resources{CPU: fleet.MilliCPU(cores * 1000), Memory: c.memory * fleet.GiB}})
		}
		kept, ok := FromSnapshot(s).HandOver(s.Nodes[0].ID, []int{2, 3})
		if ok != c.want {
			t.Errorf("%s: %v, %+v", c.name, ok, kept)
		}
		slices.SortFunc(kept, func(a, b Placement) int { return cmp.Compare(a.UID, b.UID) })
		for i, p := range kept {
			if p.UID != s.Pods[i].ID || len(p.Cells) == 0 || slices.Max(p.Cells) > 1 {
				t.Errorf("%s: %+v holds cells that were given away", c.name, p)
			}
		}
	}
}

// fitsOn counts the pods of a class that Fits counts on one machine.
func fitsOn(t *Table, id ClassID, machine fleet.NodeID) int64 {
	c := &t.classes[id]
	row := t.row(machine, c.shape.Side)
	if !t.open[row] || !slices.ContainsFunc(c.domains, func(ch choice) bool { return ch.domain == t.domainOf[row] }) {
		return 0
	}
	v := t.room(row)
	return t.count(c, row, &v)
}
