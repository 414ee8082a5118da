package sim

import (
	"math"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/sim/scenario"
)

// bound is what some replicas take of machines at the least, however they are packed: the largest of some weighted sums of them. Volume is one
// of the sums, by CPU and by memory. The others weigh a replica that is a part x of a machine by u(x), where u is such that parts which fit
// into a machine come to no more than 1 by it: the functions u(k) of Fekete and Schepers (New classes of fast lower bounds for bin packing
// problems, Mathematical Programming 2001), which count a replica of which k fit a machine, and not k+1, as 1/k. For replicas of one size that is
// exact; where small ones fill what large ones leave, it does not count that as lost.
type bound struct {
	// sums are the weights of each service's replicas, in cores of a machine.
	sums [][]float64
}

// newBound takes machines that are divided into so many parcels of equal size; online may keep some of them.
func newBound(services []scenario.Online, coresPerNode, parcels int) bound {
	machine := scenario.CoresOf(coresPerNode)
	parts := [][]float64{make([]float64, len(services)), make([]float64, len(services))} // of CPU, of memory
	for i := range services {
		r := services[i].Request()
		parts[0][i], parts[1][i] = part(r, machine)
	}
	var b bound
	add := func(of []float64, u func(float64) float64) {
		sum := make([]float64, len(of))
		for i, x := range of {
			sum[i] = u(x) * float64(coresPerNode)
		}
		for _, had := range b.sums {
			if dominated(sum, had) {
				return
			}
		}
		b.sums = append(b.sums, sum)
	}
	for _, of := range parts {
		add(of, func(x float64) float64 { return x })
	}
	for _, of := range parts {
		for k := 1; k <= coresPerNode; k++ {
			if keepsParcels(k, parcels) {
				add(of, func(x float64) float64 { return weight(k, x) })
			}
		}
	}
	return b
}

func part(r, machine fleet.Resources) (cpu, memory float64) {
	return float64(r.CPU) / float64(machine.CPU), float64(r.Memory) / float64(machine.Memory)
}

// weight is u(k) of a part of a machine.
func weight(k int, x float64) float64 {
	n := float64(k+1) * x
	if whole := math.Round(n); math.Abs(n-whole) < 1e-9 {
		return x
	}
	return math.Floor(n) / float64(k)
}

// keepsParcels reports whether what fits into some of the parcels of a machine comes to no more than their part of it by u(k).
func keepsParcels(k, parcels int) bool {
	for n := 1; n < parcels; n++ {
		if x := float64(n) / float64(parcels); weight(k, x) > x+1e-9 {
			return false
		}
	}
	return true
}

func dominated(sum, by []float64) bool {
	for i, v := range sum {
		if v > by[i]+1e-9 {
			return false
		}
	}
	return true
}

// cores are those that some replicas of each service take at the least.
func (b bound) cores(replicas func(service int) float64) float64 {
	most := 0.0
	for _, sum := range b.sums {
		cores := 0.0
		for i, w := range sum {
			cores += w * replicas(i)
		}
		most = max(most, cores)
	}
	return most
}
