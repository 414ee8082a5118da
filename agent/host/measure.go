package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/fleet"
)

// meter measures the machine once a period. A value that could not be read stays unknown, or keeps its age.
type meter struct {
	at   time.Time
	busy map[int]int64 // by CPU, in ticks of a hundredth of a second
	// used is the CPU of each cgroup of reclaimed work, in microseconds.
	used map[string]int64
	// pods is the CPU of each candidate for evictions, in microseconds, at the time of podsAt.
	pods   map[string]int64
	podsAt time.Time
	// waited and throttled are the totals of each watched cgroup, in microseconds.
	waited, stalled, throttled map[string]int64
}

// watched is a cgroup of online work whose waiting is measured.
type watched struct {
	path   string
	weight fleet.MilliCPU
}

// sample is what one measurement gives.
type sample struct {
	signals  shape.Signals
	pressure shape.Pressure
}

// measure reads the machine. online are the CPUs that online has, parts the cgroups of reclaimed work, whose use it fills in. coarse are the cgroups
// that stand for all of online, and pods its pods one by one: those are looked at only when the coarse ones wait, since they cost more reads.
func (m *meter) measure(c *Cgroups, r Roots, online, lent shape.Set, parts []shape.Part, coarse, pods []watched, now time.Time) sample {
	var out sample
	elapsed := now.Sub(m.at)
	first := m.at.IsZero() || elapsed <= 0 || elapsed > time.Minute
	busy := procStat(r.Proc)
	next := meter{at: now, busy: busy, used: map[string]int64{}, waited: map[string]int64{}, stalled: map[string]int64{}, throttled: map[string]int64{}}
	known := !first && busy != nil && m.busy != nil
	cores := func(microseconds int64) fleet.MilliCPU {
		return fleet.MilliCPU(float64(max(microseconds, 0)) / elapsed.Seconds() / 1000)
	}
	rate := func(ids shape.Set) fleet.MilliCPU {
		var ticks int64
		for _, id := range ids {
			ticks += max(busy[id]-m.busy[id], 0)
		}
		return cores(ticks * 10_000)
	}
	var used fleet.MilliCPU
	for i := range parts {
		p := &parts[i]
		p.CPU = fleet.Known[fleet.MilliCPU]{}
		usec, ok := c.Keyed(p.Path, "cpu.stat")["usage_usec"]
		if !ok {
			known = known && i > 0 // a pod that is gone has no file, the cgroup of all BestEffort pods always does
			continue
		}
		next.used[p.Path] = usec
		was, seen := m.used[p.Path]
		if i == 0 {
			known = known && seen
		}
		if !known || !seen {
			continue
		}
		here := cores(usec - was)
		if i == 0 {
			// The use of lent cells by reclaimed work is not known by itself; taking all that is busy there for its own
			// never makes online look smaller.
			here = max(here-rate(lent), 0)
		}
		used += here
		p.CPU = fleet.KnownAt(here, now)
	}
	if known {
		out.signals.Online = fleet.KnownAt(max(rate(online)-used, 0), now)
		out.signals.Reclaimed = fleet.KnownAt(used, now)
	}
	_, cpu, memory, ok := m.stalls(&next, c, coarse, elapsed, first) // a calm cgroup must not hide one that waits
	// A pod that waits behind its own limit is not held up by others, and not all pods of a coarse cgroup are online's:
	// only the pods show that.
	if ok && (cpu > stallTarget || memory > stallTarget) {
		if len(pods) == 0 {
			cpu, memory = 0, 0
		} else if c, _, mem, fine := m.stalls(&next, c, pods, elapsed, first); fine {
			cpu, memory = c, mem
		}
	}
	stall := fleet.Known[float64]{}
	if ok {
		stall = fleet.KnownAt(cpu, now)
		out.pressure.MemoryStall = fleet.KnownAt(memory, now)
	}
	out.signals.Indicators = []shape.Indicator{shape.CPUStall(stall)}
	out.signals.Memory = memorySignals(c, r, parts, now)
	out.pressure.Memory = out.signals.Memory
	out.pressure.Cells = cellMemory(r, now)
	out.pressure.Disk, out.pressure.Inodes = diskFree(r.Kubelet, now)
	next.pods, next.podsAt = m.pods, m.podsAt
	*m = next
	return out
}

// usedBy measures what each candidate for evictions uses, while that matters: it is a read for each.
func (m *meter) usedBy(c *Cgroups, cs []shape.Candidate, matters bool, now time.Time) {
	if !matters {
		m.pods, m.podsAt = nil, time.Time{}
		return
	}
	elapsed := now.Sub(m.podsAt)
	next := map[string]int64{}
	for i := range cs {
		x := &cs[i]
		x.CPU = fleet.Known[fleet.MilliCPU]{}
		usec, ok := c.Keyed(x.Path, "cpu.stat")["usage_usec"]
		if !ok {
			continue
		}
		next[x.UID] = usec
		if was, seen := m.pods[x.UID]; seen && elapsed > 0 {
			x.CPU = fleet.KnownAt(fleet.MilliCPU(float64(max(usec-was, 0))/elapsed.Seconds()/1000), now)
		}
	}
	m.pods, m.podsAt = next, now
}

const stallTarget = 0.05

