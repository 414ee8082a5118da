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
	"syscall"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/fleet"
)

// Cgroups reads and writes a cgroup v2 tree below the kubelet's part of it.
type Cgroups struct {
	root    string
	systemd bool
	// parents are those of the tree in which most of the known pods are; trees are all that were found, that one first.
	parents shape.Parents
	trees   []shape.Parents
}

// errNoKubepods says that the kubelet made no cgroups yet, or makes them elsewhere.
var errNoKubepods = errors.New("no kubepods cgroup: the kubelet has not started yet, or its cgroupRoot is deep in the tree; to fix: set cgroupParent to the kubelet's cgroupRoot")

// treeDepth is how deep below the root the kubelet's cgroups are looked for where they are not where the configuration says.
const treeDepth = 3

// OpenCgroups finds the kubelet's cgroups below the root; parent is the kubelet's cgroupRoot, mostly empty. It recognises the cgroupfs driver by
// "kubepods", the systemd driver by "kubepods.slice". A change of the driver leaves both: the tree is where the known pods are, by their UIDs. Where none
// of them is below the parent, the tree is looked for elsewhere.
func OpenCgroups(root, parent string, pods ...string) (*Cgroups, error) {
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		return nil, fmt.Errorf("%s is no cgroup v2 mount: %w; to fix: boot with cgroup v2 and mount it into the agent's pod", root, err)
	}
	if !filepath.IsLocal(filepath.Join("x", parent)) {
		return nil, fmt.Errorf("cgroupParent %q leads out of the tree", parent)
	}
	parent = strings.Trim(parent, "/")
	known := map[string]bool{}
	for _, uid := range pods {
		known[uid] = true
	}
	c := &Cgroups{root: root}
	has := map[string]int{}
	add := func(path string) {
		if t := treeAt(path); !slices.Contains(c.trees, t) && isDir(filepath.Join(root, path)) {
			c.trees = append(c.trees, t)
			has[path] = c.count(t, known)
		}
	}
	add(filepath.Join(parent, "kubepods"))
	add(sliceOf(parent))
	if sum(has) == 0 && (len(known) > 0 || len(c.trees) == 0) {
		c.search("", treeDepth, add)
	}
	if len(c.trees) == 0 {
		return nil, errNoKubepods
	}
	slices.SortStableFunc(c.trees, func(a, b shape.Parents) int { return cmp.Compare(has[b.Pods], has[a.Pods]) })
	c.parents = c.trees[0]
	c.systemd = strings.HasSuffix(c.parents.Pods, ".slice")
	return c, nil
}

func sum(counts map[string]int) (n int) {
	for _, k := range counts {
		n += k
	}
	return n
}

// sliceOf is the slice of pods below a cgroupRoot: systemd names a slice by all that are above it, and a dash in a name is a step of its own.
func sliceOf(parent string) string {
	path, name := "", ""
	for part := range strings.SplitSeq(filepath.Join(parent, "kubepods"), "/") {
		if part == "" {
			continue
		}
		if name != "" {
			name += "-"
		}
		name += strings.ReplaceAll(part, "-", "_")
		path = filepath.Join(path, name+".slice")
	}
	return path
}

// treeAt are the cgroups above the pods of a tree.
func treeAt(pods string) shape.Parents {
	if name, ok := strings.CutSuffix(filepath.Base(pods), ".slice"); ok {
		return shape.Parents{Pods: pods, Burstable: pods + "/" + name + "-burstable.slice", BestEffort: pods + "/" + name + "-besteffort.slice"}
	}
	return shape.Parents{Pods: pods, Burstable: pods + "/burstable", BestEffort: pods + "/besteffort"}
}

// search calls found with what looks like the kubelet's cgroups.
func (c *Cgroups) search(path string, depth int, found func(path string)) {
	names, err := c.children(path)
	if err != nil {
		return // a cgroup that is going
	}
	for _, name := range names {
		switch below := filepath.Join(path, name); {
		case name == "kubepods" || name == "kubepods.slice" || strings.HasSuffix(name, "-kubepods.slice"):
			found(below)
		case depth > 1:
			c.search(below, depth-1, found)
		}
	}
}

