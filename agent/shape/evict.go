package shape

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Candidate is a reclaimed pod that may be evicted. Online pods never are.
type Candidate struct {
	UID, Name   string
	Priority    int32
	OOMPriority int
	// Lost is the work that an eviction throws away: the time since the pod's start.
	Lost time.Duration
	// Memory is what the pod's processes hold, by cell where it is known; Asks is what it requests of memory and CPU.
	Memory fleet.Bytes
	ByCell map[int]fleet.Bytes
	Asks   fleet.Resources
	// Path is the pod's cgroup. CPU is what the pod used of late; it is measured only while it matters, and is unknown else.
	Path string
	CPU  fleet.Known[fleet.MilliCPU]
	// Tolerance is the pod's own for starvation, RSSOveruse for memory beyond its request; 0 takes the default.
	Tolerance, RSSOveruse float64
	// Deleting says that it ends already, Refused that its eviction was refused and no other try is due.
	Deleting, Refused bool
}

// CellMemory is the memory of one cell, with the watermarks of its zones.
type CellMemory struct {
	Cell           int
	Free, Min, Low fleet.Bytes
}

// Pressure is what evictions are decided by. An unknown value triggers nothing.
type Pressure struct {
	// MemoryStall is the share of time in which a task of online waits for memory.
	MemoryStall fleet.Known[float64]
	Memory      fleet.Known[MemorySignals]
	Cells       fleet.Known[[]CellMemory]
	// Mems are the cells whose memory reclaimed work may use; empty where its pages cannot be moved.
	Mems Set
	// Disk and Inodes are the shares that are free where pods write.
	Disk, Inodes fleet.Known[float64]
	// Box is the memory box as the kernel has it; without limits it is never full.
	Box Box
	// Supply is the CPU that reclaimed work can have.
	Supply fleet.Known[fleet.MilliCPU]
	// Indicators say how online fares. Squeezed says that reclaimed work has no more CPU than its floor, so that nothing is left to take but pods.
	Indicators []Indicator
	Squeezed   bool
}

// EvictionOptions are the terms of evictions.
type EvictionOptions struct {
	// Period is the time between two decisions; a signal older than three of them triggers nothing.
	Period time.Duration
	// Stall is the share of time that online may wait for memory, StallFor how long.
	Stall    float64
	StallFor time.Duration
	// DisturbedFor is how long an indicator of online may stay above its target while reclaimed work has its floor alone.
	DisturbedFor time.Duration
	// Grace is how long memory below critical may last before a pod goes; below half of it none is given.
	Grace time.Duration
	// FullFor is how long reclaimed work may stand behind the high limit of its box. Nearer to the limit at which the kernel ends processes it is Grace.
	FullFor time.Duration
	// Tolerance is the default of pods that name none; StarvedFor how long they starve.
	Tolerance  float64
	StarvedFor time.Duration
	// Overuse is the default limit of memory beyond requests, OveruseFor how long; 0 turns the rule off.
	Overuse    float64
	OveruseFor time.Duration
	// DiskFree is the share of disk and inodes below which pods go.
	DiskFree float64
	// PerMinute bounds evictions, and Spacing lets one show its effect before the next.
	PerMinute int
	Spacing   time.Duration
	// Hold is how long nothing is offered after an eviction.
	Hold time.Duration
}

// DefaultEvictions are the defaults.
func DefaultEvictions() EvictionOptions {
	return EvictionOptions{Period: time.Second, Stall: 0.15, StallFor: 2 * time.Second, DisturbedFor: 30 * time.Second, Grace: 5 * time.Second, FullFor: time.Minute, Tolerance: maxTolerance, StarvedFor: 5 * time.Minute,
		Overuse: 1.5, OveruseFor: time.Minute, DiskFree: 0.05, PerMinute: 6, Spacing: 3 * time.Second, Hold: 5 * time.Minute}
}

