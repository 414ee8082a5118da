package host

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// files writes a tree of files below a directory.
func files(t testing.TB, root string, tree map[string]string) {
	t.Helper()
	for path, text := range tree {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// cellSpec is one NUMA cell of a made-up machine.
type cellSpec struct {
	socket int
	cpus   string
	memory int // GiB
}

// machineSpec describes a machine; threads is how many CPUs a core has, and CPUs of a core are neighbours.
type machineSpec struct {
	cells     []cellSpec
	distances []string
	offline   string
	threads   int
	more      map[string]string
}

// sys writes a sysfs of the machine.
func (m machineSpec) sys(t testing.TB, root string) {
	t.Helper()
	tree := map[string]string{}
	online, cells := shape.Set{}, shape.Set{}
	offline, _ := shape.ParseSet(m.offline)
	for id, c := range m.cells {
		cpus, err := shape.ParseSet(c.cpus)
		if err != nil {
			t.Fatal(err)
		}
		dir := fmt.Sprintf("devices/system/node/node%d/", id)
		tree[dir+"cpulist"] = cpus.Minus(offline).String()
		tree[dir+"meminfo"] = fmt.Sprintf("Node %d MemTotal:       %d kB\nNode %d MemFree:        %d kB", id, c.memory<<20, id, c.memory<<19)
		tree[dir+"hugepages/hugepages-2048kB/nr_hugepages"] = "0"
		if m.distances != nil {
			tree[dir+"distance"] = m.distances[id]
		}
		cells = cells.Union(shape.Set{id})
		for _, cpu := range cpus.Minus(offline) {
			first := cpu / m.threads * m.threads
			var siblings shape.Set
			for i := range m.threads {
				siblings = append(siblings, first+i)
			}
			topology := fmt.Sprintf("devices/system/cpu/cpu%d/topology/", cpu)
			tree[topology+"core_id"] = fmt.Sprint(first / m.threads)
			tree[topology+"physical_package_id"] = fmt.Sprint(c.socket)
			tree[topology+"core_cpus_list"] = siblings.String()
			online = online.Union(shape.Set{cpu})
		}
	}
	tree["devices/system/cpu/online"], tree["devices/system/cpu/offline"], tree["devices/system/node/online"] = online.String(), m.offline, cells.String()
	for path, text := range m.more {
		tree[path] = text
	}
	files(t, root, tree)
}

// twoSockets is a machine of two sockets with two cells of four CPUs each.
var twoSockets = machineSpec{threads: 2, distances: []string{"10 11 21 21", "11 10 21 21", "21 21 10 11", "21 21 11 10"},
	cells: []cellSpec{{0, "0-3", 16}, {0, "4-7", 16}, {1, "8-11", 16}, {1, "12-15", 16}}}

// groupFiles are the files of a cgroup that the agent reads or writes, as a kernel makes them.
var groupFiles = map[string]string{
	"cgroup.controllers": "cpuset cpu io memory pids", "cgroup.procs": "", "cpuset.cpus": "", "cpuset.mems": "", "cpu.idle": "0", "cpu.weight": "100", "cpu.max": "max 100000",
	"memory.max": "max", "memory.high": "max", "memory.low": "0", "memory.min": "0", "memory.current": "0", "memory.reclaim": "", "io.weight": "default 100", "io.max": "",
	"memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0",
	"cpu.pressure":    "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0",
	"cpu.stat":        "usage_usec 0\nnr_throttled 0\nthrottled_usec 0", "memory.stat": "anon 0\nfile 0\ninactive_file 0", "memory.numa_stat": "anon N0=0\nfile N0=0",
}

// bench is a machine made of files, and an agent on it.
type bench struct {
	*Agent
	t     testing.TB
	roots Roots
	facts *Facts
	now   time.Time
}

// newBench makes a machine. The kernel's part that files cannot play (cpuset.*.effective) is played by settle.
func newBench(t testing.TB, change ...func(*Options)) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{t: t, now: noon, roots: Roots{Sys: dir + "/sys", Proc: dir + "/proc", Cgroup: dir + "/cgroup", Kubelet: dir + "/kubelet", State: dir + "/state"}}
	if err := os.MkdirAll(b.roots.State, 0o755); err != nil {
		t.Fatal(err)
	}
	twoSockets.sys(t, b.roots.Sys)
	files(t, b.roots.Proc, map[string]string{"meminfo": "MemTotal: 67108864 kB\nMemFree: 33554432 kB\nMemAvailable: 50331648 kB"})
	files(t, b.roots.Kubelet, map[string]string{"cpu_manager_state": `{"policyName":"none"}`, "memory_manager_state": `{"policyName":"None"}`})
	b.group("")
	for _, p := range []string{"kubepods", "kubepods/burstable", "kubepods/besteffort"} {
		b.group(p)
	}
	o := Options{Node: "m", Namespace: "springtide-system", Roots: b.roots, Interval: 5 * time.Second, Margin: 30 * time.Second, MemoryLeft: 64 << 20, LeaseSeconds: 40,
		Knobs: shape.Knobs{CPUSets: true, Idle: true, Weights: true, Protect: true, IOWeight: 10}, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&o)
	}
	var err error
	if b.Agent, err = New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	b.facts = &Facts{Node: NodeFacts{Name: "m", UID: "node-uid", Allocatable: fleet.Resources{CPU: 16000, Memory: 64 * fleet.GiB, Pods: 110}},
		Classes: map[fleet.PoolID]fleet.Class{"web": fleet.Online, "batch": fleet.Offline}, Home: "web"}
	return b
}

