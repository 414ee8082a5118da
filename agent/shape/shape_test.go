package shape

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// box is a machine of two sockets with two cells each; a cell has two cores with two threads, CPUs 4c to 4c+3, where 4c and 4c+1 are a core.
func twoSockets() *Topology {
	t := &Topology{}
	for c := range 4 {
		cell := Cell{ID: c, Socket: c / 2, Memory: 16 * fleet.GiB, Distances: []int{10, 11, 21, 21}}
		for i := range 4 {
			id := 4*c + i
			t.CPUs = append(t.CPUs, CPU{ID: id, Core: id / 2, Socket: c / 2, Cell: c, Siblings: SetOf(id/2*2, id/2*2+1)})
			cell.CPUs = append(cell.CPUs, id)
		}
		t.Cells = append(t.Cells, cell)
	}
	return t
}

var parents = Parents{"kubepods", "kubepods/burstable", "kubepods/besteffort"}

// poolOf is the pool of a class, as classOf has it.
func poolOf(c fleet.Class) fleet.PoolID { return fleet.PoolID(c) }

func classOf(p fleet.PoolID) fleet.Class { return fleet.Class(p) }

// parcel is an entry of the machine's share; next is empty while nothing moves.
func parcel(cells Set, holder, next fleet.Class) fleet.ShareParcel {
	return fleet.ShareParcel{Cells: cells, Holder: poolOf(holder), Next: poolOf(next)}
}

func input(pods ...Pod) *Input {
	t := twoSockets()
	n := &fleet.Node{Name: "m", Pool: poolOf(fleet.Online), Allocatable: fleet.Resources{CPU: 16000, Memory: 64 * fleet.GiB}, Cells: t.FleetCells()}
	return &Input{Topology: t, Node: n, ClassOf: classOf, Pods: pods, Parents: parents,
		Knobs: Knobs{CPUSets: true, Idle: true, Weights: true, Protect: true}}
}

// pod is a pod with one container; its cgroup is where the kubelet would put it.
func pod(name string, side Side, class Class, milli int64) Pod {
	p := Pod{UID: name, Name: name, Side: side, Class: class, QoS: Burstable, Ask: fleet.Resources{CPU: fleet.MilliCPU(milli), Memory: fleet.GiB}}
	if milli == 0 {
		p.QoS, p.Ask = BestEffort, fleet.Resources{}
	}
	p.Path = parents.Burstable + "/pod" + name
	if p.QoS == BestEffort {
		p.Path = parents.BestEffort + "/pod" + name
	}
	p.Containers = []Container{{ID: name + "-c", Name: "c", Path: p.Path + "/" + name + "-c"}}
	return p
}

func (p Pod) with(f func(*Pod)) Pod {
	f(&p)
	return p
}

func holding(t *testing.T, l Layout, name string) Holding {
	t.Helper()
	for _, h := range l.Holdings {
		if h.Pod.Name == name {
			return h
		}
	}
	t.Fatalf("%s holds nothing", name)
	return Holding{}
}

func TestSet(t *testing.T) {
	for text, want := range map[string]string{"": "", "0": "0", "3,1-2": "1-3", "0-1,4,6-7\n": "0-1,4,6-7", "5,5": "5"} {
		s, err := ParseSet(text)
		if err != nil || s.String() != want {
			t.Errorf("%q: %s, %v: want %s", text, s, err, want)
		}
	}
	for _, text := range []string{"-", "1-", "a", "3-1", "1,,2", "0-4000000000", "-1", "99999999999999999999", "0x3", "1 2"} {
		if s, err := ParseSet(text); err == nil {
			t.Errorf("%q is read as %s", text, s)
		}
	}
}

func FuzzParseSet(f *testing.F) {
	for _, text := range []string{"0-3,8", "", "1-", "0-16383", "9,8,7", "-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSet(text)
		if err != nil {
			return
		}
		if !slices.IsSorted(s) || len(s) > maxID {
			t.Fatalf("%q: %v", text, s)
		}
		if again, err := ParseSet(s.String()); err != nil || !again.Equal(s) {
			t.Fatalf("%q: %s is read as %s, %v", text, s, again, err)
		}
	})
}

