package place

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// TestMillion decides a million pods of 50 classes on a million machines of four shapes, once with the pods of each class in a row, as controllers
// make them, and once with the classes in turn. It asks for minutes and gigabytes, so it runs where SPRINGTIDE_MILLION is set (make bench-scheduler):
// its value is how many machines and pods there are.
func TestMillion(t *testing.T) {
	n := 0
	if _, err := fmt.Sscan(os.Getenv("SPRINGTIDE_MILLION"), &n); err != nil || n < 100 {
		t.Skip("SPRINGTIDE_MILLION is not set to a number of at least 100")
	}
	runtime.GOMAXPROCS(1)
	before := heap()
	start := cpuTime()
	tab := New()
	for i := range n {
		tab.SetMachine(ofFour(i))
	}
	built, machines := cpuTime()-start, heap()
	t.Logf("machines: %d in %.1f s of one core, %d bytes each", n, built.Seconds(), (machines-before)/uint64(n))
	for _, inTurn := range []bool{false, true} {
		start = cpuTime()
		refs := make([]PodRef, 0, n)
		for i := range n {
			k := i * 50 / n
			if inTurn {
				k = i % 50
			}
			d, ok := tab.Decide(tab.Class(ofFifty(k)))
			if !ok {
				t.Fatalf("no room for pod %d", i)
			}
			refs = append(refs, d.Pod)
		}
		took, all := cpuTime()-start, heap()
		oversold := 0
		for s := range tab.avail {
			for d := range resources {
				for _, v := range tab.avail[s].free[d] {
					if v < 0 {
						oversold++
					}
				}
			}
		}
		for i := range tab.cells {
			for _, v := range tab.cells[i].free {
				if v < 0 {
					oversold++
				}
			}
		}
		t.Logf("pods: %d, classes in turn %v: %.1f s of one core, %.0f ns each; the heap is %.2f GiB: %d bytes a pod beyond the machines, of them %d in indexes",
			n, inTurn, took.Seconds(), float64(took.Nanoseconds())/float64(n), float64(all)/(1<<30), (all-machines)/uint64(n), tab.slots*12/n)
		if oversold > 0 {
			t.Errorf("%d amounts are oversold", oversold)
		}
		for _, ref := range refs {
			tab.Forget(ref)
		}
	}
}

// cpuTime is what the process used of its one core: other processes on the machine do not count.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// ofFour is a machine of one of four shapes: of 32, 64 and 96 cores, and one with GPUs.
func ofFour(i int) Machine {
	m := Machine{Name: fmt.Sprintf("m%07d", i), Zone: fmt.Sprint("z", i%5), Pool: "online", Home: fleet.Online}
	m.ID = fleet.NodeID(m.Name)
	each := [...]fleet.Resources{cores(8), cores(16), cores(24), {CPU: 24000, Memory: 128 * fleet.GiB, GPU: 2}}[i%4]
	if each.GPU == 0 {
		each.Memory *= 4
	} else {
		m.GPUModel = "a100"
	}
	for c := range 4 {
		m.Cells = append(m.Cells, Cell{Cell: fleet.Cell{ID: c, Socket: c / 2, Capacity: each}})
	}
	m.Allocatable = each.Times(4).Add(fleet.Resources{Pods: 110})
	return m
}

// ofFifty is a shape of one of fifty: most float, some spread over zones, some want cells for themselves, some GPUs.
func ofFifty(k int) Shape {
	s := Shape{Side: fleet.Online, Requests: cores(1 + int64(k%4)), Group: fmt.Sprint("svc", k), Priority: int32(k % 3)}
	s.Requests.Memory *= fleet.Bytes(1 + k%3)
	switch k % 10 {
	case 7:
		s.Zones = true
	case 8:
		s.Cells, s.Exclusive = OneCell, true
	case 9:
		s.Requests.GPU = 1
	}
	return s
}