// Rules name why a pod is evicted.
const (
	RuleStall   = "MemoryStall"
	RuleCPU     = "CPUStall"
	RuleLatency = "LatencyHigh"
	RuleMemory  = "MemoryLow"
	RuleCell    = "CellMemoryLow"
	RuleBox     = "MemoryBoxFull"
	RuleOveruse = "MemoryOveruse"
	RuleStarved = "Starved"
	RuleDisk    = "DiskLow"
)

// Eviction is one decision.
type Eviction struct {
	UID, Name, Rule, Why string
}

// Evictor is what decisions on evictions remember.
type Evictor struct {
	// Since is when each condition began to hold.
	Since map[string]time.Time
	// Hits count, for each cell, how often it was low of late.
	Hits map[int]int
	// Moved are the pods, by UID, that were moved off cells.
	Moved map[string]Move
	// Done are the evictions of the last minute, Pending the pods that were chosen and are not gone.
	Done    []time.Time
	Pending []string
}

// Move keeps a reclaimed pod's memory off cells where little is free.
type Move struct {
	Off   Set
	Since time.Time
}

// Verdict is what is to be done against pressure.
type Verdict struct {
	// Evict are the pods that go now, Reclaim the memory that is asked back of reclaimed work first.
	Evict   []Eviction
	Reclaim fleet.Bytes
	// Conditions are the rules whose thresholds are passed, whether a pod goes or not.
	Conditions []string
}

const (
	// cellHits is how often a cell must have been low: once a period, more where it is near the minimum, and fewer by one each time it is not.
	cellHits = 6
	cellSure = 11
	// Margins above the kernel's watermarks, so that a pod goes before the kernel reclaims from online.
	cellMinMargin = fleet.GiB
	cellLowMargin = 256 << 20
	// moveWithin is how long a pod may still hold memory of a cell that it was moved off: two cycles, and the time in which the kernel moves some GiB.
	moveWithin = 15 * time.Second
)

// marks are the amounts of free memory below which a cell is near its minimum, and low.
func (c *CellMemory) marks() (least, low fleet.Bytes) {
	return c.Min + min(cellMinMargin, c.Min), c.Low + min(cellLowMargin, c.Low)
}

// Decide looks at the pressure once a period. Pressure stall information comes first, since it is what online feels; then memory of the machine and of
// its cells; then single pods. At most one pod goes in a round.
func (last Evictor) Decide(p *Pressure, cs []Candidate, now time.Time, o EvictionOptions) (Evictor, Verdict) {
	next := Evictor{Since: map[string]time.Time{}, Hits: map[int]int{}, Moved: map[string]Move{}}
	for _, at := range last.Done {
		if now.Sub(at) < time.Minute {
			next.Done = append(next.Done, at)
		}
	}
	d := decision{last: &last, next: &next, now: now, o: o}
	for _, c := range Rank(cs) {
		if m, ok := last.Moved[c.UID]; ok {
			next.Moved[c.UID] = m
		}
		if c.Deleting || slices.Contains(last.Pending, c.UID) {
			next.Pending = append(next.Pending, c.UID)
			continue
		}
		d.cs = append(d.cs, c)
	}
	d.stall(p)
	d.memory(p)
	d.cells(p)
	d.box(p)
	d.overuse()
	d.starved(p)
	d.disturbed(p)
	d.disk(p)
	for _, e := range d.out.Evict {
		next.Done = append(next.Done, now)
		next.Pending = append(next.Pending, e.UID)
	}
	return next, d.out
}

type decision struct {
	last, next *Evictor
	cs         []Candidate
	comes      map[int]fleet.Bytes // what the moves of this round bring to each cell
	now        time.Time
	o          EvictionOptions
	out        Verdict
}

func (d *decision) fresh(ok bool, at time.Time) bool {
	return ok && d.now.Sub(at) <= staleAfter*d.o.Period
}

// held reports whether a condition has held for a time; it begins to count when it is seen first.
func (d *decision) held(key string, is bool, period time.Duration) bool {
	if !is {
		return false
	}
	since, ok := d.last.Since[key]
	if !ok {
		since = d.now
	}
	d.next.Since[key] = since
	return d.now.Sub(since) >= period
}