func TestReadTerms(t *testing.T) {
	for _, c := range []struct {
		name     string
		in       map[string]string
		want     Terms
		problems int
	}{
		{"nothing", nil, Terms{}, 0},
		{"ours", map[string]string{AnnotationClass: "dedicated", AnnotationCells: "0-1", fleet.AnnotationNUMA: "exclusive"},
			Terms{Class: Dedicated, Cells: Set{0, 1}, CellBinding: fleet.CellBinding{Bind: true, Exclusive: true}}, 0},
		{"Katalyst's", map[string]string{katalystLevel: "reclaimed_cores", katalystMemory: `{"numa_binding":"true","oom_priority":"-50"}`,
			katalystCPU: `{"cpuset_pool":"batch","suppression_tolerance_rate":"1.2"}`},
			Terms{Class: Reclaimed, CellBinding: fleet.CellBinding{Bind: true}, Pool: "batch", OOMPriority: -50, Tolerance: 1.2}, 0},
		{"ours holds", map[string]string{AnnotationClass: "shared", katalystLevel: "dedicated_cores"}, Terms{Class: Shared}, 0},
		{"booleans are read", map[string]string{katalystMemory: `{"numa_binding":true}`}, Terms{CellBinding: fleet.CellBinding{Bind: true}}, 0},
		{"exclusive needs a binding", map[string]string{katalystMemory: `{"numa_exclusive":"true"}`}, Terms{}, 0},
		{"malformed", map[string]string{AnnotationClass: "gold", AnnotationCells: "1-", fleet.AnnotationNUMA: "yes", AnnotationOOMPriority: "high",
			AnnotationTolerance: "NaN", AnnotationRSSOveruse: "-1", katalystMemory: "{", katalystCPU: "[]"}, Terms{}, 8},
		{"a huge list", map[string]string{AnnotationCells: "0-4000000000"}, Terms{}, 1},
		{"an empty list", map[string]string{AnnotationCells: ""}, Terms{}, 1},
	} {
		got, problems := ReadTerms(c.in)
		if fmt.Sprint(got) != fmt.Sprint(c.want) || len(problems) != c.problems {
			t.Errorf("%s: %+v, %q: want %+v and %d problems", c.name, got, problems, c.want, c.problems)
		}
	}
}

