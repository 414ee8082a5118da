package shape

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/springtide/springtide/fleet"
)

// Side says whose cells a pod may use.
type Side string

// The sides.
const (
	OnlineSide  Side = "Online"
	OfflineSide Side = "Offline"
	// OverlapSide is reclaimed work that runs on what online leaves idle of its own cells.
	OverlapSide Side = "Overlap"
	// SystemSide is everywhere.
	SystemSide Side = "System"
)

// Pod is one pod that has a cgroup, or will have one.
type Pod struct {
	UID, Name string
	Side      Side
	Class     Class
	QoS       QoS
	Terms     Terms
	Ask       fleet.Resources
	// Priority is the pod's own: reclaimed pods are ordered by it.
	Priority int32
	// Own are the limits of CPU and memory that the kubelet writes for the pod; 0 where it has none.
	Own fleet.Resources
	// Path is the pod's cgroup below the root; empty while there is none.
	Path       string
	Containers []Container
	// Also are other cgroups of the pod, which a change of the kubelet's cgroup driver left.
	Also []string
	// Held are the CPUs that the pod has now; empty where nothing confines it. A dedicated pod keeps them.
	Held Set
}

// Container is one container of a pod.
type Container struct {
	// ID is what the runtime calls it, Path its cgroup.
	ID, Name, Path string
}

// Parents are the cgroups above the pods.
type Parents struct {
	Pods, Burstable, BestEffort string
}

// Knobs say what the agent may use.
type Knobs struct {
	// CPUSets confines pods to cells and cores.
	CPUSets bool
	// Idle sets cpu.idle on BestEffort pods of reclaimed class.
	Idle bool
	// Weights lowers the weight of reclaimed pods that are not BestEffort.
	Weights bool
	// Protect sets memory.low of shared and memory.min of dedicated pods to their requests.
	Protect bool
	// IOWeight is that of reclaimed pods; 0 leaves it as it is.
	IOWeight int
	// IOMax are lines of io.max for reclaimed pods, such as "254:0 wbps=104857600".
	IOMax []string
	// IOCostQoS and IOCostModel are lines of the machine's io.cost.qos and io.cost.model, such as "8:0 enable=1 rpct=95 rlat=5000": the kernel
	// enforces IOWeight on the devices that they enable.
	IOCostQoS, IOCostModel []string
}

// Box bounds reclaimed pods as a whole. A value below zero leaves the file as it is.
type Box struct {
	// CPU is their quota, Max and High bound their memory.
	CPU       fleet.MilliCPU
	Max, High fleet.Bytes
}

// NoBox leaves everything as it is.
func NoBox() Box { return Box{CPU: -1, Max: -1, High: -1} }

// Input is what a decision is made of.
type Input struct {
	Topology *Topology
	// Node gives the capacity of cells, in the words in which a parcel is judged clean, and the share that says whose they are.
	Node *fleet.Node
	// ClassOf is the class of a pool; empty for one that is not known.
	ClassOf func(fleet.PoolID) fleet.Class
	Pods    []Pod
	Parents Parents
	Knobs   Knobs
	// Boxes are the parts of the box, by cgroup.
	Boxes map[string]Box
	// Moved are reclaimed pods, by UID, that keep their memory off cells.
	Moved map[string]Move
}

// Holding is what one pod is given.
type Holding struct {
	Pod  *Pod
	CPUs Set
	Mems Set
	// Cells are set for a pod that is bound to some; Chosen says that the agent chose them.
	Cells  Set
	Chosen bool
	// Own says that the CPUs are the pod's alone.
	Own bool
}

// Layout is who is given what.
type Layout struct {
	Holdings []Holding
	// Problems are wishes that could not be met, in a sentence each.
	Problems []string
}

// Cells are those that a class of pools holds, and those of them that stay with it. A cell of which no pool is known is at home.
func (in *Input) Cells(class fleet.Class) (held, kept Set) {
	access := fleet.AccessOf(in.Node, in.Node.Share.Parcels, in.ClassOf)
	for _, cell := range in.Topology.AllCells() {
		holder, moves := access.Holder(cell)
		if cmp.Or(holder, in.ClassOf(in.Node.Pool)) == class {
			held = append(held, cell)
			if !moves {
				kept = append(kept, cell)
			}
		}
	}
	return held, kept
}

