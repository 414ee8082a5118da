package hpa

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/signal"
)

// workParts size by work that arrives, and by work that waits, where the operator says how much of it a replica does a
// second. A backlog asks for the replicas that drain it in time in addition to what arrives.
func (z *sizer) workParts() []Part {
	work := z.svc.SLO.Level(fleet.LevelNameThroughput)
	if work == nil || !(work.PerReplica > 0) {
		return nil
	}
	arrives := z.live.Levels[work.Name]
	parts := []Part{z.workPart(work.Name, arrives, work.PerReplica)}
	if l := z.svc.SLO.Level(fleet.LevelNameBacklog); l != nil && l.DrainWithin > 0 {
		parts = append(parts, z.workPart(l.Name, drained(l, z.live.Levels[l.Name], arrives), work.PerReplica))
	}
	return parts
}

// drained is the work a second that does what arrives and drains what waits in time; as old as the older of both.
func drained(l *fleet.Level, waits, arrives fleet.Known[float64]) fleet.Known[float64] {
	if !waits.OK || !arrives.OK {
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
	z.divided(&part, k, target)
	return part
}
