package place

import (
	"math"
	"math/bits"
)

// avail is what is free for the pods of a side of each machine, and scale what one unit of it is worth: columns that a pass reads in order.
type avail struct {
	free  [resources][]int64
	scale [pods][]uint64 // thousandths of the capacity, in 1/2^32
}

// setAvail brings the columns of a machine in line with its rows.
func (t *Table) setAvail(i int32) {
	for s := range int32(2) {
		a := &t.avail[s]
		for d := range t.free {
			a.free[d][i] = t.freeFor(2*i+s, d)
		}
	}
}

// setScale does so after its capacity has changed.
func (t *Table) setScale(row int32) {
	for d := range pods {
		t.avail[row&1].scale[d][row>>1] = (whole << 32) / uint64(max(t.capacityOf[d][row], 1))
	}
}

// share is an amount in thousandths of the capacity, at most all of it.
func share(amount int64, scale uint64) int64 {
	hi, lo := bits.Mul64(uint64(max(amount, 0)), scale)
	return min(int64(hi<<32|lo>>32), whole)
}

// need is what must be free of each resource: nothing, whatever others overdraw, of what is not asked for.
func (c *class) need() [resources]int64 {
	var out [resources]int64
	for d := range out {
		out[d] = c.want[d]
		if c.want[d] == 0 {
			out[d] = math.MinInt64
		}
	}
	return out
}

// unfit and the few numbers above it are the scores of machines that a pod does not fit: each stands for a filter, and unfit itself for those that
// the profile removed or that are not there.
const unfit = math.MinInt32

// refusedBy is the score of a machine that a filter removed.
func refusedBy(f Filter) int32 { return unfit + int32(f) }

// fits reports whether a score is that of a machine which a pod fits.
func fits(score int32) bool { return score >= unfit+int32(Filters) }

// rate is the score of a machine for a pod of a class.
func (t *Table) rate(c *class, p *profile, i int32) int32 {
	if p.bits[i>>6]>>(i&63)&1 == 0 {
		return unfit
	}
	if c.plain {
		return t.ratePlain(c, p, i)
	}
	row := 2*i + int32(c.side)
	f, holds := t.fitsNow(c, row)
	if f != FilterNone {
		return refusedBy(f)
	}
	var s Score
	t.movingScore(&s, c, row, holds)
	s.sum()
	return p.score[i] + int32(s.Total)
}

// ratePlain rates a machine that a class may use from the columns.
func (t *Table) ratePlain(c *class, p *profile, i int32) int32 {
	a, w := &t.avail[c.side], t.weights.of(c.side)
	for d := range a.free {
		if c.want[d] > 0 && c.want[d] > a.free[d][i] {
			return refusedBy(filterOf[d])
		}
	}
	if f := t.lacks(c, i); f != FilterNone {
		return refusedBy(f)
	}
	fill := whole - (share(a.free[cpu][i]-c.want[cpu], a.scale[cpu][i])+share(a.free[memory][i]-c.want[memory], a.scale[memory][i]))/2
	s := w.Pack*fill + w.Spread*(whole-fill)
	if c.want[gpus] > 0 {
		s += w.GPUFragments * (whole - share(a.free[gpus][i]-c.want[gpus], a.scale[gpus][i]))
	}
	if t.podsOn[i] > 0 {
		s += w.WholeMachines * whole
		if c.group != none {
			s -= w.Hosts * (whole / 4) * int64(min(t.onHost(c.group, i), 4))
		}
	}
	if c.group != none {
		s += w.Hosts * whole
	}
	if len(c.images) > 0 {
		s += w.Images * t.imageShare(c, i)
	}
	return p.score[i] + int32(s)
}

// rateAll rates all machines in one pass, from the columns alone where they say all.
func (t *Table) rateAll(c *class, p *profile, out []int32) {
	if !c.plain {
		for i := range out {
			out[i] = t.rate(c, p, int32(i))
		}
		return
	}
	a, w, need := &t.avail[c.side], t.weights.of(c.side), c.need()
	free, scale := &a.free, &a.scale
	n := len(out)
	fg, fc, fm, fp := free[gpus][:n], free[cpu][:n], free[memory][:n], free[pods][:n]
	sg, sc, sm, on, fixed := scale[gpus][:n], scale[cpu][:n], scale[memory][:n], t.podsOn[:n], p.score[:n]
	hosts := int64(0)
	if c.group != none {
		hosts = w.Hosts * whole
	}
	images := int64(0) // of those that all machines have
	if len(c.images) > 0 {
		images = w.Images * imagesScore(c, t.imagesEverywhere(c))
	}
	for i := range out {
		refused := int32(0)
		switch { // in the order of fitsNow
		case p.bits[i>>6]>>(i&63)&1 == 0:
			refused = unfit
		case fg[i] < need[gpus]:
			refused = refusedBy(FilterGPU)
		case fc[i] < need[cpu]:
			refused = refusedBy(FilterCPU)
		case fm[i] < need[memory]:
			refused = refusedBy(FilterMemory)
		case fp[i] < need[pods]:
			refused = refusedBy(FilterPods)
		}
		if refused != 0 {
			out[i] = refused
			continue
		}
		fill := whole - (share(fc[i]-c.want[cpu], sc[i])+share(fm[i]-c.want[memory], sm[i]))/2
		s := w.Pack*fill + w.Spread*(whole-fill) + hosts + images
		if on[i] > 0 {
			s += w.WholeMachines * whole
		}
		if c.want[gpus] > 0 {
			s += w.GPUFragments * (whole - share(fg[i]-c.want[gpus], sg[i]))
		}
		out[i] = fixed[i] + int32(s)
	}
	if c.group != none {
		for i, k := range t.groupHosts[c.group] {
			if fits(out[i]) {
				out[i] -= int32(w.Hosts * (whole / 4) * int64(min(k, 4)))
			}
		}
	}
	t.lackAll(c, out)
	if len(c.images) > 0 {
		t.addImages(c, out)
	}
}
