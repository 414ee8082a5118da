package sim

import (
	"math"
	"time"

	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/sim/scenario"
)

// foresee is what a controller could reach that knows every load of the run.
//
// The oracle pays what everybody pays: a replica must be started its start-up before it is needed; a machine goes to
// offline as a whole, and only after the node side saw it empty; offline work has to be started and restored on it,
// saved at its end, and seen gone. It never violates an SLO that replicas can keep, and it needs no less than that
// allows: a controller without a violation at a time has these replicas then, and has had them for a start-up. It
// relaxes the rest: replicas take what a [bound] of all packings says, machines are alike, and work divides at will. So
// it bounds every policy without violations from above. The free one pays nothing: fractional replicas in the moment,
// and every core that they leave.
func foresee(b *scenario.Built, rates *Rates, r Row) Result {
	out := r.result()
	w := &World{b: b}
	n := len(rates.of[0])
	scored := int(scenario.WarmUp / tick)
	needs, hopeless := make([][]float64, len(b.Services)), make([][]bool, len(b.Services))
	used, online, atOnce := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range b.Services {
		o := &b.Services[i]
		states := statesOf(o, b.RunStart(), n)
		var need []float64
		need, hopeless[i] = needed(o, states, rates.of[i])
		for k := range need {
			atOnce[k] += need[k] * float64(o.Cores)
		}
		if r.Policy == Oracle {
			need = forward(need, startUpTicks(o))
		} else {
			for k, rate := range rates.of[i] {
				need[k] = max(rate/states[k].carries, 0)
			}
		}
		for k := range need {
			online[k] += need[k] * float64(o.Cores)
			used[k] += rates.of[i][k] * o.CPUAt(states[k].moment)
		}
		needs[i] = need
	}
	fleet := b.Cores()
	out.serves(w, needs, hopeless, online, atOnce, scored)
	harvest, lent := 0.0, make([]float64, n)
	if r.Policy == Oracle {
		p, held := parcelsOf(b), make([]float64, n)
		packed := newBound(b.Services, b.Fleet.CoresPerNode, p.each)
		for k := range held {
			held[k] = packed.cores(func(i int) float64 { return needs[i][k] })
		}
		lent, out.Moves = harvestOf(held, p, scored)
	} else {
		for k := scored; k < n; k++ {
			lent[k] = max(fleet-online[k], 0)
		}
	}
	for _, cores := range lent[scored:] {
		harvest += cores * tick.Hours()
	}
	demand := b.DemandShare * fleet * b.Duration().Hours()
	out.OfflineCoreHours = min(harvest, demand)
	// Work that is not there is missing everywhere alike.
	part := out.OfflineCoreHours / max(harvest, 1e-9)
	busy := make([]float64, n-scored)
	for k := range busy {
		busy[k] = (min(used[scored+k], float64(b.Online*b.Fleet.CoresPerNode)) + part*lent[scored+k]) / fleet
	}
	out.uses(busy)
	return out
}

// uses accounts the part of the fleet that is in use at each scored tick.
func (out *Result) uses(busy []float64) {
	hour := 0.0
	for k, part := range busy {
		out.MeanUtilisation += part / float64(len(busy))
		if hour += part; (k+1)%int(perHour) == 0 || k+1 == len(busy) {
			out.PeakUtilisation = max(out.PeakUtilisation, hour/float64(k%int(perHour)+1))
			hour = 0
		}
	}
}