// evict chooses one pod, unless one was chosen in this round or the rate is used up.
func (d *decision) evict(rule, why string, fits func(*Candidate) bool) {
	if !slices.Contains(d.out.Conditions, rule) {
		d.out.Conditions = append(d.out.Conditions, rule)
	}
	if len(d.out.Evict) > 0 || len(d.next.Done) >= d.o.PerMinute {
		return
	}
	if n := len(d.next.Done); n > 0 && d.now.Sub(d.next.Done[n-1]) < d.o.Spacing {
		return
	}
	for i := range d.cs {
		if c := &d.cs[i]; !c.Refused && fits(c) {
			d.out.Evict = append(d.out.Evict, Eviction{UID: c.UID, Name: c.Name, Rule: rule, Why: why})
			return
		}
	}
}

func holdsMemory(c *Candidate) bool { return c.Memory > 0 }

func (d *decision) stall(p *Pressure) {
	is := d.fresh(p.MemoryStall.OK, p.MemoryStall.At) && p.MemoryStall.Value >= d.o.Stall
	if is {
		d.out.Reclaim = max(d.out.Reclaim, d.reclaimable()/8)
		d.out.Conditions = append(d.out.Conditions, RuleStall)
	}
	if d.held(RuleStall, is, d.o.StallFor) {
		d.evict(RuleStall, fmt.Sprintf("online waited for memory %.0f %% of the time", 100*p.MemoryStall.Value), holdsMemory)
	}
}

func (d *decision) reclaimable() fleet.Bytes {
	var sum fleet.Bytes
	for i := range d.cs {
		sum += d.cs[i].Memory
	}
	return sum
}

func (d *decision) memory(p *Pressure) {
	if !d.fresh(p.Memory.OK, p.Memory.At) {
		return
	}
	m := &p.Memory.Value
	critical := m.Critical()
	low := m.Available < critical
	if low {
		// Page cache of reclaimed work goes before any of its pods.
		d.out.Reclaim = max(d.out.Reclaim, 2*critical-m.Available)
		if !slices.Contains(d.out.Conditions, RuleMemory) {
			d.out.Conditions = append(d.out.Conditions, RuleMemory)
		}
	}
	held := d.held(RuleMemory, low, d.o.Grace)
	if held || m.Available < critical/2 {
		d.evict(RuleMemory, fmt.Sprintf("%d MiB are available, %d MiB are kept for online", m.Available>>20, critical>>20), holdsMemory)
	}
}

// cells looks at each cell: one that is below its minimum goes on at once, one that is low is counted. Then pods are moved off the cell, where others have
// room. A pod goes where none can be moved, or where moving did not help.
func (d *decision) cells(p *Pressure) {
	if !d.fresh(p.Cells.OK, p.Cells.At) {
		return
	}
	var scarce Set
	for i := range p.Cells.Value {
		c := &p.Cells.Value[i]
		hits := d.last.Hits[c.Cell]
		least, low := c.marks()
		switch {
		case c.Low == 0:
			continue
		case c.Free < least:
			hits = max(hits+1, cellSure)
		case c.Free < low:
			hits++
			if hits > 2 && c.Free < (least+low)/2 {
				hits++
			}
		default:
			hits = max(hits-1, 0)
		}
		if hits = min(hits, cellSure+1); hits > 0 {
			d.next.Hits[c.Cell] = hits
		}
		if c.Free < low {
			scarce = scarce.Union(Set{c.Cell})
		}
	}
	maps.DeleteFunc(d.next.Moved, func(_ string, m Move) bool {
		off := m.Off.Intersect(p.Mems)
		return len(off) == 0 || len(off.Intersect(scarce)) == 0 && d.now.Sub(m.Since) >= d.o.Hold
	})
	d.comes = map[int]fleet.Bytes{}
	for i := range p.Cells.Value {
		c := &p.Cells.Value[i]
		holds := func(x *Candidate) bool { return x.ByCell == nil && x.Memory > 0 || x.ByCell[c.Cell] > 0 }
		if !scarce.Has(c.Cell) || !slices.ContainsFunc(d.cs, func(x Candidate) bool { return holds(&x) }) {
			continue
		}
		_, low := c.marks()
		short := 2*low - c.Free
		// Page cache of reclaimed work goes before any of its pods.
		d.out.Reclaim = max(d.out.Reclaim, short)
		switch {
		case d.next.Hits[c.Cell] <= cellHits:
		case d.moving(c.Cell) || d.move(p, c.Cell, short, scarce):
			if !slices.Contains(d.out.Conditions, RuleCell) {
				d.out.Conditions = append(d.out.Conditions, RuleCell)
			}
		default:
			d.evict(RuleCell, fmt.Sprintf("cell %d has %d MiB free, its low watermark is %d MiB", c.Cell, c.Free>>20, c.Low>>20), holds)
		}
	}
}

