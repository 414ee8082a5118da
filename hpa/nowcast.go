package hpa

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/signal"
)

// nowcastMost is the most by which the load of the last minutes is multiplied: more growth than that within one lead is
// the forecast's word, which stands next to it.
const nowcastMost = 2

// nowcastPart carries the load of the last minutes forward by the growth that the tide sees within the lead. A tide is made of means of whole
// steps that reach the history minutes late; what the load has done since then is known too. Where it runs above the tide's median, the tide
// as a whole is raised by as much; where it runs below, the forecast's own quantile stands, since nothing is lost by waiting for it.
//
// A quantile of the tide is as far from its median as it is for two reasons: the load's present level was unknown, and
// so is its future. The first one is over once the load is seen. Both count alike, and squares of deviations add up: of
// the distance in normal deviations the root of a half is left.
//
// It is one of the reactive parts, so that their rate bounds what a wrong sample can do. False where it has no data,
// which a scale-in need not wait for: without a fresh load there is none.
func (z *sizer) nowcastPart() (Part, bool) {
	now := z.t.At(z.now, 0.5)
	steady, ok := z.steady()
	if !ok || !z.compares() || !(now > 0) {
		return Part{}, false
	}
	q := distuv.UnitNormal.CDF(distuv.UnitNormal.Quantile(z.quantile) * math.Sqrt2 / 2)
	growth := min(z.t.Max(z.now, z.now.Add(z.lead), q)/now, nowcastMost)
	n, ok := z.carry(steady * growth)
	if !ok {
		return Part{}, false
	}
	return Part{Kind: PartNowcast, Replicas: fleet.KnownAt(n, z.now),
		Why: reason.Of(reason.NowcastOf, z.amount(steady), fixed(growth, 2), ago(z.lead))}, true
}

// steady is the load of the last minutes, in what the portrait counts; false while it is not fresh.
func (z *sizer) steady() (float64, bool) {
	k := z.live.Steady
	return k.Value, z.signal == z.p.Signal && z.number(k) == signal.Fresh
}

// compares reports whether the tide counts what the portrait does, and has quantiles that lie apart.
func (z *sizer) compares() bool { return z.t.Signal == z.p.Signal && len(z.t.Quantiles) > 1 }
