package quota

import (
	"math"

	"github.com/springtide/springtide/fleet"
)

// dims is the number of resources in a bundle.
const dims = 4

type amounts [dims]float64

func amountsOf(r amount) amounts {
	return amounts{float64(r.cpu), float64(r.memory), float64(r.gpu), float64(r.parcels)}
}

// filling grants wishes by progressive filling: all who can still take something take it at one pace, until the wish of one is met or an
// edge is full; then those who are met or stand behind the full edge stop, and the others go on. The pace is that of dominant shares: of
// siblings, each one's share of the resource that it takes most of (measured by the whole supply) grows alike. A tenant's resources grow
// together, in the proportion of its wish, since half of a pod is none; one without the memory gets no CPU for it either.
//
// The shares of a level are those of who still takes. Counting what stopped neighbours hold, as plain hierarchical DRF does, lets a group
// wait because of a member that wants nothing more.
type filling struct {
	f    *flow
	wish []amount
	// unit is each node's wish in shares of the supply, over the largest of them; length that largest.
	unit   []amounts
	length []float64
	got    []float64 // 0..1 of the wish
	active []bool
	// hidden and slack are what each edge bears before its lending limit and its borrowing limit bind.
	hidden, slack []amounts
	// pace is the growth of each node and all below it, in shares: of its dominant one 1, as if it were alone.
	pace []amounts
	// take and up are the growth per time: of a node's own grants, and over its edge.
	take []float64
	up   []amounts
	// full is 1 where nothing more comes through from above; norm and speed are what paces are computed with.
	full        []amounts
	norm, speed []float64
}

// newFilling makes the room for a tree of n nodes.
func newFilling(n int) *filling {
	return &filling{unit: make([]amounts, n), length: make([]float64, n), got: make([]float64, n), active: make([]bool, n), hidden: make([]amounts, n),
		slack: make([]amounts, n), pace: make([]amounts, n), take: make([]float64, n), up: make([]amounts, n), full: make([]amounts, n),
		norm: make([]float64, n), speed: make([]float64, n)}
}

// fill grants as much of the wishes as there is room for.
func (x *filling) fill(f *flow, wish []amount, whole amount) {
	n := len(f.tr.nodes)
	x.f, x.wish = f, wish
	clear(x.unit)
	clear(x.length)
	clear(x.got)
	clear(x.active)
	any := false
	for i := range wish {
		if wish[i].isZero() {
			continue
		}
		w, c := amountsOf(wish[i]), amountsOf(whole)
		for d := range w {
			if c[d] > 0 { // A resource that the fleet lacks holds up no other.
				w[d] /= c[d]
			} else {
				w[d] = 0
			}
			x.length[i] = max(x.length[i], w[d])
		}
		if x.length[i] <= 0 {
			continue
		}
		for d := range w {
			x.unit[i][d] = w[d] / x.length[i]
		}
		x.active[i], any = true, true
	}
	if !any {
		return
	}
	for i := range f.tr.nodes {
		x.hidden[i], x.slack[i] = x.parts(f.hidden(i), whole), x.parts(f.borrow[i].sub(f.edge(i)).floor(), whole)
	}
	x.slack[0] = x.parts(f.room(0), whole)
	x.hidden[0] = amounts{}
	// Each step ends a wish, or what an edge bears before one of its two limits.
	for range n * (1 + 2*dims) {
		if !x.step() {
			break
		}
	}
	x.settle()
}

// parts are amounts as shares of the whole; of what has no limit, infinite.
func (x *filling) parts(r, whole amount) amounts {
	out, w := amountsOf(r), amountsOf(whole)
	for d := range out {
		switch {
		case out[d] >= math.MaxInt64/2:
			out[d] = math.Inf(1)
		case w[d] > 0:
			out[d] /= w[d]
		}
	}
	return out
}

// least is a share that counts as nothing: a millionth of a millionth of the fleet.
const least = 1e-12

