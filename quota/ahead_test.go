package quota

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/fleet"
)

// Of many shortages the first and the worst are reported, in the order of time: a small one every other hour never
// hides that of Friday. Slices that cannot be kept are reported alike, each at its worst.
func TestTheWorstAheadIsReported(t *testing.T) {
	pay := tenant("pay", "", 100)
	pay.BorrowingLimit = limit(0)
	in := Input{At: now, Supply: fleet.KnownAt(cores(200), now), Wants: []Want{{Tenant: "pay", Now: cores(50)}}}
	for k := range 40 {
		from := now.Add(time.Duration(k) * time.Hour)
		in.Ahead = append(in.Ahead, from)
		wish := cores(50)
		if k%2 == 1 {
			wish = cores(105)
			pay.Slices = append(pay.Slices, fleet.Slice{Window: fleet.Window{Min: int32(k)}, Guarantee: cores(205)}) // Min carries the start here
		}
		if k == 37 {
			wish = cores(400)
			pay.Slices[len(pay.Slices)-1].Guarantee = cores(400)
		}
		in.Wants[0].Ahead = append(in.Wants[0].Ahead, wish)
	}
	in.Tenants = []fleet.Tenant{pay}
	d := Divide(in)
	if len(d.Short) != mostStretches || d.Short[0].From != in.Ahead[1] || d.Short[0].By != cores(5) || d.Short[0].Until != in.Ahead[2] {
		t.Errorf("%d shortages, the first %+v", len(d.Short), d.Short[0])
	}
	if x := d.Short[len(d.Short)-1]; x.From != in.Ahead[37] || x.By != cores(300) {
		t.Errorf("the last shortage is %+v", x)
	}
	in.Open = func(w fleet.Window, at time.Time) bool {
		from := now.Add(time.Duration(w.Min) * time.Hour)
		return !at.Before(from) && at.Before(from.Add(time.Hour))
	}
	d = Divide(in)
	if x := d.Oversold; len(x) != mostStretches || x[0].From != in.Ahead[1] || x[len(x)-1].From != in.Ahead[37] || x[len(x)-1].Promised != cores(400) || x[len(x)-1].Kept != cores(200) {
		t.Errorf("oversold: %+v", x)
	}
}

// Slices that open and close move the ground from one step to the next. State kept from step to step never shows: each
// comes to what it would be if it were the only one.
func TestEachStepAheadStandsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		open := rapid.SliceOfN(rapid.Bool(), 6, 6).Draw(t, "open")
		in.Open = func(_ fleet.Window, at time.Time) bool { return open[int(at.Sub(now)/time.Hour)%len(open)] }
		in.Ahead = in.Ahead[:1]
		for i := range in.Wants {
			in.Wants[i].Ahead = in.Wants[i].Ahead[:1]
		}
		alone := make([]Division, len(open))
		wishes := [2][]fleet.Resources{}
		for range in.Wants {
			for k := range wishes {
				wishes[k] = append(wishes[k], bundle(t, 150, "wish"))
			}
		}
		for k := 1; k < len(open); k++ {
			in.Ahead = append(in.Ahead, now.Add(time.Duration(k)*time.Hour))
			one := in
			one.Ahead, one.Wants = []time.Time{now, in.Ahead[k]}, slices.Clone(in.Wants)
			which := rapid.IntRange(0, 1).Draw(t, "which")
			for i := range in.Wants {
				wish := wishes[which][i]
				in.Wants[i].Ahead = append(in.Wants[i].Ahead, wish)
				one.Wants[i].Ahead = []fleet.Resources{{}, wish}
			}
			alone[k] = Divide(one)
		}
		all := Divide(in)
		for k := 1; k < len(open); k++ {
			for i := range in.Tenants {
				id, at := in.Tenants[i].ID, in.Ahead[k]
				covers := func(from, until time.Time) bool { return !at.Before(from) && (until.IsZero() || at.Before(until)) }
				short := func(x Short) bool { return x.Tenant == id && covers(x.From, x.Until) }
				sold := func(x Oversold) bool { return x.Tenant == id && covers(x.From, x.Until) }
				if slices.ContainsFunc(all.Short, short) != slices.ContainsFunc(alone[k].Short, short) {
					t.Fatalf("step %d, %s: short among others %+v, alone %+v", k, id, all.Short, alone[k].Short)
				}
				if slices.ContainsFunc(all.Oversold, sold) != slices.ContainsFunc(alone[k].Oversold, sold) {
					t.Fatalf("step %d, %s: oversold among others %+v, alone %+v", k, id, all.Oversold, alone[k].Oversold)
				}
			}
		}
	})
}
