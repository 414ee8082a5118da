package capacity

import "math"

const (
	// sure, surely and surest are one-sided quantiles of the normal distribution: 95, 99 and 99.9 %. A load is shown to
	// hold by the first, to break by the second, and a fault is laid on something else than load by the third.
	sure, surely, surest = 1.645, 2.326, 3.090
	// beyond is how far a capacity may lie above a load that was shown to hold: what holds is at most the truth, so
	// that the capacity is at most 5 % above it. Where most minutes of that load are below half of the limit, it may lie
	// beyondHalf above it, and where they are below a quarter, as far as the load that was seen allows: a queue's
	// latency is 1/(1 - load), and at half of the limit it has half of the way to go.
	beyond, beyondHalf = 1.05, 1.075
	// seenBeyond bounds a capacity by the load that was seen of a replica.
	seenBeyond = 1.1
	// mostOf is the share of minutes that are most of them.
	mostOf = 0.95
	// seenFor is for how many minutes a load must have been seen: one spike says nothing of what a replica carries.
	seenFor = 5
	// lowShare is the share of the load seen at or below which a level that breaks does not break by load.
	lowShare = 0.5
	// mostBase is the most of such breaking under which a curve can still be read.
	mostBase = 0.05
)

// wilson is an edge of a share of which held of n minutes are known: the lower one for a negative z.
func wilson(held, n, z float64) float64 {
	if n <= 0 {
		if z < 0 {
			return 0
		}
		return 1
	}
	p, zz := held/n, z*z
	return (p + zz/(2*n) + z*math.Sqrt(max(p*(1-p), 0)/n+zz/(4*n*n))) / (1 + zz/n)
}

// lowest is the lower edge of the share that holds in a pool of minutes.
//
// Where no minute broke, those far below the limit say more: of values with a finite variance the share above a limit
// is at most the share above t times (t/limit)². So few minutes at a quarter of the limit show what many just below it
// would.
func lowest(b *bin) float64 {
	held, n := b.held(), b.all()
	low := wilson(held, n, -sure)
	if b.broken() >= faded {
		return low
	}
	under := 0.0
	for c := range heldCells - 1 {
		under += b.N[c]
		low = max(low, 1-(1-wilson(under, n, -sure))*edges[c]*edges[c])
	}
	return low
}

// Point is the curve at one load.
type Point struct {
	// Load is that of a replica, Minutes the weight of the minutes from there to the next point.
	Load, Minutes float64
	// Share of the minutes that hold, with its edges. None of the three rises with load.
	Share, Low, High float64
	// ahead is how far a capacity may lie above Load.
	ahead float64
}

// Curve is the share of minutes that hold over the load of a replica.
func (l *Level) Curve() []Point {
	n := len(l.Bins)
	out := make([]Point, n)
	l.pools(out)
	best := 0.0
	for i := n - 1; i >= 0; i-- {
		p := bin{}
		for k := i; k < n; k++ {
			p.add(&l.Bins[k])
			best = max(best, lowest(&p))
		}
		out[i].Low, out[i].ahead = min(best, out[i].Share), ahead(&p)
	}
	return out
}

// ahead is how far a capacity may lie above the load of a pool of minutes.
func ahead(b *bin) float64 {
	n := mostOf * b.all()
	switch {
	case b.N[0] >= n:
		return seenBeyond
	case b.N[0]+b.N[1] >= n:
		return beyondHalf
	}
	return beyond
}

// pools fits the shares by pooling adjacent violators, and their upper edges by the pools.
func (l *Level) pools(out []Point) {
	type pool struct {
		held, n float64
		bins    int
	}
	var stack []pool
	for i := range l.Bins {
		b := &l.Bins[i]
		out[i].Load, out[i].Minutes = loadOf(b.Key), b.all()
		stack = append(stack, pool{b.held(), b.all(), 1})
		for k := len(stack) - 1; k > 0 && stack[k].held*stack[k-1].n > stack[k-1].held*stack[k].n; k-- {
			p := stack[k]
			stack = stack[:k]
			stack[k-1] = pool{stack[k-1].held + p.held, stack[k-1].n + p.n, stack[k-1].bins + p.bins}
		}
	}
	i, high := 0, 1.0
	for _, p := range stack {
		high = min(high, wilson(p.held, p.n, surely))
		for range p.bins {
			out[i].Share, out[i].High = p.held/p.n, high
			i++
		}
	}
}

// band is the largest load that was shown to hold at an objective, 0 where none was, and the smallest that was shown
// to break, infinite where none was.
func (l *Level) band(objective float64) (low, high float64) {
	base := l.baseline()
	if base > mostBase {
		return 0, math.Inf(1)
	}
	need := objective - base
	high = math.Inf(1)
	for _, p := range l.Curve() {
		if p.Low >= need {
			low = max(low, p.Load*p.ahead)
		}
		if p.High < need {
			high = p.Load
			break
		}
	}
	return min(low, high, seenBeyond*l.seen()), high
}

// seen is the largest load that was seen of a replica for long enough.
func (l *Level) seen() float64 {
	n := 0.0
	for i := len(l.Bins) - 1; i >= 0; i-- {
		if n += l.Bins[i].all(); n >= seenFor {
			return loadOf(l.Bins[i].Key)
		}
	}
	return 0
}

// lows are the minutes at no more than half of the load seen, highs the others.
func (l *Level) lows() (lows, highs bin) {
	top := lowShare * l.seen()
	for i := range l.Bins {
		if loadOf(l.Bins[i].Key+1) <= top {
			lows.add(&l.Bins[i])
		} else {
			highs.add(&l.Bins[i])
		}
	}
	return lows, highs
}

// baseline is the share of minutes that breaks for certain at half the load too: load is not its cause, and more
// replicas would not help.
func (l *Level) baseline() float64 {
	lows, _ := l.lows()
	return max(0, wilson(lows.broken(), lows.all(), -sure))
}