// serves accounts what online costs, and what even perfect foresight breaks: while the services together need more at
// once than the fleet has, with what it may borrow of the offline pool, one of them at least is short, the one that
// needs most. A replica that must be started early costs its cores, and breaks nothing where the fleet has none for it
// yet: others may have held theirs.
func (out *Result) serves(w *World, needs [][]float64, hopeless [][]bool, online, atOnce []float64, scored int) {
	b := w.b
	has := b.Cores()
	violated, cores := make([]int, len(needs)), make([]float64, len(needs))
	last := -1
	for k := scored; k < len(online); k++ {
		part, largest := min(1, has/max(online[k], 1e-9)), 0
		for i := range needs {
			holds := needs[i][k] * float64(b.Services[i].Cores)
			cores[i] += part * holds
			if holds > needs[largest][k]*float64(b.Services[largest].Cores) {
				largest = i
			}
		}
		if minute := k / int(perMinute); atOnce[k] > has && minute != last {
			last = minute
			violated[largest]++
		}
	}
	for i := range hopeless {
		violated[i] = max(violated[i], minutesOf(hopeless[i][scored:]))
	}
	for i := range needs {
		out.add(w, i, violated[i], 0, cores[i]*tick.Hours())
	}
}

// state is what a service is like at a tick: what a warm replica carries, and whether any number of them keeps the SLO.
type state struct {
	moment   measure.Moment
	carries  float64
	hopeless bool
}

// statesOf are a service's states over a run, which change at full minutes.
func statesOf(o *scenario.Online, start time.Time, ticks int) []state {
	out := make([]state, ticks)
	for k := range out {
		if k > 0 && (!o.Changes() || k%int(perMinute) != 0) {
			out[k] = out[k-1]
			continue
		}
		m := o.Moment(start.Add(time.Duration(k) * tick))
		out[k] = state{moment: m, carries: o.Carries(m), hopeless: o.CapacityAt(m) == 0}
	}
	return out
}

// needed are the replicas that keep the SLO at each tick, at least the service's minimum, and the ticks in which no
// number of them does: in those they are what the load takes at its usual dependency.
func needed(o *scenario.Online, states []state, rates []float64) (need []float64, hopeless []bool) {
	need, hopeless = make([]float64, len(rates)), make([]bool, len(rates))
	for k, rate := range rates {
		x := &states[k]
		n := math.Ceil(rate/x.carries - 1e-9)
		// The formula and the queue agree to within rounding: the queue has the last word.
		for !x.hopeless && !keeps(o, x.moment, rate, n) {
			n++
		}
		need[k], hopeless[k] = max(n, float64(o.Spec.Min)), x.hopeless && rate > 0
	}
	return need, hopeless
}

func keeps(o *scenario.Online, m measure.Moment, rate, replicas float64) bool {
	return !o.StepAt(m, &measure.Queue{}, rate, int(replicas), tick).Violated
}

// minutesOf counts the minutes that have such a tick.
func minutesOf(ticks []bool) int {
	n, last := 0, -1
	for k, is := range ticks {
		if minute := k / int(perMinute); is && minute != last {
			n, last = n+1, minute
		}
	}
	return n
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
	return int(ticks(time.Duration(float64(o.Spec.StartUp) * math.Exp(-mostLuck*o.Spec.StartUpSpread))))
}

// parcels is what an oracle lends by.
type parcels struct {
	count int
	// each is how many a machine has.
	each  int
	cores float64
	// out are the ticks at the beginning of a loan in which no work is done whatever one knows: the node side's check,
	// starting and restoring; back those at its end, the check on the way home. With a known end there is no notice
	// beyond the next checkpoint.
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
// The result is the cores that work at each tick; the ends of a loan, which earn nothing, are spread over all of it.
func harvestOf(held []float64, p parcels, scored int) (lent []float64, moves int) {
	free := make([]int, len(held))
	for k, cores := range held {
		free[k] = max(0, p.count-int(math.Ceil(cores/p.cores-1e-9)))
	}
	lent = make([]float64, len(held)+1)
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
			from = max(from, scored)
			each := gain * p.cores / float64(at-from)
			lent[from] += each
			lent[at] -= each
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
	for k := 1; k < len(lent); k++ {
		lent[k] += lent[k-1]
	}
	lent = lent[:len(held)]
	for k := scored; k < len(lent); k++ {
		lent[k] += p.home
	}
	return lent, moves
}
