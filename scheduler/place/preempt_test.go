package place

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// lowest finds by trying every set of victims on every machine the lowest standing that the highest victim can have; false where no set helps.
func lowest(t *Table, id ClassID, protected map[PodRef]bool) (best level, found bool) {
	c := &t.classes[id]
	zones := t.zonesOf(c)
	for i := range int32(len(t.nodes)) {
		row := 2*i + int32(c.side)
		var may []PodRef
		for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
			if p := &t.pods[ref]; p.role == stays && !protected[ref] && t.classes[p.class].shape.level().compare(c.shape.level()) < 0 {
				may = append(may, ref)
			}
		}
		for set := 1; set < 1<<len(may); set++ {
			var highest level
			first := true
			t.Begin()
			for k, ref := range may {
				if set>>k&1 == 1 {
					if l := t.classes[t.pods[ref].class].shape.level(); first || l.compare(highest) > 0 {
						highest, first = l, false
					}
					t.Remove(ref)
				}
			}
			f, _ := t.judge(c, row)
			t.Rollback()
			if f == FilterNone && zones.allow(t.nodes[i].zoneAt) && (!found || highest.compare(best) < 0) {
				best, found = highest, true
			}
		}
	}
	return best, found
}

// TestPreemptAgainstSearch: a preemption is found where one helps, its victims are enough, none of them could stay, and the highest of them stands as
// low as any search finds.
func TestPreemptAgainstSearch(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		for range rapid.IntRange(5, 30).Draw(r, "steps") {
			w.step(r)
		}
		s := w.shape(r)
		s.Priority, s.Guaranteed = 1+s.Priority, true
		c := w.tab.Class(s)
		if w.tab.CanPlace(c) {
			return
		}
		protected := map[PodRef]bool{}
		for p := range w.tab.Pods() {
			protected[p.Pod] = some(r, "protected", 0, 0, 0, 1) == 1
		}
		facts := &PreemptionFacts{Pod: func(ref PodRef) PodFacts { return PodFacts{Protected: protected[ref]} }}
		want, found := lowest(w.tab, c, protected)
		before := state(w.tab)
		p, ok := w.tab.Preempt(c, facts)
		if after := state(w.tab); after != before {
			r.Fatalf("a question changed the table:\n%s\n%s", before, after)
		}
		if ok != found || ok && (level{p.Guaranteed, p.Highest}) != want {
			r.Fatalf("found %v %+v; a search: %v %+v", ok, p, found, want)
		}
		if !ok {
			return
		}
		fits := func(keep int) bool {
			return w.tab.Would(func() bool {
				for k, ref := range p.Victims {
					if k != keep {
						w.tab.Remove(ref)
					}
				}
				_, ok := w.tab.Assume(c, p.Node)
				return ok
			})
		}
		if !fits(-1) {
			r.Fatalf("%+v is not enough", p)
		}
		for k := range p.Victims {
			if protected[p.Victims[k]] || fits(k) {
				r.Fatalf("%+v: victim %d could have stayed", p, k)
			}
		}
		d := w.tab.Nominate(p)
		if err := complainOfSums(w.tab); err != nil || d.Node != p.Node {
			r.Fatal(err, d)
		}
		for _, ref := range p.Victims {
			w.tab.Remove(ref)
		}
		if n := w.tab.pods[d.Pod]; !w.tab.Settled(d.Pod) && w.tab.freeFor(n.row, cpu) >= 0 && s.Requests.Memory > 0 && w.tab.freeFor(n.row, memory) < 0 {
			r.Fatalf("%s is overdrawn after its victims went", d.Name)
		}
	})
}

