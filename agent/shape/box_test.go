package shape

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// part is a cgroup of reclaimed work that uses some CPU of a quota.
func part(pods int, used, quota fleet.MilliCPU) Part {
	return Part{Path: "p", Pods: pods, CPU: fleet.KnownAt(used, noon), Has: Box{CPU: quota, Max: -1, High: -1}}
}

func TestDivideCPU(t *testing.T) {
	fresh := Part{Path: "p", Pods: 1, Has: NoBox()}
	limited := part(1, 1000, 1000)
	limited.Own.CPU = 1000
	for _, c := range []struct {
		name  string
		total fleet.MilliCPU
		lent  fleet.MilliCPU
		parts []Part
		want  []fleet.MilliCPU
	}{
		{"one part has all", 8000, 4000, []Part{part(3, 100, 100)}, []fleet.MilliCPU{8000}},
		{"no quota", -1, 0, []Part{fresh, fresh}, []fleet.MilliCPU{-1, -1}},
		{"unknown: evenly", 8000, 0, []Part{fresh, fresh}, []fleet.MilliCPU{4000, 4000}},
		{"by pods", 8000, 0, []Part{part(3, 9000, 100), part(1, 9000, 100)}, []fleet.MilliCPU{6000, 2000}},
		{"what one does not want the other gets", 8000, 0, []Part{part(1, 0, 4000), part(1, 4000, 4000)}, []fleet.MilliCPU{100, 7900}},
		{"no pod wants nothing", 8000, 0, []Part{{Has: NoBox()}, fresh}, []fleet.MilliCPU{10, 7990}},
		{"nothing lacks: it stays", 8000, 0, []Part{part(1, 1000, 3000), part(1, 1000, 5000)}, []fleet.MilliCPU{3000, 5000}},
		{"the whole shrinks", 4000, 0, []Part{part(1, 3000, 4000), part(1, 3000, 4000)}, []fleet.MilliCPU{2000, 2000}},
		{"lent cells are offline's", 8000, 4000, []Part{part(1, 9000, 100), part(1, 9000, 100)}, []fleet.MilliCPU{6000, 2000}},
		{"its own limit is no lack", 8000, 0, []Part{part(1, 1000, 7000), limited}, []fleet.MilliCPU{7000, 1000}},
		{"the floor", 500, 0, []Part{part(1, 500, 500), fresh}, []fleet.MilliCPU{250, 250}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Box{CPU: c.total, Max: -1, High: -1}.Divide(c.parts, c.lent)
			for i, b := range got {
				if d := b.CPU - c.want[i]; d > 1 || d < -1 || b.Max != -1 || b.High != -1 {
					t.Fatalf("%+v, want CPU %v", got, c.want)
				}
			}
		})
	}
}

func TestDivideMemory(t *testing.T) {
	mem := func(used, cache fleet.Bytes) Part {
		return Part{Used: used * fleet.GiB, Cache: cache * fleet.GiB, Has: NoBox()}
	}
	for _, c := range []struct {
		name      string
		max, high fleet.Bytes
		parts     []Part
		want      []Box // GiB
	}{
		{"one part has all", 40, 38, []Part{mem(10, 0)}, []Box{{Max: 40, High: 38}}},
		{"each may grow by what is free", 40, 38, []Part{mem(10, 0), mem(20, 0)}, []Box{{Max: 20, High: 18}, {Max: 30, High: 28}}},
		{"page cache goes first", 20, 19, []Part{mem(20, 20), mem(20, 10)}, []Box{{Max: 10}, {Max: 10}}},
		{"the box is below what processes hold", 32, 30, []Part{mem(32, 0), mem(32, 0)}, []Box{{Max: 16, High: 15}, {Max: 16, High: 15}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Box{CPU: -1, Max: c.max * fleet.GiB, High: c.high * fleet.GiB}.Divide(c.parts, 0)
			for i, b := range got {
				if b.Max/fleet.GiB != c.want[i].Max || c.want[i].High > 0 && b.High/fleet.GiB != c.want[i].High {
					t.Fatalf("part %d: max %d, high %d, want %+v", i, b.Max/fleet.GiB, b.High/fleet.GiB, c.want[i])
				}
			}
		})
	}
}

// TestDivisionIsSafe: the parts are never more than the whole but for the least that the kernel takes, no process is ended by a limit that the whole does not
// ask for, and no part is above its own pod's limit.
func TestDivisionIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []Part
		var held fleet.Bytes
		for i := range rapid.IntRange(1, 5).Draw(t, "parts") {
			p := part(rapid.IntRange(0, 9).Draw(t, "pods"), fleet.MilliCPU(rapid.IntRange(0, 9000).Draw(t, "used")), fleet.MilliCPU(rapid.IntRange(-1, 9000).Draw(t, "has")))
			p.CPU.OK = rapid.Bool().Draw(t, "known")
			p.Used = fleet.Bytes(rapid.IntRange(0, 64).Draw(t, "memory")) * fleet.GiB
			p.Cache = p.Used / 4 * fleet.Bytes(rapid.IntRange(0, 4).Draw(t, "cache"))
			if i > 0 && rapid.Bool().Draw(t, "limited") {
				p.Own = fleet.Resources{CPU: 1500, Memory: 80 * fleet.GiB}
			}
			held += p.held()
			parts = append(parts, p)
		}
		lent := fleet.MilliCPU(rapid.IntRange(0, 4000).Draw(t, "lent"))
		whole := Box{CPU: lent + fleet.MilliCPU(rapid.IntRange(100, 16000).Draw(t, "cpu")), Max: fleet.Bytes(rapid.IntRange(1, 200).Draw(t, "max")) * fleet.GiB}
		whole.High = whole.Max / 100 * 95
		var cpu fleet.MilliCPU
		for i, b := range whole.Divide(parts, lent) {
			p := &parts[i]
			cpu += b.CPU
			if b.High > b.Max {
				t.Fatalf("part %d: high %d is above max %d", i, b.High, b.Max)
			}
			if whole.Max >= held && b.Max < p.held() && p.Own.Memory == 0 {
				t.Fatalf("part %d holds %d and has %d, though the whole of %d holds all", i, p.held(), b.Max, whole.Max)
			}
			if p.Own.CPU > 0 && b.CPU > p.Own.CPU || p.Own.Memory > 0 && b.Max > p.Own.Memory {
				t.Fatalf("part %d is above its own limit: %+v", i, b)
			}
		}
		if cpu > whole.CPU+fleet.MilliCPU(leastCPU*len(parts)) {
			t.Fatalf("the parts have %d, the whole %d", cpu, whole.CPU)
		}
	})
}
