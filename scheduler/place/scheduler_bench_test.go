package place

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/rules"
)

// grown is a table of machines of 64 cores in four cells, in two pools and three zones, each with three pods of 2 cores, as the scheduler holds it.
func grown(machines int) *Table {
	t := New()
	for i := range machines {
		m := plain(fmt.Sprintf("m%06d", i))
		m.Zone, m.Ephemeral = fmt.Sprintf("z%d", i%3), 900*fleet.GiB
		if i%4 == 0 {
			m.Extended = rules.Amounts{{Name: "example.com/nic", Value: 64}}
		}
		m.Labels = rules.Labels{{Key: "kubernetes.io/hostname", Value: m.Name}, {Key: "rack", Value: fmt.Sprint("r", i/40)}, {Key: zoneKey, Value: m.Zone}}
		for k := range 10 { // each application's image is on a tenth of the machines
			m.Images = append(m.Images, Image{Name: fmt.Sprint("app:", (i+10*k)%100), Size: 300 << 20})
		}
		m.Images = append(m.Images, Image{Name: "mesh:1", Size: 60 << 20})
		side := fleet.Online
		if i%4 == 3 {
			m.Pool, m.Home, side = "offline", fleet.Offline, fleet.Offline
		}
		t.SetMachine(m)
		for k := range 3 {
			t.Bound(Shape{Side: side, Requests: cores(2), Group: fmt.Sprint("svc", i%100), Priority: int32(k)}, m.ID, fleet.UID(fmt.Sprint("p", i, k)), nil)
		}
	}
	return t
}

// full is a table of machines of 64 cores with 32 pods of 2 cores each, of four priorities.
func full(machines int) *Table {
	t := New()
	for i := range machines {
		m := plain(fmt.Sprintf("m%06d", i))
		t.SetMachine(m)
		for k := range 32 {
			t.Bound(Shape{Side: fleet.Online, Requests: cores(2), Priority: int32(k % 4)}, m.ID, fleet.UID(fmt.Sprint(k)), nil)
		}
	}
	return t
}

// sizes are how many machines the benchmarks have. Each machine has three pods before the first decision.
var sizes = []int{1000, 10_000, 30_000, 100_000}

// decisions decides pods one after the other. Decisions are taken back, outside of the time that counts, before it
// fills the machines.
func decisions(b *testing.B, build func(int) *Table, pods int, do func(t *Table, i int) bool) {
	for _, machines := range sizes {
		b.Run(fmt.Sprint("nodes=", machines), func(b *testing.B) {
			t := build(machines)
			do(t, 0)
			b.ReportAllocs()
			i, used := 0, time.Duration(0)
			t.Begin()
			start := cpuTime()
			for b.Loop() {
				if i++; i*pods%machines < pods {
					b.StopTimer()
					used += cpuTime() - start
					t.Rollback()
					t.Begin()
					start = cpuTime()
					b.StartTimer()
				}
				if !do(t, i) {
					b.Fatal("not as it should be: there is room where none should be, or none where some should be")
				}
			}
			used += cpuTime() - start
			t.Rollback()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pods), "ns/pod")
			b.ReportMetric(float64(used.Nanoseconds())/float64(b.N*pods), "cpu-ns/pod") // of our own work, whatever else the machine does
		})
	}
}

