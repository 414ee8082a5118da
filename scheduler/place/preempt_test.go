package place

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/rules"
)

// lowest finds by trying every set of victims on every machine the lowest standing that the highest victim can have; false where no set helps.
func lowest(t *Table, id ClassID, protected map[PodRef]bool) (best precedence, found bool) {
	c := &t.classes[id]
	zones := t.zonesOf(c)
	for i := range int32(len(t.nodes)) {
		row := 2*i + int32(c.side)
		var may []PodRef
		for ref := t.first[row]; ref != none; ref = t.pods[ref].next {
			if p := &t.pods[ref]; p.role == stays && !protected[ref] && t.classes[p.class].shape.precedence().compare(c.shape.precedence()) < 0 {
				may = append(may, ref)
			}
		}
		for set := 1; set < 1<<len(may); set++ {
			var highest precedence
			first := true
			t.Begin()
			for k, ref := range may {
				if set>>k&1 == 1 {
					if l := t.classes[t.pods[ref].class].shape.precedence(); first || l.compare(highest) > 0 {
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
		if ok != found || ok && (precedence{p.Highest, p.Guaranteed}) != want {
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
		if !w.tab.Settle(d.Pod) {
			r.Fatalf("%s has no room after its victims went", d.Name)
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
		{name: "a gang goes as a whole, the rest of it against its budget", protect: "abc", budget: "d", gang: "d",
			facts: PreemptionFacts{Allowed: []int{2}, Gangs: []GangFacts{{Min: 3, Members: of("d")}}}, node: "id-d", victims: 4, broken: 2},
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

// TestGuaranteedComesFirst: of equal priority one that is not guaranteed goes before a guaranteed one, and no guaranteed pod takes one of higher priority.
func TestGuaranteedComesFirst(t *testing.T) {
	tab := New()
	tab.SetMachine(plain("a"))
	best := tab.Bound(Shape{Side: fleet.Online, Requests: cores(32), Priority: 1}, "id-a", "best-effort", nil)
	tab.Bound(Shape{Side: fleet.Online, Requests: cores(32), Priority: 1, Guaranteed: true}, "id-a", "guaranteed", nil)
	if p, ok := tab.Preempt(tab.Class(Shape{Side: fleet.Online, Requests: cores(32), Priority: 0, Guaranteed: true}), &PreemptionFacts{}); ok {
		t.Errorf("a guaranteed pod took %+v of higher priority", p)
	}
	p, ok := tab.Preempt(tab.Class(Shape{Side: fleet.Online, Requests: cores(32), Priority: 2, Guaranteed: true}), &PreemptionFacts{})
	if !ok || !slices.Equal(p.Victims, []PodRef{best}) {
		t.Errorf("%v, %+v", ok, p)
	}
	d := tab.Nominate(p)
	if tab.Settle(d.Pod) || tab.CanPlace(tab.Class(Shape{Side: fleet.Online, Requests: cores(1)})) {
		t.Error("the machine has room before its victim is gone")
	}
	if tab.Remove(best); !tab.Settle(d.Pod) {
		t.Error("the victim is gone, and the machine is full")
	}
}

// TestSettleJudgesAll: a pod that takes the room of another has it once the other is gone, whatever it was short of. Until then the victim is still there.
func TestSettleJudgesAll(t *testing.T) {
	port := func() *Needs { return &Needs{Ports: []rules.Port{{Protocol: "TCP", Port: 80}}} }
	gpu := []rules.Amount{{Name: "example.com/gpu", Value: 1}}
	for _, c := range []struct {
		name  string
		shape Shape
	}{
		{"host port", Shape{Side: fleet.Online, Needs: port()}},
		{"extended resource", Shape{Side: fleet.Online, Needs: &Needs{Extended: gpu}}},
		{"ephemeral storage", Shape{Side: fleet.Online, Needs: &Needs{Ephemeral: 60}}},
		{"PCIe root", Shape{Side: fleet.Online, OneRoot: true, Needs: &Needs{NICs: 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab := New()
			m := plain("a")
			m.Ephemeral, m.Extended = 100, gpu
			m.Roots = []Root{{GPUs: 0, NICs: 1, Cell: 0}}
			tab.SetMachine(m)
			low := tab.Bound(c.shape, m.ID, "low", nil)
			high := c.shape
			high.Priority = 10
			p, ok := tab.Preempt(tab.Class(high), &PreemptionFacts{})
			if !ok || !slices.Equal(p.Victims, []PodRef{low}) {
				t.Fatalf("%v, %+v", ok, p)
			}
			d := tab.Nominate(p)
			if tab.Settle(d.Pod) {
				t.Error("it has its room before the victim is gone")
			}
			if tab.Remove(low); !tab.Settle(d.Pod) {
				t.Error("the victim is gone, and there is no room")
			}
			if tab.CanPlace(tab.Class(c.shape)) {
				t.Error("what it took is free for another pod")
			}
		})
	}
}

// TestDaemonTakesOfEitherSide: a pod of the machine itself lands on a side that is closed and holds no cell, as long as the machine has room, and takes
// pods of lower priority of either side.
func TestDaemonTakesOfEitherSide(t *testing.T) {
	tab := New()
	m := plain("a")
	m.Closed = Sides{Online: true}
	for i := range m.Cells {
		m.Cells[i].Holder = HeldOffline
	}
	tab.SetMachine(m)
	work := tab.Bound(Shape{Side: fleet.Offline, Requests: cores(62), Priority: 1}, m.ID, "work", nil)
	id := tab.Class(Shape{Side: fleet.Online, Requests: cores(2), Priority: 9, Daemon: true})
	if _, ok := tab.Assume(tab.Class(Shape{Side: fleet.Online, Requests: cores(2), Priority: 9}), m.ID); ok {
		t.Error("another pod landed on the closed side")
	}
	if _, ok := tab.Assume(id, m.ID); !ok {
		t.Fatal("the machine has two cores, and no daemon may have them")
	}
	if _, ok := tab.Assume(id, m.ID); ok || tab.CanPlace(tab.Class(Shape{Side: fleet.Offline, Requests: cores(1)})) {
		t.Error("the machine is full, and one more pod landed")
	}
	p, ok := tab.PreemptOn(id, m.ID, &PreemptionFacts{})
	if !ok || !slices.Equal(p.Victims, []PodRef{work}) {
		t.Fatalf("%v, %+v", ok, p)
	}
	if !tab.MayPreemptOn(id, m.ID) {
		t.Error("it is not worth a search")
	}
	d := tab.Nominate(p)
	if tab.Settle(d.Pod) {
		t.Error("it has its room before the victim is gone")
	}
	if tab.Remove(work); !tab.Settle(d.Pod) {
		t.Error("the victim is gone, and there is no room")
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

// TestNominationsHold: what is decided for pods of the same and of lower priority never takes the room that is to come for a nominated pod: when all that leave
// are gone, the pod has it.
func TestNominationsHold(t *testing.T) {
	nominated, decided := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		for range rapid.IntRange(5, 30).Draw(r, "steps") {
			w.step(r)
		}
		for p := range w.tab.Pods() {
			if w.tab.pods[p.Pod].role == stays && some(r, "leaves", 0, 0, 0, 1) == 1 {
				w.tab.Leaving(p.Pod)
			}
		}
		var refs []PodRef
		for range 10 {
			s := w.shape(r)
			s.Priority, s.Guaranteed, s.ZoneSkew, s.PerHost = 1+s.Priority, true, 0, 0 // counts of a group are no room
			c := w.tab.Class(s)
			if w.tab.CanPlace(c) {
				continue
			}
			p, ok := w.tab.Await(c, &PreemptionFacts{})
			if !ok {
				p, ok = w.tab.Preempt(c, &PreemptionFacts{})
			}
			if !ok {
				continue
			}
			refs = append(refs, w.tab.Nominate(p).Pod)
			if err := complainOfSums(w.tab); err != nil {
				r.Fatal(err)
			}
			if refs = slices.DeleteFunc(refs, func(ref PodRef) bool { // others may have given way
				if w.tab.Comes(ref) {
					return false
				}
				w.tab.Remove(ref)
				return true
			}); len(refs) == 0 {
				return
			}
		}
		if len(refs) == 0 {
			return
		}
		lowest := w.tab.classes[w.tab.pods[refs[0]].class].shape.Priority
		for _, ref := range refs {
			lowest = min(lowest, w.tab.classes[w.tab.pods[ref].class].shape.Priority)
		}
		for range 20 {
			s := w.shape(r)
			if some(r, "small", 0, 1) == 1 {
				s = Shape{Side: s.Side, Requests: fleet.Resources{CPU: 1}}
			}
			s.Priority = min(s.Priority, lowest)
			if d, ok := w.tab.Decide(w.tab.Class(s)); ok {
				decided++
				for _, ref := range refs {
					if !w.tab.Comes(ref) {
						r.Fatalf("%+v took the room that is to come for %+v on %s", s, w.tab.classes[w.tab.pods[ref].class].shape, d.Name)
					}
				}
			}
		}
		nominated += len(refs)
		for p := range w.tab.Pods() {
			if w.tab.pods[p.Pod].role == leaves {
				w.tab.Remove(p.Pod)
			}
		}
		for _, ref := range refs {
			if !w.tab.Settle(ref) {
				r.Fatalf("all that leave are gone, and %+v has no room", w.tab.classes[w.tab.pods[ref].class].shape)
			}
		}
		if err := complainOfSums(w.tab); err != nil {
			r.Fatal(err)
		}
	})
	if nominated == 0 || decided == 0 {
		t.Errorf("%d nominations and %d decisions: what is drawn tests nothing", nominated, decided)
	}
}
