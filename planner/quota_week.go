package planner

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// Tenants hear of a shortage a week ahead: by the quarter of an hour as far as targets look, which is a day, and by the
// hour from there.
const (
	quarter   = 15 * time.Minute
	perHour   = int(time.Hour / quarter)
	daySteps  = int(24 * time.Hour / quarter)
	weekSteps = 6 * 24
)

// week is the steps in which the coming week is divided. They begin on the clock's quarters and hours, so that one shortage begins at one time in
// all plans, and wherever a slice begins or ends: a step counts with the most that is asked for in it and the least that is promised, and one
// that holds a slice's edge would find a shortage where a window has the very same edge. Where a zone's hours are not those of UTC makes no difference.
type week struct {
	// edges are now, then the start of each further step, and the end of the last one. The first day of them are as targets look.
	edges []time.Time
	day   int
	// parts are the parts of a day that steps are, from now on; of[k] is that of step k. The parts of the day are steps
	// of their own; later ones are the same each day, but where slices cut them.
	parts []part
	of    []int
}

type part struct{ from, length time.Duration }

// weekAhead cuts the week from now on.
func weekAhead(now time.Time, tenants []fleet.Tenant) week {
	dayEnd, end := now.Add(24*time.Hour).Truncate(time.Hour), now.Add(24*time.Hour+time.Duration(weekSteps)*time.Hour)
	marks := make([]time.Time, 0, daySteps+weekSteps+2)
	for at := now.Truncate(quarter).Add(quarter); at.Before(dayEnd); at = at.Add(quarter) {
		marks = append(marks, at)
	}
	last := dayEnd
	for ; last.Before(end); last = last.Add(time.Hour) {
		marks = append(marks, last)
	}
	marks = append(marks, last)
	marks = append(marks, sliceEdges(tenants, now, last, marks)...)
	slices.SortFunc(marks, time.Time.Compare)

	w := week{edges: append([]time.Time{now}, marks...)}
	w.of = make([]int, len(w.edges)-1)
	known := map[part]int{}
	for k := range w.of {
		x := part{w.edges[k].Sub(now) % (24 * time.Hour), w.edges[k+1].Sub(w.edges[k])}
		i, ok := known[x]
		if today := w.edges[k].Before(dayEnd); today || !ok {
			i = len(w.parts)
			w.parts = append(w.parts, x)
			if today {
				w.day = k + 1
			} else {
				known[x] = i
			}
		}
		w.of[k] = i
	}
	return w
}

// mostCuts bounds the steps that slices add: as many as there are without them. One that opens every few minutes must not make a plan of
// a week of minutes; beyond the bound it counts in a step where it is open at both ends.
const mostCuts = daySteps + weekSteps

// sliceEdges are the times between two at which slices begin or end and that are no marks already, the nearest ones.
func sliceEdges(tenants []fleet.Tenant, from, to time.Time, marks []time.Time) []time.Time {
	var out []time.Time
	seen := make(map[int64]bool, len(marks))
	for _, m := range marks {
		seen[m.Unix()] = true
	}
	for i := range tenants {
		for _, s := range tenants[i].Slices {
			schedule, err := hpa.ParseSchedule(s.Window.Schedule)
			if err != nil || s.Window.Zone == nil || s.Window.Duration <= 0 || !tenants[i].Accepted {
				continue
			}
			found := 0
			for start := schedule.Next(from.Add(-s.Window.Duration), s.Window.Zone); !start.IsZero() && start.Before(to) && found < mostCuts; start = schedule.Next(start, s.Window.Zone) {
				for _, at := range [...]time.Time{start, start.Add(s.Window.Duration)} {
					if at.After(from) && at.Before(to) && !seen[at.Unix()] {
						seen[at.Unix()] = true
						out, found = append(out, at.UTC()), found+1
					}
				}
			}
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out[:min(len(out), mostCuts)]
}

// mostInEach is the most that a target asks for in each of some parts of the day; what it asks for now, where it does not look so far.
func mostInEach(t *hpa.Target, parts []part) []int32 {
	out := make([]int32, len(parts))
	for k, x := range parts {
		if out[k] = mostIn(t, x.from, x.from+x.length); out[k] == 0 {
			out[k] = t.Replicas
		}
	}
	return out
}

// repeated is the most that a target asks for in each step beyond the day, if each day is as the first.
func (w *week) repeated(t *hpa.Target) []int32 {
	most, out := mostInEach(t, w.parts[w.day:]), make([]int32, len(w.of)-w.day)
	for k := range out {
		out[k] = most[w.of[w.day+k]-w.day]
	}
	return out
}

// mostIn is the most that a target asks for between two times from now on; 0 where it does not look so far. Its own
// steps begin now, on no clock. One that lies on both sides of an edge holds the most of either; it counts on the side
// on which the step next to it asks for more, since that is where its own most is from: a window that opens at the edge
// is not asked for before it. So a demand is always counted on one side, and a rise of less than a step before an edge
// may be counted after it.
func mostIn(t *hpa.Target, from, to time.Duration) int32 {
	step := t.AheadStep
	if step <= 0 {
		return 0
	}
	n := int(24 * time.Hour / step)
	at := func(i int) int32 {
		if i %= n; i >= 0 && i < len(t.Ahead) {
			return t.Ahead[i]
		}
		return 0
	}
	var most, all int32
	first, last := int(from/step), int((to-1)/step)
	for i := first; i <= last; i++ {
		all = max(all, at(i))
		before, after := i == first && from%step != 0, i == last && to%step != 0
		if before && at(i-1) > at(i+1) || after && at(i-1) < at(i+1) {
			continue
		}
		most = max(most, at(i))
	}
	if most == 0 {
		return all
	}
	return most
}
