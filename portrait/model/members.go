package model

import "math"

// The members, in the order of every vector of them. Each is a base plus the mean distance that the newest values keep from it: over the
// last half hour (near), the last three hours (far), the last day or week. Blending a base with its own corrected forms per block of
// horizons lets a correction fade with the horizon as fast as history says that it does.
const (
	lastValue = iota
	lastNear  // mean of the last half hour
	lastFar   // mean of the last three hours
	lastUnit  // mean of the last day

	lagShort // same phase of the last day
	lagShortNear
	lagShortFar

	lagLong // same phase of the last week
	lagLongNear
	lagLongFar
	lagLongUnit

	phases // mean of the same phase of the last seven days
	phasesNear
	phasesFar

	profiled // weekly profile on the mean of the last week
	profiledNear
	profiledFar

	middle // median of the same phase of the last seven days
	middleFar

	smoothLog  // double-seasonal smoothing of the transformed values
	smoothRaw  // the same of the values themselves
	aligned    // ridge regression on season-aligned features
	kinAligned // the same as the kin's
	kinWindow  // regression of the kin on the plain values of the last week
	similar    // what followed the days most like the last ones

	members
)

// origin is what all horizons of one forecast share: the point from which it is made, and how far the newest values stand from each base.
type origin struct {
	t      int // number of known values: the newest is t-1
	k, kw  int // short and long periods back to the newest one that is known for the horizon
	values [4]float64
	short  [2]climb
	long   [3]climb
	phase  [2]float64
	week   float64 // mean of the last week
	prof   [2]float64
	row    row
	alike  [alikeMost]neighbour
	nAlike int
}

// windows are the lengths of near, far and unit in steps.
func (c Cycle) windows() (near, far, unit int) {
	unit = c.unit()
	return max(2, unit/48), max(3, unit/8), unit
}

const likeDays = 7

// from looks back from the origin with t known values towards horizon h, for every member.
func (l *Learner) from(t, h int) origin {
	o := l.look(t, h)
	o.nAlike = len(l.neighbours(t, o.k, o.alike[:0]))
	return o
}

// look looks back from the origin, but for the days that were like the last ones.
func (l *Learner) look(t, h int) origin {
	c := l.Cycle
	near, far, unit := c.windows()
	o := origin{t: t, k: periods(h, c.Short), kw: periods(h, c.Long)}
	hist := l.hist
	o.values = [4]float64{hist.lately(1, t), hist.lately(near, t), hist.lately(far, t), hist.lately(unit, t)}
	for i := 1; i < 4; i++ {
		if math.IsNaN(o.values[i]) {
			o.values[i] = hist.lately((likeDays+1)*unit, t)
		}
	}
	if math.IsNaN(o.values[0]) {
		o.values[0] = o.values[1]
	}
	if c.Short == 0 {
		return o
	}
	o.week = hist.lately(c.Long, t)
	for i, w := range [2]int{near, far} {
		m := hist.mean(t-w, t)
		o.short[i] = l.climb(m, t-o.k*c.Short, w)
		o.phase[i] = gap0(m - l.likeMean(t-w, t, o.k))
		if c.Long > 0 { // the profile knows distances from the week's mean alone, so that it always needs a level
			if o.prof[i] = m - l.Week.mean(w, hist.first+int64(t), c); math.IsNaN(o.prof[i]) {
				o.prof[i] = o.week
			}
		}
	}
	if c.Long > 0 {
		for i, w := range [3]int{near, far, unit} {
			o.long[i] = l.climb(hist.mean(t-w, t), t-o.kw*c.Long, w)
		}
	}
	l.beginRow(&o)
	return o
}

// climb is how far the newest window stands above a past one, and what that is without the past window's fault.
type climb struct{ plain, nearer float64 }

