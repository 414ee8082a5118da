package planner

import (
	"fmt"
	"math"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// BenchmarkMake plans one cycle of fleets of growing size, two machines of two sockets to five services, up to 50,000 services and 20,000
// machines (40,000 parcels): three pods a service, half of them above what the tide asks for; a tenth of the machines lent, in all phases,
// to 500 jobs; 200 tenants. cpu-ms is the processor time of a plan, which other work on the machine does not lengthen; growth the exponent
// by which it has grown since the size before; heap-MB the heap after a plan, the facts and what is not collected yet included.
func BenchmarkMake(b *testing.B) {
	last, lastServices := 0.0, 0
	for _, services := range []int{100, 1_000, 10_000, 50_000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			in := largeFleet(services)
			peak, used := uint64(0), time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				before := cpuTime(b)
				plan := made(in)
				used += cpuTime(b) - before
				if len(plan.Lowers) == 0 || len(plan.Moves) == 0 {
					b.Fatal("the plan does nothing")
				}
				b.StopTimer()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
				b.StartTimer()
			}
			took := used.Seconds() / float64(b.N)
			b.ReportMetric(1000*took, "cpu-ms")
			b.ReportMetric(float64(peak)/(1<<20), "heap-MB")
			if lastServices > 0 && lastServices < services {
				b.ReportMetric(math.Log(took/last)/math.Log(float64(services)/float64(lastServices)), "growth")
			}
			last, lastServices = took, services
		})
	}
}

// cpuTime is what the process has used so far.
func cpuTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// largeFleet is the input of a plan for so many services.
func largeFleet(services int) Input {
	const podsEach, tenants, jobs = 3, 200, 500
	w := newWorld(0)
	machines := services * 2 / 5
	lent := machines / 10
	for i := range machines {
		w.s.Nodes = append(w.s.Nodes, largeMachine(i))
	}
	pool := &w.s.Pools[1]
	pool.MovesAtOnce, pool.MovesPerHour = machines/10, machines
	for i := range services {
		w.largeService(i, podsEach, machines-lent)
		w.s.Services[i].Target.Namespace = fmt.Sprintf("ns%03d", i%tenants)
	}
	phases := []fleet.Phase{fleet.Lent, fleet.Lent, fleet.Lent, fleet.Noticed, fleet.Draining, fleet.Emptying}
	w.s.Jobs = nil
	for i := range min(jobs, lent) {
		id := fleet.JobID(fmt.Sprintf("batch/job-%04d", i))
		w.s.Jobs = append(w.s.Jobs, fleet.Job{ID: id, Priority: fleet.JobPriority(i % 2), Members: []fleet.Member{{Role: "worker", Kind: "Job",
			Workload: fleet.ParseName(string(id)), Max: int32(4 * machines / jobs), Remaining: -1, Request: fleet.Resources{CPU: 16000, Memory: 32 * fleet.GiB}}}})
	}
	for k := range lent {
		at := machines - lent + k
		phase := phases[k%len(phases)]
		l := w.loan(at, phase, 1)
		l.Deadline = t0.Add(time.Minute)
		if phase == fleet.Emptying {
			continue
		}
		for i := range 4 {
			n, j := &w.s.Nodes[at], &w.s.Jobs[k%len(w.s.Jobs)]
			w.s.Pods = append(w.s.Pods, fleet.Pod{ID: fleet.UID(fmt.Sprintf("w-%d-%d", at, i)), Name: fleet.Name{Namespace: "batch", Name: fmt.Sprintf("w-%05d-%d", at, i)},
				Node: n.ID, NodeName: n.Name, Class: fleet.PodOffline, Job: j.ID, Role: "worker", Phase: fleet.PodRunning, Ready: true,
				Requests: j.Members[0].Request, Created: t0.Add(-time.Hour)})
			j.Members[0].Desired++
			j.Members[0].Active++
		}
	}
	cores := int64(machines) * 64 / tenants
	for i := range tenants {
		w.tenant(fmt.Sprintf("t%03d", i), fmt.Sprintf("ns%03d", i), cores)
	}
	return w.input()
}

func largeMachine(i int) fleet.Node {
	n := fleet.Node{ID: fleet.NodeID(fmt.Sprintf("uid-%05d", i)), Name: fmt.Sprintf("m%05d", i), Zone: fmt.Sprintf("z%d", i%3), Pool: "online",
		Allocatable: fleet.Resources{CPU: 64000, Memory: 256 * fleet.GiB, Pods: 110}, Ready: true, AgentAlive: true}
	for c := range 2 {
		n.Cells = append(n.Cells, fleet.Cell{ID: c, Socket: c, Capacity: fleet.Resources{CPU: 32000, Memory: 128 * fleet.GiB}})
	}
	return n
}

// largeService adds a service whose pods stand together on the machines that are at home: every other service shrinks with the tide.
func (w *world) largeService(i, pods, home int) {
	first := (i * pods / 7) % home
	load := 16.0
	if i%2 == 0 {
		load = 5
	}
	w.service(fmt.Sprintf("s%05d", i), pods, first, pods, load)
}
