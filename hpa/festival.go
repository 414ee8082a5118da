package hpa

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
)

// HourRow is one hour of a festival plan's check: what online services would ask for at most within it, against what there is.
type HourRow struct {
	From time.Time
	// Without and With are the demand of all services without the plan and with it, in resources and in replicas.
	Without, With                 fleet.Resources
	ReplicasWithout, ReplicasWith int64
	// Supply is what online may use, Short by how much With exceeds it.
	Supply, Short fleet.Resources
	// Cut names services whose lift their own bounds cut; Assumed those whose tide does not reach this hour, so that the same hour of its
	// last day stands in, or last week's peak where there is no tide.
	Cut, Assumed []fleet.ServiceID
	pods         map[fleet.Resources]int64 // with the plan, by what one requests
}

// RoomFor is what machines have for so many pods of each request; nil asks for no supply.
type RoomFor func(pods map[fleet.Resources]int64) fleet.Resources

// FestivalCheck computes a festival plan hour by hour, as if it were approved and no other plan ran. Demand is the
// largest of each hour, and the services' hours are added as if their peaks met: the bias is towards seeing a shortage.
func FestivalCheck(plan fleet.Festival, services []fleet.Service, tides map[fleet.ServiceID]forecast.Tide,
	portraits map[fleet.ServiceID]portrait.Portrait, room RoomFor,
) []HourRow {
	plan.Approved = true
	start := plan.Start.Truncate(time.Hour)
	var rows []HourRow
	for from := start; from.Before(plan.End); from = from.Add(time.Hour) {
		rows = append(rows, HourRow{From: from, pods: map[fleet.Resources]int64{}})
	}
	for i := range services {
		svc := &services[i]
		t, p := tides[svc.ID], portraits[svc.ID]
		o := Options{Festivals: []fleet.Festival{plan}}
		o.Defaults.AheadFor = time.Duration(len(rows)+1) * time.Hour
		with := newSizer(svc, &p, &t, &Live{}, start, o)
		for j := range with.lifts {
			with.lifts[j].running = false // the check begins with the plan, and what runs is of before it
		}
		without := *with
		without.t, without.lifts = &t, nil // as it was made, days of the calendar and all
		plain, lifted := without.along(with.quantile, 1), with.along(with.quantile, 1)
		for j := range rows {
			from := time.Duration(j) * time.Hour
			rows[j].add(svc, plain.most(from, from+time.Hour), lifted.most(from, from+time.Hour))
		}
	}
	for i := range rows {
		if room != nil {
			rows[i].Supply = room(rows[i].pods)
		}
		rows[i].Short = rows[i].With.Sub(rows[i].Supply).Floor()
	}
	return rows
}

// add is a service's hour without the plan and with it.
func (row *HourRow) add(svc *fleet.Service, without, with stretch) {
	if with.assumed {
		row.Assumed = append(row.Assumed, svc.ID)
	}
	if with.cut {
		row.Cut = append(row.Cut, svc.ID)
	}
	one := svc.ReplicaPods()
	row.ReplicasWithout += int64(without.replicas)
	row.ReplicasWith += int64(with.replicas)
	row.Without = row.Without.Add(one.Times(int64(without.replicas)))
	row.With = row.With.Add(one.Times(int64(with.replicas)))
	row.pods[svc.Request] += int64(with.replicas)
}
