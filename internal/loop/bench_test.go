package loop_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reclaim"
	"github.com/springtide/springtide/series"
	"github.com/springtide/springtide/signal"
	"github.com/springtide/springtide/slo"
)

// The size that the loop is measured at.
const (
	benchServices = 2_000
	benchNodes    = 10_000
	benchPods     = 12 // of each service
	benchLoans    = 300
	benchDays     = 14
)

// benchFleet is a large fleet from memory: ports that cost nothing, so that what is measured is the loop alone.
type benchFleet struct {
	s    fleet.Snapshot
	live signal.Samples
	// days holds a few different histories of requests per second, CPU and ready replicas; services take turns.
	days [8]portrait.Batch
	// park, when set, is called at the end of a cycle under Run.
	park func()
}

var benchStart = time.Date(2026, 3, 16, 9, 0, 0, 0, time.UTC)

func newBenchFleet() *benchFleet {
	f := &benchFleet{s: fleet.Snapshot{At: benchStart}}
	f.s.Pools = []fleet.Pool{
		{ID: "offline", Class: fleet.Offline, Mode: fleet.Auto},
		{ID: "online", Class: fleet.Online, Mode: fleet.Auto, Unit: fleet.UnitSocket, LowWatermark: 0.05, HighWatermark: 0.1, Notice: 2 * time.Minute,
			NoticeMax: 10 * time.Minute, MovesAtOnce: 50, MovesPerHour: 300, MinimumTerm: 30 * time.Minute,
			Budget: fleet.DisruptionBudget{EvictionsPerMinute: 60, ServiceShare: 0.2, FleetShare: 0.1}},
	}
	for i := range 20 {
		f.s.Tenants = append(f.s.Tenants, fleet.Tenant{ID: fleet.TenantID(fmt.Sprintf("t%02d", i)), Namespaces: []string{fmt.Sprintf("ns-%02d", i)},
			Guarantee: fleet.Resources{CPU: 20_000_000, Memory: 80_000 * fleet.GiB}, Accepted: true})
	}
	for i := range benchNodes {
		f.s.Nodes = append(f.s.Nodes, benchNode(i))
	}
	for i := range benchServices {
		f.service(i)
	}
	for i := range benchLoans {
		f.loan(benchNodes - 1001 - i) // machines without online pods
	}
	for i := range 2_000 {
		n := &f.s.Nodes[benchNodes-1000+i/2]
		f.s.Pods = append(f.s.Pods, fleet.Pod{ID: fleet.UID(fmt.Sprintf("w%d", i)), Name: fleet.Name{Namespace: "batch", Name: fmt.Sprintf("w-%04d", i)}, Node: n.ID,
			NodeName: n.Name, Class: fleet.PodOffline, Job: "batch/train", Role: "worker", Phase: fleet.PodRunning, Ready: true,
			Requests: fleet.Resources{CPU: 16000, Memory: 32 * fleet.GiB}, Version: "1"})
	}
	f.s.Jobs = []fleet.Job{{ID: "batch/train", Members: []fleet.Member{{Role: "worker", Kind: "Job", Min: 2000, Max: 2600, Desired: 2000, Active: 2000, Remaining: -1,
		Request: fleet.Resources{CPU: 16000, Memory: 32 * fleet.GiB}}}}}
	f.s.Sort()
	for k := range f.days {
		f.days[k] = benchHistory(k)
	}
	return f
}

func benchNode(i int) fleet.Node {
	n := fleet.Node{ID: fleet.NodeID(fmt.Sprintf("uid-%05d", i)), Name: fmt.Sprintf("node-%05d", i), Zone: fmt.Sprintf("z%d", i%3), Pool: "online",
		Allocatable: fleet.Resources{CPU: 64000, Memory: 256 * fleet.GiB, Pods: 110}, Ready: true, AgentAlive: true}
	if i >= benchNodes-1000 {
		n.Pool, n.Marks = "offline", fleet.NodeMarks{HolderTaint: true, OfflineLabel: true, HomeLabel: true}
	}
	for c := range 4 {
		n.Cells = append(n.Cells, fleet.Cell{ID: c, Socket: c / 2, Capacity: fleet.Resources{CPU: 16000, Memory: 64 * fleet.GiB}})
	}
	return n
}

