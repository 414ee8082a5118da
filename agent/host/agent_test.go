package host

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
)

// TestLendSocket plays a loan of socket 1: online is confined before the parcel is clean, offline gets the socket, and on the recall the parcel
// is clean once the pod, its processes and its memory are gone.
func TestLendSocket(t *testing.T) {
	b := newBench(t)
	web := *b.pod("web", shape.OnlineSide, shape.Shared, 4000)
	b.lend("web", "batch", 1, 2, 3)
	if out := b.cycle(); len(out.Parcels) != 1 || out.Parcels[0].Clean || out.Parcels[0].Waits != "Pods" && out.Parcels[0].Waits != "Marks" {
		t.Fatalf("%+v: want what it waits for", out.Parcels)
	}
	for _, path := range []string{b.path(&web), b.path(&web) + "/web-c"} {
		if cpus, mems := b.read(path, "cpuset.cpus"), b.read(path, "cpuset.mems"); cpus != "0-7" || mems != "0-1" {
			t.Errorf("%s: online has CPUs %s, memory %s", path, cpus, mems)
		}
	}
	b.facts.Node.Marks.HolderTaint = true
	if out := b.cycle(); out.Parcels[0].Waits != "Margin" || len(out.Writes) > 0 {
		t.Fatalf("%+v, %+v", out.Parcels, out.Writes)
	}
	b.now = b.now.Add(30 * time.Second)
	out := b.cycle()
	if r := out.Parcels[0]; !r.Clean || r.Epoch != 1 || r.Time == nil {
		t.Fatalf("%+v", r)
	}
	b.lend("batch", "", 1, 2, 3)
	b.facts.Share.Status.Parcels = out.Parcels
	job := *b.pod("job", shape.OfflineSide, shape.Shared, 6000)
	b.cycle()
	if cpus, mems := b.read(b.path(&job)+"/job-c", "cpuset.cpus"), b.read(b.path(&job), "cpuset.mems"); cpus != "8-15" || mems != "2-3" {
		t.Errorf("offline has CPUs %s, memory %s", cpus, mems)
	}
	if cpus := b.read(b.path(&web), "cpuset.cpus"); cpus != "0-7" {
		t.Errorf("online has %s", cpus)
	}

	b.lend("batch", "web", 2, 2, 3)
	b.facts.Node.Marks = fleet.NodeMarks{HolderTaint: true}
	if out := b.cycle(); out.Parcels[0].Waits != "Pods" || len(out.Parcels[0].Occupants) != 1 || out.Parcels[0].Occupants[0] != "shop/job" {
		t.Fatalf("%+v", out.Parcels)
	}
	if cpus := b.read(b.path(&job)+"/job-c", "cpuset.cpus"); cpus != "8-15" {
		t.Errorf("offline is squeezed to %s while it saves its work", cpus)
	}
	// The object is gone, a process of it is not.
	b.facts.Pods = b.facts.Pods[:1]
	if out := b.cycle(); out.Parcels[0].Waits != "Processes" {
		t.Fatalf("%+v", out.Parcels)
	}
	files(t, filepath.Join(b.roots.Cgroup, b.path(&job)), map[string]string{"job-c/cgroup.procs": ""})
	b.cycle()
	b.now = b.now.Add(30 * time.Second)
	if out := b.cycle(); !out.Parcels[0].Clean || out.Parcels[0].Epoch != 2 {
		t.Fatalf("%+v", out.Parcels)
	}
}

// TestMemoryKeepsAParcelFromClean: memory of the side that leaves, above the threshold, is waited for.
func TestMemoryKeepsAParcelFromClean(t *testing.T) {
	b := newBench(t)
	web := *b.pod("web", shape.OnlineSide, shape.Shared, 4000)
	b.lend("web", "batch", 1, 2, 3)
	b.facts.Node.Marks.HolderTaint = true
	b.cycle()
	files(t, filepath.Join(b.roots.Cgroup, b.path(&web)), map[string]string{"memory.numa_stat": "anon N0=5 N3=67108865\nfile N0=0 N3=0"})
	if out := b.cycle(); out.Parcels[0].Waits != "Memory" {
		t.Fatalf("%+v", out.Parcels)
	}
	files(t, filepath.Join(b.roots.Cgroup, b.path(&web)), map[string]string{"memory.numa_stat": "anon N0=5 N3=67108864\nfile N0=0 N3=0"})
	if out := b.cycle(); out.Parcels[0].Waits != "Margin" {
		t.Fatalf("%+v", out.Parcels)
	}
}