// moving reports whether pages of a pod may still be on their way off a cell.
func (d *decision) moving(cell int) bool {
	return slices.ContainsFunc(d.cs, func(x Candidate) bool {
		m := d.next.Moved[x.UID]
		return m.Off.Has(cell) && x.ByCell[cell] > 0 && d.now.Sub(m.Since) < moveWithin
	})
}

// move takes pods off a cell, in the order in which they would be evicted, until it has what it is short of. It reports whether one could be moved: at
// first to cells that the pod was not moved off, at last to the roomiest alone.
func (d *decision) move(p *Pressure, cell int, short fleet.Bytes, scarce Set) (moved bool) {
	open := p.Mems.Minus(scarce)
	for i := range d.cs {
		x := &d.cs[i]
		off := d.next.Moved[x.UID].Off
		if short <= 0 || !p.Mems.Has(cell) || x.ByCell[cell] == 0 || off.Has(cell) {
			continue
		}
		for _, to := range []Set{open.Minus(off), open, p.roomiest(open)} {
			if d.fit(p, x, p.Mems.Minus(d.last.Moved[x.UID].Off).Union(to), to) {
				d.next.Moved[x.UID] = Move{Off: p.Mems.Minus(to), Since: d.now}
				short, moved = short-x.ByCell[cell], true
				break
			}
		}
	}
	return moved
}

// roomiest is the cell with the most free memory.
func (p *Pressure) roomiest(of Set) Set {
	var out Set
	most := fleet.Bytes(-1)
	for _, c := range p.Cells.Value {
		if of.Has(c.Cell) && c.Free > most {
			out, most = SetOf(c.Cell), c.Free
		}
	}
	return out
}

// fit reports whether each cell that a pod's pages are moved to stays above its low mark, and counts them there. When cpuset.mems narrows, the kernel moves the
// pages of the n-th cell to the n-th of those that are left, counted round, and to no other: what finds no room there stays behind.
func (d *decision) fit(p *Pressure, x *Candidate, from, to Set) bool {
	if len(to) == 0 {
		return false
	}
	comes := maps.Clone(d.comes)
	for n, cell := range from {
		if !to.Has(cell) {
			comes[to[n%len(to)]] += x.ByCell[cell]
		}
	}
	for i := range p.Cells.Value {
		c := &p.Cells.Value[i]
		if _, low := c.marks(); comes[c.Cell] > d.comes[c.Cell] && c.Free-comes[c.Cell] < low {
			return false
		}
	}
	d.comes = comes
	return true
}

// box looks at what processes of reclaimed work hold against the limits of their box. Above high the kernel puts each that allocates to sleep, by the
// square of the excess: they all but stand still, and what they still get leads to the limit at which the kernel ends one of them. So a pod goes before, in
// the agent's order. Page cache does not count: the kernel takes that at high.
func (d *decision) box(p *Pressure) {
	if !d.fresh(p.Memory.OK, p.Memory.At) || p.Box.High <= 0 {
		return
	}
	held, high, limit := p.Memory.Value.Held(), p.Box.High, p.Box.Max
	full := d.held(RuleBox, held > high, d.o.FullFor)
	near := d.held(RuleBox+" near", held > high && held > (high+limit)/2, d.o.Grace)
	if held > high && !slices.Contains(d.out.Conditions, RuleBox) {
		d.out.Conditions = append(d.out.Conditions, RuleBox)
	}
	if full || near {
		d.evict(RuleBox, fmt.Sprintf("reclaimed work holds %d MiB, its memory box has %d MiB before the kernel slows it down and %d MiB before the kernel ends a process", held>>20, high>>20, limit>>20), holdsMemory)
	}
}