func TestClassOf(t *testing.T) {
	for _, c := range []struct {
		annotation Class
		qos        QoS
		system     bool
		want       Class
	}{{"", Guaranteed, false, Shared}, {"", Burstable, false, Shared}, {"", BestEffort, false, Reclaimed}, {Dedicated, Burstable, false, Dedicated},
		{Shared, BestEffort, false, Shared}, {Reclaimed, Guaranteed, true, System}} {
		if got := ClassOf(Terms{Class: c.annotation}, c.qos, c.system); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestLentSocket: a socket that is lent belongs to offline alone; while it moves, its old side keeps it until the rest holds what the side asks for.
func TestLentSocket(t *testing.T) {
	on, off := pod("on", OnlineSide, Shared, 4000), pod("off", OfflineSide, Shared, 4000)
	second := Set{2, 3}
	for _, c := range []struct {
		name       string
		parcel     fleet.ShareParcel
		on, off    Pod
		cpus, lent string
	}{
		{"lent", parcel(second, fleet.Offline, ""), on, off, "0-7", "8-15"},
		{"goes out, online fits", parcel(second, fleet.Online, fleet.Offline), on, Pod{Side: SystemSide}, "0-7", ""},
		{"goes out, online does not fit", parcel(second, fleet.Online, fleet.Offline), pod("on", OnlineSide, Shared, 9000), Pod{Side: SystemSide}, "0-15", ""},
		{"is recalled, offline saves its work there", parcel(second, fleet.Offline, fleet.Online), on, off, "0-7", "8-15"},
		{"the machine is lent", parcel(Set{0, 1, 2, 3}, fleet.Offline, ""), Pod{Side: SystemSide}, off, "", "0-15"},
	} {
		in := input(c.on, c.off)
		in.Node.Share.Parcels = []fleet.ShareParcel{c.parcel}
		l := in.Lay()
		if c.cpus != "" {
			if h := holding(t, l, "on"); h.CPUs.String() != c.cpus || !h.Mems.Equal(in.Topology.CellsOf(h.CPUs)) {
				t.Errorf("%s: online has %s of %s, want %s", c.name, h.CPUs, h.Mems, c.cpus)
			}
		}
		if c.lent != "" {
			if h := holding(t, l, "off"); h.CPUs.String() != c.lent {
				t.Errorf("%s: offline has %s, want %s", c.name, h.CPUs, c.lent)
			}
		}
	}
}

func TestDedicated(t *testing.T) {
	bind := func(p *Pod) { p.Terms.Bind = true }
	in := input(pod("a", OnlineSide, Dedicated, 2000).with(bind), pod("b", OnlineSide, Dedicated, 3000).with(func(p *Pod) { p.Terms.Bind, p.Terms.Exclusive = true, true }),
		pod("s", OnlineSide, Shared, 1000), pod("sys", SystemSide, System, 100), pod("r", OverlapSide, Reclaimed, 0))
	l := in.Lay()
	a, b, s, sys, r := holding(t, l, "a"), holding(t, l, "b"), holding(t, l, "s"), holding(t, l, "sys"), holding(t, l, "r")
	if len(a.CPUs) != 2 || !a.Own || !a.Chosen || len(a.Cells) != 1 || len(b.CPUs) != 3 || len(b.Cells) != 1 {
		t.Fatalf("a %+v, b %+v", a, b)
	}
	if in.Topology.CPUs[a.CPUs[0]].Core != in.Topology.CPUs[a.CPUs[1]].Core {
		t.Errorf("a has halves of two cores: %s", a.CPUs)
	}
	own := a.CPUs.Union(b.CPUs)
	for _, h := range []Holding{s, sys, r} {
		if len(h.CPUs.Intersect(own)) > 0 {
			t.Errorf("%s may use dedicated cores: %s", h.Pod.Name, h.CPUs.Intersect(own))
		}
	}
	if in.Topology.CellsOf(s.CPUs).Has(b.Cells[0]) {
		t.Errorf("s is next to exclusive b: %s", s.CPUs)
	}
	if !in.Topology.CellsOf(r.CPUs).Has(b.Cells[0]) {
		t.Errorf("what b leaves of its cell is lent to no one: %s", r.CPUs)
	}
	if len(l.Problems) > 0 {
		t.Error(l.Problems)
	}
	// The scheduler's cells are honoured, and those that the side does not have are reported.
	in = input(pod("a", OnlineSide, Dedicated, 2000).with(func(p *Pod) { p.Terms.Cells = Set{3} }), pod("x", OnlineSide, Shared, 2000).with(func(p *Pod) { p.Terms.Cells = Set{9} }),
		pod("y", OnlineSide, Shared, 2000).with(func(p *Pod) { p.Terms.Cells = Set{1} }))
	l = in.Lay()
	if h := holding(t, l, "a"); !h.CPUs.Equal(Set{12, 13}) || h.Chosen || h.Mems.String() != "3" {
		t.Errorf("a: %+v", h)
	}
	if h := holding(t, l, "y"); h.CPUs.String() != "4-7" || h.Mems.String() != "1" {
		t.Errorf("y: %+v", h)
	}
	if len(l.Problems) != 1 || !strings.Contains(l.Problems[0], "pod x") {
		t.Errorf("problems %q", l.Problems)
	}
}

// TestDedicatedStays: another pod, or one that leaves, moves no core of a dedicated pod (Katalyst cuts its pools again each time).
func TestDedicatedStays(t *testing.T) {
	a := pod("b", OnlineSide, Dedicated, 4000).with(func(p *Pod) { p.Held = Set{4, 5, 6, 7} })
	in := input(pod("a", OnlineSide, Dedicated, 2000), a, pod("z", OnlineSide, Dedicated, 2000))
	if h := holding(t, in.Lay(), "b"); h.CPUs.String() != "4-7" {
		t.Errorf("b moves to %s", h.CPUs)
	}
	if l := input(pod("a", OnlineSide, Dedicated, 17000), pod("s", OnlineSide, Shared, 1000)).Lay(); len(l.Problems) == 0 || holding(t, l, "a").Own {
		t.Errorf("17 of 16 cores: %+v", l)
	}
	if l := input(pod("a", OnlineSide, Dedicated, 16000), pod("s", OnlineSide, Shared, 1000)).Lay(); len(holding(t, l, "s").CPUs) == 0 {
		t.Error("s is left without a CPU")
	}
}

func TestNamedPools(t *testing.T) {
	in := input(pod("a", OnlineSide, Shared, 3000).with(func(p *Pod) { p.Terms.Pool = "web" }), pod("b", OnlineSide, Shared, 1000).with(func(p *Pod) { p.Terms.Pool = "web" }),
		pod("c", OnlineSide, Shared, 2000).with(func(p *Pod) { p.Terms.Pool = "batch" }), pod("d", OnlineSide, Shared, 2000))
	l := in.Lay()
	a, b, c, d := holding(t, l, "a").CPUs, holding(t, l, "b").CPUs, holding(t, l, "c").CPUs, holding(t, l, "d").CPUs
	if len(a) != 4 || !a.Equal(b) || len(c) != 2 || len(d) != 10 || len(a.Intersect(c).Union(d.Intersect(a.Union(c)))) > 0 {
		t.Errorf("web %s %s, batch %s, rest %s", a, b, c, d)
	}
}

// TestIdle: cpu.idle goes on the cgroup of a reclaimed BestEffort pod and nowhere else.
func TestIdle(t *testing.T) {
	in := input(pod("r", OverlapSide, Reclaimed, 0), pod("s", OnlineSide, Shared, 0), pod("b", OverlapSide, Reclaimed, 1000))
	in.Boxes = map[string]Box{parents.BestEffort: {CPU: 2000, Max: 4 * fleet.GiB, High: 3 * fleet.GiB}}
	l := in.Lay()
	for _, g := range in.Groups(&l) {
		idle := slices.IndexFunc(g.Values, func(v Value) bool { return v.File == "cpu.idle" && v.Text == "1" }) >= 0
		if want := g.Path == parents.BestEffort+"/podr"; idle != want {
			t.Errorf("%s: cpu.idle=1 %v, want %v", g.Path, idle, want)
		}
		if idle && slices.ContainsFunc(g.Values, func(v Value) bool { return v.File == "cpu.weight" }) {
			t.Errorf("%s: a weight next to cpu.idle=1 is refused by the kernel", g.Path)
		}
	}
}

// tree is a cgroup tree in memory.
type tree map[string]string

func (s tree) read(path, file string) (string, bool) {
	text, ok := s[path+"/"+file]
	return text, ok
}

// newTree has every file of every wanted group, as a kernel would make them.
func newTree(groups []Group) tree {
	s := tree{}
	for _, g := range groups {
		for _, file := range ranks {
			s[g.Path+"/"+file] = map[string]string{"cpu.idle": "0", "cpu.weight": "100", "cpu.max": "max 100000", "memory.max": "max", "memory.high": "max",
				"memory.min": "0", "memory.low": "0", "io.weight": "default 100"}[file]
		}
	}
	return s
}

// effective are the CPUs that a group may use: its own among its parent's, or its parent's where none is left.
func (s tree) effective(path, file string, all Set) Set {
	out := all
	for i := range path + "/" {
		if i == len(path) || path[i] == '/' {
			if own, _ := ParseSet(s[path[:i]+"/"+file]); len(own.Intersect(out)) > 0 {
				out = own.Intersect(out)
			}
		}
	}
	return out
}

func drawInput(t *rapid.T) *Input {
	var pods []Pod
	for i := range rapid.IntRange(0, 6).Draw(t, "pods") {
		p := pod(fmt.Sprint("p", i), rapid.SampledFrom([]Side{OnlineSide, OfflineSide, OverlapSide, SystemSide}).Draw(t, "side"),
			rapid.SampledFrom([]Class{Dedicated, Shared, Reclaimed, System}).Draw(t, "class"), int64(rapid.IntRange(0, 20).Draw(t, "cpu"))*500)
		p.Terms.Bind, p.Terms.Exclusive = rapid.Bool().Draw(t, "bind"), rapid.Bool().Draw(t, "exclusive")
		p.Terms.Pool = rapid.SampledFrom([]string{"", "", "web", "batch"}).Draw(t, "pool")
		p.Terms.Cells = rapid.SampledFrom([]Set{nil, nil, {0}, {1, 2}, {7}}).Draw(t, "cells")
		p.Held = rapid.SampledFrom([]Set{nil, {0, 1}, {2, 9}, {8, 9, 10, 11}}).Draw(t, "held")
		pods = append(pods, p)
	}
	in := input(pods...)
	in.Node.Pool = poolOf(rapid.SampledFrom([]fleet.Class{fleet.Online, fleet.Offline}).Draw(t, "home"))
	for _, cells := range rapid.SampledFrom([][]Set{nil, {{0, 1, 2, 3}}, {{0, 1}}, {{2, 3}}, {{0, 1}, {2, 3}}}).Draw(t, "parcels") {
		holder := rapid.SampledFrom([]fleet.Class{fleet.Online, fleet.Offline}).Draw(t, "holder")
		next := rapid.SampledFrom([]fleet.Class{"", fleet.Online, fleet.Offline}).Draw(t, "next")
		if next == holder {
			next = ""
		}
		in.Node.Share.Parcels = append(in.Node.Share.Parcels, parcel(cells, holder, next))
	}
	if rapid.Bool().Draw(t, "box") {
		box := Box{CPU: fleet.MilliCPU(rapid.IntRange(0, 9).Draw(t, "quota")) * 500, Max: fleet.Bytes(rapid.IntRange(1, 9).Draw(t, "max")) * fleet.GiB}
		box.High = box.Max * 95 / 100
		in.Boxes = map[string]Box{}
		parts := in.Parts()
		for i, b := range box.Divide(parts, 0) {
			in.Boxes[parts[i].Path] = b
		}
	}
	in.Knobs.IOWeight = rapid.SampledFrom([]int{0, 10}).Draw(t, "io")
	return in
}

// TestLayoutIsSafe: every pod has a CPU and a cell with memory, dedicated cores are their pod's alone, and no pod of a side is on cells that the
// other side holds, as long as its own side holds any.
func TestLayoutIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		l := in.Lay()
		if len(l.Holdings) != len(in.Pods) {
			t.Fatalf("%d holdings for %d pods", len(l.Holdings), len(in.Pods))
		}
		for i := range l.Holdings {
			h := &l.Holdings[i]
			if len(h.CPUs) == 0 || len(h.Mems) == 0 {
				t.Fatalf("%s has nothing: %+v", h.Pod.Name, h)
			}
			class := fleet.Online
			if h.Pod.Side == OfflineSide {
				class = fleet.Offline
			}
			held, _ := in.Cells(class)
			if (h.Pod.Side == OnlineSide || h.Pod.Side == OfflineSide) && len(held) > 0 && !held.Contains(in.Topology.CellsOf(h.CPUs).Union(h.Mems)) {
				t.Fatalf("%s is on %s, its side has cells %s", h.Pod.Name, h.CPUs, held)
			}
			for j := range l.Holdings {
				o := &l.Holdings[j]
				// A side without cells, or with dedicated cores alone, uses what there is: that is reported.
				if i != j && h.Own && h.Pod.Side == o.Pod.Side && len(o.CPUs.Intersect(h.CPUs)) > 0 && len(l.Problems) == 0 {
					t.Fatalf("%s uses %s of dedicated %s", o.Pod.Name, o.CPUs.Intersect(h.CPUs), h.Pod.Name)
				}
			}
		}
		again := in.Lay()
		if fmt.Sprint(again) != fmt.Sprint(l) {
			t.Fatal("the same input gives another layout")
		}
	})
}