// step stops who can take nothing more and lets the others grow until the next one is met or the next edge is full.
func (x *filling) step() bool {
	x.stop()
	if !x.speeds() {
		return false
	}
	dt := math.Inf(1)
	for i := range x.take {
		if x.active[i] {
			dt = min(dt, (1-x.got[i])*x.length[i]/x.take[i])
		}
		for d := range dims {
			switch grows := x.up[i][d]; {
			case grows <= 0:
			case x.hidden[i][d] > 0:
				dt = min(dt, x.hidden[i][d]/grows)
			default:
				dt = min(dt, x.slack[i][d]/grows)
			}
		}
	}
	for i := range x.take {
		if x.active[i] {
			x.got[i] = min(x.got[i]+x.take[i]*dt/x.length[i], 1)
		}
		for d := range dims {
			left := &x.slack[i][d]
			if x.hidden[i][d] > 0 {
				left = &x.hidden[i][d]
			}
			if *left -= x.up[i][d] * dt; *left < least {
				*left = 0
			}
		}
	}
	return true
}

// stop ends the growth of who has all, or stands behind a full edge with something that it takes.
func (x *filling) stop() {
	nodes := x.f.tr.nodes
	full := x.full
	clear(full)
	for i := range nodes {
		for d := range dims {
			switch {
			case x.hidden[i][d] > 0:
			case x.slack[i][d] <= 0, i > 0 && full[nodes[i].parent][d] > 0:
				full[i][d] = 1
			}
			if full[i][d] > 0 && x.unit[i][d] > 0 {
				x.active[i] = false
			}
		}
		if x.got[i] >= 1-least {
			x.active[i] = false
		}
	}
}

// speeds computes how fast each node grows, and reports whether any does.
func (x *filling) speeds() bool {
	nodes := x.f.tr.nodes
	norm, speed := x.norm, x.speed
	clear(norm)
	any := false
	for i := len(nodes) - 1; i >= 0; i-- {
		var sum amounts
		if x.active[i] {
			sum, any = x.unit[i], true
		}
		for _, c := range nodes[i].children {
			for d := range dims {
				sum[d] += x.pace[c][d]
			}
		}
		for d := range dims {
			norm[i] = max(norm[i], sum[d])
		}
		for d := range dims {
			x.pace[i][d] = 0
			if norm[i] > 0 {
				x.pace[i][d] = sum[d] / norm[i]
			}
		}
	}
	if !any {
		return false
	}
	speed[0] = 1
	for i := range nodes {
		if i > 0 {
			speed[i] = speed[nodes[i].parent] / norm[nodes[i].parent]
			if x.pace[i] == (amounts{}) {
				speed[i] = 0
			}
		}
		x.take[i] = 0
		if x.active[i] {
			x.take[i] = speed[i] / norm[i]
		}
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		x.up[i] = amounts{}
		for d := range dims {
			x.up[i][d] = x.take[i] * x.unit[i][d]
			for _, c := range nodes[i].children {
				if x.hidden[c][d] <= 0 {
					x.up[i][d] += x.up[c][d]
				}
			}
		}
	}
	return true
}

// settle makes whole amounts of the shares, rounded down, each within the room that is really there.
func (x *filling) settle() {
	for i := range x.got {
		if x.got[i] > 0 {
			w, unit := amountsOf(x.wish[i]), x.unit[i]
			for d := range w {
				// A sum of thirds is a whole again: a millionth, and of large amounts what 53 bits lose in such a sum. Some bytes less than
				// all would read as a shortage.
				w[d] = math.Floor(w[d]*(x.got[i]+1e-12) + 1e-6)
				if unit[d] == 0 {
					w[d] = 0
				}
			}
			x.f.grant(i, amount{cpu: fleet.MilliCPU(w[0]), memory: fleet.Bytes(w[1]), gpu: int64(w[2]), parcels: int64(w[3])}.min(x.wish[i]))
		}
	}
}
