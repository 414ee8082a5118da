package place

import (
	"slices"
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/rules"
)

// plain is a machine of four cells of 16 cores in two sockets.
func plain(name string) Machine {
	m := Machine{ID: fleet.NodeID("id-" + name), Name: name, Pool: "online", Home: fleet.Online, Zone: "z0",
		Allocatable: fleet.Resources{CPU: 64000, Memory: 256 * fleet.GiB, Pods: 110}}
	for c := range 4 {
		m.Cells = append(m.Cells, Cell{Cell: fleet.Cell{ID: c, Socket: c / 2, Capacity: fleet.Resources{CPU: 16000, Memory: 64 * fleet.GiB}}})
	}
	return m
}

func cores(n int64) fleet.Resources {
	return fleet.Resources{CPU: fleet.MilliCPU(n * 1000), Memory: fleet.Bytes(n) * fleet.GiB}
}

// TestPodsBeforeTheirMachine: a pod may be reported before its machine and after it is gone, and holds its room whenever the machine is there.
func TestPodsBeforeTheirMachine(t *testing.T) {
	tab := New()
	ref := tab.Bound(Shape{Side: fleet.Online, Requests: cores(60)}, "id-a", "u1", nil)
	c := tab.Class(Shape{Side: fleet.Online, Requests: cores(8)})
	if tab.CanPlace(c) || tab.Known("id-a") {
		t.Fatal("a machine that only a pod names has room")
	}
	tab.SetMachine(plain("a"))
	if tab.CanPlace(c) {
		t.Error("the pod that was there before its machine holds no room")
	}
	tab.RemoveMachine("id-a")
	tab.SetMachine(plain("a"))
	if tab.CanPlace(c) {
		t.Error("the pod that outlived its machine holds no room on the one that came back")
	}
	tab.RemoveMachine("id-a")
	tab.Remove(ref)
	if tab.CanPlace(c) || len(tab.byID) != 0 {
		t.Errorf("machines left: %v", tab.byID)
	}
	tab.SetMachine(plain("b"))
	if d, ok := tab.Decide(c); !ok || d.Name != "b" {
		t.Errorf("decided %+v, %v", d, ok)
	}
}

// TestAssumeConfirmForget: a decision holds room at once, and gives it back when its bind failed.
func TestAssumeConfirmForget(t *testing.T) {
	tab := New()
	tab.SetMachine(plain("a"))
	c := tab.Class(Shape{Side: fleet.Online, Requests: cores(40)})
	g := tab.Generation("id-a")
	d, ok := tab.Decide(c)
	if !ok || tab.CanPlace(c) || tab.Generation("id-a") == g {
		t.Fatalf("%+v, %v: a second pod of 40 of 64 cores fits, or the generation stood still", d, ok)
	}
	tab.Forget(d.Pod)
	if !tab.CanPlace(c) {
		t.Fatal("what was forgotten holds room")
	}
	d, ok = tab.Assume(c, "id-a")
	if !ok {
		t.Fatal("the only machine is refused")
	}
	if _, ok := tab.Assume(c, "id-a"); ok {
		t.Fatal("a machine was sold twice")
	}
	tab.Confirm(d.Pod, "u1")
	if got := slices.Collect(tab.Pods()); len(got) != 1 || got[0].UID != "u1" {
		t.Errorf("pods: %+v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a pod that is bound was forgotten")
		}
	}()
	tab.Forget(d.Pod)
}

