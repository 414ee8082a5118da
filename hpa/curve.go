package hpa

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
)

// Curve is what a service asks for in the time ahead: by its tide, the windows that are open, the lifts of approved plans and the bounds of each time.
//
// A tide reaches a day or two. Beyond its end the same time of its last day stands in, or of its last week where it spans one, without the days of the
// calendar, which do not move with it. Where no tide can say, last week's peak and what runs now stand in: an unknown future must not look like free room.
type Curve struct{ z *sizer }

// NewCurve prepares the curve of a service from a time on, with the windows that open until another one.
func NewCurve(svc *fleet.Service, p *portrait.Portrait, t *forecast.Tide, festivals []fleet.Festival, now, until time.Time) *Curve {
	o := Options{Festivals: festivals}
	o.Defaults.AheadFor = until.Sub(now)
	return &Curve{newSizer(svc, p, t, &Live{}, now, o)}
}

// Planned reports whether an operator planned for a service within a time, by windows or by lifts. Without such, each
// day beyond the tide is as its last one, and no curve need be made for it.
func Planned(svc *fleet.Service, festivals []fleet.Festival, now, until time.Time) bool {
	return len(svc.Windows) > 0 || len(lifts(festivals, svc.ID, span{now, until})) > 0
}

// Most is the largest demand in each stretch from one edge to the next, at the service's own quantile.
func (c *Curve) Most(edges []time.Time) []int32 {
	path, out := c.z.along(c.z.quantile, 1), make([]int32, len(edges)-1)
	for k := range out {
		out[k] = path.most(edges[k].Sub(c.z.now), edges[k+1].Sub(c.z.now)).replicas
	}
	return out
}

// sureFor is how far ahead a forecast is asked for how sure it is: a lending decision looks about as far.
const sureFor = time.Hour

// Steps are N stretches of equal length.
type Steps struct {
	N  int
	Of time.Duration
}

// Expected is how many replicas the service is expected to be sized for in each step from now on, if its load goes along a quantile of its tide. A size is
// decided on the service's own quantile of a forecast that was made shortly before; today's of that time is far less sure of it. So the path is
// raised by as much as that quantile of the coming hour lies above its median.
func (c *Curve) Expected(q float64, steps Steps) []int32 {
	margin := c.z.margin(sureFor)
	if !atLeastOne(margin) {
		margin = 1
	}
	path, out := c.z.along(q, margin), make([]int32, steps.N)
	for k := range out {
		from := time.Duration(k) * steps.Of
		out[k] = path.most(from, from+steps.Of).replicas
	}
	return out
}

// margin is the service's own quantile over the median within a time; NaN or infinite where one of them is not known or
// nothing.
func (z *sizer) margin(within time.Duration) float64 {
	end := z.now.Add(within)
	return z.t.Max(z.now, end, z.quantile) / z.t.Max(z.now, end, 0.5)
}

// atLeastOne reports whether a margin raises what it multiplies, or leaves it. One that is not known does neither.
func atLeastOne(margin float64) bool { return margin >= 1 && !math.IsInf(margin, 1) }

// path is a curve along one quantile of the tide, whose load is multiplied by a margin. Times are counted from now.
type path struct {
	z         *sizer
	margin    float64
	tide, day forecast.Look // as it runs, and as its ordinary last day (or week) stands in
	// start and end are those of the tide, period what it is moved by beyond them; 0 without a tide.
	start, end, period time.Duration
	// fixed are the bounds of a service without plans: the same at all times.
	fixed bounds
}

func (z *sizer) along(q, margin float64) path {
	c := path{z: z, margin: margin, tide: z.t.Look(z.now, q)}
	if !z.hasPlan() {
		c.fixed = z.bounds(z.now, z.now)
	}
	if z.t.Step <= 0 || len(z.t.Paths) == 0 {
		return c
	}
	length := time.Duration(len(z.t.Paths[0])) * z.t.Step
	c.start, c.period = z.t.Start.Sub(z.now), 24*time.Hour
	c.end = c.start + length
	if length >= 7*c.period {
		c.period *= 7
	}
	c.day = c.tide
	if z.t.Ordinary != nil {
		ordinary := *z.t
		ordinary.Paths = z.t.Ordinary
		c.day = ordinary.Look(z.now, q)
	}
	return c
}

// stretch is what is asked for within a stretch of time.
type stretch struct {
	replicas int32
	// assumed says that the tide does not reach there, cut that the bounds of the time cut a lift.
	assumed, cut bool
}

// most is the largest demand in [from, to).
func (c *path) most(from, to time.Duration) stretch {
	z := c.z
	look, into, assumed := c.seen(from, to)
	plain := z.plain(c.margin * look.Max(from+into, to+into-1))
	out := stretch{assumed: assumed}
	if !z.hasPlan() { // as of most services: the tide is all there is to look at
		out.replicas = min(max(plain, c.fixed.least), c.fixed.most)
		return out
	}
	start, end, n := z.now.Add(from), z.now.Add(to), plain
	for i := range z.levels {
		if l := &z.levels[i]; l.within(start, end) {
			n = max(n, l.min)
		}
	}
	b := z.bounds(start, end)
	for i := range z.lifts {
		l := &z.lifts[i]
		asked, load := c.lift(l, from, to)
		if math.IsNaN(load) && l.meets(start, end) && !l.running {
			asked = max(asked, ceil(l.factor*float64(plain))) // without a tide the factor multiplies what stands in for it
		}
		out.cut = out.cut || asked > b.most
		n = max(n, asked)
	}
	out.replicas = min(max(n, b.least), b.most)
	return out
}

// lift is what a lift asks for at any time in [from, to): its floor, and its factor × the tide where they overlap. The load is NaN where no tide says it.
func (c *path) lift(l *lift, from, to time.Duration) (n int32, load float64) {
	if !l.meets(c.z.now.Add(from), c.z.now.Add(to)) {
		return 0, math.NaN()
	}
	look, into, _ := c.seen(from, to)
	from, to = max(from, l.start.Sub(c.z.now)), min(to, l.end.Sub(c.z.now))
	n, load = l.floor, l.factor*look.Max(from+into, to+into-1)
	if k, ok := c.z.carry(load); ok {
		n = max(n, k)
	}
	return n, load
}

// seen is where a stretch of time is looked up: the tide is moved by whole days, or weeks, until it covers it.
func (c *path) seen(from, to time.Duration) (look *forecast.Look, into time.Duration, assumed bool) {
	switch {
	case c.period == 0:
		return &c.tide, 0, true
	case from < c.start:
		return &c.day, (c.start - from + c.period - 1) / c.period * c.period, true
	case to > c.end:
		return &c.day, -(to - c.end + c.period - 1) / c.period * c.period, true
	}
	return &c.tide, 0, false
}
