package planner

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/quota"
)

// size judges every service and divides the capacity among their tenants. Services are sized without a quota first, since their wishes are
// what there is to divide, and what a link group asks of its members is such a wish; those of a tenant that wishes for more than it may have are sized again under its limit.
func size(in *Input, room *fleet.Occupancy) ([]hpa.Target, quota.Division, *tenants, []LinkView) {
	s := in.Snapshot
	targets := make([]hpa.Target, len(s.Services))
	for i := range s.Services {
		targets[i] = in.sizeOne(&s.Services[i], hpa.Options{})
	}
	in.told = map[fleet.ServiceID]hpa.Options{}
	links, linked := in.link(targets)
	t := in.tenants(room, targets, linked)
	division := quota.Divide(t.input)
	for i := range division.Shares {
		t.bound(targets, &division.Shares[i])
	}
	return targets, division, t, links
}

// sizeAgain sizes a service with one thing more to go by than it was sized with before in this plan. What it asks for in the day ahead stays.
func (in *Input) sizeAgain(svc *fleet.Service, t *hpa.Target, more func(*hpa.Options)) {
	o := in.told[svc.ID]
	more(&o)
	in.told[svc.ID] = o
	ahead, likely := t.Ahead, t.Likely
	*t = in.sizeOne(svc, o)
	t.Ahead, t.Likely = ahead, likely
}

// sizeOne sizes a service; o says no more than what its call chain, its quota and its pool have to say to it.
func (in *Input) sizeOne(svc *fleet.Service, o hpa.Options) hpa.Target {
	s := in.Snapshot
	o.History, o.Festivals = in.History[svc.ID], s.Festivals
	o.WatchedSince, o.Window, o.Defaults = s.WatchedSince, in.Options.Window, hpa.Defaults{Cycle: in.Options.Interval}
	return hpa.Size(svc, in.Portraits[svc.ID], in.Tides[svc.ID], in.Live[svc.ID], s.At, o)
}