// usable are the cells that the pods of a side are given: those that it keeps, once they hold all that the side asks for, else all that it
// holds. Confining earlier would squeeze pods that the scale-in, or the notice, has yet to take away.
func (in *Input) usable(side Side) Set {
	class := fleet.Online
	if side == OfflineSide {
		class = fleet.Offline
	}
	held, kept := in.Cells(class)
	if side == OverlapSide && len(kept) > 0 {
		return kept
	}
	var ask fleet.Resources
	for i := range in.Pods {
		if in.Pods[i].Side == side {
			ask = ask.Add(in.Pods[i].Ask)
		}
	}
	room := in.Node.CapacityOf(kept)
	switch {
	case len(kept) > 0 && ask.CPU <= room.CPU && ask.Memory <= room.Memory:
		return kept
	case len(held) > 0:
		return held
	}
	return in.Topology.AllCells()
}

// OverlapMems are the cells whose memory reclaimed work may use.
func (in *Input) OverlapMems() Set { return in.Topology.Mems(in.usable(OverlapSide)) }

// Lay gives every pod its CPUs and cells.
func (in *Input) Lay() Layout {
	var out Layout
	t := in.Topology
	owned := Set{}
	for _, side := range []Side{OnlineSide, OfflineSide} {
		l := layer{in: in, side: side, out: &out, cells: in.usable(side)}
		l.free = t.CPUsOf(l.cells)
		l.lay()
		owned = owned.Union(l.owned)
	}
	for i := range in.Pods {
		p := &in.Pods[i]
		cells := t.AllCells()
		mems := t.Mems(cells)
		switch p.Side {
		case OverlapSide:
			cells, mems = in.usable(OverlapSide), in.OverlapMems()
			if off := mems.Minus(in.Moved[p.UID].Off); len(off) > 0 {
				mems = off
			}
		case SystemSide:
		default:
			continue
		}
		cpus := t.CPUsOf(cells).Minus(owned)
		if len(cpus) == 0 {
			cpus = t.CPUsOf(cells)
			out.Problems = append(out.Problems, fmt.Sprintf("pod %s shares dedicated cores: all cores of its cells are dedicated", p.Name))
		}
		out.Holdings = append(out.Holdings, Holding{Pod: p, CPUs: cpus, Mems: mems})
	}
	slices.SortFunc(out.Holdings, func(a, b Holding) int {
		return cmp.Or(strings.Compare(a.Pod.Name, b.Pod.Name), strings.Compare(a.Pod.UID, b.Pod.UID))
	})
	return out
}

// layer lays out one side.
type layer struct {
	in   *Input
	side Side
	out  *Layout
	// cells are the side's, free the CPUs of them that no pod was given, owned those that dedicated pods were given.
	cells       Set
	free, owned Set
	// closed are CPUs next to an exclusive pod: no other pod of the side may use them.
	closed Set
	// bound counts what pods that are bound to one cell ask for there.
	bound map[int]fleet.MilliCPU
}

func (l *layer) problem(p *Pod, format string, args ...any) {
	l.out.Problems = append(l.out.Problems, fmt.Sprintf("pod %s: ", p.Name)+fmt.Sprintf(format, args...))
}

func (l *layer) lay() {
	l.bound = map[int]fleet.MilliCPU{}
	var own, rest []*Pod
	for i := range l.in.Pods {
		p := &l.in.Pods[i]
		switch {
		case p.Side != l.side:
		case p.Class == Dedicated && p.Ask.CPU > 0:
			own = append(own, p)
		default:
			if p.Class == Dedicated {
				l.problem(p, "it is dedicated and requests no CPU, so it shares cores; to fix: request whole cores")
			}
			rest = append(rest, p)
		}
	}
	// Those whose cells are given, and those that hold cores already, come before those that can go anywhere.
	slices.SortStableFunc(own, func(a, b *Pod) int {
		return cmp.Or(order(len(a.Terms.Cells) == 0, len(b.Terms.Cells) == 0), order(!a.holds(l.in.Topology), !b.holds(l.in.Topology)), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
	for i, p := range own {
		if !l.dedicate(p, len(own)-i-1+len(rest)) {
			rest = append(rest, p)
		}
	}
	slices.SortStableFunc(rest, func(a, b *Pod) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID)) })
	if open := l.free.Minus(l.closed); len(open) > 0 || len(rest) == 0 {
		l.free = open
	} else {
		l.problem(rest[0], "exclusive pods leave no other core of the side, so their cells are shared")
	}
	l.share(rest)
}