func (f *benchFleet) service(i int) {
	name := fleet.Name{Namespace: fmt.Sprintf("ns-%02d", i%20), Name: fmt.Sprintf("svc-%04d", i)}
	svc := fleet.Service{ID: fleet.ServiceID(name.String()), Target: name, TargetKind: "Deployment", TargetFound: true, Mode: fleet.Auto, Pause: fleet.PauseNone,
		Actuation: fleet.ByScale, SLO: fleet.Levels(fleet.Latency(0.99,
			200*time.Millisecond)), Min: 2, Max: 100, Quantile: 0.95, Steerable: true,
		Request: fleet.Resources{CPU: 4000, Memory: 8 * fleet.GiB}, Desired: fleet.KnownAt[int32](benchPods,
			benchStart), Version: "1"}
	for j := range benchPods {
		n := &f.s.Nodes[(i*7+j*1231)%(benchNodes-2000)]
		began := fleet.KnownAt(benchStart.Add(-time.Hour), benchStart)
		p := fleet.Pod{ID: fleet.UID(fmt.Sprintf("%s-%d", name.Name, j)), Name: fleet.Name{Namespace: name.Namespace, Name: fmt.Sprintf("%s-%02d", name.Name, j)},
			Node: n.ID, NodeName: n.Name, Class: fleet.PodOnline, Service: svc.ID, Requests: svc.Request, Phase: fleet.PodRunning, Ready: true, CurrentRevision: true,
			Created: began.Value, Started: began, ReadySince: began, Version: "1"}
		svc.Pods = append(svc.Pods, p)
		f.s.Pods = append(f.s.Pods, p)
	}
	f.s.Services = append(f.s.Services, svc)
}

func (f *benchFleet) loan(node int) {
	n := &f.s.Nodes[node]
	l := fleet.Loan{ID: fleet.LoanID("loan-" + n.Name), Kind: fleet.KindNode, Node: n.ID, NodeName: n.Name, Cells: n.AllCells(), Capacity: n.Allocatable, From: "online",
		To: "offline", Phase: fleet.Lent, Epoch: 1, Created: benchStart.Add(-time.Hour), Since: benchStart.Add(-time.Hour)}
	f.s.Loans = append(f.s.Loans, l)
	n.Marks = fleet.NodeMarks{HolderTaint: true, OfflineLabel: true, KeepNode: true}
	n.Share = fleet.Share{Exists: true, Parcels: []fleet.ShareParcel{{Cells: l.Cells, Holder: "offline", Loan: l.ID, Epoch: 1}}}
}

// benchHistory is a tide of about 600 requests a second at its peak, of 20 ms of CPU each, over the days before the start and one after.
func benchHistory(k int) portrait.Batch {
	const steps = (benchDays + 1) * 288
	start := benchStart.Add(-benchDays * 24 * time.Hour)
	b := portrait.Batch{Load: series.New(start, 5*time.Minute, steps), CPU: series.New(start, 5*time.Minute, steps), Ready: series.New(start, 5*time.Minute, steps)}
	for i := range steps {
		hour := float64(i%288)/12 + float64(k)
		noise := 1 + 0.05*math.Sin(float64(i*i%997))
		b.Load.Values[i] = (350 + 250*math.Cos((hour-20)/24*2*math.Pi)) * noise
		b.CPU.Values[i] = 0.1*benchPods + 0.02*b.Load.Values[i]
		b.Ready.Values[i] = benchPods
	}
	return b
}

