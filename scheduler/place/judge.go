package place

import (
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/scheduler/rules"
)

// Filter is a reason for which a machine cannot take a pod. The filters are asked in this order, and the first that refuses is counted.
type Filter uint8

// The filters.
const (
	FilterNone Filter = iota
	// FilterClosed: the machine is not there, not ready, of no pool, or its loan is under way for the pod's side.
	FilterClosed
	// FilterPool: another home pool or holder, or away from home where the pod must be at home.
	FilterPool
	// FilterSelector: the node selector or the required affinity.
	FilterSelector
	// FilterTaints: a taint that is not tolerated, or the machine is cordoned.
	FilterTaints
	// FilterGPUModel: another model of GPU, or none.
	FilterGPUModel
	FilterPods
	FilterCPU
	FilterMemory
	FilterGPU
	FilterEphemeral
	FilterExtended
	FilterPorts
	// FilterPerHost: as many pods of the group as may be on one machine.
	FilterPerHost
	// FilterCells: the cells, by the pod's policy.
	FilterCells
	// FilterRoot: no PCIe root has the GPUs and NICs.
	FilterRoot
	// FilterZoneSkew: the zone has more pods of the group than may be.
	FilterZoneSkew
	// FilterSpread: a constraint by which the pods of a set stand apart, or the machine lacks its label.
	FilterSpread
	// Filters is how many there are.
	Filters
)

var filterNames = [Filters]string{"none", "closed", "pool", "node selector", "taints", "GPU model", "pods", "cpu", "memory", "gpu", "ephemeral storage",
	"extended resources", "host ports", "pods of the group on the machine", "cells", "PCIe root", "zone skew", "topology spread constraints"}

// String is the name of the filter, as in "12 of 40 machines: taints".
func (f Filter) String() string { return filterNames[f] }

// fixed judges what pods that come and go do not change.
func (t *Table) fixed(c *class, row int32) Filter {
	n := &t.nodes[row>>1]
	s := &c.shape
	switch {
	case !n.known:
		return FilterClosed
	case s.Pool != "" && s.Pool != n.pool, s.Stable && side(row&1) != n.home, s.Holder != "" && s.Holder != n.holder(side(row&1)):
		return FilterPool
	case s.Needs != nil && !s.Needs.Selector.Matches(n.name, n.labels):
		return FilterSelector
	case !rules.Admits(s.tolerations(), n.taints, n.cordoned):
		return FilterTaints
	case s.Requests.GPU > 0 && (n.kind.Allocatable.GPU == 0 || c.model != none && c.model != t.modelOf[row>>1]):
		return FilterGPUModel
	}
	return FilterNone
}

func (s *Shape) tolerations() []rules.Toleration {
	if s.Needs == nil {
		return nil
	}
	return s.Needs.Tolerations
}

// holder is the pool that has the cells of a side.
func (n *node) holder(s side) fleet.PoolID {
	if s == n.home {
		return n.pool
	}
	return n.borrower
}

// judge says whether a pod of a class fits a row, and which cells it would hold there; those are good until the next question.
func (t *Table) judge(c *class, row int32) (Filter, []cellHold) {
	if f := t.admits(c, row); f != FilterNone {
		return f, nil
	}
	return t.fitsNow(c, row)
}

// admits says whether a row lets pods of a class in, whatever is on it.
func (t *Table) admits(c *class, row int32) Filter {
	if !t.open[row] && !c.shape.Daemon {
		return FilterClosed
	}
	return t.fixed(c, row)
}

