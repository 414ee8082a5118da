package place

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/rules"
)

// twin lists the machines for a pod as a decision should see them, best first, by looking at every machine.
func twin(t *Table, id ClassID) (names []string) {
	c := &t.classes[id]
	usable := func(i int32) bool { return t.open[2*i+int32(c.side)] && t.fixed(c, 2*i+int32(c.side)) == FilterNone }
	inZone := map[string]int32{}
	least := int32(-1)
	for i := range t.nodes {
		for row := 2 * i; row < 2*i+2; row++ {
			for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
				if p := &t.pods[ref]; c.group != none && t.nodes[i].known && p.role == stays && t.classes[p.class].group == c.group {
					inZone[t.nodes[i].zone]++
				}
			}
		}
	}
	for i := range t.nodes {
		if usable(int32(i)) && (least < 0 || inZone[t.nodes[i].zone] < least) {
			least = inZone[t.nodes[i].zone]
		}
	}
	scores := map[string]int64{}
	for i := range t.nodes {
		row := 2*int32(i) + int32(c.side)
		n := &t.nodes[i]
		f, holds := t.judge(c, row)
		more := int64(inZone[n.zone] - least)
		if f != FilterNone || c.group != none && c.shape.ZoneSkew > 0 && more+1 > int64(c.shape.ZoneSkew) {
			continue
		}
		s := t.score(c, row, holds).Total
		if c.group != none && c.shape.Zones {
			s += t.weights.of(c.side).Zones * (whole - whole/10*min(max(more, 0), 10))
		}
		names, scores[n.name] = append(names, n.name), s
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	return names
}

// someMachine draws a machine: cells, roots, loans, labels, taints and all.
func someMachine(r *rapid.T, k int) Machine {
	name := fmt.Sprint("n", k)
	m := Machine{ID: fleet.NodeID("id-" + name), Name: name, Pool: rapid.SampledFrom([]fleet.PoolID{"a", "b"}).Draw(r, "pool"), Home: fleet.Online,
		Zone: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(r, "zone"), Ephemeral: fleet.Bytes(some(r, "ephemeral", 0, 10, 10))}
	if m.Pool == "b" {
		m.Home, m.Borrower = fleet.Offline, "a"
	}
	each := fleet.Resources{CPU: fleet.MilliCPU(rapid.IntRange(2, 6).Draw(r, "cpu")), Memory: fleet.Bytes(rapid.IntRange(2, 6).Draw(r, "memory"))}
	if some(r, "gpu", 0, 0, 1) == 1 {
		each.GPU, m.GPUModel = 2, rapid.SampledFrom([]string{"g", "h"}).Draw(r, "model")
	}
	cells := rapid.SampledFrom([]int{0, 2, 4}).Draw(r, "cells")
	for c := range cells {
		m.Cells = append(m.Cells, Cell{Cell: fleet.Cell{ID: c, Socket: c * 2 / cells, Capacity: each},
			Holder: rapid.SampledFrom([]Holder{AtHome, AtHome, AtHome, HeldOnline, HeldOffline, Moving}).Draw(r, "holder")})
	}
	m.Allocatable = each.Times(int64(max(cells, 1))).Add(fleet.Resources{Pods: int64(some(r, "pods", 20, 20, 5))})
	m.Labels = rules.LabelsOf(map[string]string{"disk": rapid.SampledFrom([]string{"ssd", "hdd"}).Draw(r, "disk"), "rack": fmt.Sprint(k % 3)})
	if some(r, "taint", 0, 0, 1) == 1 {
		m.Taints = []rules.Taint{{Key: "k", Value: "v", Effect: rapid.SampledFrom([]rules.Effect{rules.NoSchedule, rules.PreferNoSchedule}).Draw(r, "effect")}}
	}
	m.Unschedulable = some(r, "cordon", 0, 0, 0, 0, 1) == 1
	m.Closed.Offline = some(r, "closed", 0, 0, 0, 1) == 1
	for c := range cells {
		if each.GPU > 0 && k%2 == 0 { // half of the machines with GPUs say what hangs on which root
			m.Roots = append(m.Roots, Root{Cell: c, GPUs: 2, NICs: int64(c % 2)})
		}
	}
	if some(r, "fpga", 0, 0, 1) == 1 {
		m.Extended = rules.Amounts{{Name: "fpga", Value: 2}}
	}
	for _, name := range []string{"web:1", "side:1"} {
		if some(r, name, 0, 0, 1) == 1 {
			m.Images = append(m.Images, Image{name, fleet.Bytes(some(r, "size", 10, 700, 1500)) << 20})
		}
	}
	return m
}