func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// holds reports whether the pod is confined to a part of the machine.
func (p *Pod) holds(t *Topology) bool { return len(p.Held) > 0 && len(p.Held) < len(t.CPUs) }

// dedicate gives a pod cores of its own. It reports false where they are not there, and leaves one CPU where others need the side.
func (l *layer) dedicate(p *Pod, others int) bool {
	t := l.in.Topology
	n := int((p.Ask.CPU + 999) / 1000)
	cells, chosen := l.cellsOf(p, n)
	allowed := l.free.Minus(l.closed)
	if len(cells) > 0 {
		allowed = allowed.Intersect(t.CPUsOf(cells))
	}
	spare := 0
	if others > 0 {
		spare = 1
	}
	if len(allowed) < n || len(l.free.Minus(l.closed)) < n+spare {
		l.problem(p, "%d cores of its own are not there (%d are free), so it shares cores; to fix: remove pods or lower its request", n, len(allowed))
		return false
	}
	h := Holding{Pod: p, CPUs: t.take(n, allowed, p.Held), Own: true, Cells: cells, Chosen: chosen}
	l.free, l.owned = l.free.Minus(h.CPUs), l.owned.Union(h.CPUs)
	mems := l.cells
	if len(cells) > 0 {
		mems = cells
	}
	h.Mems = l.mems(mems)
	if p.Terms.Exclusive {
		l.closed = l.closed.Union(t.CPUsOf(t.CellsOf(h.CPUs)))
	}
	l.out.Holdings = append(l.out.Holdings, h)
	return true
}

// mems are those of cells, or those of the side where the cells have no memory.
func (l *layer) mems(cells Set) Set {
	if m := l.in.Topology.Mems(cells); len(m) > 0 {
		return m
	}
	return l.in.Topology.Mems(l.cells)
}

// cellsOf are the cells that a pod is bound to: the scheduler's choice, else those that it is on, else the cell with the most room. Empty for
// a pod that is bound to none.
func (l *layer) cellsOf(p *Pod, n int) (cells Set, chosen bool) {
	t := l.in.Topology
	if len(p.Terms.Cells) > 0 {
		if l.cells.Contains(p.Terms.Cells) && len(t.CPUsOf(p.Terms.Cells)) > 0 {
			return p.Terms.Cells, false
		}
		l.problem(p, "annotation %s=%s names cells that its side does not have (it has %s)", AnnotationCells, p.Terms.Cells, l.cells)
	}
	if !p.Terms.Bind {
		return nil, false
	}
	room := func(cell int) int {
		return 1000*len(l.free.Minus(l.closed).Intersect(t.CPUsOf(Set{cell}))) - int(l.bound[cell])
	}
	if p.holds(t) {
		if on := t.CellsOf(p.Held); l.cells.Contains(on) {
			total := 0
			for _, cell := range on {
				total += room(cell)
			}
			if total >= 1000*n {
				return on, true
			}
		}
	}
	// The fewest cells that hold it: one where one does, else the cells with the most room.
	byRoom := slices.Clone(l.cells)
	slices.SortStableFunc(byRoom, func(a, b int) int { return cmp.Compare(room(b), room(a)) })
	total := 0
	for _, cell := range byRoom {
		if room(cell) <= 0 {
			break
		}
		cells, total = append(cells, cell), total+room(cell)
		if total >= 1000*n {
			return SetOf(cells...), true
		}
	}
	l.problem(p, "no cells hold its %d cores, so it is bound to none", n)
	return nil, false
}

// share gives the pods without cores of their own the rest: named pools get a part each, by what their pods ask for, the others what is left.
func (l *layer) share(pods []*Pod) {
	asks := map[string]fleet.MilliCPU{}
	held := map[string]Set{}
	var names []string
	plain := false
	for _, p := range pods {
		name := l.poolOf(p)
		if name == "" {
			plain = true
			continue
		}
		if _, ok := asks[name]; !ok {
			names = append(names, name)
		}
		asks[name] += p.Ask.CPU
		if p.holds(l.in.Topology) {
			held[name] = held[name].Union(p.Held)
		}
	}
	slices.Sort(names)
	common := l.free
	parts := map[string]Set{}
	for i, name := range names {
		n := max(int((asks[name]+999)/1000), 1)
		keep := len(names) - i - 1 // one for each pool after this one
		if plain {
			keep++
		}
		n = min(n, len(common)-keep)
		if n < 1 {
			l.out.Problems = append(l.out.Problems, fmt.Sprintf("pool %s has no core of its own: there are %d cores for %d pools, so it shares", name, len(l.free), len(names)))
			continue
		}
		parts[name] = l.in.Topology.take(n, common, held[name])
		common = common.Minus(parts[name])
	}
	for _, p := range pods {
		cpus := common
		if part, ok := parts[l.poolOf(p)]; ok {
			cpus = part
		}
		l.out.Holdings = append(l.out.Holdings, l.placed(p, cpus))
	}
}