// fitsNow judges what pods that come and go change.
func (t *Table) fitsNow(c *class, row int32) (Filter, []cellHold) {
	a := &t.avail[row&1]
	for d := range t.free {
		// Of what is not asked for nothing needs to be there, whatever others overdraw.
		if c.want[d] > 0 && c.want[d] > a.free[d][row>>1] && (!c.shape.Daemon || c.want[d] > t.freeOnAll(row, d)) {
			return filterOf[d], nil
		}
	}
	if f := t.lacks(c, row>>1); f != FilterNone || c.plain && c.perHost() == 0 {
		return f, nil
	}
	n := &t.nodes[row>>1]
	if len(c.ports) > 0 && n.ports > 0 && t.portTaken(c, row) {
		return FilterPorts, nil
	}
	if p := c.perHost(); p > 0 && t.onHost(c.group, row>>1) >= p {
		return FilterPerHost, nil
	}
	var holds []cellHold
	if c.shape.Cells != Float {
		var ok bool
		if holds, ok = t.cellsFor(c, row); !ok {
			return FilterCells, nil
		}
	}
	if c.shape.OneRoot && t.oneRoot(n, c, holds) < 0 {
		return FilterRoot, nil
	}
	return FilterNone, holds
}

var filterOf = [resources]Filter{gpus: FilterGPU, cpu: FilterCPU, memory: FilterMemory, pods: FilterPods}

// freeFor is what is free for the pods of a row of one resource.
func (t *Table) freeFor(row int32, d int) int64 {
	mine, other := t.free[d][row], t.free[d][row^1]
	if other >= 0 {
		return mine
	}
	if t.nodes[row>>1].moves {
		slack := t.moving(row)
		other = min(other+slack[d], 0)
	}
	return mine + other
}

// freeOnAll is what is free on a machine of one resource, of all sides.
func (t *Table) freeOnAll(row int32, d int) int64 {
	free := t.free[d][row] + t.free[d][row^1]
	if t.nodes[row>>1].moves {
		slack := t.moving(row)
		free += slack[d]
	}
	return free
}

func (t *Table) portTaken(c *class, row int32) bool {
	for r := row &^ 1; r <= row|1; r++ {
		for ref := t.first[r]; ref != none; ref = t.pods[ref].next {
			if t.pods[ref].lifted {
				continue
			}
			for _, p := range t.classes[t.pods[ref].class].ports {
				for _, q := range c.ports {
					if p.Conflicts(q) {
						return true
					}
				}
			}
		}
	}
	return false
}

// cellsFor finds the cells that a pod would hold on a row.
func (t *Table) cellsFor(c *class, row int32) ([]cellHold, bool) {
	holds, ok := t.bindNear(c, row)
	if !ok {
		return nil, c.shape.Cells == PreferCells && !c.shape.Exclusive
	}
	if c.shape.Exclusive {
		// The pod takes all of its cells, and the row must have that free of what floats.
		var sum [perCell]int64
		for _, h := range holds {
			for d := range sum {
				sum[d] += h.amount[d]
			}
		}
		for d := range sum {
			if sum[d] > t.avail[row&1].free[d][row>>1] {
				return nil, false
			}
		}
	}
	return holds, true
}

// score judges how well a row would do for a pod that fits it with these cells.
func (t *Table) score(c *class, row int32, holds []cellHold) Score {
	var out Score
	t.fixedScore(&out, c, row)
	t.movingScore(&out, c, row, holds)
	out.sum()
	return out
}

// bindNear binds a pod to cells of a row. Its first choice is what was set aside for it; and where it needs one PCIe root, the cell of such a root must be
// among them.
func (t *Table) bindNear(c *class, row int32) ([]cellHold, bool) {
	n := &t.nodes[row>>1]
	if c.shape.OneRoot && n.roots != none {
		for _, r := range t.rootsOf(n) {
			if r.freeGPUs < c.want[gpus] || r.freeNICs < c.nics {
				continue
			}
			at := slices.IndexFunc(t.cells[n.from:n.to], func(x cell) bool { return x.id == r.cell })
			if at < 0 {
				continue
			}
			socket := t.cells[n.from+int32(at)].socket
			for _, keep := range [...]func(k int32) bool{
				func(k int32) bool { return t.cells[k].id == r.cell },
				func(k int32) bool { return t.cells[k].socket == socket },
				func(int32) bool { return true },
			} {
				if holds, ok := t.bindAmong(c, row, keep); ok && slices.ContainsFunc(holds, func(h cellHold) bool { return t.cells[h.cell].id == r.cell }) {
					return holds, true
				}
			}
		}
		return nil, false
	}
	if len(t.lent) > 0 {
		if holds, ok := t.bindAmong(c, row, func(k int32) bool { return slices.Contains(t.lent, k) }); ok {
			return holds, true
		}
	}
	return t.bindAmong(c, row, nil)
}

