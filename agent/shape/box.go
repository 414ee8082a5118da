package shape

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/springtide/springtide/fleet"
)

// Part is one cgroup of reclaimed work: the one of all BestEffort pods, or the one of a reclaimed pod that the kubelet put elsewhere because it
// requests something. The box is divided among the parts.
type Part struct {
	Path string
	// Pods is how many pods share the part; each counts the same.
	Pods int
	// Own is the pod's own limit of CPU and memory, which the kubelet wrote; 0 where it has none.
	Own fleet.Resources
	// CPU is what the part used of late, unknown after its start. Used is its memory, Cache the part of it that is page cache.
	CPU         fleet.Known[fleet.MilliCPU]
	Used, Cache fleet.Bytes
	// Has is the box that the part was given last, without what is lent; NoBox before.
	Has Box
}

// Boxed reports whether a pod has a part of the box of its own: it is reclaimed, and its cgroup is not below that of BestEffort pods.
func (in *Input) Boxed(p *Pod) bool {
	return p.Side == OverlapSide && p.Path != "" && !strings.HasPrefix(p.Path, in.Parents.BestEffort+"/")
}

// Parts are the cgroups of reclaimed work, that of BestEffort pods first.
func (in *Input) Parts() []Part {
	best := Part{Path: in.Parents.BestEffort, Has: NoBox()}
	var out []Part
	for i := range in.Pods {
		switch p := &in.Pods[i]; {
		case in.Boxed(p):
			out = append(out, Part{Path: p.Path, Pods: 1, Own: p.Own, Has: NoBox()})
		case p.Side != OfflineSide && strings.HasPrefix(p.Path, in.Parents.BestEffort+"/"):
			best.Pods++
		}
	}
	slices.SortFunc(out, func(a, b Part) int { return strings.Compare(a.Path, b.Path) })
	return append([]Part{best}, out...)
}

const (
	// spareShare is how much more than it uses a part can do without being throttled, and busyShare the part of its quota from which on it wants more.
	spareShare, busyShare = 1.25, 0.9
	// spareCPU is what an idle part may use at once.
	spareCPU = 100
	// leastCPU is the least quota of a part that has pods: the kernel refuses less than 1 ms in a period of 100 ms.
	leastCPU = 10
)

// Divide divides the box among the parts of reclaimed work, so that all of them together stay within it. lent is the CPU that BestEffort pods of offline
// work use on cells of their own; it is part of the box and goes to the first part.
//
// CPU: a part that uses nearly all of its quota wants more, any other a little more than it uses. The wishes of all are
// filled up evenly, by the number of pods, and the quota that no pod asks for is spread in the same way. A division in
// which no part lacks anything stays.
//
// Memory: each part may have what it holds and all that is free in the box. The sum is more than the box for a second at most: the next measurement takes
// what one part took off the others.
func (b Box) Divide(parts []Part, lent fleet.MilliCPU) []Box {
	out := make([]Box, len(parts))
	cpu := b.divideCPU(parts, lent)
	for i := range parts {
		out[i] = Box{CPU: cpu[i], Max: -1, High: -1}
	}
	if b.Max >= 0 && b.High >= 0 {
		b.divideMemory(parts, out)
	}
	for i := range parts {
		p := &parts[i]
		if i > 0 { // the kubelet's own limit of a pod holds as well
			out[i].CPU, out[i].Max = atMost(out[i].CPU, p.Own.CPU), atMost(out[i].Max, p.Own.Memory)
			out[i].High = min(out[i].High, out[i].Max)
		}
	}
	return out
}

// atMost is a limit that is no higher than another one, where that is set.
func atMost[T ~int64](limit, own T) T {
	if limit >= 0 && own > 0 {
		return min(limit, own)
	}
	return limit
}

func (b Box) divideCPU(parts []Part, lent fleet.MilliCPU) []fleet.MilliCPU {
	out := make([]fleet.MilliCPU, len(parts))
	if b.CPU < 0 || len(parts) == 1 {
		for i := range out {
			out[i] = b.CPU
		}
		return out
	}
	total := max(b.CPU-lent, 0)
	var has fleet.MilliCPU
	fine := true
	for i := range parts {
		p := &parts[i]
		has += p.Has.CPU
		fine = fine && p.Has.CPU >= leastCPU && p.CPU.OK && !p.lacks(p.Has.CPU)
	}
	if fine && has <= total && has >= total/10*9 {
		for i := range parts {
			out[i] = parts[i].Has.CPU
		}
	} else {
		out = fill(total, parts)
	}
	out[0] += lent
	return out
}

