package shape

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Indicator is a named signal of how online fares, such as the share of time in which its tasks wait for a CPU, or a latency. Above its target
// reclaimed work gets less, below it gets more.
type Indicator struct {
	Name   string
	Value  fleet.Known[float64]
	Target float64
	// Above and Below are the dead band, as shares of the target. The band is wider below: what online lost is felt, what it could spare is not.
	Above, Below float64
	// Cut and Release are the gains: cores for each core of the machine and unit of the logarithmic error.
	Cut, Release float64
}

// CPUStall is the indicator that every machine has: the share of time in which a task of online waits for a CPU.
func CPUStall(share fleet.Known[float64]) Indicator {
	return Indicator{Name: "cpu-stall", Value: share, Target: 0.10, Above: 0.05, Below: 0.20, Cut: 0.05, Release: 0.009}
}

// Latency is the indicator of pods that measure their own latency, as a share of its limit. The target is a tenth below the limit.
func Latency(share fleet.Known[float64]) Indicator {
	return Indicator{Name: latencyName, Value: share, Target: 0.9, Above: 0.05, Below: 0.20, Cut: 0.05, Release: 0.009}
}

// Rule names the evictions for the sake of the indicator.
func (x *Indicator) Rule() string {
	if x.Name == latencyName {
		return RuleLatency
	}
	return RuleCPU
}

const latencyName = "latency"

// Disturbs reports whether an indicator is above its target.
func (s *Signals) Disturbs() bool {
	return slices.ContainsFunc(s.Indicators, func(x Indicator) bool { return x.Value.OK && x.Value.Value > x.Target })
}

// Signals are what was measured of a machine. Each has its time; one that is unknown or old stops growth.
type Signals struct {
	// Online is the CPU that everything but reclaimed work uses, Reclaimed what that uses.
	Online, Reclaimed fleet.Known[fleet.MilliCPU]
	Indicators        []Indicator
	Memory            fleet.Known[MemorySignals]
	// Growth is by how much the use of online is forecast to grow; 0 where none was forecast.
	Growth float64
}

// MemorySignals are those of the machine's memory.
type MemorySignals struct {
	Total fleet.Bytes
	// Available is what the kernel can give without swapping, page cache of reclaimed work not included: that counts as used by it.
	Available fleet.Bytes
	// Reclaimed is what reclaimed work uses, Cache the part of it that is page cache.
	Reclaimed, Cache fleet.Bytes
	// Watermark is the sum of the zones' low watermarks, below which the kernel reclaims in the background.
	Watermark fleet.Bytes
}

// AdviceOptions are the terms of the advisor.
type AdviceOptions struct {
	// Period is the time between two measurements. A signal older than three of them is stale.
	Period time.Duration
	// Floor is what reclaimed work always gets; without any it could not even end.
	Floor fleet.MilliCPU
	// Growth is how far online may grow within a period: its use is multiplied by it.
	Growth float64
	// ReleaseEvery is the time between two steps of growth.
	ReleaseEvery time.Duration
	// Smooth is the time over which the offered capacity is the least that was there.
	Smooth time.Duration
}

// DefaultAdvice are the defaults.
func DefaultAdvice() AdviceOptions {
	return AdviceOptions{Period: time.Second, Floor: 500, Growth: 1.25, ReleaseEvery: 30 * time.Second, Smooth: 2 * time.Minute}
}

// staleAfter is how many periods a signal may be old.
const staleAfter = 3

// Advice is what reclaimed work gets, and what the next decision starts from.
type Advice struct {
	// Known is false until there was a whole set of fresh signals: until then nothing is offered.
	Known bool
	// Quota is the CPU of reclaimed work, Max and High bound its memory.
	Quota     fleet.MilliCPU
	Max, High fleet.Bytes
	// Offer is what the node offers to the scheduler.
	Offer fleet.Resources
	// Cut is what the indicators take off the quota.
	Cut float64
	// Grown is when the quota grew last.
	Grown time.Time
	// Least are the smallest offers of each part of the smoothing time, oldest first.
	Least []Offer
	// Held is until when nothing is offered, after an eviction.
	Held time.Time
	// Why is the last decision in a sentence, Stale names the signals that were missing.
	Why   string
	Stale []string
}

// Offer is the least that could be offered in the time from At on.
type Offer struct {
	At     time.Time
	Amount fleet.Resources
}

// Critical is the memory that is kept for online: 4 GiB, on a machine of less than 200 GiB 2 % of it, and at least twice the watermark, so that
// bursts of online never wait for the kernel to reclaim.
func (m *MemorySignals) Critical() fleet.Bytes {
	return max(min(4*fleet.GiB, m.Total/50), 2*m.Watermark)
}

// Held is what reclaimed work holds apart from page cache: without swap it goes only with the processes.
func (m *MemorySignals) Held() fleet.Bytes { return max(m.Reclaimed-m.Cache, 0) }