func (d *decision) overuse() {
	for i := range d.cs {
		c := &d.cs[i]
		limit := d.o.Overuse
		if c.RSSOveruse > 0 {
			limit = c.RSSOveruse
		}
		// A pod that requests nothing has nothing to exceed.
		is := limit > 0 && c.Asks.Memory > 0 && float64(c.Memory) > limit*float64(c.Asks.Memory)
		if d.held(RuleOveruse+" "+c.UID, is, d.o.OveruseFor) {
			d.evict(RuleOveruse, fmt.Sprintf("it holds %d MiB of memory and requests %d MiB", c.Memory>>20, c.Asks.Memory>>20), func(x *Candidate) bool { return x.UID == c.UID })
		}
	}
}

// starved moves pods elsewhere that get too little: the requests of all, as a multiple of the supply, are above what a pod tolerates. Each one
// that goes counts less for the rest.
func (d *decision) starved(p *Pressure) {
	if !d.fresh(p.Supply.OK, p.Supply.At) {
		return
	}
	var asks fleet.MilliCPU
	for i := range d.cs {
		asks += d.cs[i].Asks.CPU
	}
	rate := float64(asks) / max(float64(p.Supply.Value), 1)
	for i := range d.cs {
		c := &d.cs[i]
		tolerance := d.o.Tolerance
		if c.Tolerance > 0 {
			tolerance = c.Tolerance
		}
		if d.held(RuleStarved+" "+c.UID, c.Asks.CPU > 0 && rate > tolerance, d.o.StarvedFor) {
			d.evict(RuleStarved, fmt.Sprintf("reclaimed pods request %.1f times the %.1f cores that are there", rate, p.Supply.Value.Cores()), func(x *Candidate) bool { return x.UID == c.UID })
		}
	}
}

// usesCPU is the least CPU by which a pod can be what online waits for: going, it would free nothing else.
const usesCPU fleet.MilliCPU = 20

// disturbed looks at how online fares when squeezing has come to its end. A pod at the floor can still disturb, by
// caches and memory bandwidth. A pod that uses no CPU is no cause.
func (d *decision) disturbed(p *Pressure) {
	for i := range p.Indicators {
		x := &p.Indicators[i]
		rule := x.Rule()
		is := d.fresh(x.Value.OK, x.Value.At) && x.Target > 0 && p.Squeezed
		// Above the band it begins to count, and it goes on until the value is at its target again.
		_, began := d.last.Since[rule]
		over := x.Value.Value/x.Target - 1
		if is = is && (over > x.Above || began && over > 0); is && !slices.Contains(d.out.Conditions, rule) {
			d.out.Conditions = append(d.out.Conditions, rule)
		}
		if d.held(rule, is, d.o.DisturbedFor) {
			d.evict(rule, fmt.Sprintf("%s of online is %.2f, its target is %.2f, and reclaimed work has its least CPU already", x.Name, x.Value.Value, x.Target),
				func(c *Candidate) bool { return c.CPU.OK && c.CPU.Value >= usesCPU })
		}
	}
}

func (d *decision) disk(p *Pressure) {
	for _, x := range []struct {
		what string
		free fleet.Known[float64]
	}{{"disk", p.Disk}, {"inodes", p.Inodes}} {
		if d.held(RuleDisk+" "+x.what, d.fresh(x.free.OK, x.free.At) && x.free.Value < d.o.DiskFree, d.o.Grace) {
			d.evict(RuleDisk, fmt.Sprintf("%.1f %% of %s are free where pods write", 100*x.free.Value, x.what), func(*Candidate) bool { return true })
		}
	}
}