// lacks reports a part that uses nearly all of a quota, unless that is its pod's own limit.
func (p *Part) lacks(quota fleet.MilliCPU) bool {
	return float64(p.CPU.Value) > busyShare*float64(quota) && (p.Own.CPU <= 0 || quota < p.Own.CPU)
}

// fill gives each part what it wants, evenly where that is more than there is, and spreads what is left.
func fill(total fleet.MilliCPU, parts []Part) []fleet.MilliCPU {
	type want struct {
		i      int
		amount float64
		weight float64
	}
	var wants []want
	sum := 0.0
	for i := range parts {
		p := &parts[i]
		w := want{i: i, amount: math.Inf(1), weight: float64(max(p.Pods, 1))}
		if p.CPU.OK && (p.Has.CPU < 0 || !p.lacks(p.Has.CPU)) {
			w.amount = spareShare*float64(p.CPU.Value) + spareCPU
		}
		if p.Own.CPU > 0 {
			w.amount = min(w.amount, float64(p.Own.CPU))
		}
		if i == 0 && p.Pods == 0 {
			w.amount = leastCPU // no pod is there, and one that comes is seen within a second
		}
		sum += w.weight
		wants = append(wants, w)
	}
	slices.SortStableFunc(wants, func(a, b want) int { return cmp.Compare(a.amount/a.weight, b.amount/b.weight) })
	got := make([]float64, len(parts))
	left, weights := float64(total), sum
	for _, w := range wants {
		got[w.i] = min(w.amount, left*w.weight/weights)
		left, weights = left-got[w.i], weights-w.weight
	}
	out := make([]fleet.MilliCPU, len(parts))
	for _, w := range wants {
		out[w.i] = max(fleet.MilliCPU(got[w.i]+max(left, 0)*w.weight/sum), leastCPU)
	}
	return out
}

func (b Box) divideMemory(parts []Part, out []Box) {
	var used, held fleet.Bytes
	for i := range parts {
		used, held = used+parts[i].Used, held+parts[i].held()
	}
	// part is what one of a sum may have of a limit of all.
	part := func(is, sum, limit fleet.Bytes) fleet.Bytes {
		if limit >= sum {
			return is + limit - sum
		}
		return fleet.Bytes(float64(limit) / float64(sum) * float64(is))
	}
	for i := range parts {
		p := &parts[i]
		// Not below what processes hold, but for what the box itself is below it: the kernel would end one.
		least := part(p.held(), held, min(b.Max, held+held/32))
		out[i].Max = max(part(p.Used, used, b.Max), min(least, p.held()+p.held()/32))
		out[i].High = min(part(p.Used, used, b.High), out[i].Max)
	}
}

// held is what the part's processes hold.
func (p *Part) held() fleet.Bytes { return max(p.Used-p.Cache, 0) }

// values are the files of a cgroup of reclaimed work.
func (b Box) values(g *Group) {
	if b.CPU >= 0 {
		g.add("cpu.max", fmt.Sprintf("%d %d", max(int64(b.CPU)*quotaPeriod/1000, 1000), quotaPeriod), "what online leaves idle")
	}
	if b.Max >= 0 {
		g.add("memory.max", bytes(b.Max), "memory box of reclaimed pods")
	}
	if b.High >= 0 {
		g.add("memory.high", bytes(b.High), "memory box of reclaimed pods")
	}
}

// Unboxed are the files of a pod that had a part of the box and is not reclaimed any more: its own limits, as the kubelet writes them.
func Unboxed(path string, own fleet.Resources, why string) Group {
	g := Group{Path: path}
	cpu, memory := "max", "max"
	if own.CPU > 0 {
		cpu = fmt.Sprintf("%d %d", int64(own.CPU)*quotaPeriod/1000, quotaPeriod)
	}
	if own.Memory > 0 {
		memory = bytes(own.Memory)
	}
	g.add("cpu.max", cpu, why)
	g.add("memory.max", memory, why)
	g.add("memory.high", "max", why)
	return g
}