// Box bounds the memory of reclaimed work: what it uses and what is free, but for the critical part. Reclaim begins at 95 %. It is never less than
// 2 % of the machine, since BestEffort pods of the system are in it.
//
// A write of memory.max below what processes hold ends one of them, in the kernel's order and not in the agent's. So where online grows into the box,
// high alone falls, which takes page cache and stops growth, and the limit stays a thirty-second above what is held: room for what a throttled process
// still gets until the agent has evicted one. That room ends where a quarter of the critical part is left. From there on the kernel ends processes of
// the box, since online would wait for memory before an eviction has freed any.
func (m *MemorySignals) Box() (limit, high fleet.Bytes) {
	target := max(m.Reclaimed+m.Available-m.Critical(), m.Total/50)
	limit = max(target, min(m.Held()+m.Held()/32, m.Reclaimed+m.Available-m.Critical()/4))
	return limit, target / 100 * 95
}

// Advise decides from the last advice and new signals. cores is the CPU that online has on the machine, in thousandths; lent is the CPU that
// offline holds of it, which its BestEffort pods may use beyond the quota.
//
// Less is given at once and without a limit, more in steps, at most one in ReleaseEvery: a sixteenth of the machine and at least two cores. Where
// an indicator is above its band, the quota falls below what reclaimed work uses now, by the logarithm of the error; each further bad sample takes
// more. It takes nothing while reclaimed work runs at its floor, since then that is not the cause (no wind-up).
func (last Advice) Advise(s *Signals, cores, lent fleet.MilliCPU, now time.Time, o AdviceOptions) Advice {
	next := last
	next.Least = slices.Clone(last.Least)
	next.Stale = s.stale(now, o)
	fresh := len(next.Stale) == 0
	if !last.Known && !fresh {
		next.Why = fmt.Sprintf("nothing is offered until these signals are there: %v", next.Stale)
		return next
	}
	next.cutBy(s, cores, now, o)
	want := last.Quota
	if s.Online.OK {
		want = cores - fleet.MilliCPU(float64(s.Online.Value)*o.Growth) - fleet.MilliCPU(next.Cut) + lent
	}
	want = max(want, o.Floor+lent)
	step := max(cores/16, 2000)
	switch {
	case !last.Known:
		// Nothing bounded reclaimed work before, so the first measurement takes only what online uses.
		next.Known, next.Quota, next.Grown, next.Why = true, want, now, "first measurement"
	case want < last.Quota:
		next.Quota, next.Why = want, fmt.Sprintf("online uses %.1f of %.1f cores, indicators take %.1f", s.Online.Value.Cores(), cores.Cores(), next.Cut/1000)
	case !fresh:
		next.Why = fmt.Sprintf("no growth: these signals are stale: %v", next.Stale)
	case want > last.Quota && now.Sub(last.Grown) >= o.ReleaseEvery:
		next.Quota, next.Grown, next.Why = min(want, last.Quota+step), now, "online leaves more idle"
	}
	if s.Memory.OK {
		limit, high := s.Memory.Value.Box()
		if limit < last.Max || fresh || last.Max == 0 {
			next.Max, next.High = limit, high
		}
	}
	next.offer(s, lent, fresh, now, o)
	return next
}

func (s *Signals) stale(now time.Time, o AdviceOptions) []string {
	var out []string
	old := func(name string, ok bool, at time.Time) {
		if !ok || now.Sub(at) > staleAfter*o.Period {
			out = append(out, name)
		}
	}
	old("cpu of online", s.Online.OK, s.Online.At)
	old("cpu of reclaimed work", s.Reclaimed.OK, s.Reclaimed.At)
	old("memory", s.Memory.OK, s.Memory.At)
	for i := range s.Indicators {
		old(s.Indicators[i].Name, s.Indicators[i].Value.OK, s.Indicators[i].Value.At)
	}
	return out
}

// cutBy moves the cut by the indicator that asks for most; one that asks to cut comes before any that would release.
func (a *Advice) cutBy(s *Signals, cores fleet.MilliCPU, now time.Time, o AdviceOptions) {
	worst, found := 0.0, false
	for i := range s.Indicators {
		x := &s.Indicators[i]
		if !x.Value.OK || now.Sub(x.Value.At) > staleAfter*o.Period || x.Target <= 0 {
			continue
		}
		// A value of zero has no logarithm; a hundredth of the target is as good as none.
		e := math.Log(max(x.Value.Value, x.Target/100) / x.Target)
		over := x.Value.Value/x.Target - 1
		move := 0.0
		switch {
		case over > x.Above:
			move = x.Cut * float64(cores) * e
		case over < -x.Below:
			move = x.Release * float64(cores) * e
		}
		if !found || move > worst {
			worst, found = move, true
		}
	}
	if !found {
		return
	}
	if worst <= 0 {
		a.Cut = max(a.Cut+worst, 0)
		return
	}
	use := s.Reclaimed.Value
	if !s.Reclaimed.OK || !s.Online.OK || use <= o.Floor {
		return
	}
	// One bad sample takes no more than a sixteenth of the machine, and at least a core, so that small machines act too.
	room := float64(cores) - float64(s.Online.Value)*o.Growth
	a.Cut = min(max(a.Cut, room-float64(use)+min(max(worst, 250), max(float64(cores)/16, 1000))), max(room-float64(o.Floor), 0))
}