// TestPreemptionSpares: budgets before standing, standing before number, gangs as a whole, and pods that started a short time ago not at all.
func TestPreemptionSpares(t *testing.T) {
	tab := New()
	refs := map[string]PodRef{}
	for _, n := range []string{"a", "b", "c", "d"} {
		tab.SetMachine(plain(n))
		for k := range 4 {
			refs[fmt.Sprint(n, k)] = tab.Bound(Shape{Side: fleet.Online, Requests: cores(16), Priority: map[string]int32{"a": 1, "b": 1, "c": 2, "d": 0}[n]},
				fleet.NodeID("id-"+n), fleet.UID(fmt.Sprint(n, k)), nil)
		}
	}
	c := tab.Class(Shape{Side: fleet.Online, Requests: cores(20), Priority: 5})
	of := func(n string) (out []PodRef) {
		for k := range 4 {
			out = append(out, refs[fmt.Sprint(n, k)])
		}
		return out
	}
	for _, x := range []struct {
		name      string
		facts     PreemptionFacts
		protect   string
		budget    string
		gang      string
		node      fleet.NodeID
		victims   int
		broken    int
		wantFails bool
	}{
		{name: "the lowest", node: "id-d", victims: 2},
		{name: "the next lowest, the first by name", protect: "d", node: "id-a", victims: 2},
		{name: "the budget of the lowest allows one", budget: "d", facts: PreemptionFacts{Allowed: []int{1}}, node: "id-a", victims: 2},
		{name: "a gang goes as a whole", gang: "d", facts: PreemptionFacts{Gangs: []GangFacts{{Min: 3, Members: of("d")}}}, node: "id-d", victims: 4},
		{name: "a gang that can do without two", gang: "d", facts: PreemptionFacts{Gangs: []GangFacts{{Min: 2, Members: of("d")}}}, node: "id-d", victims: 2},
		{name: "all are protected", protect: "abcd", wantFails: true},
		{name: "all budgets are spent", budget: "abcd", facts: PreemptionFacts{Allowed: []int{0}}, node: "id-d", victims: 2, broken: 2},
	} {
		x.facts.Pod = func(ref PodRef) (f PodFacts) {
			in := func(set string) bool {
				for _, n := range set {
					if slices.Contains(of(string(n)), ref) {
						return true
					}
				}
				return false
			}
			f.Protected = in(x.protect)
			if in(x.budget) {
				f.Budgets = []int{0}
			}
			if in(x.gang) {
				f.Gang = 1
			}
			return f
		}
		p, ok := tab.Preempt(c, &x.facts)
		if ok == x.wantFails || ok && (p.Node != x.node || len(p.Victims) != x.victims || p.Broken != x.broken) {
			t.Errorf("%s: %v, %+v", x.name, ok, p)
		}
	}
	for k, ref := range of("d") {
		if k < 3 {
			tab.Leaving(ref)
		}
	}
	if p, ok := tab.Preempt(tab.Class(Shape{Side: fleet.Online, Requests: cores(20), Priority: 0}), &PreemptionFacts{}); ok {
		t.Errorf("a pod took %+v of its own standing", p)
	}
	if !tab.CanPlace(tab.Class(Shape{Side: fleet.Online})) {
		t.Error("a full machine has a place for a pod that asks for nothing")
	}
}

// TestGuaranteedComesFirst: a best-effort pod of any priority goes before a guaranteed one.
func TestGuaranteedComesFirst(t *testing.T) {
	tab := New()
	tab.SetMachine(plain("a"))
	best := tab.Bound(Shape{Side: fleet.Online, Requests: cores(32), Priority: 100}, "id-a", "best-effort", nil)
	tab.Bound(Shape{Side: fleet.Online, Requests: cores(32), Priority: 1, Guaranteed: true}, "id-a", "guaranteed", nil)
	p, ok := tab.Preempt(tab.Class(Shape{Side: fleet.Online, Requests: cores(32), Priority: 2, Guaranteed: true}), &PreemptionFacts{})
	if !ok || !slices.Equal(p.Victims, []PodRef{best}) {
		t.Errorf("%v, %+v", ok, p)
	}
	d := tab.Nominate(p)
	if tab.Settled(d.Pod) || tab.CanPlace(tab.Class(Shape{Side: fleet.Online, Requests: cores(1)})) {
		t.Error("the machine has room before its victim is gone")
	}
	if tab.Remove(best); !tab.Settled(d.Pod) {
		t.Error("the victim is gone, and the machine is full")
	}
}

// TestLowerStandingAppears: a machine with pods of a lower standing than all that were known comes first, however many machines were looked at before.
func TestLowerStandingAppears(t *testing.T) {
	tab := New()
	var last PodRef
	for k := range 2 * mostTried {
		m := plain(fmt.Sprintf("m%02d", k))
		tab.SetMachine(m)
		for _, n := range [][]int64{{20, 20}, {10, 10, 10, 20}}[k/mostTried] {
			last = tab.Bound(Shape{Side: fleet.Online, Requests: cores(n), Priority: 5}, m.ID, "u", nil)
		}
	}
	c := tab.Class(Shape{Side: fleet.Online, Requests: cores(30), Priority: 9})
	tab.Preempt(c, &PreemptionFacts{})
	tab.Remove(last)
	for range 5 {
		tab.Bound(Shape{Side: fleet.Online, Requests: cores(4), Priority: 1}, "id-m31", "u", nil)
	}
	p, ok := tab.Preempt(c, &PreemptionFacts{})
	if !ok || p.Node != "id-m31" || p.Highest != 1 || len(p.Victims) != 4 {
		t.Errorf("%v, %+v", ok, p)
	}
}