func (l *layer) poolOf(p *Pod) string {
	if p.Class != Shared {
		return ""
	}
	return p.Terms.Pool
}

// placed is a pod on common CPUs, bound to cells where it asks for it.
func (l *layer) placed(p *Pod, cpus Set) Holding {
	t := l.in.Topology
	if len(cpus) == 0 {
		cpus = t.CPUsOf(l.cells)
		l.problem(p, "all cores of its side are dedicated, so it shares them")
	}
	h := Holding{Pod: p, CPUs: cpus, Mems: l.mems(l.cells)}
	cells, chosen := l.cellsOf(p, int((p.Ask.CPU+999)/1000))
	if len(cells) == 0 {
		return h
	}
	on := cpus.Intersect(t.CPUsOf(cells))
	if len(on) == 0 {
		l.problem(p, "cells %s have no core that it may use, so it is bound to none", cells)
		return h
	}
	for _, cell := range cells {
		l.bound[cell] += p.Ask.CPU / fleet.MilliCPU(len(cells))
	}
	h.CPUs, h.Mems, h.Cells, h.Chosen = on, l.mems(cells), cells, chosen
	return h
}

// Value is one file of a cgroup and what it should say.
type Value struct{ File, Text, Why string }

// Group is one cgroup and what its files should say.
type Group struct {
	Path string
	// Container is the runtime's id of the container; empty above containers.
	Container string
	Values    []Value
}

// Groups turns a layout into the wanted values of cgroups, parents first.
func (in *Input) Groups(l *Layout) []Group {
	out := in.parents()
	for i := range l.Holdings {
		h := &l.Holdings[i]
		p := h.Pod
		if p.Path == "" {
			continue
		}
		why := h.why(in)
		g := Group{Path: p.Path, Values: in.podValues(p)}
		if in.Knobs.CPUSets {
			g.add("cpuset.cpus", h.CPUs.String(), why)
			g.add("cpuset.mems", h.Mems.String(), why)
		}
		out = append(out, g)
		for _, c := range p.Containers {
			if in.Knobs.CPUSets && c.Path != "" {
				k := Group{Path: c.Path, Container: c.ID}
				k.add("cpuset.cpus", h.CPUs.String(), why)
				k.add("cpuset.mems", h.Mems.String(), why)
				out = append(out, k)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), strings.Compare(a.Path, b.Path))
	})
	return out
}

// add appends a value; an empty one is never written, since the kernel reads it as "all", and the runtime as "leave as it is".
func (g *Group) add(file, text, why string) {
	if text != "" {
		g.Values = append(g.Values, Value{file, text, why})
	}
}

func (h *Holding) why(in *Input) string {
	switch {
	case h.Own:
		return fmt.Sprintf("%s is dedicated: cores of its own", h.Pod.Name)
	case len(h.Cells) > 0 && h.Chosen:
		return fmt.Sprintf("%s is bound to cells %s, chosen by the agent", h.Pod.Name, h.Cells)
	case len(h.Cells) > 0:
		return fmt.Sprintf("%s is bound to cells %s by its annotation", h.Pod.Name, h.Cells)
	case h.Pod.Side == OverlapSide && len(in.Moved[h.Pod.UID].Off) > 0:
		return fmt.Sprintf("%s runs on what online leaves idle, its memory is off cells %s, where little is free", h.Pod.Name, in.Moved[h.Pod.UID].Off)
	case h.Pod.Side == OverlapSide:
		return fmt.Sprintf("%s runs on what online leaves idle", h.Pod.Name)
	case h.Pod.Side == SystemSide:
		return fmt.Sprintf("%s is of the system", h.Pod.Name)
	}
	return fmt.Sprintf("%s is %s on the cells of its side, %s", h.Pod.Name, h.Pod.Class, in.usable(h.Pod.Side))
}