// at brings the facts to a time: the snapshot, and fresh samples of every pod.
func (f *benchFleet) at(now time.Time) {
	f.s.At = now
	byPod := func() map[fleet.Name]fleet.Known[float64] {
		return make(map[fleet.Name]fleet.Known[float64], len(f.s.Pods))
	}
	f.live = signal.Samples{CPU: byPod(), Requests: byPod(),
		Services: make(map[fleet.ServiceID]signal.Service, len(f.s.Services))}
	for i := range f.s.Services {
		svc := &f.s.Services[i]
		load := f.days[i%len(f.days)].Load.At(now)
		for j := range svc.Pods {
			f.live.CPU[svc.Pods[j].Name] = fleet.KnownAt(0.1+0.02*load/benchPods, now)
			f.live.Requests[svc.Pods[j].Name] = fleet.KnownAt(load/benchPods, now)
		}
		f.live.Services[svc.ID] = signal.Service{Levels: map[string]fleet.Known[float64]{
			fleet.LatencyName(0.99): fleet.KnownAt(0.08, now)}}
	}
}

func (f *benchFleet) Snapshot(context.Context) (*fleet.Snapshot, error) {
	s := f.s
	return &s, nil
}

func (f *benchFleet) Since(_ context.Context, services []fleet.Service, from, to time.Time) (iter.Seq2[fleet.ServiceID, portrait.Batch], error) {
	cut := func(s series.Series) series.Series {
		s = s.Since(from)
		s.Values = s.Values[:max(s.Index(to), 0)]
		return s
	}
	return func(yield func(fleet.ServiceID, portrait.Batch) bool) {
		for i := range services {
			b := &f.days[i%len(f.days)]
			if !yield(services[i].ID, portrait.Batch{Load: cut(b.Load), CPU: cut(b.CPU), Ready: cut(b.Ready), StartUps: []time.Duration{40 * time.Second}}) {
				return
			}
		}
	}, nil
}

func (f *benchFleet) Live(context.Context, []fleet.Service, time.Time) (signal.Samples, error) {
	return f.live, nil
}
func (f *benchFleet) Prefetch(context.Context, []fleet.Service, time.Time) error { return nil }
func (f *benchFleet) Append(context.Context, *loop.Record) error                 { return nil }
func (f *benchFleet) Report(context.Context, *loop.Report) error                 { return nil }
func (f *benchFleet) SavePortraits(context.Context, []portrait.Portrait) error   { return nil }
func (f *benchFleet) SaveTides(context.Context, []forecast.Tide) error           { return nil }
func (f *benchFleet) LoadSummaries(context.Context) (map[fleet.ServiceID]loop.Summary, error) {
	return nil, nil
}
func (f *benchFleet) LoadPaces(context.Context) (reclaim.Paces, error) { return nil, nil }

func (f *benchFleet) SavePaces(context.Context, reclaim.Paces) error { return nil }

func (f *benchFleet) LoadAccounts(context.Context) (map[fleet.ServiceID]slo.Account, error) {
	return nil, nil
}

func (f *benchFleet) SaveAccounts(context.Context, map[fleet.ServiceID]*slo.Account) error {
	return nil
}

func (f *benchFleet) LoadDays(context.Context) (map[fleet.ServiceID]loop.Days, error) {
	return nil, nil
}

func (f *benchFleet) SaveDays(context.Context, map[fleet.ServiceID]loop.Days) error { return nil }

func (f *benchFleet) SaveSummaries(context.Context, map[fleet.ServiceID]loop.Summary) error {
	return nil
}
func (f *benchFleet) Now() time.Time           { return f.s.At }
func (f *benchFleet) At(t time.Time) time.Time { return t }

// Park implements loop.Clock: Run is made for one cycle here.
func (f *benchFleet) Park(context.Context, time.Time, bool) error {
	f.park()
	return nil
}

