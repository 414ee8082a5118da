package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/fleet"
)

// Roots are where the machine's file systems are mounted. Tests put trees of their own there.
type Roots struct {
	Sys, Proc, Cgroup string
	// Kubelet is the kubelet's directory, with the state of its CPU manager and the volumes of pods.
	Kubelet string
	// State is the agent's own directory: the last share, and the journal.
	State string
}

// DefaultRoots are those of a machine.
func DefaultRoots() Roots {
	return Roots{Sys: "/sys", Proc: "/proc", Cgroup: "/sys/fs/cgroup", Kubelet: "/var/lib/kubelet", State: "/var/lib/springtide-agent"}
}

// ReadTopology reads the inside of the machine from sysfs.
func ReadTopology(r Roots) (*shape.Topology, error) {
	s := sysfs{root: r.Sys}
	t := &shape.Topology{}
	online, err := s.set("devices/system/cpu/online")
	if err != nil || len(online) == 0 {
		return nil, fmt.Errorf("read the topology: no CPUs in %s: %w", filepath.Join(r.Sys, "devices/system/cpu/online"), cmp.Or(err, errors.New("the list is empty")))
	}
	if offline, err := s.set("devices/system/cpu/offline"); err == nil {
		t.Offline = offline
	}
	if err := s.cells(t, online, r.Proc); err != nil {
		return nil, fmt.Errorf("read the topology: %w", err)
	}
	cellOf := map[int]int{}
	for i := range t.Cells {
		for _, id := range t.Cells[i].CPUs {
			cellOf[id] = t.Cells[i].ID
		}
	}
	kinds := map[int]string{}
	for dir, kind := range map[string]string{"cpu_core": "performance", "cpu_atom": "efficiency"} {
		ids, _ := s.set("devices/" + dir + "/cpus")
		for _, id := range ids {
			kinds[id] = kind
		}
	}
	for _, id := range online {
		dir := fmt.Sprintf("devices/system/cpu/cpu%d/topology/", id)
		c := shape.CPU{ID: id, Core: s.number(dir+"core_id", id), Socket: max(s.number(dir+"physical_package_id", 0), 0), Cell: cellOf[id], Kind: kinds[id]}
		siblings, err := s.set(dir + "core_cpus_list")
		if err != nil {
			siblings, _ = s.set(dir + "thread_siblings_list")
		}
		if c.Siblings = siblings.Intersect(online); !c.Siblings.Has(id) {
			c.Siblings = shape.Set{id}
		}
		t.CPUs = append(t.CPUs, c)
	}
	s.sockets(t)
	s.caches(t)
	s.devices(t)
	return t, nil
}

// hardwareOf is a text that changes with what ReadTopology reads, at a small part of its cost.
func hardwareOf(r Roots) string {
	s := sysfs{root: r.Sys}
	var b strings.Builder
	add := func(path string) {
		text, _ := s.text(path)
		b.WriteString(path + "=" + text + "\n")
	}
	for _, file := range []string{"cpu/online", "cpu/offline", "node/online"} {
		add("devices/system/" + file)
	}
	for _, name := range s.names("devices/system/node") {
		dir := "devices/system/node/" + name
		if !strings.HasPrefix(name, "node") {
			continue
		}
		add(dir + "/cpulist")
		total, _ := meminfo(filepath.Join(s.root, dir, "meminfo"), "MemTotal:")
		fmt.Fprintln(&b, total)
		for _, size := range s.names(dir + "/hugepages") {
			add(dir + "/hugepages/" + size + "/nr_hugepages")
		}
	}
	for _, address := range s.names("bus/pci/devices") {
		b.WriteString(address + "\n")
	}
	return b.String()
}

type sysfs struct{ root string }

func (s sysfs) text(path string) (string, error) {
	data, err := os.ReadFile(filepath.Join(s.root, path))
	return strings.TrimSpace(string(data)), err
}

func (s sysfs) set(path string) (shape.Set, error) {
	text, err := s.text(path)
	if err != nil {
		return nil, err
	}
	return shape.ParseSet(text)
}

// number reads a number, or gives the default.
func (s sysfs) number(path string, or int) int {
	text, err := s.text(path)
	if err != nil {
		return or
	}
	base := 10
	if strings.HasPrefix(text, "0x") {
		text, base = text[2:], 16
	}
	n, err := strconv.ParseInt(text, base, 64)
	if err != nil {
		return or
	}
	return int(n)
}

// names are the entries of a directory, sorted; none where there is no such directory.
func (s sysfs) names(path string) []string {
	entries, err := os.ReadDir(filepath.Join(s.root, path))
	if err != nil {
		return nil
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name()
	}
	slices.Sort(out)
	return out
}

