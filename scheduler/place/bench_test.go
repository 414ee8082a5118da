package place

import (
	"fmt"
	"testing"

	"github.com/springtide/springtide/fleet"
)

// big is a fleet of machines of 64 cores in four cells, in two pools and three zones, each with three online pods of 2 cores.
func big(machines int) *fleet.Snapshot {
	s := &fleet.Snapshot{Pools: []fleet.Pool{{ID: "offline", Class: fleet.Offline}, {ID: "online", Class: fleet.Online}}}
	for i := range machines {
		n := machine(i)
		if i%4 == 3 {
			n.Pool = "offline"
		}
		s.Nodes = append(s.Nodes, n)
		for k := range 3 {
			id := fmt.Sprintf("p-%06d-%d", i, k)
			p := fleet.Pod{ID: fleet.UID(id), Name: fleet.Name{Namespace: "shop", Name: id}, Node: n.ID, NodeName: n.Name, Class: fleet.PodOnline,
				Service: fleet.ServiceID(fmt.Sprintf("shop/%d", i%100)), Phase: fleet.PodRunning, Requests: fleet.Resources{CPU: 2000, Memory: 4 * fleet.GiB}}
			if n.Pool == "offline" {
				p.Class = fleet.PodOffline
			}
			s.Pods = append(s.Pods, p)
		}
	}
	return s
}

// machine has 64 cores in two sockets of two cells each.
func machine(i int) fleet.Node {
	n := fleet.Node{ID: fleet.NodeID(fmt.Sprintf("uid-%06d", i)), Name: fmt.Sprintf("m%02d", i), Zone: fmt.Sprintf("z%d", i%3), Pool: "online",
		Allocatable: fleet.Resources{CPU: 64000, Memory: 256 * fleet.GiB, Pods: 110}, Ready: true, AgentAlive: true}
	for c := range 4 {
		n.Cells = append(n.Cells, fleet.Cell{ID: c, Socket: c / 2, Capacity: fleet.Resources{CPU: 16000, Memory: 64 * fleet.GiB}})
	}
	return n
}

// BenchmarkPack puts 100,000 pods of four sizes, and of 100 groups where that counts, on 20,000 machines.
func BenchmarkPack(b *testing.B) {
	for _, c := range []struct {
		name  string
		shape Shape
	}{
		{"float", Shape{}},
		{"one-cell", Shape{Cells: OneCell}},
		{"few-cells", Shape{Cells: FewCells}},
		{"zones", Shape{Group: "web", Zones: true}},
		{"zones-and-hosts", Shape{Group: "web", Zones: true, PerHost: 1}},
	} {
		b.Run(c.name, func(b *testing.B) {
			t := FromSnapshot(big(20_000))
			const n, sizes, groups = 100_000, 4, 100
			var ids []ClassID
			for i := range sizes * groups {
				s := c.shape
				cores := fleet.MilliCPU(1000) << (i % sizes)
				s.Side, s.Requests = fleet.Online, fleet.Resources{CPU: cores, Memory: fleet.Bytes(cores/1000) * 3 * fleet.GiB}
				if s.Group != "" {
					s.Group = fmt.Sprint(s.Group, i/sizes)
				}
				ids = append(ids, t.Class(s))
			}
			b.ReportAllocs()
			for b.Loop() {
				t.Begin()
				for i := range n {
					if _, ok := t.Place(ids[i%len(ids)]); !ok {
						b.Fatalf("no room for pod %d", i)
					}
				}
				b.StopTimer()
				t.Rollback()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pod")
		})
	}
}

// BenchmarkNoFit asks for room that no machine has.
func BenchmarkNoFit(b *testing.B) {
	t := FromSnapshot(big(20_000))
	c := t.Class(Shape{Side: fleet.Online, Requests: fleet.Resources{CPU: 63_000, Memory: fleet.GiB}})
	for b.Loop() {
		if _, ok := t.Place(c); ok {
			b.Fatal("58 cores are free on each machine")
		}
	}
}

// BenchmarkFits counts one class on all machines.
func BenchmarkFits(b *testing.B) {
	t := FromSnapshot(big(20_000))
	c := t.Class(Shape{Side: fleet.Offline, Requests: fleet.Resources{CPU: 16_000, Memory: 32 * fleet.GiB}})
	for b.Loop() {
		if t.Fits(c).Total != 5000*3 {
			b.Fatal(t.Fits(c))
		}
	}
}

// BenchmarkHandOver asks of one machine whether a socket can be freed.
func BenchmarkHandOver(b *testing.B) {
	t := FromSnapshot(big(20_000))
	for b.Loop() {
		if !t.Would(func() bool { _, ok := t.HandOver("uid-000100", []int{2, 3}); return ok }) {
			b.Fatal("six cores fit a socket")
		}
	}
}

// BenchmarkFromSnapshot builds the table of 20,000 machines with 60,000 pods.
func BenchmarkFromSnapshot(b *testing.B) {
	s := big(20_000)
	b.ReportAllocs()
	for b.Loop() {
		FromSnapshot(s)
	}
}
