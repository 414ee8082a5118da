package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Agent configures the agent of one node. Durations are written as in "1m30s".
type Agent struct {
	// Kubeconfig is the file to reach the cluster by; inside of a cluster, where it is empty, the pod's own account.
	Kubeconfig string `yaml:"kubeconfig"`
	// Namespace is the controller's: the agent's Lease lives there.
	Namespace string `yaml:"namespace"`
	// Node is the name of the agent's node; the flag takes it from the pod.
	Node string `yaml:"node"`
	// Listen is the address of metrics, health and readiness.
	Listen string `yaml:"listen"`
	// Metrics is the TLS address of metrics, for callers whom the API server lets get them.
	Metrics Metrics `yaml:"metrics"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `yaml:"logLevel"`
	// Interval is the time between cycles; events bring the next cycle forward.
	Interval Duration `yaml:"interval"`
	// LeaseDuration is how long the agent counts as alive after a renewal; it renews after a quarter of that.
	LeaseDuration Duration `yaml:"leaseDuration"`
	// Topology is Write (the agent writes the NodeResourceTopology, and takes over one of another exporter), Read (another exporter, such as
	// NFD's topology updater, writes it) or Off.
	Topology string `yaml:"topology"`
	// DaemonKinds are the kinds whose pods belong to the system as those of DaemonSets do: the controller's list. The agent must be allowed to
	// watch them.
	DaemonKinds []Kind `yaml:"daemonKinds"`
	// CgroupRoot is where cgroup v2 is mounted, CgroupParent the kubelet's cgroupRoot below it.
	CgroupRoot   string `yaml:"cgroupRoot"`
	CgroupParent string `yaml:"cgroupParent"`
	// SysRoot and ProcRoot are where sysfs and procfs of the machine are mounted.
	SysRoot  string `yaml:"sysRoot"`
	ProcRoot string `yaml:"procRoot"`
	// KubeletRoot is the kubelet's directory.
	KubeletRoot string `yaml:"kubeletRoot"`
	// StateDir is the agent's own directory: the last share and the journal.
	StateDir string `yaml:"stateDir"`
	// NRISocket is the runtime's socket for plugins; empty adjusts containers after their start alone.
	NRISocket string `yaml:"nriSocket"`
	// CRISocket is the runtime's CRI socket, for checkpoint hooks that are commands; empty refuses them.
	CRISocket string `yaml:"criSocket"`
	// CleanMargin is how long a parcel must have been free behind closed marks before it is Clean.
	CleanMargin Duration `yaml:"cleanMargin"`
	// MemoryLeftMiB is how much memory of the side that leaves may stay on a cell of a Clean parcel.
	MemoryLeftMiB int `yaml:"memoryLeftMiB"`
	// CPUSets confines pods to cores and cells.
	CPUSets bool `yaml:"cpuSets"`
	// CPUIdle runs reclaimed BestEffort pods only when no other runs; CPUWeights gives other reclaimed pods the least weight.
	CPUIdle    bool `yaml:"cpuIdle"`
	CPUWeights bool `yaml:"cpuWeights"`
	// ProtectMemory has the kernel reclaim what online pods request last.
	ProtectMemory bool `yaml:"protectMemory"`
	// IOWeight is the weight of reclaimed pods for I/O (others have 100); 0 leaves it alone. IOMax are lines of io.max for each of them.
	IOWeight int      `yaml:"ioWeight"`
	IOMax    []string `yaml:"ioMax"`
	// IOCostQoS and IOCostModel are lines of the machine's io.cost.qos and io.cost.model: devices on which the kernel enforces weights for I/O.
	IOCostQoS   []string `yaml:"ioCostQoS"`
	IOCostModel []string `yaml:"ioCostModel"`
	// CachePercent and BandwidthPercent are the shares of the last cache and of memory bandwidth that reclaimed pods may use; 0 leaves them alone.
	CachePercent     int `yaml:"cachePercent"`
	BandwidthPercent int `yaml:"bandwidthPercent"`
	// Overlap bounds reclaimed work and offers what is idle.
	Overlap Overlap `yaml:"overlap"`
	// Evictions take reclaimed pods off a machine under pressure.
	Evictions Evictions `yaml:"evictions"`
}

// Overlap bounds reclaimed work and offers what is idle.
type Overlap struct {
	// MemoryBox bounds the memory of reclaimed pods by what is free, CPUQuota their CPU by what online leaves idle.
	MemoryBox bool `yaml:"memoryBox"`
	CPUQuota  bool `yaml:"cpuQuota"`
	// Offer shows what is idle as the extended resources springtide.dev/reclaimed-cpu (in thousandths of a core) and -memory (in bytes).
	Offer bool `yaml:"offer"`
	// Period is the time between two measurements.
	Period Duration `yaml:"period"`
	// FloorMilliCPU is what reclaimed work always gets.
	FloorMilliCPU int `yaml:"floorMilliCPU"`
	// HeadroomPercent is how far online may grow within a period without waiting.
	HeadroomPercent int `yaml:"headroomPercent"`
	// ReleaseEvery is the time between two steps by which reclaimed work gets more.
	ReleaseEvery Duration `yaml:"releaseEvery"`
	// Smooth is the time over which the offer is the least that was there.
	Smooth Duration `yaml:"smooth"`
}

// Evictions take reclaimed pods off a machine under pressure.
type Evictions struct {
	Enabled bool `yaml:"enabled"`
	// StallPercent is the share of time that online may wait for memory.
	StallPercent int `yaml:"stallPercent"`
	// Grace is how long memory below the critical amount may last before a pod goes.
	Grace Duration `yaml:"grace"`
	// DisturbedFor is how long online may wait for CPUs, or be slow, above its target while reclaimed work has its least CPU.
	DisturbedFor Duration `yaml:"disturbedFor"`
	// Tolerance is how many times the supply the requests of reclaimed pods may be, StarvedFor how long.
	Tolerance  float64  `yaml:"tolerance"`
	StarvedFor Duration `yaml:"starvedFor"`
	// Overuse is how many times its memory request a pod may hold, OveruseFor how long; 0 turns the rule off.
	Overuse    float64  `yaml:"overuse"`
	OveruseFor Duration `yaml:"overuseFor"`
	// DiskFreePercent is the share of disk and inodes below which pods go.
	DiskFreePercent int `yaml:"diskFreePercent"`
	// PerMinute bounds evictions.
	PerMinute int `yaml:"perMinute"`
	// Hold is how long nothing is offered after an eviction.
	Hold Duration `yaml:"hold"`
}

// DefaultAgent returns what a file that says nothing means.
func DefaultAgent() Agent {
	return Agent{
		Namespace: "springtide-system", Listen: ":8081", LogLevel: "info", Interval: Duration(5 * time.Second),
		LeaseDuration: Duration(40 * time.Second), // the kubelet's own
		Topology:      "Write",
		CgroupRoot:    "/sys/fs/cgroup", SysRoot: "/sys", ProcRoot: "/proc", KubeletRoot: "/var/lib/kubelet", StateDir: "/var/lib/springtide-agent",
		NRISocket:   "/var/run/nri/nri.sock",
		CleanMargin: Duration(30 * time.Second), // the controller's own where there is no agent
		// Page tables, shared pages and per-CPU buffers never go wholly.
		MemoryLeftMiB: 64,
		CPUSets:       true, CPUIdle: true, CPUWeights: true, ProtectMemory: true,
		IOWeight: 10,
		Overlap: Overlap{MemoryBox: true, CPUQuota: true, Offer: true, Period: Duration(time.Second), FloorMilliCPU: 500, HeadroomPercent: 25,
			ReleaseEvery: Duration(30 * time.Second), Smooth: Duration(2 * time.Minute)},
		Evictions: Evictions{Enabled: true, StallPercent: 15, DisturbedFor: Duration(30 * time.Second), Grace: Duration(5 * time.Second), Tolerance: 5, StarvedFor: Duration(5 * time.Minute),
			Overuse: 1.5, OveruseFor: Duration(time.Minute), DiskFreePercent: 5, PerMinute: 6, Hold: Duration(5 * time.Minute)},
	}
}

// Validate says everything that is wrong, each with its field and how to fix it. The node's name is the caller's to demand: a flag gives it.
func (c *Agent) Validate() []Problem {
	var out problems
	out.process(c.Namespace, c.Listen, c.LogLevel)
	out.metrics(c.Metrics)
	out.oneOf("topology", c.Topology, "Write", "Read", "Off")
	out.kinds("daemonKinds", c.DaemonKinds)
	out.within("interval", c.Interval, time.Second, time.Minute)
	out.within("leaseDuration", c.LeaseDuration, 10*time.Second, 10*time.Minute)
	out.within("cleanMargin", c.CleanMargin, time.Second, 10*time.Minute)
	out.between("memoryLeftMiB", c.MemoryLeftMiB, 0, 1<<20)
	out.between("ioWeight", c.IOWeight, 0, 1000)
	out.between("cachePercent", c.CachePercent, 0, 100)
	out.between("bandwidthPercent", c.BandwidthPercent, 0, 100)
	o, e := &c.Overlap, &c.Evictions
	out.within("overlap.period", o.Period, 500*time.Millisecond, 30*time.Second)
	out.between("overlap.floorMilliCPU", o.FloorMilliCPU, 10, 1_000_000)
	out.between("overlap.headroomPercent", o.HeadroomPercent, 0, 400)
	out.within("overlap.releaseEvery", o.ReleaseEvery, time.Second, time.Hour)
	out.within("overlap.smooth", o.Smooth, 10*time.Second, time.Hour)
	out.between("evictions.stallPercent", e.StallPercent, 1, 100)
	out.within("evictions.grace", e.Grace, 0, 10*time.Minute)
	if !(e.Tolerance >= 1) || e.Tolerance > 100 {
		out.wrong("evictions.tolerance", "%g is out of bounds: write 1 to 100", e.Tolerance)
	}
	out.within("evictions.disturbedFor", e.DisturbedFor, time.Second, 24*time.Hour)
	out.within("evictions.starvedFor", e.StarvedFor, time.Second, 24*time.Hour)
	if !(e.Overuse >= 0) || e.Overuse > 100 {
		out.wrong("evictions.overuse", "%g is out of bounds: write 0 to 100", e.Overuse)
	}
	out.within("evictions.overuseFor", e.OveruseFor, time.Second, 24*time.Hour)
	out.between("evictions.diskFreePercent", e.DiskFreePercent, 0, 50)
	out.between("evictions.perMinute", e.PerMinute, 1, 600)
	out.within("evictions.hold", e.Hold, 0, 24*time.Hour)
	for _, lines := range []struct {
		field, file, example string
		of                   []string
	}{
		{"ioMax", "io.max", "254:0 wbps=104857600", c.IOMax},
		{"ioCostQoS", "io.cost.qos", "254:0 enable=1 ctrl=user rpct=95 rlat=5000 wpct=95 wlat=5000", c.IOCostQoS},
		{"ioCostModel", "io.cost.model", "254:0 ctrl=user model=linear rbps=2000000000", c.IOCostModel},
	} {
		for i, line := range lines.of {
			f := strings.Fields(line)
			if len(f) < 2 || !strings.Contains(f[0], ":") || slices.ContainsFunc(f[1:], func(s string) bool { return !strings.Contains(s, "=") }) {
				out.wrong(fmt.Sprintf("%s[%d]", lines.field, i), "%q is no line of %s: write one such as %s", line, lines.file, lines.example)
			}
		}
	}
	return out
}