// wildShape draws a shape with all that one can ask for.
func wildShape(r *rapid.T) Shape {
	s := someShape(r)
	s.Cells = rapid.SampledFrom([]CellPolicy{Float, Float, OneCell, FewCells, PreferCells, OneSocket, Restricted}).Draw(r, "policy")
	s.OneRoot = s.Requests.GPU > 0 && rapid.Bool().Draw(r, "root")
	s.Exclusive = s.Cells != Float && some(r, "exclusive", 0, 0, 1) == 1
	s.ZoneSkew = int32(some(r, "skew", 0, 0, 1, 2))
	s.Priority = int32(some(r, "priority", 0, 0, 1, 2))
	s.Guaranteed = rapid.Bool().Draw(r, "guaranteed")
	if some(r, "holder", 0, 0, 0, 1) == 1 {
		s.Holder = "a"
	}
	if some(r, "needs", 0, 1) == 0 {
		return s
	}
	n := &Needs{Ephemeral: fleet.Bytes(some(r, "ephemeral", 0, 0, 3))}
	if some(r, "fpga", 0, 0, 1) == 1 {
		n.Extended = rules.Amounts{{Name: "fpga", Value: 1}}
	}
	if s.OneRoot {
		n.NICs = int64(some(r, "nics", 0, 1))
	}
	if some(r, "image", 0, 1) == 1 {
		n.Images, n.Sources = []string{"web:1", rapid.SampledFrom([]string{"side:1", "gone:1", "web:1"}).Draw(r, "sidecar")}, 2
	}
	if some(r, "port", 0, 0, 1) == 1 {
		n.Ports = []rules.Port{{Port: 80}}
	}
	if some(r, "tolerates", 0, 1) == 1 {
		n.Tolerations = []rules.Toleration{{Key: "k", Value: "v"}}
	}
	ssd := rules.Term{Labels: []rules.Requirement{{Key: "disk", Op: rules.In, Values: []string{"ssd"}}}}
	if some(r, "selector", 0, 0, 1) == 1 {
		n.Selector = rules.Selector{Required: true, Terms: []rules.Term{ssd}}
	} else if some(r, "pinned", 0, 0, 0, 1) == 1 {
		n.Selector = rules.Selector{Required: true, Terms: []rules.Term{{Names: []rules.Requirement{{Key: "metadata.name", Op: rules.In, Values: []string{"n1"}}}}}}
	}
	if some(r, "preferred", 0, 0, 1) == 1 {
		n.Preferred = []rules.Weighted{{Weight: 3, Term: ssd}}
	}
	s.Needs = n
	return s
}

// world is a table and the changes that it got.
type world struct {
	rootless bool
	tab      *Table
	machines map[int]Machine
	pods     map[PodRef]fact
	shapes   []Shape
	claims   bool // some room is set aside, for none of the shapes
}

type fact struct {
	shape Shape
	node  fleet.NodeID
	cells []int
}

// explainEach counts what became of every machine one by one; where a class names its machines, the others are none that it asks for.
func explainEach(t *Table, id ClassID) (e Explanation) {
	c := &t.classes[id]
	for row := int32(c.side); int(row) < len(t.open); row += 2 {
		n := &t.nodes[row>>1]
		if !n.known {
			continue
		}
		e.Machines++
		f := FilterSelector
		if c.pinned == nil || slices.Contains(c.pinned, n.name) {
			f = t.filterOn(c, row)
		}
		if f != FilterNone {
			e.Removed[f]++
		}
	}
	return e
}

func newWorld(r *rapid.T) *world { return (&world{}).begin(r) }

func (w *world) begin(r *rapid.T) *world {
	*w = world{rootless: w.rootless, tab: New(), machines: map[int]Machine{}, pods: map[PodRef]fact{}}
	for k := range rapid.IntRange(1, 6).Draw(r, "machines") {
		w.machines[k] = w.machine(r, k)
		w.tab.SetMachine(w.machines[k])
	}
	for range rapid.IntRange(1, 5).Draw(r, "shapes") {
		s := wildShape(r)
		s.OneRoot = s.OneRoot && !w.rootless
		w.shapes = append(w.shapes, s)
	}
	return w
}

func (w *world) machine(r *rapid.T, k int) Machine {
	m := someMachine(r, k)
	if w.rootless {
		m.Roots = nil
	}
	return m
}

func (w *world) shape(r *rapid.T) Shape { return rapid.SampledFrom(w.shapes).Draw(r, "shape") }

func (w *world) somePod(r *rapid.T) (PodRef, bool) {
	var all []PodRef
	for p := range w.tab.Pods() {
		all = append(all, p.Pod)
	}
	if len(all) == 0 {
		return 0, false
	}
	return rapid.SampledFrom(all).Draw(r, "pod"), true
}

