package forecast

import (
	"time"

	"github.com/springtide/springtide/fleet"
)

// lift raises the paths by what approved festivals expect of the service. Where several lifts cover a step the largest one counts: each is
// what its author expects of the whole load, so that multiplying them would count one crowd twice. A factor below one is ignored, since a
// festival plan is no reason to scale in.
func lift(t *Tide, service fleet.ServiceID, festivals []fleet.Festival) {
	var named []window
	for i := range festivals {
		if festivals[i].Approved {
			named = append(named, windows(&festivals[i], service)...)
		}
	}
	if len(named) == 0 || len(t.Paths) == 0 {
		return
	}
	for j := range t.Paths[0] {
		begin := t.Start.Add(time.Duration(j) * t.Step)
		end, factor := begin.Add(t.Step), 1.0
		for _, w := range named {
			if w.from.Before(end) && begin.Before(w.to) {
				factor = max(factor, w.factor)
			}
		}
		for i := range t.Paths {
			t.Paths[i][j] *= factor
		}
	}
}

// window is one lift of one service.
type window struct {
	from, to time.Time
	factor   float64
}

// windows are the lifts of a festival that name a service, cut to the festival; a lift without times of its own lasts as long.
func windows(f *fleet.Festival, service fleet.ServiceID) []window {
	var out []window
	for _, l := range f.Lifts {
		if l.Service != service || !(l.Factor > 1) {
			continue
		}
		w := window{from: f.Start, to: f.End, factor: l.Factor}
		if l.Start.After(w.from) {
			w.from = l.Start
		}
		if !l.End.IsZero() && l.End.Before(w.to) {
			w.to = l.End
		}
		out = append(out, w)
	}
	return out
}
