package sim

import (
	"math"
	"time"

	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/sim/scenario"
)

// foresee is what somebody could reach who knows every load of the run.
//
// The oracle pays what everybody pays: a replica must be started its start-up before it is needed; a machine goes to offline as a whole, and
// only after the node side saw it empty; offline work has to be started and restored on it, saved at its end, and seen gone. It never
// violates an SLO that replicas can keep, and it needs no less than that allows: whoever has no violation at a time has these replicas then,
// and has had them for a start-up. It relaxes the rest: replicas take what a [bound] of all packings says, machines are alike, and work divides
// at will. So it bounds every policy without violations from above. The free one pays nothing: fractional replicas in the moment, and every
// core that they leave.
func foresee(b *scenario.Built, rates *Rates, r Row) Result {
	out := r.result()
	w := &World{b: b}
	n := len(rates.of[0])
	scored := int(scenario.WarmUp / tick)
	used, needs := 0.0, make([][]float64, len(b.Services))
	for i := range b.Services {
		o := &b.Services[i]
		need := needed(o, rates.of[i])
		if r.Policy == Oracle {
			need = forward(need, startUpTicks(o))
		} else {
			for k, rate := range rates.of[i] {
				need[k] = max(rate/o.Capacity(), 0)
			}
		}
		sum := 0.0
		for k := scored; k < n; k++ {
			sum += need[k] * float64(o.Cores)
			used += rates.of[i][k] * o.CPUSeconds * tick.Hours()
		}
		needs[i] = need
		out.add(w, i, 0, 0, sum*tick.Hours())
	}
	fleet := float64((b.Online + b.Fleet.OfflineNodes) * b.Fleet.CoresPerNode)
	harvest := 0.0
	if r.Policy == Oracle {
		p, held := parcelsOf(b), make([]float64, n)
		packed := newBound(b.Services, b.Fleet.CoresPerNode, p.each)
		for k := range held {
			held[k] = packed.cores(func(i int) float64 { return needs[i][k] })
		}
		harvest, out.Moves = harvestOf(held, p, scored)
	} else {
		for k := scored; k < n; k++ {
			held := 0.0
			for i := range needs {
				held += needs[i][k] * float64(b.Services[i].Cores)
			}
			harvest += max(fleet-held, 0) * tick.Hours()
		}
	}
	demand := b.DemandShare * fleet * b.Duration().Hours()
	out.OfflineCoreHours = min(harvest, demand)
	out.MeanUtilisation = (used + out.OfflineCoreHours) / (fleet * float64(n-scored) * tick.Hours())
	out.PeakUtilisation = 1
	return out
}

// needed are the replicas that keep the SLO at each tick, at least the service's minimum.
func needed(o *scenario.Online, rates []float64) []float64 {
	out := make([]float64, len(rates))
	capacity := o.Capacity()
	for k, rate := range rates {
		n := math.Ceil(rate/capacity - 1e-9)
		// The formula and the queue agree to within rounding: the queue has the last word.
		for !keeps(o, rate, n) {
			n++
		}
		out[k] = max(n, float64(o.Spec.Min))
	}
	return out
}

func keeps(o *scenario.Online, rate, replicas float64) bool {
	return !o.Step(&measure.Queue{}, rate, int(replicas), tick).Violated
}

// forward is the largest value from each tick on over so many ticks more: what has to exist for all of it to be ready in time.
func forward(need []float64, over int) []float64 {
	out := make([]float64, len(need))
	var queue []int // indices of falling values
	for k := len(need) - 1; k >= 0; k-- {
		for len(queue) > 0 && need[queue[len(queue)-1]] <= need[k] {
			queue = queue[:len(queue)-1]
		}
		queue = append(queue, k)
		for queue[0] > k+over {
			queue = queue[1:]
		}
		out[k] = need[queue[0]]
	}
	return out
}

// startUpTicks is the least time from binding to Ready, in ticks.
func startUpTicks(o *scenario.Online) int {
	return int(ticks(time.Duration(float64(o.Spec.StartUp) * math.Exp(-3*o.Spec.StartUpSpread))))
}

// parcels is what an oracle lends by.
type parcels struct {
	count int
	// each is how many a machine has.
	each  int
	cores float64
	// out are the ticks at the beginning of a loan in which no work is done whatever one knows: the node side's check, starting and restoring;
	// back those at its end, the check on the way home. Who knows when it ends needs no notice beyond the next checkpoint.
	out, back float64
	home      float64 // cores that are always offline's
}

func parcelsOf(b *scenario.Built) parcels {
	p := parcels{count: b.Online, each: 1, cores: float64(b.Fleet.CoresPerNode), home: float64(b.Fleet.OfflineNodes * b.Fleet.CoresPerNode)}
	if b.Fleet.Lending.Unit == "Socket" {
		p.each = b.Fleet.Sockets
		p.count, p.cores = p.count*p.each, p.cores/float64(p.each)
	}
	least := time.Duration(math.MaxInt64)
	for i := range b.Jobs {
		least = min(least, time.Duration(b.Jobs[i].Restore))
	}
	p.out = float64(ticks(confine)) + float64(ticks(offlineStart)) + least.Seconds()/tick.Seconds()
	p.back = float64(ticks(confine))
	return p
}

// harvestOf is the dynamic programme over the levels of parcels: parcel k is lent in the gaps in which online needs fewer than k, each for as
// long as it repays what its ends cost. Levels are independent of each other, and so are the gaps of a level, since holding back a gap wins
// nothing for another one: the programme's choice is made gap by gap.
func harvestOf(held []float64, p parcels, scored int) (coreHours float64, moves int) {
	free := make([]int, len(held))
	for k, cores := range held {
		free[k] = max(0, p.count-int(math.Ceil(cores/p.cores-1e-9)))
	}
	total := 0.0
	begun := make([]int, p.count+1) // tick at which each level's gap began, plus one
	end := func(level, at int) {
		from := begun[level] - 1
		begun[level] = 0
		gain := float64(at - max(from, scored))
		if from > 0 {
			gain -= max(0, p.out-float64(max(0, scored-from))) // what of it lies in the warm-up is not counted
		}
		if at < len(held) {
			gain -= p.back
		}
		if gain > 0 && at > scored {
			total += gain
			moves++
		}
	}
	before := 0
	for k, f := range free {
		for level := before; level < f; level++ {
			begun[level] = k + 1
		}
		for level := f; level < before; level++ {
			end(level, k)
		}
		before = f
	}
	for level := range before {
		end(level, len(free))
	}
	return (total*p.cores + p.home*float64(len(held)-scored)) * tick.Hours(), moves
}
