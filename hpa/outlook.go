package hpa

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
)

// sureFor is how far ahead a forecast is asked for how sure it is: a lending decision looks about as far.
const sureFor = time.Hour

// Outlook is how many replicas a service is expected to be sized for in each of some steps from now on, if its load goes along each of some
// quantiles of its tide. A size is decided on the service's own quantile of a forecast that was made shortly before; today's of that time is far less
// sure of it. So each path is raised by as much as that quantile of the coming hour lies above its median. Windows, festival lifts and bounds
// are those of the time. Beyond the tide, the same time of its last day stands in for the load.
func Outlook(svc *fleet.Service, p *portrait.Portrait, t *forecast.Tide, festivals []fleet.Festival, now time.Time, steps Steps, quantiles []float64) [][]int32 {
	o := Options{Festivals: festivals}
	o.Defaults.AheadFor = time.Duration(steps.N) * steps.Of
	z := newSizer(svc, p, t, &Live{}, now, o)
	margin := z.t.Max(now, now.Add(sureFor), z.quantile) / z.t.Max(now, now.Add(sureFor), 0.5)
	if !(margin > 1) || math.IsInf(margin, 1) {
		margin = 1
	}
	length := 0
	if len(z.t.Paths) > 0 {
		length = len(z.t.Paths[0])
	}
	end := z.t.Start.Add(time.Duration(length) * z.t.Step).Sub(now)
	out := make([][]int32, len(quantiles))
	for i, q := range quantiles {
		z.quantile = q
		look := z.t.Look(now, q)
		out[i] = make([]int32, steps.N)
		plain, b := !z.hasPlan(), z.bounds(now, now)
		for k := range out[i] {
			from := time.Duration(k) * steps.Of
			if plain && from+steps.Of <= end { // as most services are: the tide is all there is to look at
				out[i][k] = min(max(z.plain(margin*look.Max(from, from+steps.Of-1)), b.least), b.most)
				continue
			}
			out[i][k] = z.expected(look, from, from+steps.Of, end, margin)
		}
	}
	return out
}

// Steps are N stretches of equal length.
type Steps struct {
	N  int
	Of time.Duration
}

// expected is the largest demand between two times from now; end is where the tide ends.
func (z *sizer) expected(look forecast.Look, from, to, end time.Duration, margin float64) int32 {
	seen := from
	for day := 24 * time.Hour; seen+(to-from) > end && seen >= day; {
		seen -= day
	}
	n := z.plain(margin * look.Max(seen, seen+(to-from)-1))
	start, stop := z.now.Add(from), z.now.Add(to)
	for i := range z.lifts {
		asked, _ := z.lifts[i].ask(z, start, stop)
		n = max(n, asked)
	}
	return z.raised(n, start, stop)
}