// count is how many of the known pods have a cgroup in a tree.
func (c *Cgroups) count(t shape.Parents, known map[string]bool) (n int) {
	for _, path := range []string{t.Pods, t.Burstable, t.BestEffort} {
		names, err := c.children(path)
		if err != nil {
			continue
		}
		for _, name := range names {
			if uid, ok := podUID(name); ok && known[uid] {
				n++
			}
		}
	}
	return n
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Parents are the cgroups above the pods.
func (c *Cgroups) Parents() shape.Parents { return c.parents }

// PodGroup is a pod's cgroup as it is on the machine.
type PodGroup struct {
	UID, Path  string
	QoS        shape.QoS
	Containers []shape.Container
	// Also are cgroups of the same pod in other trees: a change of the cgroup driver leaves them.
	Also []string
}

// Pods lists the pods that have a cgroup, by tree and path.
func (c *Cgroups) Pods() ([]PodGroup, error) {
	var out []PodGroup
	at := map[string]int{}
	for _, tree := range c.trees {
		for _, level := range []struct {
			path string
			qos  shape.QoS
		}{{tree.Pods, shape.Guaranteed}, {tree.Burstable, shape.Burstable}, {tree.BestEffort, shape.BestEffort}} {
			names, err := c.children(level.path)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				uid, ok := podUID(name)
				if !ok {
					continue
				}
				g := PodGroup{UID: uid, Path: level.path + "/" + name, QoS: level.qos}
				if i, ok := at[uid]; ok {
					out[i].Also = append(out[i].Also, g.Path)
					continue
				}
				inside, err := c.children(g.Path)
				if err != nil {
					return nil, err
				}
				for _, name := range inside {
					g.Containers = append(g.Containers, shape.Container{ID: containerID(name), Path: g.Path + "/" + name})
				}
				at[uid] = len(out)
				out = append(out, g)
			}
		}
	}
	return out, nil
}

