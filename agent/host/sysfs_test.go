package host

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
)

func TestReadTopology(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine machineSpec
		// sockets of the cells in their order, CPUs in all, and the CPUs of the last cell
		sockets []int
		cpus    int
		last    string
		check   func(t *testing.T, top *shape.Topology)
	}{
		{name: "one socket", machine: machineSpec{threads: 2, cells: []cellSpec{{0, "0-7", 32}}, distances: []string{"10"}}, sockets: []int{0}, cpus: 8, last: "0-7",
			check: func(t *testing.T, top *shape.Topology) {
				if s := top.CPUs[3].Siblings.String(); s != "2-3" {
					t.Errorf("siblings of CPU 3: %s", s)
				}
			}},
		{name: "two sockets", machine: machineSpec{threads: 2, cells: []cellSpec{{0, "0-7", 32}, {1, "8-15", 32}}, distances: []string{"10 21", "21 10"}}, sockets: []int{0, 1}, cpus: 16, last: "8-15",
			check: func(t *testing.T, top *shape.Topology) {
				if d := fmt.Sprint(top.Cells[0].Distances); d != "[10 21]" {
					t.Errorf("distances %s", d)
				}
			}},
		{name: "four sockets", machine: machineSpec{threads: 1, cells: []cellSpec{{0, "0-1", 8}, {1, "2-3", 8}, {2, "4-5", 8}, {3, "6-7", 8}}}, sockets: []int{0, 1, 2, 3}, cpus: 8, last: "6-7"},
		{name: "sub-NUMA clusters", machine: twoSockets, sockets: []int{0, 0, 1, 1}, cpus: 16, last: "12-15",
			check: func(t *testing.T, top *shape.Topology) {
				cells := top.FleetCells()
				if cells[2].Socket != 1 || cells[2].Capacity != (fleet.Resources{CPU: 4000, Memory: 16 * fleet.GiB}) {
					t.Errorf("cell 2 is %+v", cells[2])
				}
			}},
		{name: "interleaved numbers", machine: machineSpec{threads: 1, cells: []cellSpec{{0, "0,2,4", 8}, {1, "1,3,5", 8}}}, sockets: []int{0, 1}, cpus: 6, last: "1,3,5"},
		{name: "CXL memory without CPUs", machine: machineSpec{threads: 2, cells: []cellSpec{{0, "0-3", 16}, {1, "4-7", 16}, {0, "", 64}}, distances: []string{"10 21 24", "21 10 14", "24 14 10"}},
			sockets: []int{0, 1, 1}, cpus: 8, last: "", check: func(t *testing.T, top *shape.Topology) {
				if m := top.Mems(shape.Set{1, 2}).String(); m != "1-2" {
					t.Errorf("memory of socket 1: %s", m)
				}
			}},
		{name: "a cell without memory", machine: machineSpec{threads: 1, cells: []cellSpec{{0, "0-1", 16}, {0, "2-3", 0}}, distances: []string{"10 11", "11 10"}}, sockets: []int{0, 0}, cpus: 4, last: "2-3",
			check: func(t *testing.T, top *shape.Topology) {
				if m := top.Mems(shape.Set{0, 1}).String(); m != "0" {
					t.Errorf("cells with memory: %s", m)
				}
			}},
		{name: "offline CPUs", machine: machineSpec{threads: 2, cells: []cellSpec{{0, "0-3", 8}, {1, "4-7", 8}}, offline: "1,6"}, sockets: []int{0, 1}, cpus: 6, last: "4-5,7",
			check: func(t *testing.T, top *shape.Topology) {
				if top.Offline.String() != "1,6" || top.CPUs[0].Siblings.String() != "0" {
					t.Errorf("offline %s, siblings of CPU 0 %s", top.Offline, top.CPUs[0].Siblings)
				}
			}},
		{name: "hybrid", machine: machineSpec{threads: 1, cells: []cellSpec{{0, "0-5", 16}}, more: map[string]string{"devices/cpu_core/cpus": "0-3", "devices/cpu_atom/cpus": "4-5"}},
			sockets: []int{0}, cpus: 6, last: "0-5", check: func(t *testing.T, top *shape.Topology) {
				if top.CPUs[0].Kind != "performance" || top.CPUs[5].Kind != "efficiency" {
					t.Errorf("kinds %q and %q", top.CPUs[0].Kind, top.CPUs[5].Kind)
				}
			}},
		{name: "hugepages and caches", machine: machineSpec{threads: 1, cells: []cellSpec{{0, "0-1", 16}}, more: map[string]string{
			"devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages": "2",
			"devices/system/cpu/cpu0/cache/index3/level":                           "3", "devices/system/cpu/cpu0/cache/index3/type": "Unified",
			"devices/system/cpu/cpu0/cache/index3/size": "32768K", "devices/system/cpu/cpu0/cache/index3/shared_cpu_list": "0-1",
			"devices/system/cpu/cpu1/cache/index3/level": "3", "devices/system/cpu/cpu1/cache/index3/type": "Unified",
			"devices/system/cpu/cpu1/cache/index3/size": "32768K", "devices/system/cpu/cpu1/cache/index3/shared_cpu_list": "0-1"}},
			sockets: []int{0}, cpus: 2, last: "0-1", check: func(t *testing.T, top *shape.Topology) {
				if fmt.Sprint(top.Cells[0].HugePages) != "[{1073741824 2}]" || len(top.Caches) != 1 || top.Caches[0].Bytes != 32<<20 {
					t.Errorf("hugepages %v, caches %v", top.Cells[0].HugePages, top.Caches)
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			c.machine.sys(t, root)
			top, err := ReadTopology(Roots{Sys: root})
			if err != nil {
				t.Fatal(err)
			}
			var sockets []int
			for _, cell := range top.Cells {
				sockets = append(sockets, cell.Socket)
			}
			if fmt.Sprint(sockets) != fmt.Sprint(c.sockets) || len(top.CPUs) != c.cpus || top.Cells[len(top.Cells)-1].CPUs.String() != c.last {
				t.Errorf("sockets %v, %d CPUs, last cell %s: want %v, %d, %s", sockets, len(top.CPUs), top.Cells[len(top.Cells)-1].CPUs, c.sockets, c.cpus, c.last)
			}
			if c.check != nil {
				c.check(t, top)
			}
		})
	}
}

