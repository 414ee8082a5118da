package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
)

// TestTreeOfThePods: the tree is where the known pods are, whatever else is there, and wherever the kubelet put it.
func TestTreeOfThePods(t *testing.T) {
	const uid = "aaaa-bbbb"
	for _, c := range []struct {
		name, parent string
		dirs         []string
		want         string // the parent of pods
		pods         int
		fails        bool
	}{
		{name: "one tree", dirs: []string{"kubepods/burstable/pod" + uid}, want: "kubepods", pods: 1},
		{name: "an older tree of cgroupfs is left", dirs: []string{"kubepods/burstable", "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaaaa_bbbb.slice"}, want: "kubepods.slice", pods: 1},
		{name: "an older tree of systemd is left", dirs: []string{"kubepods/pod" + uid, "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poddead.slice"}, want: "kubepods", pods: 2},
		{name: "a pod that left its cgroup in both", dirs: []string{"kubepods/pod" + uid, "kubepods.slice/kubepods-podaaaa_bbbb.slice"}, want: "kubepods", pods: 1},
		{name: "cgroupRoot with cgroupfs, as configured", parent: "/custom", dirs: []string{"custom/kubepods/pod" + uid}, want: "custom/kubepods", pods: 1},
		{name: "cgroupRoot with systemd, as configured", parent: "/my-own/part", dirs: []string{"my_own.slice/my_own-part.slice/my_own-part-kubepods.slice/my_own-part-kubepods-besteffort.slice/my_own-part-kubepods-besteffort-podaaaa_bbbb.slice"},
			want: "my_own.slice/my_own-part.slice/my_own-part-kubepods.slice", pods: 1},
		{name: "cgroupRoot that the configuration does not know", dirs: []string{"kubepods/burstable", "custom/kubepods/burstable/pod" + uid}, want: "custom/kubepods", pods: 1},
		{name: "the same with systemd", dirs: []string{"kubepods.slice", "own.slice/own-kubepods.slice/own-kubepods-podaaaa_bbbb.slice"}, want: "own.slice/own-kubepods.slice", pods: 1},
		{name: "no tree", dirs: []string{"system.slice/a.service"}, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			files(t, root, map[string]string{"cgroup.controllers": "cpu"})
			for _, dir := range c.dirs {
				files(t, root, map[string]string{dir + "/cgroup.procs": ""})
			}
			got, err := OpenCgroups(root, c.parent, uid, "not-started")
			if c.fails {
				if err == nil || !strings.Contains(err.Error(), "to fix: set cgroupParent") {
					t.Fatal(err)
				}
				return
			}
			if err != nil || got.parents.Pods != c.want || got.systemd != strings.HasSuffix(c.want, ".slice") {
				t.Fatalf("%+v, %v", got, err)
			}
			pods, err := got.Pods()
			if err != nil || len(pods) != c.pods {
				t.Fatalf("%+v, %v", pods, err)
			}
			if p := pods[0]; p.UID != uid {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestRunningPodsAreSomewhere: a pod that runs and whose cgroup is not seen, is only partly seen, or is in another tree, holds its socket up; one that has not
// started does not.
func TestRunningPodsAreSomewhere(t *testing.T) {
	for _, c := range []struct {
		name    string
		running bool
		change  func(b *bench, path string)
		waits   string
		problem string
	}{
		{"it has not started", false, func(b *bench, path string) { b.remove(path) }, "Margin", ""},
		{"it runs, and no cgroup of it is there", true, func(b *bench, path string) { b.remove(path) }, "Pods", "set cgroupParent"},
		{"it runs in the other tree too", true, func(b *bench, _ string) {
			b.group("kubepods.slice")
			b.group("kubepods.slice/kubepods-burstable.slice")
			b.group("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podweb_uid.slice")
		}, "Pods", ""},
		{"it runs, and is confined", true, func(*bench, string) {}, "Margin", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			web := b.pod("web", shape.OnlineSide, shape.Shared, 4000)
			web.Running = c.running
			path := b.path(web)
			b.pod("other", shape.OnlineSide, shape.Shared, 1000)
			c.change(b, path)
			b.settle()
			b.lend("web", "batch", 1, 2, 3)
			b.facts.Node.Marks.HolderTaint = true
			b.cycle()
			out := b.cycle()
			if got := out.Parcels[0]; got.Clean || got.Waits != c.waits {
				t.Errorf("%+v, want it to wait for %s", got, c.waits)
			}
			problems := strings.Join(out.Problems, "\n")
			if c.problem == "" && problems != "" || !strings.Contains(problems, c.problem) {
				t.Errorf("problems: %q, want %q", problems, c.problem)
			}
		})
	}
}

// remove takes a cgroup away.
func (b *bench) remove(path string) {
	b.t.Helper()
	if err := os.RemoveAll(filepath.Join(b.roots.Cgroup, path)); err != nil {
		b.t.Fatal(err)
	}
}

// TestManagerStates: what the kubelet's directory says decides who writes cpusets, and a directory that is not the kubelet's says nothing.
func TestManagerStates(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  map[string]string
		reason string
		says   []string
	}{
		{"none", map[string]string{"cpu_manager_state": `{"policyName":"none"}`, "memory_manager_state": `{"policyName":"None"}`}, "Available", nil},
		{"another directory", nil, "NotKubelets", []string{"/cpu_manager_state", "kubeletRoot"}},
		{"only one of the two", map[string]string{"cpu_manager_state": `{"policyName":"none"}`}, "NotKubelets", []string{"/memory_manager_state", "kubeletRoot"}},
		{"static", map[string]string{"cpu_manager_state": `{"policyName":"static"}`, "memory_manager_state": `{"policyName":"None"}`}, "KubeletManages", []string{"/cpu_manager_state", "cpuManagerPolicy"}},
		{"Static memory", map[string]string{"cpu_manager_state": `{"policyName":"none"}`, "memory_manager_state": `{"policyName":"Static"}`}, "KubeletManages", []string{"/memory_manager_state", "memoryManagerPolicy"}},
		{"nonsense", map[string]string{"cpu_manager_state": `{`}, "Unreadable", []string{"/cpu_manager_state"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			if err := os.RemoveAll(b.roots.Kubelet); err != nil {
				t.Fatal(err)
			}
			files(t, b.roots.Kubelet, c.files)
			b.pod("web", shape.OnlineSide, shape.Shared, 1000)
			b.lend("batch", "", 1, 2, 3)
			out := b.cycle()
			for _, got := range out.Capabilities {
				if got.Type != catalog.CapCPUSets {
					continue
				}
				if got.Reason != c.reason || got.OK != (c.reason == "Available") || slicesHave(out.Writes, "cpuset") != got.OK {
					t.Errorf("%+v, %+v", got, out.Writes)
				}
				for _, word := range c.says {
					if !strings.Contains(got.Message, word) {
						t.Errorf("%q does not name %s", got.Message, word)
					}
				}
			}
		})
	}
}

// TestHardwareChanges: CPUs go offline, huge pages are made and devices come while the agent runs. The next cycle counts with what is there.
func TestHardwareChanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(b *bench)
		check  func(t *testing.T, b *bench, top *shape.Topology)
	}{
		{"CPUs go offline", func(b *bench) {
			m := twoSockets
			m.offline = "6-7"
			m.sys(b.t, b.roots.Sys)
		}, func(t *testing.T, b *bench, top *shape.Topology) {
			if got := top.AllCPUs().String(); got != "0-5,8-15" {
				t.Errorf("CPUs %s", got)
			}
			if got := b.read("kubepods/burstable/podweb-uid", "cpuset.cpus"); got != "0-5" {
				t.Errorf("online is on %s", got)
			}
		}},
		{"huge pages are made", func(b *bench) {
			files(b.t, b.roots.Sys, map[string]string{"devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages": "512"})
		}, func(t *testing.T, _ *bench, top *shape.Topology) {
			if got := top.Cells[1].HugePages; len(got) != 1 || got[0].Count != 512 {
				t.Errorf("%+v", got)
			}
		}},
		{"a device comes", func(b *bench) {
			files(b.t, b.roots.Sys, map[string]string{"bus/pci/devices/0000:17:00.0/class": "0x030200", "bus/pci/devices/0000:17:00.0/vendor": "0x10de", "bus/pci/devices/0000:17:00.0/numa_node": "1"})
		}, func(t *testing.T, _ *bench, top *shape.Topology) {
			if len(top.Devices) != 1 || top.Devices[0].Cell != 1 {
				t.Errorf("%+v", top.Devices)
			}
		}},
		{"a cell is plugged in with more memory", func(b *bench) {
			files(b.t, b.roots.Sys, map[string]string{"devices/system/node/node3/meminfo": "Node 3 MemTotal: 33554432 kB"})
		}, func(t *testing.T, _ *bench, top *shape.Topology) {
			if top.Cells[3].Memory != 32*fleet.GiB {
				t.Errorf("%d", top.Cells[3].Memory)
			}
		}},
		{"what cannot be read changes nothing", func(b *bench) {
			if err := os.Remove(filepath.Join(b.roots.Sys, "devices/system/cpu/online")); err != nil {
				b.t.Fatal(err)
			}
		}, func(t *testing.T, _ *bench, top *shape.Topology) {
			if len(top.CPUs) != 16 {
				t.Errorf("%d CPUs", len(top.CPUs))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.pod("web", shape.OnlineSide, shape.Shared, 4000)
			b.lend("batch", "", 1, 2, 3)
			b.cycle()
			c.change(b)
			b.now = b.now.Add(time.Second)
			if _, err := b.Cycle(t.Context(), b.facts, b.now); err != nil {
				t.Fatal(err)
			}
			c.check(t, b, b.topology)
			before := b.topology
			if _, err := b.Cycle(t.Context(), b.facts, b.now); err != nil {
				t.Fatal(err)
			}
			if b.topology != before {
				t.Error("the topology is read again without a change")
			}
		})
	}
}

// TestHoldingsAreEffective: what is reported of a dedicated pod are the cores that the kernel gives it.
func TestHoldingsAreEffective(t *testing.T) {
	b := newBench(t)
	own := *b.pod("own", shape.OnlineSide, shape.Dedicated, 2000)
	b.cycle()
	if out := b.cycle(); len(out.Pods) != 1 || out.Pods[0].CPUs != "0-1" {
		t.Fatalf("%+v", out.Pods)
	}
	files(t, filepath.Join(b.roots.Cgroup, b.path(&own)), map[string]string{"cpuset.cpus.effective": "0-3"})
	b.now = b.now.Add(time.Second)
	out, err := b.Cycle(t.Context(), b.facts, b.now)
	if err != nil || out.Pods[0].CPUs != "0-3" {
		t.Errorf("%+v, %v", out.Pods, err)
	}
}