// TestCacheOnALentCellIsAskedBack: page cache that a pod of online left on a lent cell is asked back until no more than the threshold is there. Other
// cells, memory that processes hold and pods of the side that comes lose nothing.
func TestCacheOnALentCellIsAskedBack(t *testing.T) {
	b := newBench(t)
	web, calm, job := *b.pod("web", shape.OnlineSide, shape.Shared, 2000), *b.pod("calm", shape.OnlineSide, shape.Shared, 1000), *b.pod("job", shape.OfflineSide, shape.Shared, 1000)
	b.lend("web", "batch", 1, 2, 3)
	b.facts.Node.Marks.HolderTaint = true
	b.cycle()
	asked := func(p *PodFacts) string { return b.read(b.path(p), "memory.reclaim") }
	numa := func(p *PodFacts, text string) {
		files(t, filepath.Join(b.roots.Cgroup, b.path(p)), map[string]string{"memory.numa_stat": text})
	}
	numa(&web, "anon N0=5 N3=7\nfile N0=500000000 N2=100000000 N3=50000000\nshmem N3=20000000")
	numa(&calm, "anon N0=5\nfile N0=500000000 N2=0")
	numa(&job, "anon N0=5\nfile N2=100000000")
	if r := b.cycle().Parcels[0]; r.Waits != "Memory" || len(r.Occupants) != 1 || r.Occupants[0] != "memory on cell 2" {
		t.Fatalf("%+v", r)
	}
	if asked(&web) != "130000000" || asked(&calm) != "" || asked(&job) != "" {
		t.Errorf("asked of web %q, calm %q, job %q", asked(&web), asked(&calm), asked(&job))
	}
	numa(&web, "anon N0=5\nfile N2=60000000000")
	b.cycle()
	if asked(&web) != "536870912" {
		t.Errorf("a cycle asks for %s bytes: want a bound", asked(&web))
	}
	numa(&web, "anon N0=5\nfile N2=1000")
	files(t, filepath.Join(b.roots.Cgroup, b.path(&web)), map[string]string{"memory.reclaim": ""})
	if out := b.cycle(); out.Parcels[0].Waits != "Margin" || asked(&web) != "" {
		t.Errorf("%+v, asked of web %q", out.Parcels, asked(&web))
	}
}

// TestCleanNeedsTheKernel: what counts is the effective cpuset, not what was written.
func TestCleanNeedsTheKernel(t *testing.T) {
	b := newBench(t)
	web := *b.pod("web", shape.OnlineSide, shape.Shared, 4000)
	b.lend("web", "batch", 1, 2, 3)
	b.facts.Node.Marks.HolderTaint = true
	b.cycle()
	files(t, filepath.Join(b.roots.Cgroup, b.path(&web)), map[string]string{"cpuset.mems.effective": "0-3"})
	b.now = b.now.Add(time.Minute)
	out, err := b.Cycle(t.Context(), b.facts, b.now)
	if err != nil || out.Parcels[0].Clean || out.Parcels[0].Waits != "Pods" {
		t.Fatalf("%+v, %v", out.Parcels, err)
	}
	if err := os.Remove(filepath.Join(b.roots.Cgroup, b.path(&web), "cpuset.cpus.effective")); err != nil {
		t.Fatal(err)
	}
	if out, err = b.Cycle(t.Context(), b.facts, b.now); err != nil || out.Parcels[0].Waits != "Pods" {
		t.Fatalf("the kernel does not say where the pod runs: %+v, %v", out.Parcels, err)
	}
}