// TestExclusiveCells: three exclusive pods of one cell never fit a machine with one cell free, and what floats cannot use a cell that is taken.
func TestExclusiveCells(t *testing.T) {
	tab := New()
	tab.SetMachine(plain("a"))
	tab.Bound(Shape{Side: fleet.Online, Requests: cores(4), Cells: OneCell}, "id-a", "u1", []int{0})
	tab.Bound(Shape{Side: fleet.Online, Requests: cores(4), Cells: OneCell}, "id-a", "u2", []int{1})
	tab.Bound(Shape{Side: fleet.Online, Requests: cores(4), Cells: OneCell}, "id-a", "u3", []int{3})
	c := tab.Class(Shape{Side: fleet.Online, Requests: cores(2), Cells: OneCell, Exclusive: true})
	d, ok := tab.Decide(c)
	if !ok || !slices.Equal(d.Cells, []int{2}) {
		t.Fatalf("decided %+v, %v", d, ok)
	}
	for range 2 {
		if d, ok := tab.Decide(c); ok {
			t.Fatalf("one more exclusive pod on %+v", d)
		}
	}
	if e := tab.Explain(c); e.Removed[FilterCells] != 1 {
		t.Errorf("explained as %+v", e)
	}
	if tab.CanPlace(tab.Class(Shape{Side: fleet.Online, Requests: cores(37)})) {
		t.Error("64 cores less a cell of 16 and three pods of 4 have room for 37")
	}
	if !tab.CanPlace(tab.Class(Shape{Side: fleet.Online, Requests: cores(36)})) {
		t.Error("and for 36 not")
	}
}

// withGPUs gives a machine eight GPUs of a model, two on each cell.
func withGPUs(model string) func(*Machine) {
	return func(m *Machine) {
		m.GPUModel, m.Allocatable.GPU = model, 8
		for c := range m.Cells {
			m.Cells[c].Capacity.GPU = 2
		}
	}
}

// TestFiltersAreExplained: each filter removes the machine that it is there for.
func TestFiltersAreExplained(t *testing.T) {
	for _, c := range []struct {
		want  Filter
		bend  func(*Machine)
		shape Shape
	}{
		{want: FilterClosed, bend: func(m *Machine) { m.Closed.Online = true }},
		{want: FilterPool, shape: Shape{Pool: "other"}},
		{want: FilterPool, shape: Shape{Holder: "other"}},
		{want: FilterSelector, shape: Shape{Needs: &Needs{Selector: rules.Selector{Labels: rules.Labels{{Key: "disk", Value: "ssd"}}}}}},
		{want: FilterTaints, bend: func(m *Machine) { m.Taints = []rules.Taint{{Key: "k", Effect: rules.NoExecute}} }},
		{want: FilterTaints, bend: func(m *Machine) { m.Unschedulable = true }},
		{want: FilterGPUModel, shape: Shape{Requests: fleet.Resources{GPU: 1}}},
		{want: FilterGPUModel, bend: withGPUs("old"), shape: Shape{Requests: fleet.Resources{GPU: 1}, GPUModel: "new"}},
		{want: FilterNone, bend: withGPUs("new"), shape: Shape{Requests: fleet.Resources{GPU: 1}, GPUModel: "new"}},
		{want: FilterNone, bend: withGPUs("old"), shape: Shape{Requests: fleet.Resources{GPU: 1}}},
		{want: FilterCPU, shape: Shape{Requests: cores(65)}},
		{want: FilterEphemeral, shape: Shape{Needs: &Needs{Ephemeral: 1}}},
		{want: FilterExtended, shape: Shape{Needs: &Needs{Extended: rules.Amounts{{Name: "example.com/fpga", Value: 1}}}}},
		{want: FilterCells, shape: Shape{Requests: cores(17), Cells: OneCell}},
		{want: FilterCells, shape: Shape{Requests: cores(33), Cells: OneSocket}},
		{want: FilterRoot, shape: Shape{OneRoot: true}},
		{want: FilterNone, shape: Shape{Requests: cores(17), Cells: Restricted}},
		{want: FilterNone, shape: Shape{Requests: cores(40), Cells: PreferCells}},
	} {
		m := plain("a")
		if c.bend != nil {
			c.bend(&m)
		}
		tab := New()
		tab.SetMachine(m)
		c.shape.Side = fleet.Online
		e := tab.Explain(tab.Class(c.shape))
		if c.want == FilterNone && (e.Fit != 1 || e.Best != m.ID) || c.want != FilterNone && e.Removed[c.want] != 1 {
			t.Errorf("%v of %+v: %+v", c.want, c.shape, e)
		}
	}
}

