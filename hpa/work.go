package hpa

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/signal"
)

// workParts size by work that arrives, and by work that waits. A replica does as much of it a second as the operator
// says, else as was learned. A backlog asks for the replicas that drain it in time in addition to what arrives, now and
// by the forecast of that time.
func (z *sizer) workParts() []Part {
	arrives, does := z.work()
	if !(does > 0) {
		return nil
	}
	var parts []Part
	if work := z.svc.SLO.Level(fleet.LevelNameThroughput); work != nil {
		parts = append(parts, z.workPart(work.Name, arrives, does))
	}
	if l := z.svc.SLO.Level(fleet.LevelNameBacklog); l != nil && l.DrainWithin > 0 {
		parts = append(parts, z.workPart(l.Name, drained(l, z.live.Levels[l.Name], z.foreseen(arrives,
			l.DrainWithin)), does))
	}
	return parts
}

// work is what arrives a second, and how much of it one replica does; 0 where that is neither stated nor learned. It is
// learned in the unit of the load, which is the work that arrives, or the requests of a service that states none.
func (z *sizer) work() (arrives fleet.Known[float64], does float64) {
	arrives = z.load
	if work := z.svc.SLO.Level(fleet.LevelNameThroughput); work != nil {
		arrives, does = z.live.Levels[work.Name], work.PerReplica
	}
	if does == 0 && z.capacityKnown && z.p.Signal == portrait.Requests {
		does = z.capacity
	}
	return arrives, does
}

// foreseen is the work that arrives: what is measured, and no less than the median of the tide has it at most within a
// time. Work that is not known is not made up.
func (z *sizer) foreseen(arrives fleet.Known[float64], within time.Duration) fleet.Known[float64] {
	if tide := z.t.Max(z.now, z.now.Add(within), 0.5); arrives.OK && z.tideUsable() && signal.Sound(tide) {
		arrives.Value = max(arrives.Value, tide)
	}
	return arrives
}

// drained is the work a second that does what arrives and drains what waits in time; as old as the older of both.
func drained(l *fleet.Level, waits, arrives fleet.Known[float64]) fleet.Known[float64] {
	if !waits.OK || !arrives.OK || !signal.Sound(waits.Value) || !signal.Sound(arrives.Value) {
		return fleet.Known[float64]{}
	}
	at := waits.At
	if arrives.At.Before(at) {
		at = arrives.At
	}
	return fleet.KnownAt(arrives.Value+waits.Value/l.DrainWithin.Seconds(), at)
}

func (z *sizer) workPart(name string, k fleet.Known[float64], target float64) Part {
	part := Part{Kind: PartReactive, Name: name}
	how := z.number(k)
	if how != signal.Fresh {
		z.miss(MissingMetric, name)
	}
	if how == signal.Absent {
		part.Why = whyAbsent(k, z.now)
		return part
	}
	z.shared(&part, k, target, z.doing(k.Value/target))
	return part
}

// doing is how many replicas do work for so many, or as many as there are where that is within the tolerance. Upstream
// counts metrics in thousandths; work may be slower than that, as of a replica that does two in an hour.
func (z *sizer) doing(replicas float64) int32 {
	if z.current > 0 && z.tolerance.within(replicas/float64(z.current)) {
		return z.current
	}
	return ceil(replicas - 1e-9)
}
