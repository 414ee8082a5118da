package quota

import (
	"time"

	"github.com/springtide/springtide/fleet"
)

// edgeStep is how finely the drain time is searched for the ends of slices: cron starts them on the minute.
const edgeStep = time.Minute

// exits says who must give back what by when. A tenant is over where it uses more than it may have now, or will at some time within its
// drain time by the slices and bursts that end until then, so that the notice of a foreseen end comes before it. The deadline is the
// drain time after the notice: what was not foreseen is never due at once (see [Share.notify]).
//
// Fairness among borrowers alone takes nothing away: who holds more than a newcomer leaves it grows no more, and the ebb evens it out.
func (d *divider) exits(shares []Share) {
	standing := func(w *Want, x *demand) { x.beyond = amountOf(w.Offline) }
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
}

// report gives each debtor its notice and its deadline.
func (d *divider) report(shares []Share) {
	for k, i := range d.tree.byID {
		if s, t := &shares[k], d.tree.nodes[i].tenant; s.Owes() {
			s.notify(t, d.wants[i], d.in.At)
			s.Deadline = s.OverSince.Add(t.Drain)
		}
	}
}

// MostNotices bounds the notices that are kept of a tenant. Five are as many as begin within one drain time; only a drain time that is made
// longer lets there be more.
const MostNotices = 16

// notify gives debt beyond the standing notices a notice of its own, and finds the due part: debt that was noticed a
// drain time ago and still stands. So a growing debt is never due before its own notice is over, and never delays an
// earlier one. An amount that comes and goes while its notice runs is due when that is over; one that is owed again
// after it was given back, or not owed, gets a new notice.
//
// A debt that grows from cycle to cycle is noticed by quarters of the drain time, so that a lender waits at most one of
// them longer.
func (s *Share) notify(t *fleet.Tenant, w *Want, now time.Time) {
	var noticed fleet.QuotaNotice
	for _, n := range t.Notices {
		noticed.Online, noticed.Offline = noticed.Online.Max(left(n.Online, n.OnlineUsed, w.Used)), noticed.Offline.Max(left(n.Offline, n.OfflineUsed, w.Offline))
	}
	all, last := t.Notices, len(t.Notices)-1
	grown := !Fits(s.Owed, noticed.Online) || !Fits(s.OverOffline, noticed.Offline) || s.parcelsGrew(t.Notices)
	if grown && (last < 0 || last+1 < MostNotices && !now.Before(all[last].Since.Add(t.Drain/4))) {
		all = append(all[:last+1:last+1], fleet.QuotaNotice{Since: now, Online: s.Owed, Offline: s.OverOffline, OnlineUsed: w.Used, OfflineUsed: w.Offline,
			Parcels: s.parcelDebts(func(p *ParcelShare) int64 { return p.Over })})
	}
	if s.OverSince = t.OverSince; s.OverSince.IsZero() || len(all) > last+1 {
		s.OverSince = now
	}
	due := fleet.QuotaNotice{OnlineUsed: w.Used, OfflineUsed: w.Offline}
	var running []fleet.QuotaNotice
	for _, n := range all {
		if now.Before(n.Since.Add(t.Drain)) {
			running = append(running, n)
			continue
		}
		due.Since = n.Since
		due.Online = due.Online.Max(left(n.Online, n.OnlineUsed, w.Used).Min(s.Owed))
		due.Offline = due.Offline.Max(left(n.Offline, n.OfflineUsed, w.Offline).Min(s.OverOffline))
		s.parcelsDue(&n)
	}
	s.Notices = running
	due.Parcels = s.parcelDebts(func(p *ParcelShare) int64 { return p.Due })
	if !due.Online.IsZero() || !due.Offline.IsZero() || len(due.Parcels) > 0 {
		s.Due, s.DueOffline, s.DueBy = due.Online, due.Offline, due.Since.Add(t.Drain)
		s.Notices = append([]fleet.QuotaNotice{due}, running...)
	}
}

// left is the part of a noticed amount that is not given back: lower use since then counts as given back.
func left(noticed, used, now fleet.Resources) fleet.Resources {
	return noticed.Sub(used.Sub(now).Floor()).Floor()
}

func (d *divider) longestDrain() time.Duration {
	var longest time.Duration
	for _, i := range d.tree.byID {
		longest = max(longest, d.tree.nodes[i].tenant.Drain)
	}
	return longest
}

// stateAt distinguishes moments whose divisions may differ: by the open slices and the running bursts.
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
	online := amountOf(w.Used).sub(n.own.add(r.online[i])).floor()
	offline := amountOf(w.Offline).sub(r.held[i].add(r.offline[i])).floor()
	s.OverOnline, s.OverOffline = s.OverOnline.Max(online.resources()), s.OverOffline.Max(offline.resources())
	if online.isZero() {
		return
	}
	// Running offline work that others cannot do without holds room that no tenant can be given: without it the sums
	// would lend it to this tenant, while pods of others wait for what it holds. Work that does not run yet, or could
	// do with less, takes nothing from online services.
	alone := d.round(d.demands(func(w *Want, x *demand) {
		x.need = x.need.min(amountOf(w.Offline))
		x.wish, x.beyond = x.need, amount{}
	}), d.borrowing(at))
	s.Owed = s.Owed.Max(amountOf(w.Used).sub(n.own.add(alone.online[i])).floor().resources())
}