// TestHostPorts: a port of the machine is taken once.
func TestHostPorts(t *testing.T) {
	tab := New()
	tab.SetMachine(plain("a"))
	on := func(ip string, port int32) ClassID {
		return tab.Class(Shape{Side: fleet.Online, Needs: &Needs{Ports: []rules.Port{{IP: ip, Port: port}}}})
	}
	d, _ := tab.Decide(on("10.0.0.1", 80))
	for _, c := range []struct {
		ip   string
		port int32
		want bool
	}{{"", 80, false}, {"10.0.0.1", 80, false}, {"10.0.0.2", 80, true}, {"", 81, true}} {
		if got := tab.CanPlace(on(c.ip, c.port)); got != c.want {
			t.Errorf("%s:%d next to 10.0.0.1:80: %v", c.ip, c.port, got)
		}
	}
	tab.Forget(d.Pod)
	if !tab.CanPlace(on("", 80)) {
		t.Error("the port is still taken")
	}
}

// TestMovingCells: a cell that is to change hands takes nothing of the leaving side, and what is on it is missing nowhere else.
func TestMovingCells(t *testing.T) {
	m := plain("a")
	m.Cells[2].Holder, m.Cells[3].Holder = Moving, Moving
	tab := New()
	tab.SetMachine(m)
	tab.Bound(Shape{Side: fleet.Online, Requests: cores(30)}, m.ID, "u1", nil)
	if fit := func(n int64) bool { return tab.CanPlace(tab.Class(Shape{Side: fleet.Online, Requests: cores(n)})) }; fit(3) || !fit(2) {
		t.Error("of 32 cores that stay 2 are free")
	}
	m.Cells[3].Holder = HeldOffline
	tab.SetMachine(m)
	tab.Bound(Shape{Side: fleet.Online, Requests: cores(10)}, m.ID, "u2", nil)
	if !tab.CanPlace(tab.Class(Shape{Side: fleet.Offline, Requests: cores(16)})) {
		t.Error("8 cores too many online are on the 16 of the cell that moves, and not on the one that offline has")
	}
}

// TestExplainFollows: what is said of a class that was never decided follows the table, and the decision is the one that was explained.
func TestExplainFollows(t *testing.T) {
	tab := New()
	tab.SetMachine(plain("a"))
	tab.SetMachine(plain("b"))
	c := tab.Class(Shape{Side: fleet.Online, Requests: cores(40)})
	first := tab.Explain(c)
	if first.Fit != 2 || first.Next == "" || first.Next == first.Name || first.NextScore > first.Score.Total {
		t.Fatalf("two machines are free: %+v", first)
	}
	tab.Bound(Shape{Side: fleet.Online, Requests: cores(40)}, first.Best, "u", nil)
	then := tab.Explain(c)
	if then.Fit != 1 || then.Removed[FilterCPU] != 1 || then.Name != first.Next || then.Next != "" {
		t.Errorf("one of them is taken: %+v", then)
	}
	if d, ok := tab.Decide(c); !ok || d.Name != then.Name {
		t.Errorf("explained %s, decided %+v", then.Name, d)
	}
	if e := tab.Explain(c); e.Fit != 0 || e.Removed[FilterCPU] != 2 || e.Name != "" {
		t.Errorf("both are taken: %+v", e)
	}
}

// TestNamedMachinesAreExplained: the machines that a class does not name count under the selector, and one that two of its terms name counts once.
func TestNamedMachinesAreExplained(t *testing.T) {
	tab := New()
	for _, name := range []string{"a", "b", "c"} {
		tab.SetMachine(plain(name))
	}
	tab.Bound(Shape{Side: fleet.Online, Requests: cores(60)}, "id-a", "u", nil)
	named := func(name string) rules.Term {
		return rules.Term{Names: []rules.Requirement{{Op: rules.In, Values: []string{name}}}}
	}
	e := tab.Explain(tab.Class(Shape{Side: fleet.Online, Requests: cores(8), Needs: &Needs{Selector: rules.Selector{Required: true, Terms: []rules.Term{named("a"), named("a"), named("b")}}}}))
	if e.Machines != 3 || e.Fit != 1 || e.Name != "b" || e.Next != "" || e.Removed[FilterCPU] != 1 || e.Removed[FilterSelector] != 1 {
		t.Errorf("explained as %+v", e)
	}
}