// step does one thing, and checks a decision against the twin.
func (w *world) step(r *rapid.T) {
	t := w.tab
	k := rapid.IntRange(0, 7).Draw(r, "machine")
	switch rapid.SampledFrom([]string{"decide", "decide", "decide", "decide", "set", "remove", "bound", "gone", "gone", "undo", "leaving", "claim"}).Draw(r, "do") {
	case "decide":
		s := w.shape(r)
		c := t.Class(s)
		want := twin(t, c)
		var listed []string
		for x := range t.Candidates(c) {
			listed = append(listed, x.Name)
		}
		asked := t.classes[c].asked
		e := t.Explain(c)
		if best := append(slices.Clone(want), "", ""); e.Fit != len(want) || !slices.Equal(listed, want) || e.Name != best[0] || e.Next != best[1] {
			r.Fatalf("%+v: explained as %+v, candidates %v, the twin's %v", s, e, listed, want)
		}
		if each := explainEach(t, c); e.Machines != each.Machines || e.Removed != each.Removed {
			r.Fatalf("%+v, asked before: %v: explained as %v of %d machines, one by one as %v of %d", s, asked, e.Removed, e.Machines, each.Removed, each.Machines)
		}
		if t.classes[c].pinned == nil && len(t.claimed) == 0 {
			t.Would(func() bool {
				if d, ok := t.Scan(c); ok != (len(want) > 0) || ok && d.Name != want[0] {
					r.Fatalf("%+v: a scan decided %q, the twin's %v", s, d.Name, want)
				}
				return true
			})
		}
		d, ok := t.Decide(c)
		if ok != (len(want) > 0) || ok && d.Name != want[0] {
			r.Fatalf("%+v: decided %q, the twin's %v", s, d.Name, want)
		}
		if ok {
			w.pods[d.Pod] = fact{s, d.Node, d.Cells}
			row := t.pods[d.Pod].row
			for x := range t.free {
				if t.classes[c].want[x] > 0 && t.freeFor(row, x) < 0 {
					r.Fatalf("%s was oversold: %d of resource %d", d.Name, t.freeFor(row, x), x)
				}
			}
		}
	case "set":
		w.machines[k] = w.machine(r, k)
		t.SetMachine(w.machines[k])
	case "remove":
		t.RemoveMachine(fleet.NodeID(fmt.Sprint("id-n", k)))
		delete(w.machines, k)
	case "bound":
		s, id := w.shape(r), fleet.NodeID(fmt.Sprint("id-n", k))
		w.pods[t.Bound(s, id, "u", nil)] = fact{s, id, nil}
	case "gone":
		if ref, ok := w.somePod(r); ok {
			t.Remove(ref)
			delete(w.pods, ref)
		}
	case "claim":
		if !w.claims {
			return
		}
		t.Release(ClaimID(k))
		t.Reserve(Claim{Node: fleet.NodeID(fmt.Sprint("id-n", k)), Side: fleet.Online, Claimant: "others", Room: amount(r), Cells: []int{0, k % 4}})
	case "undo":
		t.Would(func() bool {
			for range rapid.IntRange(1, 4).Draw(r, "trial") {
				t.Decide(t.Class(w.shape(r)))
			}
			return true
		})
	case "leaving":
		if ref, ok := w.somePod(r); ok && t.pods[ref].role == stays {
			t.Leaving(ref)
			if rapid.Bool().Draw(r, "stays after all") {
				t.Stays(ref)
				return
			}
			t.Remove(ref)
			delete(w.pods, ref)
		}
	}
}

// again builds a table from what is known at the end.
func (w *world) again(r *rapid.T) *Table {
	t := New()
	var order []int
	for k := range w.machines {
		order = append(order, k)
	}
	slices.Sort(order)
	refs := make([]PodRef, 0, len(w.pods))
	for ref := range w.pods {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	late := rapid.Bool().Draw(r, "pods first")
	put := func() {
		for _, ref := range rapid.Permutation(refs).Draw(r, "order of pods") {
			f := w.pods[ref]
			t.Bound(f.shape, f.node, "u", f.cells)
		}
	}
	if late {
		put()
	}
	for _, k := range rapid.Permutation(order).Draw(r, "order of machines") {
		t.SetMachine(w.machines[k])
	}
	if !late {
		put()
	}
	return t
}

// TestDecideAgainstTwin: whatever was done before, a decision is the one that looking at every machine gives, and nothing is oversold.
func TestDecideAgainstTwin(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		w.claims = true
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			w.step(r)
			if err := complainOfSums(w.tab); err != nil {
				r.Fatal(err)
			}
		}
	})
}

// TestChangedIsBuiltAgain: a table that was changed decides as one that is built from the outcome. Which root a pod with GPUs is on no binding says, so
// there are no roots here.
func TestChangedIsBuiltAgain(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := (&world{rootless: true}).begin(r)
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			w.step(r)
		}
		other := w.again(r)
		for range 6 {
			s := w.shape(r)
			a, okA := w.tab.Decide(w.tab.Class(s))
			b, okB := other.Decide(other.Class(s))
			if okA != okB || a.Name != b.Name || !slices.Equal(a.Cells, b.Cells) {
				r.Fatalf("%+v: the changed table chose %+v, the new one %+v", s, a, b)
			}
		}
	})
}