// BenchmarkPlace is the decision alone: nothing is read and nothing is written.
func BenchmarkPlace(b *testing.B) {
	one := Shape{Side: fleet.Online, Requests: cores(1), Priority: 10}
	decide := func(s func(i int) Shape) func(*Table, int) bool {
		return func(t *Table, i int) bool { _, ok := t.Decide(t.Class(s(i))); return ok }
	}
	b.Run("sameClass", func(b *testing.B) { decisions(b, grown, 1, decide(func(int) Shape { return one })) })
	// Pods that stand apart: over zones, over machines, over both, and as a wish over both.
	spreads := map[string][]Spread{
		"Zones":    {{Set: "svc", Self: true, Key: zoneKey, MaxSkew: 5, MinDomains: 1}},
		"Machines": {{Set: "svc", Self: true, Key: hostKey, MaxSkew: 2, MinDomains: 1}},
		"Both":     {{Set: "svc", Self: true, Key: zoneKey, MaxSkew: 5, MinDomains: 1}, {Set: "svc", Self: true, Key: hostKey, MaxSkew: 2, MinDomains: 1}},
		"Wished":   {{Set: "svc", Self: true, Key: zoneKey, MaxSkew: 5, Soft: true}, {Set: "svc", Self: true, Key: hostKey, MaxSkew: 3, Soft: true}},
	}
	for _, name := range slices.Sorted(maps.Keys(spreads)) {
		b.Run("sameClassSpread"+name, func(b *testing.B) {
			s := one
			s.Needs = &Needs{Spread: spreads[name], Sets: []string{"svc"}}
			id := map[*Table]ClassID{}
			decisions(b, grown, 1, func(t *Table, i int) bool {
				c, ok := id[t]
				if !ok {
					c = t.Class(s)
					id[t] = c
				}
				_, ok = t.Decide(c)
				return ok
			})
		})
		b.Run("newClassSpread"+name, func(b *testing.B) {
			decisions(b, grown, 1, decide(func(i int) Shape {
				s := one
				s.Requests.Memory += fleet.Bytes(i)
				s.Needs = &Needs{Spread: spreads[name], Sets: []string{"svc"}}
				return s
			}))
		})
	}
	b.Run("newClass", func(b *testing.B) {
		decisions(b, grown, 1, decide(func(i int) Shape {
			s := one
			s.Requests.Memory += fleet.Bytes(i)
			return s
		}))
	})
	// The same pod, and the reason of each decision.
	b.Run("sameClassExplained", func(b *testing.B) {
		decisions(b, grown, 1, func(t *Table, i int) bool {
			c := t.Class(one)
			e := t.Explain(c)
			d, ok := t.Decide(c)
			return ok && e.Name == d.Name
		})
	})
	b.Run("newClassExplained", func(b *testing.B) {
		decisions(b, grown, 1, func(t *Table, i int) bool {
			s := one
			s.Requests.Memory += fleet.Bytes(i)
			c := t.Class(s)
			e := t.Explain(c)
			d, ok := t.Decide(c)
			return ok && e.Name == d.Name
		})
	})
	// The same with what the host knows of a service's pod: its group, over zones, and images that some machines have.
	b.Run("newClassAsHost", func(b *testing.B) {
		decisions(b, grown, 1, func(t *Table, i int) bool {
			s := one
			s.Requests.Memory += fleet.Bytes(i)
			s.Group, s.Zones = fmt.Sprint("svc", i%100), true
			s.Needs = &Needs{Images: []string{fmt.Sprint("app:", i%100), "mesh:1"}, Sources: 2}
			c := t.Class(s)
			e := t.Explain(c)
			d, ok := t.Decide(c)
			return ok && e.Name == d.Name
		})
	})
	// A new class that asks for ephemeral storage and an extended resource, which every fourth machine has.
	b.Run("newClassSupplies", func(b *testing.B) {
		decisions(b, grown, 1, decide(func(i int) Shape {
			s := one
			s.Requests.Memory += fleet.Bytes(i)
			s.Needs = &Needs{Ephemeral: fleet.GiB, Extended: rules.Amounts{{Name: "example.com/nic", Value: 1}}}
			return s
		}))
	})
	// A class of a selector that was never seen: labels and taints of all machines are read.
	b.Run("newSelector", func(b *testing.B) {
		decisions(b, grown, 1, decide(func(i int) Shape {
			s := one
			s.Needs = &Needs{Selector: rules.Selector{Labels: rules.Labels{{Key: "rack", Value: fmt.Sprint("r", i%20)}}},
				Tolerations: []rules.Toleration{{Key: fmt.Sprint("k", i)}}}
			return s
		}))
	})
	b.Run("gang", func(b *testing.B) {
		decisions(b, grown, 1000, func(t *Table, i int) bool {
			_, ok := t.DecideGang(GangRequest{Roles: []Role{{t.Class(one), 1000, 1000}}})
			return ok
		})
	})
	// A gang in one of the racks of 40 machines.
	b.Run("gangInDomain", func(b *testing.B) {
		decisions(b, grown, 100, func(t *Table, i int) bool {
			_, ok := t.DecideGang(GangRequest{Domain: "rack", Roles: []Role{{t.Class(one), 100, 100}}})
			return ok
		})
	})
	// Each one is a class of its own, so that the cells of every machine are looked at.
	b.Run("numaExclusive", func(b *testing.B) {
		decisions(b, grown, 1, decide(func(i int) Shape {
			return Shape{Priority: int32(i), Side: fleet.Online, Requests: cores(12), Cells: OneCell, Exclusive: true}
		}))
	})
	// Each one is a class of its own, as the first pod of a kind is; noFitAgain is the next one.
	b.Run("noFit", func(b *testing.B) {
		decisions(b, grown, 1, func(t *Table, i int) bool {
			_, ok := t.Decide(t.Class(Shape{Side: fleet.Online, Requests: fleet.Resources{CPU: 63_000, Memory: fleet.Bytes(i)}}))
			return !ok
		})
	})
	b.Run("noFitAgain", func(b *testing.B) {
		decisions(b, grown, 1, func(t *Table, i int) bool {
			_, ok := t.Decide(t.Class(Shape{Side: fleet.Online, Requests: cores(63)}))
			return !ok
		})
	})
	// The search that fails, and then the search for victims of a pod of 4 cores: two of 2 cores. Each one is a class of its own.
	b.Run("preempt", func(b *testing.B) {
		decisions(b, full, 1, func(t *Table, i int) bool {
			c := t.Class(Shape{Side: fleet.Online, Requests: fleet.Resources{CPU: 4000, Memory: 4*fleet.GiB + fleet.Bytes(i)}, Priority: 10})
			if _, ok := t.Decide(c); ok {
				return false
			}
			p, ok := t.Preempt(c, &PreemptionFacts{})
			return ok && len(p.Victims) == 2
		})
	})
	// The next pod of the class, after the victims of the one before were marked.
	b.Run("preemptAgain", func(b *testing.B) {
		decisions(b, full, 1, func(t *Table, i int) bool {
			c := t.Class(Shape{Side: fleet.Online, Requests: cores(4), Priority: 10})
			p, ok := t.Preempt(c, &PreemptionFacts{})
			return ok && len(p.Victims) == 2
		})
	})
	// No pod is of a lower standing.
	b.Run("preemptNoHelp", func(b *testing.B) {
		decisions(b, full, 1, func(t *Table, i int) bool {
			_, ok := t.Preempt(t.Class(Shape{Side: fleet.Online, Requests: cores(4)}), &PreemptionFacts{})
			return !ok
		})
	})
}