func (f *benchFleet) Apply(_ context.Context, p *planner.Plan) (loop.Receipt, error) {
	return loop.Receipt{Revision: p.Revision}, nil
}
func (f *benchFleet) LoadPortraits(context.Context) (map[fleet.ServiceID]portrait.Portrait, error) {
	return nil, nil
}

// LoadDecisions implements loop.Memory: two hours of them, as many as a loop keeps.
func (f *benchFleet) LoadDecisions(_ context.Context, since time.Time) (map[fleet.ServiceID][]hpa.Decision, error) {
	out := make(map[fleet.ServiceID][]hpa.Decision, len(f.s.Services))
	for i := range f.s.Services {
		var ds []hpa.Decision
		for at := since; at.Before(f.s.At); at = at.Add(15 * time.Second) {
			ds = append(ds, hpa.Decision{At: at, Replicas: benchPods, From: benchPods})
		}
		out[f.s.Services[i].ID] = ds
	}
	return out, nil
}

func (f *benchFleet) SaveDecisions(context.Context, map[fleet.ServiceID][]hpa.Decision) error {
	return nil
}

// heap is what lives on the heap, in MB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// turns are the wall times of cycles, and the processor time of all of them: on a machine that does other work too,
// only that shows what a cycle costs.
type turns struct {
	took []time.Duration
	cpu  time.Duration
}

// turn makes one cycle, some time after the last.
func (t *turns) turn(b *testing.B, f *benchFleet, l *loop.Loop, after time.Duration) {
	f.at(f.s.At.Add(after))
	cpu, began := cpuTime(b), time.Now()
	if _, err := l.Cycle(b.Context()); err != nil {
		b.Fatal(err)
	}
	t.took = append(t.took, time.Since(began))
	t.cpu += cpuTime(b) - cpu
}

// cpuTime is what the process has used so far.
func cpuTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// report adds the figures to a benchmark's line.
func (t *turns) report(b *testing.B) {
	slices.Sort(t.took)
	at := func(q float64) float64 { return t.took[int(q*float64(len(t.took)-1)+0.5)].Seconds() * 1000 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(t.cpu.Seconds()*1000/float64(len(t.took)), "cpu-ms")
}

// BenchmarkCycle measures the loop on 2,000 services with 14 days of history at 5 minutes, 10,000 machines and 26,000
// pods from an in-memory snapshot: the first cycle, which learns 14 days of every service and replays a week of each; a
// cycle that plans; and one that reads history and makes every tide again as well, as each twentieth does. Heaps are
// after a collection: the fleet as it is given, and what the loop keeps.
func BenchmarkCycle(b *testing.B) {
	f := newBenchFleet()
	f.at(benchStart)
	facts := heap()
	ports := loop.Ports{Observer: f, History: f, Actuator: f, Reporter: f, Journal: f, Memory: f, Clock: f, Metrics: loop.NewMetrics(prometheus.NewRegistry())}
	l := loop.New(ports, loop.DefaultOptions())
	ctx, cancel := context.WithCancel(b.Context())
	f.park = cancel
	began := time.Now()
	if err := l.Run(ctx, 1); err != nil {
		b.Fatal(err)
	}
	first, kept := time.Since(began), heap()-facts
	const react, learn = 15 * time.Second, 5 * time.Minute
	learned := f.s.At
	b.Run("plan", func(b *testing.B) {
		var all, aside turns
		for b.Loop() {
			if f.s.At.Add(react).Sub(learned) >= learn {
				b.StopTimer()
				aside.turn(b, f, l, react)
				learned = f.s.At
				b.StartTimer()
			}
			all.turn(b, f, l, react)
		}
		all.report(b)
		b.ReportMetric(first.Seconds(), "first-s")
		b.ReportMetric(facts, "facts-MB")
		b.ReportMetric(kept, "loop-MB")
	})
	b.Run("learn", func(b *testing.B) {
		var all turns
		for b.Loop() {
			all.turn(b, f, l, learn)
		}
		all.report(b)
	})
}
