package hpa

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
)

// Planned reports whether windows or approved festival plans say anything of a service before a time: what [Week] would take in that the
// day ahead does not show.
func Planned(svc *fleet.Service, festivals []fleet.Festival, before time.Time) bool {
	if len(svc.Windows) > 0 {
		return true
	}
	for _, l := range lifts(festivals, svc.ID) {
		if l.start.Before(before) {
			return true
		}
	}
	return false
}

// Week is the largest demand of a service in each of some steps, from one edge to the next, with its windows, its approved festival lifts and its
// bounds, so that a shortage of next Friday is known today. Where the tide ends, the same hour of its last day (or week) stands in for the load;
// without a tide, last week's peak and what runs.
func Week(svc *fleet.Service, p *portrait.Portrait, t *forecast.Tide, festivals []fleet.Festival, edges []time.Time) []int32 {
	from, out := edges[0], make([]int32, len(edges)-1)
	o := Options{Festivals: festivals}
	o.Defaults.AheadFor = edges[len(out)].Sub(from)
	z := newSizer(svc, p, t, &Live{}, from, o)
	levels, lifts := z.levels, z.lifts
	// A tide that is moved by whole days asks for the same at the same hours: seen is what it asked for in each such step, from its end on.
	type step struct{ into, length time.Duration }
	seen := map[step]int32{}
	for k := range out {
		start, end := edges[k], edges[k+1]
		at := step{start.Sub(from) % (24 * time.Hour), end.Sub(start)}
		z.levels, z.lifts = levels, lifts
		if plain, ok := seen[at]; ok && meeting(lifts, start, end) == nil {
			out[k] = z.raised(plain, start, end)
			continue
		}
		tide, assumed := covering(*t, start, end)
		z.levels, z.lifts, z.t = nil, nil, &tide
		plain := z.demand(start, end)
		if assumed && (t.Step <= 0 || len(t.Paths) == 0 || time.Duration(len(t.Paths[0]))*t.Step < 7*24*time.Hour) {
			seen[at] = plain
		}
		z.levels, z.lifts, z.t = levels, lifts, planned(&tide, lifts)
		out[k] = z.raised(plain, start, end)
		for _, l := range meeting(lifts, start, end) {
			asked, load := l.ask(z, start, end)
			if math.IsNaN(load) && l.factor > 0 {
				asked = max(asked, ceil(l.factor*float64(plain))) // without a tide the factor multiplies what stands in for it
			}
			out[k] = max(out[k], min(asked, z.bounds(start, end).most))
		}
	}
	return out
}

// meeting are the lifts that are in force at any time in [from, to).
func meeting(lifts []lift, from, to time.Time) []lift {
	var out []lift
	for i := range lifts {
		if lifts[i].meets(from, to) {
			out = append(out, lifts[i])
		}
	}
	return out
}

// raised is a demand with the windows and bounds of [from, to).
func (z *sizer) raised(n int32, from, to time.Time) int32 {
	for i := range z.levels {
		if l := &z.levels[i]; l.within(from, to) {
			n = max(n, l.min)
		}
	}
	b := z.bounds(from, to)
	return min(max(n, b.least), b.most)
}