// TestSecondRunIsANoOp: nothing is written without a change, and an agent that starts again finds nothing to do.
func TestSecondRunIsANoOp(t *testing.T) {
	b := newBench(t)
	b.pod("web", shape.OnlineSide, shape.Shared, 4000)
	b.pod("own", shape.OnlineSide, shape.Dedicated, 2000)
	b.pod("spare", shape.OverlapSide, shape.Reclaimed, 0)
	b.lend("batch", "", 1, 2, 3)
	if out := b.cycle(); len(out.Writes) == 0 {
		t.Fatal("nothing is written")
	}
	if out := b.cycle(); len(out.Writes) > 0 {
		t.Fatalf("%+v", out.Writes)
	}
	again, err := New(b.o.withRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if out, err := again.Cycle(t.Context(), b.facts, b.now); err != nil || len(out.Writes) > 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	b.facts.Pods[0].Ask.CPU = 5000 // a resize moves nothing
	if out := b.cycle(); slicesHave(out.Writes, "cpuset") {
		t.Fatalf("%+v", out.Writes)
	}
}

func slicesHave(ws []shape.Write, prefix string) bool {
	for _, w := range ws {
		if strings.HasPrefix(w.File, prefix) {
			return true
		}
	}
	return false
}

func (o Options) withRegistry() Options {
	o.Registry = nil
	return o
}

// TestLastShareHolds: without an API server the share on disk is enforced, also after a restart.
func TestLastShareHolds(t *testing.T) {
	b := newBench(t)
	web := *b.pod("web", shape.OnlineSide, shape.Shared, 4000)
	b.lend("batch", "", 1, 2, 3)
	b.cycle()
	again, err := New(b.o.withRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	files(t, filepath.Join(b.roots.Cgroup, b.path(&web)), map[string]string{"cpuset.cpus": "", "web-c/cpuset.cpus": "0-15"})
	if _, err := again.Cycle(t.Context(), nil, b.now.Add(10*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if cpus := b.read(b.path(&web)+"/web-c", "cpuset.cpus"); cpus != "0-7" {
		t.Errorf("online has %s", cpus)
	}
	fresh := newBench(t)
	if _, err := fresh.Cycle(t.Context(), nil, noon); err == nil {
		t.Error("an agent that knows nothing must change nothing")
	}
}

// TestStateThatIsNotKept: a failed write of the last share is an error that operators see, and the machine is shaped all the same.
func TestStateThatIsNotKept(t *testing.T) {
	b := newBench(t)
	b.pod("web", shape.OnlineSide, shape.Shared, 4000)
	b.lend("batch", "", 1, 2, 3)
	if err := os.Mkdir(filepath.Join(b.roots.State, factsFile), 0o755); err != nil {
		t.Fatal(err)
	}
	out := b.cycle()
	for _, c := range out.Capabilities {
		if c.Type == catalog.CapState && (c.OK || c.Reason != "WriteFailed") {
			t.Errorf("%+v", c)
		}
	}
	if len(out.Entries) == 0 {
		t.Error("nothing was written to cgroups")
	}
}

// TestDrivers: the systemd driver's names are read as the cgroupfs driver's.
func TestDrivers(t *testing.T) {
	root := t.TempDir()
	pod := "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaa_bb.slice"
	files(t, root, map[string]string{"cgroup.controllers": "cpu", "kubepods.slice/cgroup.controllers": "cpuset", "kubepods.slice/cgroup.procs": "", pod + "/cri-containerd-c1.scope/cgroup.procs": "1", "kubepods.slice/kubepods-besteffort.slice/cgroup.procs": "",
		"kubepods.slice/kubepods-podcc.slice/crio-c2.scope/cgroup.procs": "2"})
	c, err := OpenCgroups(root, "")
	if err != nil {
		t.Fatal(err)
	}
	pods, err := c.Pods()
	if err != nil || len(pods) != 2 {
		t.Fatalf("%+v, %v", pods, err)
	}
	kubelet := t.TempDir()
	files(t, kubelet, map[string]string{"cpu_manager_state": `{"policyName":"none"}`, "memory_manager_state": `{"policyName":"None"}`})
	for _, cap := range Detect(Roots{Cgroup: root, Kubelet: kubelet}, c, false) {
		if cap.Type == catalog.CapCPUSets && !cap.OK {
			t.Errorf("%+v", cap)
		}
		if cap.Type == catalog.CapCPUSets && cap.OK && !strings.Contains(cap.Message, "systemd") {
			t.Errorf("the condition does not say what the driver means: %q", cap.Message)
		}
	}
	if p := pods[1]; p.UID != "aa-bb" || p.QoS != shape.Burstable || len(p.Containers) != 1 || p.Containers[0].ID != "c1" || p.Path != pod {
		t.Errorf("%+v", p)
	}
	if p := pods[0]; p.UID != "cc" || p.QoS != shape.Guaranteed || p.Containers[0].ID != "c2" {
		t.Errorf("%+v", p)
	}
	if _, err := OpenCgroups(t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "to fix") {
		t.Errorf("a tree that is no cgroup v2: %v", err)
	}
	if _, err := OpenCgroups(root, "../.."); err == nil {
		t.Error("a parent out of the tree is accepted")
	}
}

// TestMissing: a missing controller, a static CPU manager and a read-only tree are conditions, and the rest goes on.
func TestMissing(t *testing.T) {
	reason := func(out *Outcome, kind string) string {
		for _, c := range out.Capabilities {
			if c.Type == kind {
				return c.Reason
			}
		}
		return ""
	}
	b := newBench(t)
	b.pod("web", shape.OnlineSide, shape.Shared, 4000)
	b.lend("batch", "", 1, 2, 3)
	files(t, b.roots.Kubelet, map[string]string{"cpu_manager_state": `{"policyName":"static"}`})
	out := b.cycle()
	if reason(out, catalog.CapCPUSets) != "KubeletManages" || slicesHave(out.Writes, "cpuset") {
		t.Errorf("%s, %+v", reason(out, catalog.CapCPUSets), out.Writes)
	}
	files(t, b.roots.Kubelet, map[string]string{"cpu_manager_state": `{"policyName":"none","defaultCpuSet":"","checksum":1}`})
	files(t, b.roots.Cgroup, map[string]string{"kubepods/cgroup.controllers": "cpuset cpu"})
	out = b.cycle()
	if reason(out, catalog.CapMemoryBox) != "NoController" || reason(out,
		catalog.CapIOWeight) != "NoController" || !slicesHave(out.Writes, "cpuset") || slicesHave(out.Writes, "memory") {
		t.Errorf("%+v, %+v", out.Capabilities, out.Writes)
	}
	if reason(out, catalog.CapResctrl) != "NoResctrl" || reason(out, catalog.CapNRI) != "Off" || reason(out,
		catalog.CapNetwork) != "NotSupported" {
		t.Errorf("%+v", out.Capabilities)
	}
}

// TestDryRun writes nothing and says what it would write.
func TestDryRun(t *testing.T) {
	b := newBench(t, func(o *Options) { o.DryRun = true })
	web := *b.pod("web", shape.OnlineSide, shape.Shared, 4000)
	b.lend("batch", "", 1, 2, 3)
	out := b.cycle()
	if cpus := b.read(b.path(&web), "cpuset.cpus"); cpus != "" {
		t.Errorf("a dry run writes %s", cpus)
	}
	var text strings.Builder
	if err := PrintDiff(out, &text); err != nil || !strings.Contains(text.String(), "-> 0-7") || !strings.Contains(text.String(), "# shop/web is shared") {
		t.Errorf("%s %v", text.String(), err)
	}
	if entries, err := os.ReadDir(b.roots.State); err != nil || len(entries) > 0 {
		t.Errorf("a dry run keeps %v, %v", entries, err)
	}
}

// TestJournalReplays: the lines of the journal lead the first state to the last one.
func TestJournalReplays(t *testing.T) {
	b := newBench(t)
	b.pod("web", shape.OnlineSide, shape.Shared, 4000)
	b.pod("spare", shape.OverlapSide, shape.Reclaimed, 0)
	was, last := map[string]string{}, time.Now()
	b.lend("web", "batch", 1, 2, 3)
	b.cycle()
	b.lend("web", "", 2, 2, 3)
	b.cycle()
	b.lend("batch", "", 3, 0, 1)
	b.cycle()
	data, err := os.ReadFile(filepath.Join(b.roots.State, journalFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Why == "" || e.Via != viaFile {
			t.Fatalf("%s: %v", line, err)
		}
		if now, ok := was[e.Path+"/"+e.File]; ok && now != e.Old {
			t.Errorf("%s/%s was %q, the journal says %q", e.Path, e.File, now, e.Old)
		}
		was[e.Path+"/"+e.File] = e.New
		// A line says when its write had ended, not when the cycle began.
		if e.At.Before(last) {
			t.Errorf("%s/%s was written at %s, before the line above it or before the test: %s", e.Path, e.File, e.At, last)
		}
		last = e.At
	}
	if len(was) < 5 {
		t.Errorf("the journal has %d files", len(was))
	}
	for path, text := range was {
		if now := b.read(filepath.Dir(path), filepath.Base(path)); now != text {
			t.Errorf("%s is %q, the journal ends with %q", path, now, text)
		}
	}
}

// TestCPUsComeBeforePages: a write of cpuset.mems takes until pages are moved, so all pods have their CPUs before the first of them. Within a file the
// order is that of the plan.
func TestCPUsComeBeforePages(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"a", "b", "c"} {
		b.pod(name, shape.OnlineSide, shape.Shared, 1000)
	}
	b.lend("batch", "", 1, 2, 3)
	out := b.cycle()
	last := map[string]int{}
	order := map[string][]string{}
	for i, e := range out.Entries {
		if last[e.File] = i; e.File != "cpuset.mems" && last["cpuset.mems"] > 0 {
			t.Errorf("%s of %s is written after cpuset.mems of %s", e.File, e.Path, out.Entries[last["cpuset.mems"]].Path)
		}
		order[e.File] = append(order[e.File], e.Path)
	}
	planned := map[string][]string{}
	for _, w := range out.Writes {
		planned[w.File] = append(planned[w.File], w.Path)
	}
	if !reflect.DeepEqual(order, planned) || len(order["cpuset.mems"]) != 6 || len(order["cpuset.cpus"]) != 6 {
		t.Errorf("written %v, planned %v", order, planned)
	}
}

// TestJournalIsWrittenAsItGoes: a write that hangs, or a kill, leaves no line of an earlier write out. A pipe without a reader plays the write that hangs.
func TestJournalIsWrittenAsItGoes(t *testing.T) {
	b := newBench(t)
	b.pod("web", shape.OnlineSide, shape.Shared, 4000)
	b.cycle()
	before, err := os.ReadFile(filepath.Join(b.roots.State, journalFile))
	if err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(b.roots.Cgroup, "kubepods", "hangs")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan []Entry)
	go func() {
		done <- b.apply(t.Context(), []shape.Write{{Path: "kubepods", File: "memory.low", New: "1"}, {Path: "kubepods", File: "hangs", New: "2"}})
	}()
	for i := 0; ; i++ {
		now, err := os.ReadFile(filepath.Join(b.roots.State, journalFile))
		if err != nil || i > 10_000 {
			t.Fatalf("the write before the one that hangs is not in the journal: %v", err)
		}
		if len(now) > len(before) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	reader, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if entries := <-done; len(entries) != 2 {
		t.Errorf("%+v", entries)
	}
}

// TestUnknownPod: a pod that the API server has not shown yet is treated as online's, and is in the way of a hand-over.
func TestUnknownPod(t *testing.T) {
	b := newBench(t)
	b.pod("early", shape.OfflineSide, shape.Shared, 1000)
	b.facts.Pods = nil
	b.lend("web", "batch", 1, 2, 3)
	b.facts.Node.Marks.HolderTaint = true
	b.cycle()
	b.now = b.now.Add(time.Minute)
	if cpus := b.read("kubepods/burstable/podearly-uid", "cpuset.cpus"); cpus != "0-7" {
		t.Errorf("it has %s", cpus)
	}
	b.lend("web", "batch", 1, 0, 1, 2, 3)
	if out := b.cycle(); out.Parcels[0].Clean || out.Parcels[0].Waits != "Processes" {
		t.Errorf("%+v", out.Parcels)
	}
}
