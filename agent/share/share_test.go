package share

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

var (
	noon   = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	terms  = Options{Margin: DefaultMargin, MemoryLeft: fleet.GiB}
	closed = fleet.NodeMarks{HolderTaint: true}
	all    = []int{0, 1, 2, 3}
)

func classOf(p fleet.PoolID) fleet.Class {
	switch p {
	case "online", "shop":
		return fleet.Online
	case "offline":
		return fleet.Offline
	}
	return ""
}

func cores(n int64) fleet.Resources {
	return fleet.Resources{CPU: fleet.MilliCPU(1000 * n), Memory: fleet.Bytes(n) * fleet.GiB}
}

// machine is one of two sockets with two cells of 16 cores each.
func machine(home fleet.PoolID, parcels ...fleet.ShareParcel) *Machine {
	n := &fleet.Node{ID: "uid", Name: "m", Pool: home, Allocatable: cores(64), Marks: closed, Share: fleet.Share{Exists: true, Parcels: parcels}}
	for c := range 4 {
		n.Cells = append(n.Cells, fleet.Cell{ID: c, Socket: c / 2, Capacity: cores(16)})
	}
	return &Machine{Node: n, ClassOf: classOf, Agent: true, Ready: true}
}

func entry(loan string, holder, next fleet.PoolID, cells ...int) fleet.ShareParcel {
	return fleet.ShareParcel{Loan: fleet.LoanID(loan), Epoch: 3, Holder: holder, Next: next, Cells: cells}
}

func (m *Machine) with(class fleet.PodClass, ask int64, cells ...int) *Machine {
	m.Occupants = append(m.Occupants, Occupant{Name: fmt.Sprintf("%s-%d", class, len(m.Occupants)), Class: class, Ask: cores(ask), Cells: cells})
	return m
}

func (m *Machine) change(f func(*Machine)) *Machine {
	f(m)
	return m
}

// first is the verdict on the first parcel after it was free for the whole margin, if it was.
func (m *Machine) first(t *testing.T) Verdict {
	t.Helper()
	p := &m.Node.Share.Parcels[0]
	v := m.Judge(p, time.Time{}, noon, terms)
	if v.Clean && !p.IsClean(p.Epoch) {
		t.Fatal("clean at once: a bind may be on its way")
	}
	return m.Judge(p, v.Free, noon.Add(terms.Margin), terms)
}

