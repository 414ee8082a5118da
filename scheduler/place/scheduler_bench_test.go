package place

import (
	"fmt"
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/rules"
)

// grown is a table of machines of 64 cores in four cells, in two pools and three zones, each with three pods of 2 cores, as the scheduler holds it.
func grown(machines int) *Table {
	t := New()
	for i := range machines {
		m := plain(fmt.Sprintf("m%06d", i))
		m.Zone = fmt.Sprintf("z%d", i%3)
		m.Labels = rules.Labels{{Key: "kubernetes.io/hostname", Value: m.Name}, {Key: "topology.kubernetes.io/rack", Value: fmt.Sprint("r", i/40)}}
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

// BenchmarkPlace decides pods one after the other on tables of several sizes. What was decided is taken back, outside of the time that counts,
// before it fills the machines.
func BenchmarkPlace(b *testing.B) {
	one := Shape{Side: fleet.Online, Requests: cores(1), Priority: 10}
	for _, c := range []struct {
		name string
		do   func(b *testing.B, t *Table, i int)
	}{
		{"sameClass", func(b *testing.B, t *Table, _ int) {
			if _, ok := t.Decide(t.Class(one)); !ok {
				b.Fatal("no room")
			}
		}},
		{"newClass", func(b *testing.B, t *Table, i int) {
			s := one
			s.Requests.CPU += fleet.MilliCPU(i)
			if _, ok := t.Decide(t.Class(s)); !ok {
				b.Fatal("no room")
			}
		}},
		{"newSelector", func(b *testing.B, t *Table, i int) {
			s := one
			s.Needs = &Needs{Selector: rules.Selector{Labels: rules.Labels{{Key: "topology.kubernetes.io/rack", Value: fmt.Sprint("r", i%20)}}},
				Tolerations: []rules.Toleration{{Key: fmt.Sprint("k", i)}}}
			if _, ok := t.Decide(t.Class(s)); !ok {
				b.Fatal("no room")
			}
		}},
		{"numaExclusive", func(b *testing.B, t *Table, i int) {
			s := Shape{Priority: int32(i), // each one a class of its own: the cells of every machine are looked at
				Side: fleet.Online, Requests: cores(12), Cells: OneCell, Exclusive: true}
			if _, ok := t.Decide(t.Class(s)); !ok {
				b.Fatal("no room")
			}
		}},
		{"noFit", func(b *testing.B, t *Table, i int) {
			s := Shape{Side: fleet.Online, Requests: cores(63)}
			s.Requests.Memory += fleet.Bytes(i) // each one a class of its own, as the first of a kind is
			if _, ok := t.Decide(t.Class(s)); ok {
				b.Fatal("58 cores are free on each machine")
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for _, machines := range []int{1000, 10_000, 30_000, 100_000} {
				b.Run(fmt.Sprint("nodes=", machines), func(b *testing.B) {
					t := grown(machines)
					b.ReportAllocs()
					i := 0
					t.Begin()
					for b.Loop() {
						if i++; i%machines == 0 {
							b.StopTimer()
							t.Rollback()
							t.Begin()
							b.StartTimer()
						}
						c.do(b, t, i)
					}
					t.Rollback()
				})
			}
		})
	}
}