func TestDevices(t *testing.T) {
	root := t.TempDir()
	twoSockets.sys(t, root)
	device := func(path, class, vendor, cell string) {
		files(t, root, map[string]string{path + "/class": class, path + "/vendor": vendor, path + "/numa_node": cell})
		if err := os.MkdirAll(filepath.Join(root, "bus/pci/devices"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(root, path), filepath.Join(root, "bus/pci/devices", filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
	}
	device("devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0", "0x030200", "0x10de", "1")
	device("devices/pci0000:5d/0000:5d:00.0/0000:5e:00.0", "0x030000", "0x1002", "2")
	device("devices/pci0000:00/0000:00:1c.0", "0x030000", "0x1a03", "0") // the display of a management controller
	device("devices/pci0000:3a/0000:3a:01.0/0000:3c:00.0", "0x020000", "0x15b3", "1")
	files(t, root, map[string]string{"devices/pci0000:3a/0000:3a:01.0/0000:3c:00.0/net/eth2/mtu": "1500"})
	top, err := ReadTopology(Roots{Sys: root})
	if err != nil {
		t.Fatal(err)
	}
	want := "[{GPU 0000:3b:00.0 0000:3b:00.0 pci0000:3a nvidia.com/gpu 1} {NIC eth2 0000:3c:00.0 pci0000:3a  1} {GPU 0000:5e:00.0 0000:5e:00.0 pci0000:5d amd.com/gpu 2}]"
	if got := fmt.Sprint(top.Devices); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestNoNUMA: a kernel without NUMA is one cell.
func TestNoNUMA(t *testing.T) {
	root := t.TempDir()
	files(t, root, map[string]string{"sys/devices/system/cpu/online": "0-1", "proc/meminfo": "MemTotal: 1048576 kB"})
	top, err := ReadTopology(Roots{Sys: root + "/sys", Proc: root + "/proc"})
	if err != nil || len(top.Cells) != 1 || top.Cells[0].CPUs.String() != "0-1" || top.Cells[0].Memory != fleet.GiB {
		t.Errorf("%+v, %v", top, err)
	}
	if _, err := ReadTopology(Roots{Sys: t.TempDir()}); err == nil {
		t.Error("an empty sysfs is a machine")
	}
}

// TestTopologyIsReadBack: cells, distances and PCIe roots that the agent reports are what the scheduler reads.
func TestTopologyIsReadBack(t *testing.T) {
	top := &shape.Topology{
		Cells: []shape.Cell{{ID: 0, CPUs: shape.Set{0, 1}, Memory: fleet.GiB, Distances: []int{10, 21}}, {ID: 1, Socket: 1, CPUs: shape.Set{2, 3}, Memory: fleet.GiB, Distances: []int{21, 10}}},
		Devices: []shape.Device{{Kind: shape.DeviceGPU, Address: "0000:3b:00.0", Root: "pci0000:3a", Resource: "nvidia.com/gpu", Cell: 0},
			{Kind: shape.DeviceNIC, Address: "0000:3c:00.0", Root: "pci0000:3a", Cell: 0}, {Kind: shape.DeviceGPU, Address: "0000:5e:00.0", Root: "pci0000:5d", Resource: "nvidia.com/gpu", Cell: 1},
			{Kind: shape.DeviceNIC, Address: "0000:00:01.0", Root: "pci0000:00", Cell: -1}},
	}
	read := func() facts.Topology { return facts.TopologyOf(TopologyObject("m", "", top)) }
	got := read()
	if len(got.Cells) != 2 || got.Cells[1].Socket != 1 || got.Cells[1].Capacity.GPU != 1 || !reflect.DeepEqual(got.Distances, [][]int{{10, 21}, {21, 10}}) {
		t.Errorf("read back as %+v", got)
	}
	if want := []facts.Root{{Cell: 0, GPUs: 1, NICs: 1}, {Cell: 1, GPUs: 1}}; !reflect.DeepEqual(got.Roots, want) {
		t.Errorf("the roots are read back as %+v, want %+v", got.Roots, want)
	}
	alike := TopologyObject("m", "", top)
	zones := alike.Object["zones"].([]any)
	alike.Object["zones"] = append(zones, zones[slices.IndexFunc(zones, func(z any) bool { return z.(map[string]any)["type"] == "Node" })])
	if got := facts.TopologyOf(alike); got.Distances != nil || got.Roots != nil {
		t.Errorf("two cells of one name, and they are read as %+v", got)
	}
	top.Devices[2].Cell = -1
	if got := read(); got.Roots != nil {
		t.Errorf("a GPU is on no known cell, and the roots are %+v: what is not known must not look full or free", got.Roots)
	}
	top.Cells[1].Distances = nil
	if got := read(); got.Distances != nil {
		t.Errorf("distances are missing and read as %v", got.Distances)
	}
}

// FuzzTopology: whatever sysfs says, reading it ends without a panic, and what it gives has each CPU on one cell.
func FuzzTopology(f *testing.F) {
	f.Add("0-3", "0-1", "0-1", "2-3", "10 21", "Node 0 MemTotal: 1 kB", "0")
	f.Add("0", "", "5", "-", "x", "MemTotal:", "-1")
	f.Fuzz(func(t *testing.T, online, nodes, first, second, distance, meminfo, pkg string) {
		root := t.TempDir()
		files(t, root, map[string]string{"devices/system/cpu/online": online, "devices/system/node/online": nodes, "devices/system/node/node0/cpulist": first,
			"devices/system/node/node1/cpulist": second, "devices/system/node/node0/distance": distance, "devices/system/node/node1/distance": distance,
			"devices/system/node/node0/meminfo": meminfo, "devices/system/node/node1/meminfo": meminfo, "devices/system/cpu/cpu0/topology/physical_package_id": pkg})
		top, err := ReadTopology(Roots{Sys: root, Proc: root})
		if err != nil {
			return
		}
		if len(top.CPUs) == 0 || len(top.Cells) == 0 {
			t.Fatalf("%+v", top)
		}
		facts.TopologyOf(TopologyObject("m", "", top))
	})
}