func TestWaits(t *testing.T) {
	out, home := entry("l", "online", "offline", all...), entry("l", "offline", "online", all...)
	socketOut, socketHome := entry("l", "online", "offline", 0, 1), entry("l", "offline", "online", 0, 1)
	lent := entry("m", "offline", "", 2, 3)
	on, off := fleet.PodOnline, fleet.PodOffline
	unmanaged := func(m *Machine) { m.Agent = false }
	for _, c := range []struct {
		name string
		m    *Machine
		want Wait
	}{
		{"a machine goes out, empty", machine("online", out), WaitNone},
		{"a machine goes out with one online pod", machine("online", out).with(on, 1), WaitPods},
		{"a machine goes out with a pod that asks for nothing", machine("online", out).with(on, 0), WaitPods},
		{"a machine goes out beside offline, system and filler pods", machine("online", out).with(off, 1).with(fleet.PodSystem, 1).with(fleet.PodFiller, 9), WaitNone},
		{"a machine goes out with an online pod after one of offline", machine("online", out).with(off, 1).with(on, 1), WaitPods},
		{"a socket goes out, online fits the other", machine("online", socketOut).with(on, 32), WaitNone},
		{"a socket goes out, online does not fit the other", machine("online", socketOut).with(on, 33), WaitPods},
		{"a socket goes out, a pod that fits is still on it", machine("online", socketOut).with(on, 1, 1), WaitPods},
		{"a socket goes out, a pod that fits is confined", machine("online", socketOut).with(on, 1, 2, 3), WaitNone},
		{"a socket goes out, memory does not fit", machine("online", socketOut).change(func(m *Machine) {
			m.Occupants = []Occupant{{Class: on, Ask: fleet.Resources{CPU: 1000, Memory: 33 * fleet.GiB}}}
		}), WaitPods},
		{"the second socket goes out, online is still there", machine("online", socketOut, lent).with(on, 1).with(off, 20), WaitPods},
		{"both sockets go out, online fits neither", machine("online", socketOut, entry("m", "online", "offline", 2, 3)).with(on, 1), WaitPods},
		{"a machine comes home, empty", machine("online", home), WaitNone},
		{"a machine comes home with one offline pod", machine("online", home).with(off, 1), WaitPods},
		{"a socket comes home, offline fits the other lent one", machine("online", socketHome, lent).with(off, 32), WaitNone},
		{"a socket comes home, offline does not fit the other lent one", machine("online", socketHome, lent).with(off, 33), WaitPods},
		{"a socket comes home beside online", machine("online", socketHome).with(on, 32), WaitNone},
		{"an offline machine goes out", machine("offline", entry("l", "offline", "online", all...)).with(off, 1), WaitPods},
		{"an offline socket goes out, offline fits the other", machine("offline", entry("l", "offline", "online", 0, 1)).with(off, 32), WaitNone},
		{"an offline machine comes home with an online pod", machine("offline", entry("l", "online", "offline", all...)).with(on, 1), WaitPods},
		{"pools are known by their class", machine("shop", entry("l", "shop", "offline", all...)).with(on, 1), WaitPods},

		{"out, without the taint", machine("online", out).change(func(m *Machine) { m.Node.Marks = fleet.NodeMarks{} }), WaitMarks},
		{"home, with the label", machine("online", home).change(func(m *Machine) { m.Node.Marks.OfflineLabel = true }), WaitMarks},
		{"home, the label gone", machine("online", home), WaitNone},

		{"a pod that the watches have not shown", machine("online", out).change(func(m *Machine) { m.Unseen = []string{"shop/x"} }), WaitBinds},
		{"a process outlives its pod", machine("online", out).change(func(m *Machine) { m.Processes = []Process{{"sh", on, []int{3}}} }), WaitProcesses},
		{"a process of the other side", machine("online", out).change(func(m *Machine) { m.Processes = []Process{{"sh", off, []int{3}}} }), WaitNone},
		{"a process on other cells", machine("online", socketOut).change(func(m *Machine) { m.Processes = []Process{{"sh", on, []int{3}}} }), WaitNone},
		{"memory stays", machine("online", out).change(func(m *Machine) { m.Memory = []Resident{{on, 2, fleet.GiB + 1}} }), WaitMemory},
		{"memory stays within what may", machine("online", out).change(func(m *Machine) { m.Memory = []Resident{{on, 2, fleet.GiB}} }), WaitNone},
		{"memory on other cells", machine("online", socketOut).change(func(m *Machine) { m.Memory = []Resident{{on, 2, 9 * fleet.GiB}} }), WaitNone},

		{"no agent, a whole machine", machine("online", out).change(unmanaged), WaitNone},
		{"no agent, a socket", machine("online", socketOut).change(unmanaged), WaitAgent},
		{"no agent, a machine of unknown topology", machine("online", entry("l", "online", "offline", 0)).change(unmanaged).change(func(m *Machine) { m.Node.Cells = nil }), WaitNone},
		{"no agent, the kubelet is silent", machine("online", out).change(unmanaged).change(func(m *Machine) { m.Ready = false }), WaitReady},
		{"an agent speaks for a node that is not ready", machine("online", out).change(func(m *Machine) { m.Ready = false }), WaitNone},
		{"both pools are gone", machine("online", entry("l", "old", "older", all...)), WaitPools},
		{"the home pool is gone", machine("", entry("l", "offline", "gone", all...)).with(off, 1), WaitPods},
		{"the borrower's pool is gone", machine("online", entry("l", "gone", "online", all...)).with(off, 1), WaitPods},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := c.m.first(t)
			if v.Wait != c.want || v.Clean != (c.want == WaitNone) {
				t.Fatalf("%+v, want wait %q", v, c.want)
			}
			if v.Clean == v.Free.IsZero() {
				t.Errorf("%+v: free is remembered while nothing is in the way", v)
			}
			if named := c.want == WaitPods || c.want == WaitProcesses || c.want == WaitBinds || c.want == WaitMemory; named == (len(v.Names) == 0) && c.name != "a socket goes out, memory does not fit" {
				t.Errorf("%+v: names of what is in the way", v)
			}
		})
	}
}