// bindAmong binds a pod to those cells of a row that may be used; nil for all.
func (t *Table) bindAmong(c *class, row int32, keep func(k int32) bool) ([]cellHold, bool) {
	n := &t.nodes[row>>1]
	t.trial = append(t.trial[:0], t.cells[n.from:n.to]...)
	if keep != nil {
		for k := range t.trial {
			if !keep(n.from + int32(k)) {
				t.trial[k].side = noSide
			}
		}
	}
	return t.bindCells(t.trial, n, side(row&1), c)
}

// fixedScore is the terms that pods which come and go do not change.
func (t *Table) fixedScore(out *Score, c *class, row int32) {
	n, s := &t.nodes[row>>1], side(row&1)
	w := t.weights.of(s)
	if (s == n.home) == (s == onlineSide) {
		out.Room = w.Room * whole
	}
	if c.want[gpus] == 0 && n.kind.Allocatable.GPU == 0 {
		out.KeepGPUs = w.KeepGPUs * whole
	}
	if x := c.shape.Needs; x != nil && len(x.Preferred) > 0 {
		out.Preferred = w.Preferred * preferred(x.Preferred, n)
	}
	out.Taints = w.Taints * (whole - whole/4*int64(min(rules.Unwanted(c.shape.tolerations(), n.taints), 4)))
}

// movingScore is the other terms.
func (t *Table) movingScore(out *Score, c *class, row int32, holds []cellHold) {
	i, s := row>>1, side(row&1)
	w, a := t.weights.of(s), &t.avail[s]
	fill := whole - (share(a.free[cpu][i]-c.want[cpu], a.scale[cpu][i])+share(a.free[memory][i]-c.want[memory], a.scale[memory][i]))/2
	out.Fill = w.Pack*fill + w.Spread*(whole-fill)
	if c.want[gpus] > 0 {
		left := share(a.free[gpus][i]-c.want[gpus], a.scale[gpus][i])
		if n := &t.nodes[i]; c.shape.OneRoot && n.roots != none {
			if r := t.oneRoot(n, c, holds); r >= 0 {
				x := &t.rootsOf(n)[r]
				left = whole * (x.freeGPUs - c.want[gpus]) / max(x.gpus, 1)
			}
		}
		out.GPUFragments = w.GPUFragments * (whole - left)
	}
	if t.podsOn[i] > 0 {
		out.WholeMachines = w.WholeMachines * whole
	}
	if w.WholeSockets != 0 && len(holds) > 0 && !t.opensSocket(&t.nodes[i], holds) {
		out.WholeSockets = w.WholeSockets * whole
	}
	if w.Hosts != 0 && c.group != none {
		out.Hosts = w.Hosts * (whole - whole/4*int64(min(t.onHost(c.group, i), 4)))
	}
	if len(c.images) > 0 {
		out.Images = w.Images * t.imageShare(c, i)
	}
}

// opensSocket reports whether a pod would be the first to hold a cell of a socket.
func (t *Table) opensSocket(n *node, holds []cellHold) bool {
	for _, h := range holds {
		socket, used := t.cells[h.cell].socket, false
		for _, c := range t.cells[n.from:n.to] {
			used = used || c.socket == socket && c.free != c.capacity
		}
		if !used {
			return true
		}
	}
	return false
}

func preferred(all []rules.Weighted, n *node) int64 {
	var met, sum int64
	for i := range all {
		sum += int64(all[i].Weight)
		if all[i].Matches(n.name, n.labels) {
			met += int64(all[i].Weight)
		}
	}
	return whole * met / max(sum, 1)
}
