package planner

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/reason"
)

// sizing is what services ask for and what becomes of it, in the order of the snapshot. Demands are made once a plan. A limit by others
// is a bound, and bounds come in one order: call chains, quotas, the room of the pool.
type sizing struct {
	in      *Input
	demands []*hpa.Demand
	bounds  []hpa.Bounds
	targets []hpa.Target
}

// bind adds to the bounds of a service. Its demand in the day ahead stays as its chain has it.
func (z *sizing) bind(i int, more func(*hpa.Bounds)) {
	more(&z.bounds[i])
	t := &z.targets[i]
	ahead, likely := t.Ahead, t.Likely
	*t = z.decide(i, z.demands[i])
	t.Ahead, t.Likely = ahead, likely
}

// decide sizes a service by a demand of it, within its bounds; what must not change stays.
func (z *sizing) decide(i int, d *hpa.Demand) hpa.Target {
	t := d.Within(z.bounds[i])
	svc := &z.in.Snapshot.Services[i]
	if n := svc.Pinned(); n.OK {
		z.pin(&t, i, n.Value)
	}
	if by := z.in.permit(sizeOf(svc), directionOf(t.Decision.From, t.Replicas)); !by.None() {
		t.Hold(by)
	}
	return t
}

// pin sets a size to the one that a pause states. The tenant's quota bounds its growth, as it bounds all others.
func (z *sizing) pin(t *hpa.Target, i int, n int32) {
	from := t.Decision.From
	if q := z.bounds[i].Quota; q > 0 && n > max(q, from) {
		n = max(q, from)
	}
	t.Pin(n, reason.Of(reason.PausedAt, n, PausedBy(fleet.PauseAll, &z.in.Snapshot.Services[i].Hold)))
}

// demands asks each service once.
func (in *Input) demands() *sizing {
	s := in.Snapshot
	z := &sizing{in, make([]*hpa.Demand, len(s.Services)), make([]hpa.Bounds, len(s.Services)),
		make([]hpa.Target, len(s.Services))}
	for i := range s.Services {
		id := s.Services[i].ID
		z.demands[i] = hpa.Ask(&s.Services[i], in.Portraits[id], in.Tides[id], in.Live[id], s.At, hpa.Options{History: in.History[id], Festivals: s.Festivals,
			WatchedSince: s.WatchedSince, Window: in.Options.Window, Quantiles: in.Quantiles,
			Defaults: hpa.Defaults{Cycle: in.Options.Interval}})
		z.targets[i] = z.decide(i, z.demands[i])
	}
	return z
}