// climb is the distance from the mean of the window of w steps before index end to that of the newest one. If the past window was odd (an
// outage, a load test), its nearer neighbour stands in for it where that makes the distance smaller: a level that is corrected by a past fault is
// as wrong as the fault was.
func (l *Learner) climb(newest float64, end, w int) climb {
	short := l.Cycle.Short
	then := l.hist.mean(end-w, end)
	d := gap0(newest - then)
	fault := l.fault(then, l.hist.mean(end-w-short, end-short), l.hist.mean(end-w+short, end+short))
	if math.Abs(d+fault) < math.Abs(d) {
		return climb{plain: d, nearer: d + fault}
	}
	return climb{plain: d, nearer: d}
}

// oddness is how far a past moment stands from both its neighbours, in usual differences from day to day, to be called odd.
const oddness = 2

// fault is how far a past moment stands above the nearer one of the same hours of the day before and of the day after, where it is unlike
// both in one direction and they are like each other; else zero.
func (l *Learner) fault(then, before, after float64) float64 {
	b, a := then-before, then-after
	odd := min(math.Abs(b), math.Abs(a))
	if b*a > 0 && odd > oddness*l.Scale && math.Abs(b-a) < odd {
		return math.Copysign(odd, b)
	}
	return 0
}

// toward is the correction of a target whose past value v is a whole number of periods back at index at. Where that moment has the fault of
// the past window, the two cancel out.
func (l *Learner) toward(d climb, v float64, at int) float64 {
	if d.nearer == d.plain {
		return d.plain
	}
	before, after := l.hist.at(at-l.Cycle.Short), l.hist.at(at+l.Cycle.Short)
	if math.IsNaN(after) { // the day after is that of the target itself
		after = before
	}
	if l.fault(v, before, after) != 0 {
		return d.plain
	}
	return d.nearer
}

// say fills out with what each member says of the target that lies at index i of the history, seen from the origin. A
// member without data of its own repeats the next simpler one; own says which had data.
func (l *Learner) say(o *origin, i, block int, out *[members]float64) (own voices) {
	c := l.Cycle
	copy(out[:], o.values[:])
	plain := o.values[3]
	mean, median := l.like(i, o.k, o.t)
	if math.IsNaN(mean) {
		for m := lagShort; m < members; m++ {
			out[m] = plain
		}
		return voices{}
	}
	own.season = true
	out[phases], out[phasesNear], out[phasesFar] = mean, mean+o.phase[0], mean+o.phase[1]
	out[middle], out[middleFar] = median, median+o.phase[1]
	if at := i - o.k*c.Short; !math.IsNaN(l.hist.at(at)) {
		own.short = true
		v := l.hist.at(at)
		out[lagShort], out[lagShortNear], out[lagShortFar] = v, v+l.toward(o.short[0], v, at), v+l.toward(o.short[1], v, at)
	} else {
		out[lagShort], out[lagShortNear], out[lagShortFar] = mean, mean+o.phase[0], mean+o.phase[1]
	}
	if v := l.Week.at(l.hist.first+int64(i), c); !math.IsNaN(v) {
		own.profile = true
		out[profiled], out[profiledNear], out[profiledFar] = v+o.week, v+o.prof[0], v+o.prof[1]
	} else {
		out[profiled], out[profiledNear], out[profiledFar] = mean, mean+o.phase[0], mean+o.phase[1]
	}
	if at := i - o.kw*c.Long; c.Long > 0 && !math.IsNaN(l.hist.at(at)) {
		own.long = true
		v := l.hist.at(at)
		out[lagLong] = v
		for j, d := range o.long {
			out[lagLongNear+j] = v + l.toward(d, v, at)
		}
	} else {
		out[lagLong], out[lagLongNear], out[lagLongFar] = out[profiled], out[profiledNear], out[profiledFar]
		out[lagLongUnit] = out[profiled]
	}
	for m := smoothLog; m < members; m++ {
		out[m] = out[phasesFar]
	}
	if l.log != nil && o.t > l.base {
		if v := l.log.at(o.t-l.base, i-l.base, o.k, o.kw); !math.IsNaN(v) {
			own.smooth = true
			out[smoothLog] = v
		}
		if v := l.raw.at(o.t-l.base, i-l.base, o.k, o.kw); !math.IsNaN(v) {
			out[smoothRaw] = l.Transform.Forward(max(v, 0))
		}
	}
	if o.row.ok {
		l.fillRow(o, i, mean)
		own.aligned = l.sayAligned(o, block, out)
	}
	if l.group != nil && o.t >= l.kinFrom && o.row.ok {
		own.kin = true
		if own.window = l.sayWindow(o, i, out); !own.window {
			out[kinWindow] = out[kinAligned]
		}
	} else {
		out[kinAligned], out[kinWindow] = out[aligned], out[aligned]
	}
	if v := l.saySimilar(o, i); o.nAlike >= 3 && !math.IsNaN(v) {
		out[similar] = v
	}
	return own
}