// group makes a cgroup.
func (b *bench) group(path string) {
	b.t.Helper()
	files(b.t, filepath.Join(b.roots.Cgroup, path), groupFiles)
}

// pod adds a pod with one container to the facts and to the tree.
func (b *bench) pod(name string, side shape.Side, level shape.Class, milli int64) *PodFacts {
	b.t.Helper()
	p := PodFacts{UID: name + "-uid", Namespace: "shop", Name: name, Side: side, Level: level, QoS: shape.Burstable, Containers: map[string]string{name + "-c": "main"},
		Ask: fleet.Resources{CPU: fleet.MilliCPU(milli), Memory: fleet.Bytes(milli) << 20}}
	p.Class = map[shape.Side]fleet.PodClass{shape.OnlineSide: fleet.PodOnline, shape.OfflineSide: fleet.PodOffline, shape.OverlapSide: fleet.PodOnline, shape.SystemSide: fleet.PodSystem}[side]
	if milli == 0 {
		p.QoS = shape.BestEffort
	}
	b.facts.Pods = append(b.facts.Pods, p)
	b.group(b.path(&p))
	b.group(b.path(&p) + "/" + name + "-c")
	files(b.t, filepath.Join(b.roots.Cgroup, b.path(&p)), map[string]string{name + "-c/cgroup.procs": "4711"})
	b.settle()
	return &b.facts.Pods[len(b.facts.Pods)-1]
}

func (b *bench) path(p *PodFacts) string {
	switch p.QoS {
	case shape.Burstable:
		return "kubepods/burstable/pod" + p.UID
	case shape.BestEffort:
		return "kubepods/besteffort/pod" + p.UID
	}
	return "kubepods/pod" + p.UID
}

// settle does what the kernel does with cpusets: the effective set of a group is its own among its parent's.
func (b *bench) settle() {
	b.t.Helper()
	var walk func(path string, cpus, mems shape.Set)
	walk = func(path string, cpus, mems shape.Set) {
		dir := filepath.Join(b.roots.Cgroup, path)
		for file, set := range map[string]*shape.Set{"cpuset.cpus": &cpus, "cpuset.mems": &mems} {
			own, err := shape.ParseSet(b.read(path, file))
			if err != nil {
				b.t.Fatal(err)
			}
			if common := own.Intersect(*set); len(common) > 0 {
				*set = common
			}
			files(b.t, dir, map[string]string{file + ".effective": set.String()})
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				walk(filepath.Join(path, e.Name()), cpus, mems)
			}
		}
	}
	top, err := ReadTopology(b.roots)
	if err != nil {
		b.t.Fatal(err)
	}
	walk("", top.AllCPUs(), top.AllCells())
}

func (b *bench) read(path, file string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.roots.Cgroup, path, file))
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// cycle runs one cycle, a second later than the last.
func (b *bench) cycle() *Outcome {
	b.t.Helper()
	b.now = b.now.Add(time.Second)
	if b.facts != nil {
		b.facts.At = b.now
	}
	out, err := b.Cycle(b.t.Context(), b.facts, b.now)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range out.Entries {
		if e.Error != "" {
			b.t.Fatalf("%+v", e)
		}
	}
	b.settle()
	return out
}

// lend gives the share one parcel.
func (b *bench) lend(holder, next string, epoch int64, cells ...int32) {
	s := &v1alpha1.NodeShare{Spec: v1alpha1.NodeShareSpec{NodeUID: "node-uid",
		Parcels: []v1alpha1.ShareParcel{{Cells: cells, Holder: holder, Next: next, LoanName: "loan", LoanUID: "loan-uid", Epoch: epoch}}}}
	if b.facts.Share != nil {
		s.Status = b.facts.Share.Status
	}
	b.facts.Share = s
}