// TestPlanLeadsThere plays the writes of one state and then of another on a tree: they arrive, a second plan is empty, no cpuset is ever written
// empty, no group is ever outside of what it had and what it gets, and limits narrow only after all that widen.
func TestPlanLeadsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := drawInput(t), drawInput(t)
		second.Pods = slices.Clone(first.Pods)
		for i := range second.Pods {
			second.Pods[i].Side = rapid.SampledFrom([]Side{OnlineSide, OfflineSide, OverlapSide, SystemSide}).Draw(t, "side")
		}
		l1, l2 := first.Lay(), second.Lay()
		before, after := first.Groups(&l1), second.Groups(&l2)
		s := newTree(append(slices.Clone(before), after...))
		all, mems := first.Topology.AllCPUs(), first.Topology.AllCells()
		for _, groups := range [][]Group{before, after} {
			start := tree{}
			for k, v := range s {
				start[k] = v
			}
			writes, skips := Plan(groups, s.read, all, mems)
			if len(skips) > 0 {
				t.Fatalf("skips %v", skips)
			}
			narrowed := false
			for _, w := range writes {
				if w.New == "" || w.Why == "" {
					t.Fatalf("%+v", w)
				}
				if w.File == "cpu.weight" && s[w.Path+"/cpu.idle"] == "1" {
					t.Fatalf("%+v: the kernel refuses a weight next to cpu.idle=1", w)
				}
				if isSet(w.File) {
					old, _ := ParseSet(normal(w.File, s[w.Path+"/"+w.File]))
					if len(old) == 0 {
						old = all
						if w.File == "cpuset.mems" {
							old = mems
						}
					}
					now, _ := ParseSet(w.New)
					widens := now.Contains(old)
					if !widens && !old.Contains(now) {
						t.Fatalf("%+v neither widens nor narrows", w)
					}
					if widens && narrowed {
						t.Fatalf("%+v widens after another narrowed", w)
					}
					narrowed = narrowed || !widens
				}
				s[w.Path+"/"+w.File] = w.New
				for _, g := range groups {
					if len(s.effective(g.Path, "cpuset.cpus", all)) == 0 {
						t.Fatalf("%s has no CPU after %+v", g.Path, w)
					}
				}
			}
			if again, _ := Plan(groups, s.read, all, mems); len(again) > 0 {
				t.Fatalf("a second run writes %+v", again)
			}
			for _, g := range groups {
				for _, v := range g.Values {
					if isSet(v.File) {
						if now, _ := ParseSet(s[g.Path+"/"+v.File]); v.Text != now.String() && !(len(now) == 0 && (v.Text == all.String() || v.Text == mems.String())) {
							t.Fatalf("%s/%s is %s, want %s", g.Path, v.File, now, v.Text)
						}
					}
				}
			}
			for _, w := range writes { // the journal alone leads from the old state to the new one
				start[w.Path+"/"+w.File] = w.New
			}
			if fmt.Sprint(start) != fmt.Sprint(s) {
				t.Fatal("the journal's replay ends elsewhere")
			}
		}
	})
}

