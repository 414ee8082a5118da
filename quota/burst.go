package quota

import (
	"fmt"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// burst is what was decided of one tenant's burst.
type burst struct {
	on    bool
	since time.Time
	why   reason.Reason
}

// judgeBursts decides who bursts: a tenant whose services wish to borrow more than its borrowing limit, for the
// duration of its burst, while the level of the low-priority capacity allows. The level is what a burst lives on, since
// what is borrowed is taken from there. A burst begins above the high watermark and ends below the low one, so that it
// does not go on and off; after it the tenant rests for as long as the burst may last, so that bursts never add up to a
// second quota. One that the low watermark ends is dated back, as if it had lasted to the full: its one stored time
// then says that it is over, and until when the tenant rests.
func (d *divider) judgeBursts() []burst {
	out := make([]burst, len(d.tree.nodes))
	for _, i := range d.tree.byID {
		n := &d.tree.nodes[i]
		b := n.tenant.Burst
		if b.Percent <= 0 || b.Duration <= 0 {
			continue
		}
		out[i] = burst{since: n.tenant.BurstSince}
		x, l, at := &out[i], d.in.Level, d.in.At
		running := !x.since.IsZero() && at.Before(x.since.Add(b.Duration))
		ends := running && l.Share.OK && l.Share.Value < l.Low
		if ends {
			x.since = at.Add(-b.Duration)
		}
		wish := d.wants[i].online().sub(n.own).floor()
		if wish.fits(n.borrow) {
			continue
		}
		switch {
		case !l.Share.OK:
			x.why = reason.Of(reason.LevelUnknown)
		case running && !ends:
			x.on = true
		case ends:
			x.why = reason.Of(reason.BelowLow, percentOf(l.Share.Value), percentOf(l.Low))
		case !x.since.IsZero() && at.Before(x.since.Add(2*b.Duration)):
			x.why = reason.Of(reason.BurstRests, x.since.Add(2*b.Duration).UTC().Format(time.RFC3339))
		case l.Share.Value >= l.High:
			x.on, x.since = true, at
		default:
			x.why = reason.Of(reason.BelowHigh, percentOf(l.Share.Value), percentOf(l.High))
		}
	}
	return out
}

// borrowing are the borrowing limits at a time, with the bursts that still run then.
func (d *divider) borrowing(at time.Time) []amount {
	out := make([]amount, len(d.tree.nodes))
	for i := range out {
		n := &d.tree.nodes[i]
		out[i] = n.borrow
		if i == 0 || !d.bursts[i].on || !at.Before(d.bursts[i].since.Add(n.tenant.Burst.Duration)) {
			continue
		}
		out[i] = out[i].add(percent(n.entitled, n.tenant.Burst.Percent))
	}
	return out
}

// percent is a part of an amount, rounded down.
func percent(r amount, p int) amount {
	part := func(v int64) int64 { return v/100*int64(p) + v%100*int64(p)/100 }
	return amount{cpu: fleet.MilliCPU(part(int64(r.cpu))), memory: fleet.Bytes(part(int64(r.memory))), gpu: part(r.gpu), parcels: part(r.parcels)}
}

// percentOf shows a share as a percentage.
func percentOf(share float64) string { return fmt.Sprintf("%.1f", 100*share) }
