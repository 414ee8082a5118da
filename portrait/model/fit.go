package model

import "math"

const (
	// fitShare is the share of new values, by those looked at, after which the regressions and smoothings are fitted
	// again, a seventh; once a short period at most.
	fitShare = 7
	// fitLeast is the number of short periods before the first fit.
	fitLeast = 3
	// fitRows is about how many rows of the history a block's own regression is fitted to, kinRows how many of each series the kin's is.
	fitRows, kinRows = 300, 900
	// softness is the size of a row, in usual differences from day to day, beyond which it weighs less.
	softness = 4
	// fitPull is how strongly a fit is pulled towards what it starts from.
	fitPull = 0.3
)

// recent is the index from which the newest values are looked at, seen from an index to: a short period less than the span that is kept, so
// that a history that is read in pieces is looked at as one that is read at once.
func (l *Learner) recent(to int) int { return max(0, to-(l.Cycle.Span()-l.Cycle.unit())) }

// begin puts the smoothings to work on the newest values, as they were at the last full short period: they begin again
// with each.
func (l *Learner) begin() {
	l.log, l.raw = nil, nil
	if !l.Log.known() {
		return
	}
	n := l.hist.Len()
	end := n - int(mod(l.hist.first+int64(n), l.Cycle.unit()))
	if end <= 0 {
		end = n
	}
	l.base = l.recent(end)
	l.log, l.raw = newSmoother(l.room.log, l.Cycle, l.hist.x[l.base:end]), newSmoother(l.room.raw, l.Cycle, l.hist.raw[l.base:end])
	l.log.run(l.Log, l.hist.x[l.base:])
	l.raw.run(l.Raw, l.hist.raw[l.base:])
	l.room.log, l.room.raw = *l.log, *l.raw
}

// due reports whether the share of values that no fit has seen is large enough.
func (l *Learner) due() bool {
	u := l.Cycle.Short
	return u > 0 && l.Seen >= fitLeast*u && l.Seen-l.Fitted >= max(u, min(l.Seen, l.Cycle.Span())/fitShare)
}

// fit brings regressions and smoothings up to date with the history.
func (l *Learner) fit() {
	l.Fitted = l.Seen
	l.measure()
	l.find()
	from := l.recent(l.hist.Len())
	l.Log = tune(l.Cycle, l.Log, l.hist.x[from:], 1)
	l.Raw = tune(l.Cycle, l.Raw, l.hist.raw[from:], 2)
	l.begin()
	for k := range l.Blocks {
		g := l.rows(k, fitRows, true)
		if g.rows < nFeature {
			continue
		}
		start := ridgeStart(k)
		toward := start[:]
		if l.group != nil {
			toward = l.group.Ridge[k]
		}
		l.Blocks[k].Ridge = g.ridge(fitPull, toward)
	}
}

// measure brings the scale up to date.
func (l *Learner) measure() {
	if d := l.hist.difference(l.Cycle.unit(), l.recent(l.hist.Len())); d > 0 {
		l.Scale = d
	}
	l.Traits, l.Typed = l.traits()
}

// ridgeStart is what a regression is before it has seen anything: the mean of the last seven days' phase and, fading with the horizon, how
// far the newest values stand from it.
func ridgeStart(block int) (c [nFeature]float64) {
	for j := range 7 {
		c[fDays+j] = 1.0 / 7
	}
	near := math.Exp(-float64(block) / 2)
	c[fUsual], c[fUsual+1] = 0.8*near, 0.2
	return c
}

// rows sums about as many rows of one block as most, spread over the newest values. strict takes each target out of the weekly profile that it
// is explained by; among many kin one value in the profile does no harm, and of the profile's use more is learned from it as it is.
func (l *Learner) rows(block, most int, strict bool) gram {
	g := newGram(nFeature)
	low, end := 1, l.ends[block]
	if block > 0 {
		low = l.ends[block-1] + 1
	}
	n, unit := l.hist.Len(), l.Cycle.unit()
	l.hist.low = l.recent(n)
	defer func() { l.hist.low = 0 }()
	from := l.hist.low + 2*unit
	stride := max(1, (n-from)/most)
	for i := from; i < n; i += stride {
		x := l.hist.at(i)
		h := drawn(l.hist.first+int64(i), low, end)
		t := i + 1 - h
		if math.IsNaN(x) || t < unit+unit/2 || math.IsNaN(l.hist.at(t-1)) {
			continue
		}
		o := l.look(t, h)
		usual, _ := l.like(i, o.k, t)
		if !o.row.ok || math.IsNaN(usual) {
			continue
		}
		l.fillRow(&o, i, usual)
		if c := l.Cycle; strict && c.Long > 0 {
			o.row.v[fProfile] = usual - o.row.base
			if v := l.Week.without(l.hist.first+int64(i), c, x-l.hist.lately(c.Long, i), (n-1-i)/c.Long); !math.IsNaN(v) {
				o.row.v[fProfile] = v + o.week - o.row.base
			}
		}
		l.addRow(&g, &o, x)
	}
	return g
}

// addRow adds the origin's present row, with less weight where it is large: a wild day must not decide the fit of the others.
func (l *Learner) addRow(g *gram, o *origin, x float64) {
	y, w := x-o.row.base, 1.0
	if l.Scale > 0 {
		most := math.Abs(y)
		for _, v := range o.row.v {
			most = max(most, math.Abs(v))
		}
		w = min(1, softness*l.Scale/(most+1e-9))
	}
	g.add(o.row.v[:], y, w)
}