// podValues are the knobs of one pod's cgroup other than cpusets.
func (in *Input) podValues(p *Pod) []Value {
	g := Group{}
	reclaimed := p.Class == Reclaimed
	if in.Knobs.Idle {
		// The kernel refuses cpu.weight where cpu.idle is 1, and the kubelet writes cpu.weight of every pod that can be resized. A
		// BestEffort pod cannot; everywhere else 1 is a fault, and is taken back.
		idle, why := "0", "cpu.idle=1 would make later writes of cpu.weight fail"
		if reclaimed && p.QoS == BestEffort {
			idle, why = "1", p.Name+" is reclaimed"
		}
		g.add("cpu.idle", idle, why)
	}
	if in.Knobs.Weights && reclaimed && p.Side == OverlapSide && p.QoS != BestEffort {
		g.add("cpu.weight", "1", p.Name+" is reclaimed")
	}
	if in.Knobs.Protect && (p.Side == OnlineSide || p.Side == SystemSide) && p.Ask.Memory > 0 && !reclaimed {
		file := "memory.low"
		if p.Class == Dedicated {
			file = "memory.min"
		}
		g.add(file, bytes(p.Ask.Memory), "memory that "+p.Name+" requests is reclaimed last")
	}
	if reclaimed && p.Side == OverlapSide {
		if in.Knobs.IOWeight > 0 {
			g.add("io.weight", strconv.Itoa(in.Knobs.IOWeight), p.Name+" is reclaimed")
		}
		for _, line := range in.Knobs.IOMax {
			g.add("io.max", line, p.Name+" is reclaimed")
		}
	}
	if g.Path = p.Path; in.Boxed(p) {
		in.box(&g)
	}
	return g.Values
}

// page is the granule of memory limits: the kernel rounds to pages, and the largest common page is 64 KiB.
const page = 64 << 10

func bytes(b fleet.Bytes) string { return strconv.FormatInt(int64(b)/page*page, 10) }

// quotaPeriod is the kernel's default, in microseconds.
const quotaPeriod = 100_000

// box adds the part of the box that a cgroup has.
func (in *Input) box(g *Group) {
	if b, ok := in.Boxes[g.Path]; ok {
		b.values(g)
	}
}

// Above are the cgroups above the pods, and the parts of the box that pods have: what others write as well, so that it is looked at each second.
func (in *Input) Above() []Group {
	out := in.parents()
	for i := range in.Pods {
		if p := &in.Pods[i]; in.Boxed(p) {
			g := Group{Path: p.Path}
			in.box(&g)
			out = append(out, g)
		}
	}
	return out
}

// parents are the cgroups above the pods: the box of BestEffort pods, and the protection of memory, which counts only as far as the parents
// grant it.
func (in *Input) parents() []Group {
	var low, min fleet.Bytes
	var burstableLow, burstableMin fleet.Bytes
	for i := range in.Pods {
		p := &in.Pods[i]
		for _, v := range in.podValues(p) {
			switch v.File {
			case "memory.low":
				low += p.Ask.Memory / page * page
				if p.QoS == Burstable {
					burstableLow += p.Ask.Memory / page * page
				}
			case "memory.min":
				min += p.Ask.Memory / page * page
				if p.QoS == Burstable {
					burstableMin += p.Ask.Memory / page * page
				}
			}
		}
	}
	pods, burstable, best := Group{Path: in.Parents.Pods}, Group{Path: in.Parents.Burstable}, Group{Path: in.Parents.BestEffort}
	if in.Knobs.Protect {
		const why = "what pods below request is reclaimed last"
		pods.add("memory.min", bytes(min), why)
		pods.add("memory.low", bytes(low), why)
		burstable.add("memory.min", bytes(burstableMin), why)
		burstable.add("memory.low", bytes(burstableLow), why)
	}
	in.box(&best)
	// io.cost is the whole machine's: its files are in the root of the tree alone.
	machine := Group{}
	for _, line := range in.Knobs.IOCostModel {
		machine.add(IOCostModel, line, "what the device can do, by the configuration")
	}
	for _, line := range in.Knobs.IOCostQoS {
		machine.add(IOCostQoS, line, "weights for I/O are enforced on this device")
	}
	return []Group{machine, pods, burstable, best}
}