// stalls is the share of time in which tasks of some cgroups waited for a CPU, weighted by requests, and the largest of one; and the largest in which
// those of one waited for memory.
func (m *meter) stalls(next *meter, c *Cgroups, groups []watched, elapsed time.Duration, first bool) (cpu, worst, memory float64, ok bool) {
	var sum, weights float64
	for _, g := range groups {
		text, fine := c.Read(g.path, "cpu.pressure")
		some, _, fine2 := parsePressure(text)
		text, fine3 := c.Read(g.path, "memory.pressure")
		mem, _, fine4 := parsePressure(text)
		if !fine || !fine2 || !fine3 || !fine4 {
			continue
		}
		ok = true
		next.waited[g.path], next.stalled[g.path] = some.total, mem.total
		next.throttled[g.path] = c.Keyed(g.path, "cpu.stat")["throttled_usec"]
		was, seen := m.waited[g.path]
		if first || !seen {
			continue
		}
		own := next.throttled[g.path] - m.throttled[g.path]
		waited := float64(max(some.total-was-max(own, 0), 0)) / float64(elapsed.Microseconds())
		w := float64(max(g.weight, 100))
		sum, weights, worst = sum+w*min(waited, 1), weights+w, max(worst, min(waited, 1))
		if limit, limited := c.Number(g.path, "memory.max"); limited {
			if current, _ := c.Number(g.path, "memory.current"); current > limit/20*19 {
				continue // it waits behind its own limit
			}
		}
		memory = max(memory, min(float64(max(mem.total-m.stalled[g.path], 0))/float64(elapsed.Microseconds()), 1))
	}
	if weights > 0 {
		cpu = sum / weights
	}
	return cpu, worst, memory, ok && !first
}

// procStat is the busy time of each CPU, in ticks; nil where it cannot be read.
func procStat(proc string) map[int]int64 {
	data, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return nil
	}
	out := map[int]int64{}
	for line := range strings.Lines(string(data)) {
		name, rest, _ := strings.Cut(line, " ")
		id, err := strconv.Atoi(strings.TrimPrefix(name, "cpu"))
		if !strings.HasPrefix(name, "cpu") || err != nil {
			continue
		}
		// user nice system idle iowait irq softirq steal; guest time is in user already
		for i, field := range strings.Fields(rest) {
			if n, err := strconv.ParseInt(field, 10, 64); err == nil && i < 8 && i != 3 && i != 4 {
				out[id] += n
			}
		}
	}
	return out
}

// memorySignals reads the memory of the machine and what reclaimed work has of it.
func memorySignals(c *Cgroups, r Roots, parts []shape.Part, now time.Time) fleet.Known[shape.MemorySignals] {
	path := filepath.Join(r.Proc, "meminfo")
	total, err := meminfo(path, "MemTotal:")
	available, err2 := meminfo(path, "MemAvailable:")
	if err != nil || err2 != nil {
		return fleet.Known[shape.MemorySignals]{}
	}
	m := shape.MemorySignals{Total: total}
	for i := range parts {
		p := &parts[i]
		used, ok := c.Number(p.Path, "memory.current")
		if !ok && i == 0 {
			return fleet.Known[shape.MemorySignals]{}
		}
		stat := c.Keyed(p.Path, "memory.stat")
		p.Used, p.Cache = fleet.Bytes(used), fleet.Bytes(stat["inactive_file"]+stat["active_file"])
		m.Reclaimed, m.Cache = m.Reclaimed+p.Used, m.Cache+p.Cache
	}
	// Page cache of reclaimed work is available to others and counts as used by it: once is enough.
	m.Available = max(available-m.Cache, 0)
	for _, z := range zones(r.Proc) {
		m.Watermark += z.Low
	}
	return fleet.KnownAt(m, now)
}

// zones reads the watermarks of each cell from zoneinfo, in pages of the machine.
func zones(proc string) map[int]shape.CellMemory {
	data, err := os.ReadFile(filepath.Join(proc, "zoneinfo"))
	if err != nil {
		return nil
	}
	size := fleet.Bytes(os.Getpagesize())
	out := map[int]shape.CellMemory{}
	cell := -1
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 2 && f[0] == "Node":
			if cell, err = strconv.Atoi(strings.TrimSuffix(f[1], ",")); err != nil {
				cell = -1
			}
		case len(f) == 2 && cell >= 0 && (f[0] == "min" || f[0] == "low"):
			pages, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				continue
			}
			z := out[cell]
			if z.Cell = cell; f[0] == "min" {
				z.Min += fleet.Bytes(pages) * size
			} else {
				z.Low += fleet.Bytes(pages) * size
			}
			out[cell] = z
		}
	}
	return out
}

// cellMemory is the memory of each cell. Inactive page cache counts as free: the kernel takes it without waiting.
func cellMemory(r Roots, now time.Time) fleet.Known[[]shape.CellMemory] {
	marks := zones(r.Proc)
	s := sysfs{root: r.Sys}
	ids, err := s.set("devices/system/node/online")
	if err != nil || len(marks) == 0 {
		return fleet.Known[[]shape.CellMemory]{}
	}
	var out []shape.CellMemory
	for _, id := range ids {
		path := filepath.Join(r.Sys, "devices/system/node", "node"+strconv.Itoa(id), "meminfo")
		free, err := meminfo(path, "MemFree:")
		if err != nil {
			continue
		}
		cache, _ := meminfo(path, "Inactive(file):")
		z := marks[id]
		z.Cell, z.Free = id, free+cache
		out = append(out, z)
	}
	return fleet.KnownAt(out, now)
}

// diskFree is the share of disk and inodes that is free where pods write.
func diskFree(path string, now time.Time) (disk, inodes fleet.Known[float64]) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return disk, inodes
	}
	if s.Blocks > 0 {
		disk = fleet.KnownAt(float64(s.Bavail)/float64(s.Blocks), now)
	}
	if s.Files > 0 {
		inodes = fleet.KnownAt(float64(s.Ffree)/float64(s.Files), now)
	}
	return disk, inodes
}
