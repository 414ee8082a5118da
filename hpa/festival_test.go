package hpa

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
)

func TestFestivalCheck(t *testing.T) {
	cart := calm(8)
	cart.tide(100, 250, 250, 100)
	young := calm(4) // a service without a tide
	young.svc.ID, young.t = "shop/young", forecast.Tide{}
	other := calm(6)
	other.svc.ID = "shop/other"
	other.svc.Windows = []fleet.Window{{Name: "w", Schedule: "0 13 * * *", Duration: time.Hour, Zone: time.UTC, Min: 11}}
	other.tide(50)
	services := []fleet.Service{cart.svc, other.svc, young.svc}
	tides := map[fleet.ServiceID]forecast.Tide{"shop/cart": cart.t, "shop/other": other.t}
	portraits := map[fleet.ServiceID]portrait.Portrait{"shop/cart": cart.p, "shop/other": other.p, "shop/young": young.p}
	room := func(pods map[fleet.Resources]int64) fleet.Resources {
		var n int64
		for _, k := range pods {
			n += k
		}
		return fleet.Resources{CPU: fleet.MilliCPU(40_000 + n), Memory: 100 * fleet.GiB, Pods: 100}
	}

	plan := fleet.Festival{ID: "spring", Start: noon.Add(30 * time.Minute), End: noon.Add(3 * time.Hour), Lifts: []fleet.Lift{
		{Service: "shop/cart", Factor: 3, Start: noon.Add(time.Hour)},
		{Service: "shop/young", Factor: 2, Floor: 5},
	}}
	rows := FestivalCheck(plan, services, tides, portraits, room)
	type line struct {
		hour          int
		without, with int64
		short         fleet.MilliCPU
	}
	want := []line{
		{12, 4 + 2 + 4, 4 + 2 + 8, 0},              // young: 2 × the four that run stand in for its tide
		{13, 10 + 11 + 4, 30 + 11 + 8, 9_000 - 49}, // room is asked of the pods of that hour; 250 × 3 / 25 = 30
		{14, 10 + 2 + 4, 30 + 2 + 8, 0},            //
	}
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d: %+v", len(rows), len(want), rows)
	}
	for i, w := range want {
		r := rows[i]
		if got := (line{r.From.Hour(), r.ReplicasWithout, r.ReplicasWith, r.Short.CPU}); got != w {
			t.Errorf("row %d: %+v, want %+v", i, got, w)
		}
		if r.With.Pods != w.with || r.With.CPU != fleet.MilliCPU(w.with*1000) || r.Without.Memory != fleet.Bytes(w.without)*2*fleet.GiB {
			t.Errorf("row %d: demand %v with and %v without", i, r.With, r.Without)
		}
		if !slices.Equal(r.Assumed, []fleet.ServiceID{"shop/young"}) || len(r.Cut) > 0 {
			t.Errorf("row %d: assumed %v, cut %v", i, r.Assumed, r.Cut)
		}
	}

	plan.Lifts[0].Factor = 10
	if rows := FestivalCheck(plan, services, tides, portraits, room); !slices.Equal(rows[1].Cut,
		[]fleet.ServiceID{"shop/cart"}) ||
		rows[1].ReplicasWith != 40+11+8 {
		t.Errorf("a lift beyond the maximum of 40: %+v", rows[1])
	}
	if rows := FestivalCheck(fleet.Festival{Start: noon, End: noon}, services, tides, portraits, room); rows != nil {
		t.Errorf("an empty festival has rows: %v", rows)
	}
}

// A festival lies weeks ahead: the same hour of the tide's last whole day, or week, stands in.
func TestFestivalBeyondTheTide(t *testing.T) {
	w := calm(8)
	w.tide(append(slices.Repeat([]float64{100}, 6), 500, 100)...) // 18:00 asks for 20 on the first day only
	for i := range w.t.Paths {
		copy(w.t.Paths[i][288:], w.t.Paths[i][:288]) // and on the second
	}
	at := noon.AddDate(0, 0, 30).Add(6 * time.Hour)
	check := func(at time.Time) HourRow {
		plan := fleet.Festival{ID: "f", Start: at, End: at.Add(time.Hour)}
		return FestivalCheck(plan, []fleet.Service{w.svc}, map[fleet.ServiceID]forecast.Tide{w.svc.ID: w.t},
			map[fleet.ServiceID]portrait.Portrait{w.svc.ID: w.p}, nil)[0]
	}
	if r := check(at); r.ReplicasWithout != 20 || len(r.Assumed) != 1 {
		t.Errorf("thirty days on: %+v", r)
	}
	if r := check(at.Add(-time.Hour)); r.ReplicasWithout != 4 || len(r.Assumed) != 1 {
		t.Errorf("an hour earlier: %+v", r)
	}
	if r := check(noon.Add(-18 * time.Hour)); r.ReplicasWithout != 20 || len(r.Assumed) != 1 {
		t.Errorf("yesterday: %+v", r)
	}
	if r := check(noon.Add(30 * time.Hour)); r.ReplicasWithout != 20 || len(r.Assumed) != 0 {
		t.Errorf("within the tide: %+v", r)
	}
}