// cells reads the NUMA cells. A kernel without NUMA has none: then the machine is one cell.
func (s sysfs) cells(t *shape.Topology, online shape.Set, proc string) error {
	ids, err := s.set("devices/system/node/online")
	if errors.Is(err, fs.ErrNotExist) || len(ids) == 0 && err == nil {
		total, err := meminfo(filepath.Join(proc, "meminfo"), "MemTotal:")
		if err != nil {
			return err
		}
		t.Cells = []shape.Cell{{CPUs: online, Memory: total, Distances: []int{10}}}
		return nil
	}
	if err != nil {
		return err
	}
	for _, id := range ids {
		dir := fmt.Sprintf("devices/system/node/node%d/", id)
		c := shape.Cell{ID: id}
		cpus, err := s.set(dir + "cpulist")
		if err != nil {
			return fmt.Errorf("cell %d: %w", id, err)
		}
		c.CPUs = cpus.Intersect(online)
		if c.Memory, err = meminfo(filepath.Join(s.root, dir, "meminfo"), "MemTotal:"); err != nil {
			return fmt.Errorf("cell %d: %w", id, err)
		}
		if text, err := s.text(dir + "distance"); err == nil {
			for _, field := range strings.Fields(text) {
				n, err := strconv.Atoi(field)
				if err != nil {
					return fmt.Errorf("cell %d: distance %q: %w", id, text, err)
				}
				c.Distances = append(c.Distances, n)
			}
		}
		for _, name := range s.names(dir + "hugepages") {
			size, ok := strings.CutPrefix(name, "hugepages-")
			kib, err := strconv.ParseInt(strings.TrimSuffix(size, "kB"), 10, 64)
			if n := s.number(dir+"hugepages/"+name+"/nr_hugepages", 0); ok && err == nil && n > 0 {
				c.HugePages = append(c.HugePages, shape.HugePages{Bytes: fleet.Bytes(kib) << 10, Count: int64(n)})
			}
		}
		slices.SortFunc(c.HugePages, func(a, b shape.HugePages) int { return cmp.Compare(a.Bytes, b.Bytes) })
		t.Cells = append(t.Cells, c)
	}
	return nil
}

// meminfo reads one amount of a meminfo file, of the machine ("MemTotal: 1 kB") or of a cell ("Node 0 MemTotal: 1 kB").
func meminfo(path, key string) (fleet.Bytes, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if i := slices.Index(f, key); i >= 0 && i+1 < len(f) {
			kib, err := strconv.ParseInt(f[i+1], 10, 64)
			if err != nil || kib < 0 {
				return 0, fmt.Errorf("%s: %s %q is no amount", path, key, f[i+1])
			}
			return fleet.Bytes(kib) << 10, nil
		}
	}
	return 0, fmt.Errorf("%s has no line %s", path, key)
}

// sockets gives each cell the socket of its CPUs. Memory without CPUs (CXL) goes with the nearest cell that has some.
func (s sysfs) sockets(t *shape.Topology) {
	socket := map[int]int{}
	for i := range t.CPUs {
		socket[t.CPUs[i].ID] = t.CPUs[i].Socket
	}
	for i := range t.Cells {
		if len(t.Cells[i].CPUs) > 0 {
			t.Cells[i].Socket = socket[t.Cells[i].CPUs[0]]
		}
	}
	for i := range t.Cells {
		c := &t.Cells[i]
		if len(c.CPUs) > 0 {
			continue
		}
		nearest := -1
		for j := range t.Cells {
			if len(t.Cells[j].CPUs) > 0 && j < len(c.Distances) && (nearest < 0 || c.Distances[j] < c.Distances[nearest]) {
				nearest = j
			}
		}
		if nearest >= 0 {
			c.Socket = t.Cells[nearest].Socket
		}
	}
}

func (s sysfs) caches(t *shape.Topology) {
	seen := map[string]bool{}
	for i := range t.CPUs {
		dir := fmt.Sprintf("devices/system/cpu/cpu%d/cache/", t.CPUs[i].ID)
		for _, index := range s.names(dir) {
			if !strings.HasPrefix(index, "index") {
				continue
			}
			kind, err := s.text(dir + index + "/type")
			cpus, err2 := s.set(dir + index + "/shared_cpu_list")
			size, _ := s.text(dir + index + "/size")
			kib, _ := strconv.ParseInt(strings.TrimSuffix(size, "K"), 10, 64)
			c := shape.Cache{Level: s.number(dir+index+"/level", 0), Type: kind, Bytes: fleet.Bytes(kib) << 10, CPUs: cpus}
			if key := fmt.Sprint(c.Level, c.Type, c.CPUs); err == nil && err2 == nil && c.Level > 0 && !seen[key] {
				seen[key] = true
				t.Caches = append(t.Caches, c)
			}
		}
	}
	slices.SortStableFunc(t.Caches, func(a, b shape.Cache) int { return cmp.Compare(a.Level, b.Level) })
}

// Vendors whose display controllers are GPUs that compute; a server's management controller has a display too.
const (
	vendorNVIDIA = 0x10de
	vendorAMD    = 0x1002
)

func (s sysfs) devices(t *shape.Topology) {
	const dir = "bus/pci/devices/"
	for _, address := range s.names(dir) {
		class, vendor := s.number(dir+address+"/class", 0), s.number(dir+address+"/vendor", 0)
		d := shape.Device{Name: address, Address: address, Cell: s.number(dir+address+"/numa_node", -1)}
		switch {
		case class>>8 == 0x0302, class>>16 == 0x03 && (vendor == vendorNVIDIA || vendor == vendorAMD):
			d.Kind, d.Resource = shape.DeviceGPU, "nvidia.com/gpu"
			if vendor == vendorAMD {
				d.Resource = "amd.com/gpu"
			}
		case class>>16 == 0x02:
			d.Kind = shape.DeviceNIC
			if names := s.names(dir + address + "/net"); len(names) > 0 {
				d.Name = names[0]
			}
		default:
			continue
		}
		if real, err := filepath.EvalSymlinks(filepath.Join(s.root, dir+address)); err == nil {
			for part := range strings.SplitSeq(filepath.ToSlash(real), "/") {
				if strings.HasPrefix(part, "pci") && strings.Contains(part, ":") {
					d.Root = part
					break
				}
			}
		}
		t.Devices = append(t.Devices, d)
	}
}
