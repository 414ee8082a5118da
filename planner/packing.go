package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// waste is what the pool's machines must hold beyond what its services ask for, as a fraction of that: what pods of their sizes leave over, and no
// less than what is taken to be lost to scatter.
func (l *ledger) waste() float64 {
	return max(l.unfilled(), l.in.Options.Placement)
}

// unfilled is what pods of the services' sizes leave over.
func (l *ledger) unfilled() float64 {
	if l.wasted == nil {
		pods := map[fleet.Resources]int64{}
		for _, v := range l.services {
			// Those that it is to have, or has.
			n := v.pods
			if v.target != nil {
				n = max(n, int(v.target.Wanted))
			}
			pods[onePod(v.svc.Request)] += int64(n)
		}
		w := wasteOf(l.Rooms, pods)
		l.wasted = &w
	}
	return *l.wasted
}

// unfilledNote says so where it is more than scatter.
func (l *ledger) unfilledNote() reason.Reason {
	if w := l.unfilled(); w > l.in.Options.Placement {
		return reason.Of(reason.Unfilled, fmt.Sprintf("%.0f", 100*w))
	}
	return reason.Reason{}
}

// onePod is what a machine must hold for a pod: CPU, memory, and one pod of its number.
func onePod(requests fleet.Resources) fleet.Resources {
	return requests.CPUAndMemory().OnePod()
}

// pieces are so many equal pods, a fraction once their number was divided among machines.
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

// wasteOf is what machines must hold beyond what the pods ask for, as a fraction of that, since a machine holds whole
// pods: two of 24 cores leave a quarter of 64 unused. Each kind of machine takes all the pods, the largest first, and
// the small ones fill what those leave: first fit decreasing, but for machines that are fuller with fewer of the
// largest, and with machines that hold the same counted at once. Kinds count by their CPU.
//
// A pod that is larger than a machine counts for nothing there, and pods that ask for nothing waste nothing.
func wasteOf(machines, pods map[fleet.Resources]int64) float64 {
	kinds, sizes := kindsOf(machines), merged(pods)
	slices.SortStableFunc(kinds, func(a, b machineKind) int { return cmp.Compare(b.n, a.n) })
	sum, all := 0.0, 0.0
	for _, m := range kinds[:min(len(kinds), mostKinds)] {
		if m.holds.CPU <= 0 || m.holds.Memory <= 0 {
			continue // full of pods of no service
		}
		cpu := float64(m.holds.CPU) * float64(m.n)
		all += cpu
		sum += cpu * wasteOn(m.holds, sizes)
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// wasteOn is the waste on machines of one kind.
func wasteOn(machine fleet.Resources, pods []pieces) float64 {
	left := slices.DeleteFunc(slices.Clone(pods), func(p pieces) bool {
		return p.count <= 0 || p.each.CPU <= 0 && p.each.Memory <= 0 || machine.Count(p.each) == 0
	})
	slices.SortStableFunc(left, func(a, b pieces) int {
		return cmp.Compare(mostPart(b.each, machine), mostPart(a.each, machine))
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
	first := machine.Count(sizes[0].each)
	for n := first; n > 0 && n >= first-fewer; n-- {
		holds, room := make([]int64, len(sizes)), machine
		for i, p := range sizes {
			holds[i] = room.Count(p.each)
			if i == 0 {
				holds[i] = n
			}
			room = room.Sub(p.each.Times(holds[i]))
		}
		if used := mostPart(machine.Sub(room), machine); used > most {
			best, most = holds, used
		}
	}
	return best
}

// merged are so many pods of each size, the largest first. If the sizes are too many, those are one that differ by a hundredth, or by the least
// power of two of it that makes them few enough; the largest stands for all.
func merged(pods map[fleet.Resources]int64) []pieces {
	out := make([]pieces, 0, len(pods))
	for _, k := range kindsOf(pods) {
		out = append(out, pieces{k.holds, float64(k.n)})
	}
	for alike := 0.01; len(out) > mostSizes; alike *= 2 {
		step := func(v int64) int64 { return int64(math.Log(float64(max(v, 1))) / alike) }
		few, at := out[:0], make(map[[2]int64]int, mostSizes)
		for _, p := range out {
			key := [2]int64{step(int64(p.each.CPU)), step(int64(p.each.Memory))}
			i, ok := at[key]
			if !ok {
				i, at[key] = len(few), len(few)
				few = append(few, pieces{each: p.each})
			}
			few[i].count += p.count
		}
		out = few
	}
	return out
}
