package hpa

import (
	"math"
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
}

// FestivalCheck reckons a festival plan hour by hour, as if it were approved and no other plan ran. Demand is the largest of each hour, and
// the services' hours are added as if their peaks met: the bias is towards seeing a shortage.
func FestivalCheck(plan fleet.Festival, services []fleet.Service, tides map[fleet.ServiceID]forecast.Tide,
	portraits map[fleet.ServiceID]portrait.Portrait, supply fleet.Resources,
) []HourRow {
	plan.Approved = true
	start := plan.Start.Truncate(time.Hour)
	var rows []HourRow
	for from := start; from.Before(plan.End); from = from.Add(time.Hour) {
		rows = append(rows, HourRow{From: from, Supply: supply})
	}
	for i := range services {
		svc := &services[i]
		t, p := tides[svc.ID], portraits[svc.ID]
		o := Options{Festivals: []fleet.Festival{plan}}
		o.Defaults.AheadFor = time.Duration(len(rows)+1) * time.Hour
		z := newSizer(svc, &p, &t, &Live{}, start, o)
		for j := range rows {
			z.hour(&rows[j], &t)
		}
	}
	for i := range rows {
		rows[i].Short = rows[i].With.Sub(supply).Floor()
	}
	return rows
}

// hour adds one service's demand to a row. t is its tide as it was made, days of the calendar and all: so it would be without the plan.
func (z *sizer) hour(row *HourRow, t *forecast.Tide) {
	from, to := row.From, row.From.Add(time.Hour)
	own, lifts := z.t, z.lifts
	defer func() { z.t, z.lifts = own, lifts }()
	tide, assumed := covering(*t, from, to)
	if assumed {
		row.Assumed = append(row.Assumed, z.svc.ID)
	}
	z.t, z.lifts = &tide, nil
	without := z.demand(from, to)
	z.t = planned(&tide, lifts)
	with := z.demand(from, to)
	for i := range lifts {
		l := &lifts[i]
		asked, load := l.ask(z, from, to)
		if math.IsNaN(load) && l.meets(from, to) && l.factor > 0 {
			// Without a tide the factor multiplies what stands in for it.
			asked = max(asked, ceil(l.factor*float64(without)))
		}
		with = max(with, asked)
	}
	if b := z.bounds(from, to); with > b.most {
		with = b.most
		row.Cut = append(row.Cut, z.svc.ID)
	}
	one := z.svc.Request.OnePod()
	row.ReplicasWithout += int64(without)
	row.ReplicasWith += int64(with)
	row.Without = row.Without.Add(one.Times(int64(without)))
	row.With = row.With.Add(one.Times(int64(with)))
}

// covering moves a tide by whole days, or by whole weeks where it spans one, until it covers [from, to); it reports whether it had to, or
// could not. A festival is planned weeks ahead, and a tide reaches a day or two.
func covering(t forecast.Tide, from, to time.Time) (forecast.Tide, bool) {
	if t.Step <= 0 || len(t.Paths) == 0 {
		return t, true
	}
	length := time.Duration(len(t.Paths[0])) * t.Step
	end := t.Start.Add(length)
	if !from.Before(t.Start) && !to.After(end) {
		return t, false
	}
	period := 24 * time.Hour
	if length >= 7*period {
		period *= 7
	}
	late := to.Sub(end)
	if from.Before(t.Start) {
		late = from.Sub(t.Start)
	}
	// Days of a calendar do not move with it.
	if t.Ordinary != nil {
		t.Paths = t.Ordinary
	}
	n := late / period
	if late > 0 && late%period != 0 {
		n++
	} else if late < 0 && late%period != 0 {
		n--
	}
	t.Start = t.Start.Add(n * period)
	return t, true
}
