package planner

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/reclaim"
	"github.com/springtide/springtide/scheduler/place"
)

// table is what fits where at the moment of the snapshot. It is built when it is first asked for, since most cycles lend nothing.
func (m *lender) table() *place.Table {
	if m.fits == nil {
		m.fits = place.FromSnapshot(m.in.Snapshot)
	}
	return m.fits
}

// frees reports whether the pods of a machine fit its other cells.
func (m *lender) frees(n *fleet.Node, cells []int) bool {
	t := m.table()
	return t.Would(func() bool {
		_, ok := t.HandOver(n.ID, cells)
		return ok
	})
}

// withPlaces drops candidates whose loss leaves a replica without room, of those that online will ask for while they are
// away. Sums alone do not say so: a replica of 48 cores fits no three machines with 16 free cores each. Where one fits
// nowhere, a machine on which it does stays, the one that was chosen last. A replica that fits no machine at all is no reason to keep any.
func (m *lender) withPlaces(l *ledger, take []reclaim.Candidate, from, to time.Duration) (kept []reclaim.Candidate, pins []Pin) {
	more := l.growth(from, to)
	if len(take) == 0 || len(more) == 0 {
		return take, nil
	}
	t := m.table()
	t.Begin()
	defer t.Rollback()
	for _, c := range take {
		t.SetOpen(c.Node.ID, fleet.Online, false)
	}
	for _, g := range more {
		class := t.Class(place.Shape{Requests: g.svc.Request, Side: fleet.Online, Pool: l.pool.ID})
		for range g.more {
			if _, ok := t.Place(class); ok {
				continue
			}
			stays := m.placeOnLast(t, class, take)
			if stays < 0 {
				break
			}
			pins = append(pins, Pin{take[stays].Node.Name, reason.Of(reason.GrowthNeedsIt, g.svc.ID, g.more, g.svc.Request)})
			take = slices.Delete(take, stays, stays+1)
		}
	}
	return take, pins
}

// placeOnLast opens the last of the machines on which a pod fits and places it there; below zero if it fits none. One of which a socket is lent
// stays shut to online whatever becomes of the others.
func (m *lender) placeOnLast(t *place.Table, class place.ClassID, take []reclaim.Candidate) int {
	for i, c := range slices.Backward(take) {
		if m.on(c.Node.ID).Moves.Live > 0 {
			continue
		}
		t.SetOpen(c.Node.ID, fleet.Online, true)
		if _, ok := t.Place(class); ok {
			return i
		}
		t.SetOpen(c.Node.ID, fleet.Online, false)
	}
	return -1
}

// growth is what a service will ask for beyond the pods that have a machine.
type growth struct {
	svc  *fleet.Service
	more int
}

// growth lists what the pool's services will ask for between two times, the largest replicas first, since the small
// ones fill what those leave. It is computed as the room to lend is, with services whose signals are missing at their
// worst.
func (l *ledger) growth(from, to time.Duration) []growth {
	var out []growth
	var all deviations
	for _, v := range l.services {
		_, above := v.asks(from, to, true)
		all.add(v.svc.Replica().Times(int64(above)))
	}
	share := all.remaining()
	for _, v := range l.services {
		likely, above := v.asks(from, to, true)
		more := int(likely) + int(math.Ceil(share*float64(above))) - v.svc.Landed()
		if more > 0 {
			out = append(out, growth{v.svc, more})
		}
	}
	slices.SortFunc(out, func(a, b growth) int {
		return cmp.Or(largestFirst(a.svc.Request, b.svc.Request), cmp.Compare(a.svc.ID, b.svc.ID))
	})
	return out
}

// largestFirst is the order in which pods choose their machines.
func largestFirst(a, b fleet.Resources) int {
	return cmp.Or(cmp.Compare(b.GPU, a.GPU), cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Memory, a.Memory))
}