// TestOrder: what gains comes first and from the top, what loses comes last and from the bottom; memory.high falls before memory.max.
func TestOrder(t *testing.T) {
	groups := []Group{
		{Path: "k", Values: []Value{{"memory.max", "100", "w"}, {"memory.high", "90", "w"}}},
		{Path: "k/gains", Values: []Value{{"cpuset.cpus", "0-3", "w"}}},
		{Path: "k/loses", Values: []Value{{"cpuset.cpus", "4", "w"}}},
		{Path: "k/gains/c", Values: []Value{{"cpuset.cpus", "0-3", "w"}}},
		{Path: "k/loses/c", Values: []Value{{"cpuset.cpus", "4", "w"}}},
	}
	s := tree{"k/memory.max": "max", "k/memory.high": "max", "k/gains/cpuset.cpus": "0-1", "k/gains/c/cpuset.cpus": "0-1", "k/loses/cpuset.cpus": "2-4", "k/loses/c/cpuset.cpus": "2-4"}
	writes, _ := Plan(groups, s.read, SetOf(0, 1, 2, 3, 4), Set{0})
	var got []string
	for _, w := range writes {
		got = append(got, w.Path+"/"+w.File+"="+w.New)
	}
	want := []string{"k/gains/cpuset.cpus=0-3", "k/gains/c/cpuset.cpus=0-3", "k/loses/c/cpuset.cpus=4", "k/loses/cpuset.cpus=4", "k/memory.high=90", "k/memory.max=100"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestEachFileIsReadOnce: a read is most of what a cycle costs, also of files that are not there.
func TestEachFileIsReadOnce(t *testing.T) {
	groups := []Group{{Path: "k", Values: []Value{{"cpuset.cpus", "0", "w"}, {"memory.max", "1", "w"}, {"io.max", "8:0 wbps=1", "w"}, {"cpu.idle", "1", "w"}}}}
	s := tree{"k/memory.max": "max", "k/cpuset.cpus": "0", "k/io.max": ""}
	reads := map[string]int{}
	Plan(groups, func(path, file string) (string, bool) {
		reads[file]++
		return s.read(path, file)
	}, Set{0, 1}, Set{0})
	for _, v := range groups[0].Values {
		if reads[v.File] != 1 {
			t.Errorf("%s is read %d times", v.File, reads[v.File])
		}
	}
}

// TestMissingFilesAreSkipped: a controller that the kernel lacks is skipped and named, the rest is written.
func TestMissingFilesAreSkipped(t *testing.T) {
	groups := []Group{{Path: "k", Values: []Value{{"cpuset.cpus", "0", "w"}, {"memory.max", "1", "w"}}}}
	writes, skips := Plan(groups, tree{"k/memory.max": "max"}.read, Set{0, 1}, Set{0})
	if len(writes) != 1 || len(skips) != 1 || skips[0].File != "cpuset.cpus" {
		t.Errorf("%+v, %+v", writes, skips)
	}
}

func TestDeviceLimits(t *testing.T) {
	groups := []Group{{Path: "k", Values: []Value{{"io.max", "8:0 wbps=1048576", "w"}}}}
	s := tree{"k/io.max": "8:16 rbps=1 wbps=max riops=max wiops=max\n"}
	if writes, _ := Plan(groups, s.read, nil, nil); len(writes) != 1 {
		t.Errorf("%+v", writes)
	}
	// The kernel answers with all settings of a device, and with numbers of its own form.
	groups = []Group{{Values: []Value{{IOCostQoS, "8:0 enable=1 rpct=95 rlat=5000", "w"}}}}
	root := tree{"/io.cost.qos": "8:0 enable=0 ctrl=auto rpct=0.00 rlat=250000 wpct=0.00 wlat=250000 min=1.00 max=10000.00\n"}
	if writes, _ := Plan(groups, root.read, nil, nil); len(writes) != 1 || writes[0].New != "8:0 enable=1 rpct=95 rlat=5000" {
		t.Errorf("%+v", writes)
	}
	root["/io.cost.qos"] = "8:0 enable=1 ctrl=user rpct=95.00 rlat=5000 wpct=0.00 wlat=250000 min=1.00 max=10000.00\n"
	if writes, _ := Plan(groups, root.read, nil, nil); len(writes) != 0 {
		t.Errorf("a second run writes %+v", writes)
	}
	groups = []Group{{Path: "k", Values: []Value{{"io.max", "8:0 wbps=1048576", "w"}}}}
	s["k/io.max"] += "8:0 rbps=max wbps=1048576 riops=max wiops=max\n"
	if writes, _ := Plan(groups, s.read, nil, nil); len(writes) != 0 {
		t.Errorf("a second run writes %+v", writes)
	}
}
