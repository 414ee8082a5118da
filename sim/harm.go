package sim

import (
	"slices"
	"time"

	"github.com/springtide/springtide/internal/measure"
)

// A minute is harmed by lending when it breaks the SLO and would not have, had no replica ever waited for a machine
// while room was lent, nor been killed for a loan. The other run cannot be had by playing without a lender: its
// controllers would soon see other loads and decide otherwise, and the difference of two such runs is mostly chance. So
// the same run is computed twice: once with the replicas that are ready, and once with those too that would be, with a
// queue of its own.

// replaces lets a new pod stand for one that a lender killed.
func (w *World) replaces(id int32) {
	p := &w.pods[id]
	if s := &w.services[p.owner]; len(s.killed) > 0 {
		p.instead, s.killed = s.killed[0], s.killed[1:]
		w.heldUp = append(w.heldUp, podRef{id, p.uid})
	}
}

// otherwise is the tick at which an online pod would be, or was, ready without lending.
func (w *World) otherwise(p *pod) int32 {
	switch {
	case p.instead != never:
		return p.instead
	case p.node == none:
		return w.tick + ticks(time.Duration(w.services[p.owner].Spec.StartUp)) - p.heldUp
	}
	return p.readyAt - p.heldUp
}

// withheld reports whether room of online's is lent, or on its way to offline or back.
func (w *World) withheld() bool {
	if w.borrowed > 0 || len(w.waiting) == 0 {
		return w.borrowed > 0
	}
	for n := range w.machines {
		if m := &w.machines[n]; m.home == onlinePool && !m.gone {
			if toOnline, _ := w.mayLand(int32(n)); !toOnline {
				return true
			}
		}
	}
	return false
}

// holdUp counts the ticks that pods wait while room is lent, and the replicas that each service misses for it.
func (w *World) holdUp() {
	if w.withheld() {
		for _, r := range w.waiting {
			p := &w.pods[r.id]
			if p.heldUp++; p.heldUp == 1 && p.instead == never {
				w.heldUp = append(w.heldUp, r)
			}
		}
	}
	if len(w.heldUp) == 0 {
		return
	}
	for i := range w.services {
		w.services[i].missed = 0
	}
	w.heldUp = slices.DeleteFunc(w.heldUp, func(r podRef) bool {
		p := &w.pods[r.id]
		if p.uid != r.uid || p.ready || p.leaving {
			return true
		}
		if w.tick >= w.otherwise(p) {
			w.services[p.owner].missed++
		}
		return false
	})
}

// serve plays one tick of a service, in which a part of what its pods would burst is there for them, and says whether
// it would have broken the SLO without lending too, when there may be more.
func (s *service) serve(burst, unlent float64) (o measure.Outcome, anyway bool) {
	same := s.missed == 0 && s.unlent == s.queue && burst == unlent
	station := s.bursting(&s.queue, burst)
	o = station.StepAt(s.moment, &s.queue, s.rate, s.ready, tick)
	if same {
		s.unlent = s.queue
		return o, o.Violated
	}
	station = s.bursting(&s.unlent, unlent)
	other := station.StepAt(s.moment, &s.unlent, s.rate, s.ready+s.missed, tick)
	return o, other.Violated
}

// bursting is the service's station with a part of what its pods would use beyond their own cores.
func (s *service) bursting(q *measure.Queue, part float64) *measure.Station {
	if part >= 1 || s.Burst <= 1 || s.ready == 0 {
		return &s.Station
	}
	less := s.Station
	less.Burst = 1 + part*max(s.use(q)/float64(s.ready*s.Cores)-1, 0)
	return &less
}
