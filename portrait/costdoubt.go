package portrait

import (
	"math"

	"github.com/springtide/springtide/fleet"
)

// doubt takes the distance of one sample from the line in.
func (c *Cost) doubt(r float64) {
	keep := 1 - 1/float64(costMemory)
	c.Misses, c.Squares, c.Next = keep*c.Misses+1, keep*c.Squares+r*r, keep*c.Next+r*c.Last
	c.Last = r
}

// mostLike bounds the correlation of one distance with the next: beyond it hours of samples would count as one.
const mostLike = 0.98

// errorAt is the standard error of the line at load x of one replica: that of a weighted regression, where samples that resemble their
// neighbours count for fewer (n·(1-ρ)/(1+ρ), G. V. Bayley, J. M. Hammersley 1946). As far as the slope was pulled towards a line
// through the origin, since loads hardly varied, it may lie anywhere between that and a flat one: of a uniform spread, the standard
// deviation is its width by √12. It is unknown while too few samples were held against the line.
func (c *Cost) errorAt(x float64) (float64, bool) {
	if !(c.W > 0) || c.Misses < costLeast {
		return 0, false
	}
	mx := c.WX / c.W
	spread := max(c.WXX/c.W-mx*mx, 0)
	pull := idlePull * idlePull * mx * mx
	if !(spread+pull > 0) {
		return 0, false
	}
	like := 0.0
	if c.Squares > 0 {
		like = max(0, min(mostLike, c.Next/c.Squares))
	}
	n := max(1, c.Misses*(1-like)/(1+like))
	variance := c.Squares / c.Misses / n
	d := x - mx
	pulled := pull / (spread + pull) * c.WXY / c.WXX * d
	return math.Sqrt(variance*(1+d*d/(spread+pull)) + pulled*pulled/12), true
}

// CostError is the standard error of [Portrait.CPUPerLoad]: what the line gains in error from one unit of load to the next, far out.
func (p *Portrait) CostError() fleet.Known[float64] {
	c := &p.Cost
	if p.Signal != Requests || !p.CPUPerLoad.OK || !(c.W > 0) {
		return fleet.Known[float64]{}
	}
	const far = 1e6
	e, ok := c.errorAt(far * (1 + c.WX/c.W))
	if !ok {
		return fleet.Known[float64]{}
	}
	return fleet.KnownAt(e/(far*(1+c.WX/c.W)), p.CPUPerLoad.At)
}