// sayAligned says what the regressions of a block make of the origin's present row.
func (l *Learner) sayAligned(o *origin, block int, out *[members]float64) bool {
	if !o.row.ok {
		return false
	}
	if l.group != nil && o.t >= l.kinFrom {
		out[kinAligned] = o.row.apply(l.group.Ridge[block])
	}
	if len(l.Blocks[block].Ridge) == 0 {
		return false
	}
	out[aligned] = o.row.apply(l.Blocks[block].Ridge)
	return true
}

// voices say which members spoke from a past moment of their own, and whether any season was known.
type voices struct{ season, short, long, profile, smooth, aligned, kin, window bool }

// has reports whether the member had data of its own.
func (v voices) has(member int) bool {
	switch {
	case member >= lagShort && member <= lagShortFar:
		return v.short
	case member >= lagLong && member <= lagLongUnit:
		return v.long
	case member >= profiled && member <= profiledFar:
		return v.profile
	case member == smoothLog || member == smoothRaw:
		return v.smooth
	case member == aligned:
		return v.aligned
	case member == kinAligned:
		return v.kin
	case member == kinWindow:
		return v.window
	}
	return v.season
}

// like is the mean and the median of the same phase of the seven short periods before the target, each smoothed over its neighbours,
// counted from the k-th one back. Only values before t are read.
func (l *Learner) like(i, k, t int) (mean, median float64) {
	c := l.Cycle
	if c.Short == 0 {
		return math.NaN(), math.NaN()
	}
	var v [likeDays]float64
	n, half := 0, c.Short/96
	for j := range likeDays {
		at := i - (k+j)*c.Short
		if at-half < 0 {
			break
		}
		m := l.hist.mean(at-half, min(at+half+1, t))
		if math.IsNaN(m) {
			continue
		}
		mean += m
		p := n
		for ; p > 0 && v[p-1] > m; p-- {
			v[p] = v[p-1]
		}
		v[p] = m
		n++
	}
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	return mean / float64(n), (v[(n-1)/2] + v[n/2]) / 2
}

// likeMean is the mean over a window of what like's mean was for each of its steps.
func (l *Learner) likeMean(from, to, k int) float64 {
	sum, n := 0.0, 0
	for j := range likeDays {
		shift := (k + j) * l.Cycle.Short
		if m := l.hist.mean(from-shift, to-shift); !math.IsNaN(m) {
			sum, n = sum+m, n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// periods is the least number of periods that lead from a target h steps ahead back to a known value.
func periods(h, period int) int {
	if period == 0 {
		return 0
	}
	return (h + period - 1) / period
}

func gap0(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

const kinBits = 1<<3 | 1<<4

// bits marks the members whose first word of their own makes earlier judgements of the blend stale.
func (v voices) bits() uint32 {
	var b uint32
	for i, spoke := range []bool{v.long, v.smooth, v.aligned, v.kin, v.window} {
		if spoke {
			b |= 1 << i
		}
	}
	return b
}
