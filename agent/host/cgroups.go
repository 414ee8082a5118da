package host

import (
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
	parents shape.Parents
}

// errNoKubepods says that the kubelet made no cgroups yet, or makes them elsewhere.
var errNoKubepods = errors.New("no kubepods cgroup: the kubelet has not started a pod yet, or its cgroupRoot differs; to fix: set cgroupParent to the kubelet's cgroupRoot")

// OpenCgroups finds the kubelet's cgroups below the root; parent is the kubelet's cgroupRoot, mostly empty. It recognises the cgroupfs driver by
// "kubepods", the systemd driver by "kubepods.slice".
func OpenCgroups(root, parent string) (*Cgroups, error) {
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		return nil, fmt.Errorf("%s is no cgroup v2 mount: %w; to fix: boot with cgroup v2 and mount it into the agent's pod", root, err)
	}
	if !filepath.IsLocal(filepath.Join("x", parent)) {
		return nil, fmt.Errorf("cgroupParent %q leads out of the tree", parent)
	}
	c := &Cgroups{root: root}
	plain := filepath.Join(parent, "kubepods")
	if isDir(filepath.Join(root, plain)) {
		c.parents = shape.Parents{Pods: plain, Burstable: plain + "/burstable", BestEffort: plain + "/besteffort"}
		return c, nil
	}
	slice := filepath.Join(parent, "kubepods.slice")
	if isDir(filepath.Join(root, slice)) {
		c.systemd = true
		c.parents = shape.Parents{Pods: slice, Burstable: slice + "/kubepods-burstable.slice", BestEffort: slice + "/kubepods-besteffort.slice"}
		return c, nil
	}
	return nil, errNoKubepods
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
}

// Pods lists the pods that have a cgroup, by path.
func (c *Cgroups) Pods() ([]PodGroup, error) {
	var out []PodGroup
	for _, level := range []struct {
		path string
		qos  shape.QoS
	}{{c.parents.Pods, shape.Guaranteed}, {c.parents.Burstable, shape.Burstable}, {c.parents.BestEffort, shape.BestEffort}} {
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
			inside, err := c.children(g.Path)
			if err != nil {
				return nil, err
			}
			for _, name := range inside {
				g.Containers = append(g.Containers, shape.Container{ID: containerID(name), Path: g.Path + "/" + name})
			}
			out = append(out, g)
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