// children are the cgroups of a cgroup, sorted. One that is gone has none: pods end at any moment.
func (c *Cgroups) children(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(c.root, path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list cgroups: %w", err)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}

// podUID reads the UID of "podUID", or of "kubepods-burstable-podUID.slice", where systemd has underscores in the place of dashes.
func podUID(name string) (string, bool) {
	if inner, ok := strings.CutSuffix(name, ".slice"); ok {
		i := strings.LastIndex(inner, "-pod")
		if i < 0 {
			return "", false
		}
		return strings.ReplaceAll(inner[i+len("-pod"):], "_", "-"), true
	}
	uid, ok := strings.CutPrefix(name, "pod")
	return uid, ok && uid != ""
}

// containerID reads the runtime's id of "ID", or of "cri-containerd-ID.scope".
func containerID(name string) string {
	id := strings.TrimSuffix(name, ".scope")
	for _, prefix := range []string{"cri-containerd-", "crio-"} {
		id = strings.TrimPrefix(id, prefix)
	}
	return id
}

// Read reads a file of a cgroup; false where there is none.
func (c *Cgroups) Read(path, file string) (string, bool) {
	data, err := os.ReadFile(filepath.Join(c.root, path, file))
	return strings.TrimSpace(string(data)), err == nil
}

// Write writes a file of a cgroup. It makes none: a file that is not there belongs to a controller that the kernel lacks.
func (c *Cgroups) Write(path, file, text string) error {
	if text == "" {
		return fmt.Errorf("%s/%s: refused to write nothing: the kernel would read it as everything", path, file)
	}
	return c.write(path, file, text, 0)
}

// write asks the kernel itself and not an os.File. Cgroup files can be polled, so an os.File takes the kernel's EAGAIN, with which memory.reclaim says that
// it did not get all, for "not ready yet": it waits for an event that never comes, and the agent with it.
func (c *Cgroups) write(path, file, text string, flags int) error {
	name := filepath.Join(c.root, path, file)
	fd, err := syscall.Open(name, syscall.O_WRONLY|syscall.O_TRUNC|syscall.O_CLOEXEC|flags, 0)
	if err == nil {
		_, err = syscall.Write(fd, []byte(text))
		err = errors.Join(err, syscall.Close(fd))
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

// Reclaim asks the kernel to take memory from a cgroup at once. The kernel answers EAGAIN when it could not take all of it, and EINTR when a signal came
// in between: both are reported as false, any other error as an error.
func (c *Cgroups) Reclaim(path string, b fleet.Bytes) (bool, error) {
	err := c.write(path, "memory.reclaim", strconv.FormatInt(int64(b), 10), syscall.O_NONBLOCK)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}

// Processes are those of a cgroup and of all below it.
func (c *Cgroups) Processes(path string) ([]int, error) {
	var out []int
	text, ok := c.Read(path, "cgroup.procs")
	if !ok {
		return nil, nil
	}
	for field := range strings.FieldsSeq(text) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("%s/cgroup.procs: %q is no process id", path, field)
		}
		out = append(out, pid)
	}
	below, err := c.children(path)
	if err != nil {
		return nil, err
	}
	for _, name := range below {
		pids, err := c.Processes(path + "/" + name)
		if err != nil {
			return nil, err
		}
		out = append(out, pids...)
	}
	return out, nil
}

// Number reads a file of one number; "max" and absent files give false.
func (c *Cgroups) Number(path, file string) (int64, bool) {
	text, ok := c.Read(path, file)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// Keyed reads a file of lines "key value", such as cpu.stat.
func (c *Cgroups) Keyed(path, file string) map[string]int64 {
	text, ok := c.Read(path, file)
	if !ok {
		return nil
	}
	out := map[string]int64{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				out[key] = n
			}
		}
	}
	return out
}

// MemoryByCell is how much memory of a cgroup lies on each cell: what processes hold, and page cache.
func (c *Cgroups) MemoryByCell(path string) map[int]fleet.Bytes {
	kinds := c.numa(path)
	out := kinds["anon"]
	for _, kind := range []string{"file", "kernel_stack"} {
		for cell, n := range kinds[kind] {
			out[cell] += n
		}
	}
	return out
}

// CacheByCell is how much page cache of a cgroup lies on each cell that the kernel can drop: memory of a tmpfs is none.
func (c *Cgroups) CacheByCell(path string) map[int]fleet.Bytes {
	kinds := c.numa(path)
	out := kinds["file"]
	for cell, n := range kinds["shmem"] {
		out[cell] -= n
	}
	return out
}

// numa reads the kinds of memory.numa_stat that are counted here, by cell. Memory of a tmpfs (shmem) is in file as well.
func (c *Cgroups) numa(path string) map[string]map[int]fleet.Bytes {
	out := map[string]map[int]fleet.Bytes{"anon": {}, "file": {}, "shmem": {}, "kernel_stack": {}}
	text, _ := c.Read(path, "memory.numa_stat")
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || out[f[0]] == nil {
			continue
		}
		for _, pair := range f[1:] {
			cell, bytes, ok := strings.Cut(strings.TrimPrefix(pair, "N"), "=")
			id, err := strconv.Atoi(cell)
			n, err2 := strconv.ParseInt(bytes, 10, 64)
			if ok && err == nil && err2 == nil {
				out[f[0]][id] += fleet.Bytes(n)
			}
		}
	}
	return out
}

// Effective are the CPUs and cells that a cgroup's processes may use in truth.
func (c *Cgroups) Effective(path string) (cpus, mems shape.Set) {
	read := func(file string) shape.Set {
		text, _ := c.Read(path, file)
		s, err := shape.ParseSet(text)
		if err != nil {
			return nil
		}
		return s
	}
	return read("cpuset.cpus.effective"), read("cpuset.mems.effective")
}

// pressure is one line of a PSI file.
type pressure struct {
	// avg10 is the share of the last ten seconds in which something waited, in percent; total the time in all, in microseconds.
	avg10, avg60 float64
	total        int64
}

// Pressure reads the "some" and "full" lines of a PSI file.
func parsePressure(text string) (some, full pressure, ok bool) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		var p pressure
		for _, pair := range f[1:] {
			key, value, _ := strings.Cut(pair, "=")
			switch key {
			case "avg10":
				p.avg10, _ = strconv.ParseFloat(value, 64)
			case "avg60":
				p.avg60, _ = strconv.ParseFloat(value, 64)
			case "total":
				p.total, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		switch f[0] {
		case "some":
			some, ok = p, true
		case "full":
			full = p
		}
	}
	return some, full, ok
}
