package quota

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Of many shortages the first and the worst are told, in the order of time: a small one every other hour never hides that of Friday. Slices
// that cannot be kept are told alike, each at its worst.
func TestTheWorstAheadIsTold(t *testing.T) {
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