// offer is the capacity that is shown to the scheduler: it falls at once, and grows to the least of the smoothing time. Changes within a band are not
// shown: half a core and 512 MiB, or 5 %. A true zero is shown as zero. The quota follows what online uses within a second, but a pod that was placed
// stays: where online is forecast to grow by more than the quota leaves free, that much less is offered.
func (a *Advice) offer(s *Signals, lent fleet.MilliCPU, fresh bool, now time.Time, o AdviceOptions) {
	real := fleet.Resources{CPU: max(a.Quota-lent, 0), Memory: a.High}
	if more := s.Growth - o.Growth; more > 0 && s.Online.OK {
		real.CPU = max(real.CPU-fleet.MilliCPU(more*float64(s.Online.Value)), 0)
	}
	if !s.Memory.OK {
		real.Memory = min(a.Offer.Memory, a.High)
	}
	if real.CPU <= o.Floor {
		real.CPU = 0 // the floor lets running work end; it is no room for more
	}
	if now.Before(a.Held) {
		real = fleet.Resources{}
	}
	// Eight parts of the smoothing time keep the memory of this short.
	if n := len(a.Least); n > 0 && now.Sub(a.Least[n-1].At) < o.Smooth/8 {
		a.Least[n-1].Amount = a.Least[n-1].Amount.Min(real)
	} else {
		a.Least = append(a.Least, Offer{now, real})
	}
	a.Least = slices.DeleteFunc(a.Least, func(x Offer) bool { return now.Sub(x.At) > o.Smooth+o.Smooth/8 })
	least := real
	for _, x := range a.Least {
		least = least.Min(x.Amount)
	}
	whole := now.Sub(a.Least[0].At) >= o.Smooth-o.Smooth/8
	band := func(was, is, smallest int64) bool {
		d := is - was
		return max(d, -d) > max(smallest, was/20) || is == 0 && was != 0
	}
	move := func(was, now, least, smallest int64) int64 {
		switch {
		case now < was && band(was, now, smallest):
			return now
		case fresh && whole && least > was && band(was, least, smallest):
			return least
		}
		return was
	}
	a.Offer.CPU = fleet.MilliCPU(move(int64(a.Offer.CPU), int64(real.CPU), int64(least.CPU), 500))
	a.Offer.Memory = fleet.Bytes(move(int64(a.Offer.Memory), int64(real.Memory), int64(least.Memory), 512<<20))
}

// Box is what the advice asks of the cgroup of reclaimed work. Before there is any, and where the signals were never there, memory and CPU are left
// alone.
func (a *Advice) Box() Box {
	if !a.Known {
		return NoBox()
	}
	b := Box{CPU: a.Quota, Max: a.Max, High: a.High}
	if a.Max == 0 {
		b.Max, b.High = -1, -1
	}
	return b
}

// Squeezed reports whether reclaimed work has no more CPU than its floor, next to what is lent.
func (a *Advice) Squeezed(lent fleet.MilliCPU, o AdviceOptions) bool {
	return a.Known && a.Quota-lent <= o.Floor
}

// Steady is the box that is worth a write: within a band of what is written already that stays. A box that shrinks is always written.
func (b Box) Steady(was Box) Box {
	near := func(was, is int64) bool { return was > 0 && is >= was && is-was < was/50 }
	if near(int64(was.CPU), int64(b.CPU)) {
		b.CPU = was.CPU
	}
	shrinks := b.Max < was.Max-was.Max/200 || b.High < was.High-was.High/200
	if was.Max > 0 && b.Max >= 0 && !shrinks && b.Max-was.Max < was.Max/50 {
		b.Max, b.High = was.Max, was.High
	}
	return b
}

// Rank orders candidates for eviction: those of lower priority first, as the kernel would, then those that lose least work, then those that free most, then by name. Size
// never comes before priority.
func Rank(cs []Candidate) []Candidate {
	out := slices.Clone(cs)
	slices.SortFunc(out, func(a, b Candidate) int {
		return cmp.Or(goesBefore(a.Priority, a.OOMPriority, b.Priority, b.OOMPriority), cmp.Compare(a.Lost, b.Lost), cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return out
}