// The pods in the way are named: those of the side that leaves, and no others.
func TestWhatIsInTheWayIsNamed(t *testing.T) {
	m := machine("online", entry("l", "online", "offline", all...)).with(fleet.PodOffline, 1).with(fleet.PodOnline, 1).with(fleet.PodSystem, 1).with(fleet.PodOnline, 2)
	m.Occupants = append(m.Occupants, Occupant{Class: fleet.PodOnline, Ask: cores(1)})
	if v := m.first(t); v.Wait != WaitPods || !slices.Equal(v.Names, []string{string(fleet.PodOnline) + "-1", string(fleet.PodOnline) + "-3"}) {
		t.Errorf("%+v", v)
	}
	m = machine("online", entry("l", "offline", "online", all...)).with(fleet.PodOnline, 1).with(fleet.PodOffline, 1)
	if v := m.first(t); v.Wait != WaitPods || len(v.Names) != 1 {
		t.Errorf("%+v", v)
	}
}

// TestAcknowledged: where all schedulers acknowledged the share the API server's facts need no margin. An agent keeps it: it moves pods meanwhile. And what
// is in the way stays in the way.
func TestAcknowledged(t *testing.T) {
	m := machine("online", entry("l", "online", "offline", all...))
	p := &m.Node.Share.Parcels[0]
	m.Agent, m.Ready, m.Acks = false, true, AcksGiven
	if v := m.Judge(p, time.Time{}, noon, terms); !v.Clean {
		t.Errorf("%+v: acknowledged, and not clean at once", v)
	}
	m.Agent = true
	if v := m.Judge(p, time.Time{}, noon, terms); v.Clean {
		t.Error("with an agent the margin is kept")
	}
	m.Agent = false
	m.with(fleet.PodOnline, 1)
	if v := m.Judge(p, time.Time{}, noon, terms); v.Clean || v.Wait != WaitPods {
		t.Errorf("%+v: clean with a pod on it", v)
	}
}

// TestAcksOwed: no margin stands for the answer of a bundled scheduler that lives.
func TestAcksOwed(t *testing.T) {
	m := machine("online", entry("l", "online", "offline", all...))
	p := &m.Node.Share.Parcels[0]
	m.Agent, m.Ready, m.Acks = false, true, AcksOwed
	if v := m.Judge(p, noon.Add(-time.Hour), noon, terms); v.Clean || v.Wait != WaitAcks || v.Free.IsZero() {
		t.Errorf("%+v: clean without the acknowledgement", v)
	}
	m.Acks = AcksNone
	if v := m.Judge(p, noon.Add(-time.Hour), noon, terms); !v.Clean {
		t.Errorf("%+v: other schedulers are covered by the margin", v)
	}
}

// The margin counts from the moment on from which nothing is in the way, and starts over when something was. A report holds for its epoch alone.
func TestMargin(t *testing.T) {
	m := machine("online", entry("l", "online", "offline", all...))
	p := &m.Node.Share.Parcels[0]
	free := m.Judge(p, time.Time{}, noon, terms).Free
	if v := m.Judge(p, free, noon.Add(terms.Margin-1), terms); v.Clean || v.Wait != WaitMargin || !v.Free.Equal(noon) {
		t.Errorf("%+v: clean before the margin is over", v)
	}
	taken := m.Judge(p, free, noon.Add(terms.Margin), Options{Margin: terms.Margin})
	if !taken.Clean {
		t.Errorf("%+v: not clean after the margin", taken)
	}
	m.with(fleet.PodOnline, 1)
	if v := m.Judge(p, free, noon.Add(time.Hour), terms); v.Clean || !v.Free.IsZero() {
		t.Errorf("%+v: a pod that comes within the margin starts it over", v)
	}
	p.Clean, p.CleanEpoch = true, p.Epoch
	if v := m.Judge(p, time.Time{}, noon, terms); !v.Clean {
		t.Error("a report must hold for its epoch")
	}
	p.Epoch++
	if m.Judge(p, time.Time{}, noon, terms).Clean {
		t.Error("a report of an older epoch says nothing")
	}
	p.Next = ""
	if v := m.Judge(p, time.Time{}, noon, terms); v.Clean || v.Wait != WaitNone {
		t.Errorf("%+v: nothing moves", v)
	}
}

