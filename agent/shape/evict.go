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
	// Tolerance is the pod's own for starvation, RSSOveruse for memory beyond its request; 0 takes the default.
	Tolerance, RSSOveruse float64
	// Deleting says that it ends already.
	Deleting bool
}

// CellMemory is the memory of one cell, with the watermarks of its zones.
type CellMemory struct {
	Cell           int
	Free, Min, Low fleet.Bytes
}

// Pressure is what evictions are decided by. What is unknown triggers nothing.
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
}

// EvictionOptions are the terms of evictions.
type EvictionOptions struct {
	// Period is the time between two decisions; a signal older than three of them triggers nothing.
	Period time.Duration
	// Stall is the share of time that online may wait for memory, StallFor how long.
	Stall    float64
	StallFor time.Duration
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
	return EvictionOptions{Period: time.Second, Stall: 0.15, StallFor: 2 * time.Second, Grace: 5 * time.Second, FullFor: time.Minute, Tolerance: maxTolerance, StarvedFor: 5 * time.Minute,
		Overuse: 1.5, OveruseFor: time.Minute, DiskFree: 0.05, PerMinute: 6, Spacing: 3 * time.Second, Hold: 5 * time.Minute}
}

// Rules name why a pod is evicted.
const (
	RuleStall   = "MemoryStall"
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
	// Left is since when reclaimed work keeps its memory off a cell.
	Left map[int]time.Time
	// Done are the evictions of the last minute, Pending the pods that were chosen and are not gone.
	Done    []time.Time
	Pending []string
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
	// leaveWithin is how long a cell may stay low after reclaimed work was to leave it: two cycles, and the time in which the kernel moves some GiB.
	leaveWithin = 15 * time.Second
)

// marks are the amounts of free memory below which a cell is near its minimum, and low.
func (c *CellMemory) marks() (least, low fleet.Bytes) {
	return c.Min + min(cellMinMargin, c.Min), c.Low + min(cellLowMargin, c.Low)
}

// Leaves are the cells that reclaimed work keeps its memory off.
func (last *Evictor) Leaves() Set { return SetOf(slices.Collect(maps.Keys(last.Left))...) }

// Decide looks at the pressure once a period. Pressure stall information comes first, since it is what online feels; then memory of the machine and of
// its cells; then single pods. At most one pod goes in a round.
func (last Evictor) Decide(p *Pressure, cs []Candidate, now time.Time, o EvictionOptions) (Evictor, Verdict) {
	next := Evictor{Since: map[string]time.Time{}, Hits: map[int]int{}, Left: map[int]time.Time{}}
	for _, at := range last.Done {
		if now.Sub(at) < time.Minute {
			next.Done = append(next.Done, at)
		}
	}
	d := decision{last: &last, next: &next, now: now, o: o}
	for _, c := range Rank(cs) {
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
		if c := &d.cs[i]; fits(c) {
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

// cells looks at each cell: one that is below its minimum goes on at once, one that is low is counted. Then reclaimed work leaves the cell, where another
// one has room for what it holds there. A pod goes where none has, or where leaving did not help.
func (d *decision) cells(p *Pressure) {
	if !d.fresh(p.Cells.OK, p.Cells.At) {
		d.next.Left = d.last.Left
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
		if c.Free >= low {
			continue
		}
		scarce = append(scarce, c.Cell)
		if slices.ContainsFunc(d.cs, func(x Candidate) bool { return x.holdsOn(c.Cell) }) {
			// Page cache of reclaimed work goes before any of its pods.
			d.out.Reclaim = max(d.out.Reclaim, 2*low-c.Free)
		}
	}
	scarce = SetOf(scarce...)
	for cell, since := range d.last.Left {
		if p.Mems.Has(cell) && (scarce.Has(cell) || d.now.Sub(since) < d.o.Hold) {
			d.next.Left[cell] = since
		}
	}
	for i := range p.Cells.Value {
		c := &p.Cells.Value[i]
		holds := func(x *Candidate) bool { return x.holdsOn(c.Cell) }
		if d.next.Hits[c.Cell] <= cellHits || !scarce.Has(c.Cell) || !slices.ContainsFunc(d.cs, func(x Candidate) bool { return holds(&x) }) {
			continue
		}
		if since, leaves := d.next.Left[c.Cell]; leaves && d.now.Sub(since) < leaveWithin || !leaves && d.leave(p, c.Cell, scarce) {
			if !slices.Contains(d.out.Conditions, RuleCell) {
				d.out.Conditions = append(d.out.Conditions, RuleCell)
			}
			continue
		}
		d.evict(RuleCell, fmt.Sprintf("cell %d has %d MiB free, its low watermark is %d MiB", c.Cell, c.Free>>20, c.Low>>20), holds)
	}
}

// holdsOn reports whether a pod holds memory on a cell, as far as is known.
func (c *Candidate) holdsOn(cell int) bool {
	return c.ByCell == nil && c.Memory > 0 || c.ByCell[cell] > 0
}

// leave keeps reclaimed work off the cells that are scarce, if the others have room for what it holds there: at first those that it has not left of late,
// at last the roomiest alone.
func (d *decision) leave(p *Pressure, cell int, scarce Set) bool {
	if !p.Mems.Has(cell) || slices.ContainsFunc(d.cs, func(x Candidate) bool { return x.ByCell == nil && x.Memory > 0 }) {
		return false
	}
	has, left := p.Mems.Minus(d.last.Leaves()), d.next.Leaves()
	open := p.Mems.Minus(scarce)
	for _, to := range []Set{open.Minus(left), open, p.roomiest(open)} {
		if !d.fit(p, has.Union(to), to) {
			continue
		}
		off := p.Mems.Minus(to)
		for _, c := range off {
			if _, ok := d.next.Left[c]; !ok {
				d.next.Left[c] = d.now
			}
		}
		maps.DeleteFunc(d.next.Left, func(c int, _ time.Time) bool { return !off.Has(c) })
		return true
	}
	return false
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

// fit reports whether each cell that pages are moved to stays above its low mark. When cpuset.mems narrows, the kernel moves the pages of the n-th cell to
// the n-th of those that are left, counted round, and to no other: what finds no room there stays behind.
func (d *decision) fit(p *Pressure, from, to Set) bool {
	if len(to) == 0 {
		return false
	}
	comes := map[int]fleet.Bytes{}
	for n, cell := range from {
		if to.Has(cell) {
			continue
		}
		for i := range d.cs {
			comes[to[n%len(to)]] += d.cs[i].ByCell[cell]
		}
	}
	for i := range p.Cells.Value {
		c := &p.Cells.Value[i]
		if _, low := c.marks(); comes[c.Cell] > 0 && c.Free-comes[c.Cell] < low {
			return false
		}
		delete(comes, c.Cell)
	}
	return len(comes) == 0
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
