package planner

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// waste is what the pool's machines must hold beyond what its services ask for, as a fraction of that: what pods of their sizes leave over, and no
// less than what is taken to be lost to scatter.
func (l *ledger) waste() float64 {
	return max(l.unfilled(), l.in.Options.Placement)
}

// unfilled is what pods of the services' sizes leave over.
func (l *ledger) unfilled() float64 {
	if l.wasted == nil {
		pods := make([]pieces, len(l.services))
		for i, v := range l.services {
			pods[i] = v.pieces()
		}
		w := wasteOf(l.rooms, pods)
		l.wasted = &w
	}
	return *l.wasted
}

// unfilledNote says so where it is more than scatter.
func (l *ledger) unfilledNote() string {
	if w := l.unfilled(); w > l.in.Options.Placement {
		return fmt.Sprintf("; that is %.0f%% more than its pods request, as they do not fill machines", 100*w)
	}
	return ""
}

// pieces are the pods of a service: those that it is to have, or has.
func (v *sized) pieces() pieces {
	count := v.pods
	if v.target != nil {
		count = max(count, int(v.target.Wanted))
	}
	return pieces{v.svc.Request.Add(fleet.Resources{Pods: 1}), float64(count)}
}

// pieces are so many equal pods, or so many equal machines; pods may be a fraction once their number was divided among machines.
type pieces struct {
	each  fleet.Resources
	count float64
}

// A pool of any number of services on any machines is packed in a fraction of a second: above mostSizes, sizes that are alike are one, and the
// mostKinds that most machines are of speak for all.
const (
	mostSizes = 256
	mostKinds = 16
)

// wasteOf is what machines must hold beyond what the pods ask for, as a fraction of that, since a machine holds whole pods: two of 24 cores
// leave a quarter of 64 to nobody. Each kind of machine takes all the pods, the largest first, and the small ones fill what those leave: first
// fit decreasing, but for machines that are fuller with fewer of the largest, and with machines that hold the same counted at once. Kinds count by
// their CPU.
//
// A pod that is larger than a machine counts for nothing there, and pods that ask for nothing waste nothing.
func wasteOf(machines, pods []pieces) float64 {
	kinds := equal(machines)
	pods = merged(pods)
	slices.SortStableFunc(kinds, func(a, b pieces) int { return cmp.Compare(b.count, a.count) })
	sum, all := 0.0, 0.0
	for _, m := range kinds[:min(len(kinds), mostKinds)] {
		if m.each.CPU <= 0 || m.each.Memory <= 0 {
			continue // full of pods of no service
		}
		cpu := float64(m.each.CPU) * m.count
		all += cpu
		sum += cpu * wasteOn(m.each, pods)
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// wasteOn is the waste on machines of one kind.
func wasteOn(machine fleet.Resources, pods []pieces) float64 {
	left := slices.DeleteFunc(slices.Clone(pods), func(p pieces) bool {
		return p.count <= 0 || p.each.CPU <= 0 && p.each.Memory <= 0 || timesIn(p.each, machine) == 0
	})
	slices.SortStableFunc(left, func(a, b pieces) int {
		return cmp.Compare(dominant(b.each, machine), dominant(a.each, machine))
	})
	var cpu, memory, filled float64
	for _, p := range left {
		cpu += p.count * float64(p.each.CPU)
		memory += p.count * float64(p.each.Memory)
	}
	if len(left) == 0 {
		return 0
	}
	for len(left) > 0 {
		holds := fill(machine, left)
		same := math.Inf(1) // so many machines hold the same, until one of the sizes is used up
		for i, n := range holds {
			if n > 0 {
				same = min(same, left[i].count/float64(n))
			}
		}
		filled += same
		some := left[:0]
		for i, p := range left {
			if p.count -= same * float64(holds[i]); p.count > 1e-9 {
				some = append(some, p)
			}
		}
		left = some
	}
	return max(filled/max(cpu/float64(machine.CPU), memory/float64(machine.Memory))-1, 0)
}

// fewer is how many fewer of the largest pods than fit a machine is asked to hold, for others to fill it better.
const fewer = 3

// fill says how many pods of each size one machine holds: at least one of the largest, and the others from large to small, in the way of those
// tried that leaves the least over.
func fill(machine fleet.Resources, sizes []pieces) []int64 {
	var best []int64
	most := 0.0
	first := timesIn(sizes[0].each, machine)
	for n := first; n > 0 && n >= first-fewer; n-- {
		holds, room := make([]int64, len(sizes)), machine
		for i, p := range sizes {
			holds[i] = timesIn(p.each, room)
			if i == 0 {
				holds[i] = n
			}
			room = room.Sub(p.each.Times(holds[i]))
		}
		if used := dominant(machine.Sub(room), machine); used > most {
			best, most = holds, used
		}
	}
	return best
}

// dominant is the largest part of a machine's CPU and memory that a pod asks for.
func dominant(pod, machine fleet.Resources) float64 {
	return max(part(int64(pod.CPU), int64(machine.CPU)), part(int64(pod.Memory), int64(machine.Memory)))
}

func part(of, whole int64) float64 {
	if of <= 0 {
		return 0
	}
	return float64(of) / float64(whole)
}

// timesIn is how many equal pods fit into some room.
func timesIn(pod, room fleet.Resources) int64 {
	n := room.Pods
	if pod.CPU > 0 {
		n = min(n, int64(room.CPU/pod.CPU))
	}
	if pod.Memory > 0 {
		n = min(n, int64(room.Memory/pod.Memory))
	}
	return max(n, 0)
}

// equal counts equal sizes together, the small ones first.
func equal(in []pieces) []pieces {
	return summed(in, func(r fleet.Resources) [3]int64 { return [3]int64{int64(r.CPU), int64(r.Memory), r.Pods} })
}

// merged counts equal sizes together, and if they are too many those too that differ by a hundredth, or by the least power of two of it that makes
// them few enough. The largest stands for all.
func merged(in []pieces) []pieces {
	out := equal(in)
	for alike := 0.01; len(out) > mostSizes; alike *= 2 {
		step := func(v int64) int64 { return int64(math.Log(float64(max(v, 1))) / alike) }
		out = summed(out, func(r fleet.Resources) [3]int64 { return [3]int64{step(int64(r.CPU)), step(int64(r.Memory)), r.Pods} })
	}
	return out
}

func summed(in []pieces, key func(fleet.Resources) [3]int64) []pieces {
	bySize := func(a, b pieces) int {
		return cmp.Or(cmp.Compare(a.each.CPU, b.each.CPU), cmp.Compare(a.each.Memory, b.each.Memory), cmp.Compare(a.each.Pods, b.each.Pods))
	}
	sums := make(map[[3]int64]pieces, min(len(in), mostSizes))
	for _, p := range in {
		k := key(p.each)
		had, ok := sums[k]
		if !ok || bySize(p, had) > 0 {
			had.each = p.each
		}
		had.count += p.count
		sums[k] = had
	}
	return slices.SortedFunc(maps.Values(sums), bySize)
}