// drawn is a machine of any state.
func drawn(t *rapid.T) *Machine {
	pools := []fleet.PoolID{"online", "offline"}
	m := machine(rapid.SampledFrom(pools).Draw(t, "home"))
	m.ByCells = rapid.Bool().Draw(t, "by cells")
	m.Agent, m.Ready = rapid.Bool().Draw(t, "agent"), rapid.Bool().Draw(t, "ready")
	m.Node.Marks = fleet.NodeMarks{HolderTaint: rapid.Bool().Draw(t, "taint"), OfflineLabel: rapid.Bool().Draw(t, "label")}
	for i, cells := range rapid.SampledFrom([][][]int{{all}, {{0, 1}}, {{0, 1}, {2, 3}}}).Draw(t, "parcels") {
		holder := rapid.SampledFrom(pools).Draw(t, "holder")
		next := rapid.SampledFrom([]fleet.PoolID{"", "online", "offline"}).Draw(t, "next")
		if next == holder {
			next = ""
		}
		m.Node.Share.Parcels = append(m.Node.Share.Parcels, entry(fmt.Sprint("l", i), holder, next, cells...))
	}
	for range rapid.IntRange(0, 3).Draw(t, "pods") {
		m.with(rapid.SampledFrom([]fleet.PodClass{fleet.PodOnline, fleet.PodOffline, fleet.PodSystem, fleet.PodFiller}).Draw(t, "class"),
			rapid.Int64Range(0, 40).Draw(t, "cores"))
	}
	return m
}

// keeps counts the cells that online has and that do not move.
func keeps(m *Machine) int {
	n := 0
	for _, c := range all {
		side := classOf(m.Node.Pool)
		for _, p := range m.Node.Share.Parcels {
			if slices.Contains(p.Cells, c) {
				if side = classOf(p.Holder); p.Next != "" {
					side = ""
				}
			}
		}
		if side == fleet.Online {
			n++
		}
	}
	return n
}

// Whatever the state: what is Clean is behind closed marks, and no pod of the side that leaves is on a machine of which its side keeps nothing.
func TestCleanIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawn(t)
		for i := range m.Node.Share.Parcels {
			p := &m.Node.Share.Parcels[i]
			v := m.Judge(p, noon.Add(-terms.Margin), noon, terms)
			if !v.Clean {
				if (v.Wait == WaitNone) != (p.Next == "") {
					t.Fatalf("%+v says nothing of what it waits for", v)
				}
				continue
			}
			leaves := classOf(p.Holder)
			whole := len(p.Cells) == len(all)
			switch {
			case !m.Node.Marks.KeepOff(leaves) && !(leaves == fleet.Online && m.ByCells && m.Node.Pool == "online" && keeps(m) > 0):
				t.Fatal("clean behind open marks")
			case !m.Agent && (!whole || !m.Ready):
				t.Fatal("clean without an agent, in part or unseen")
			case whole && slices.ContainsFunc(m.Occupants, func(o Occupant) bool { return string(o.Class) == string(leaves) }):
				t.Fatal("clean with a pod of the side that leaves")
			}
		}
	})
}

// One more pod, a missing mark or a later start of the margin never makes clean what was not.
func TestMoreInTheWayIsNeverCleaner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawn(t)
		p := &m.Node.Share.Parcels[0]
		free := noon.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "free for")) * time.Second)
		before := m.Judge(p, free, noon, terms).Clean
		switch rapid.IntRange(0, 4).Draw(t, "worse by") {
		case 0:
			m.with(rapid.SampledFrom([]fleet.PodClass{fleet.PodOnline, fleet.PodOffline}).Draw(t, "more"), 1)
		case 1:
			m.Node.Marks = fleet.NodeMarks{OfflineLabel: true}
		case 2:
			free = free.Add(time.Second)
		case 3:
			m.Unseen = append(m.Unseen, "shop/late")
		case 4:
			m.Ready = false
		}
		if !before && m.Judge(p, free, noon, terms).Clean {
			t.Fatalf("clean with more in the way")
		}
	})
}
