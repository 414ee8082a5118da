package quota

import (
	"time"

	"github.com/springtide/springtide/fleet"
)

// edgeStep is how finely the drain time is searched for the ends of slices: cron starts them on the minute.
const edgeStep = time.Minute

// exits says who must give back what by when. A tenant is over where it uses more than it may have now, or will at some time within its
// drain time by the slices and bursts that end until then, so that the notice of a foreseen end comes before it. The deadline is the
// drain time after the notice: what was not foreseen is never due at once.
//
// Fairness among borrowers alone takes nothing away: who holds more than a newcomer leaves it grows no more, and the ebb evens it out.
func (d *divider) exits(shares []Share) {
	standing := func(w *Want, x *demand) { x.beyond = w.Offline }
	var last string
	var judged *round
	for t := time.Duration(0); t <= d.longestDrain(); t += edgeStep {
		at := d.in.At.Add(t)
		if state := d.stateAt(at); judged == nil || state != last {
			last = state
			d.entitle(at, at)
			judged = d.round(d.demands(standing), d.borrowing(at))
			for k, i := range d.tree.byID {
				if n := &d.tree.nodes[i]; t <= n.tenant.Drain {
					d.judge(&shares[k], i, judged, at)
				}
			}
		}
	}
	for k, i := range d.tree.byID {
		if s, t := &shares[k], d.tree.nodes[i].tenant; !s.Over().IsZero() {
			s.OverSince = t.OverSince
			if s.OverSince.IsZero() {
				s.OverSince = d.in.At
			}
			s.Deadline = s.OverSince.Add(t.Drain)
		}
	}
}

func (d *divider) longestDrain() time.Duration {
	var longest time.Duration
	for _, i := range d.tree.byID {
		longest = max(longest, d.tree.nodes[i].tenant.Drain)
	}
	return longest
}

// stateAt tells moments apart whose divisions may differ: by the open slices and the running bursts.
func (d *divider) stateAt(at time.Time) string {
	var state []byte
	bit := func(on bool) {
		if on {
			state = append(state, '1')
		} else {
			state = append(state, '0')
		}
	}
	for _, i := range d.tree.byID {
		t := d.tree.nodes[i].tenant
		for _, s := range t.Slices {
			bit(d.in.Open != nil && d.in.Open(s.Window, at))
		}
		if d.bursts[i].on {
			bit(at.Before(d.bursts[i].since.Add(t.Burst.Duration)))
		}
	}
	return string(state)
}

// judge notes what a tenant is over by at a time, the most of all times looked at.
func (d *divider) judge(s *Share, i int, r *round, at time.Time) {
	w, n := d.wants[i], &d.tree.nodes[i]
	online := w.Used.Sub(n.own.Add(r.online[i])).Floor()
	offline := w.Offline.Sub(r.held[i].Add(r.offline[i])).Floor()
	s.OverOnline, s.OverOffline = s.OverOnline.Max(online), s.OverOffline.Max(offline)
	if online.IsZero() {
		return
	}
	alone := d.round(d.demands(func(_ *Want, x *demand) {
		x.need, x.wish, x.beyond = fleet.Resources{}, fleet.Resources{}, fleet.Resources{}
	}), d.borrowing(at))
	s.Owed = s.Owed.Max(w.Used.Sub(n.own.Add(alone.online[i])).Floor())
}
