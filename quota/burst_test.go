package quota

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// A burst that the low watermark ended is over, wished for or not: it rests from there, however high the level climbs,
// and begins again only then.
func TestBurstEndedByTheLowWatermarkRests(t *testing.T) {
	for _, wish := range []int64{150, 50} { // when it ends
		pay := tenant("pay", "", 100)
		pay.BorrowingLimit, pay.Burst, pay.BurstSince = limit(10), fleet.Burst{Percent: 50, Duration: 30 * time.Minute}, now.Add(-10*time.Minute)
		for _, c := range []struct {
			after time.Duration
			level float64
			wish  int64
			on    bool
		}{
			{0, 0.06, 150, true},
			{time.Minute, 0.04, wish, false},
			{2 * time.Minute, 0.06, 150, false},
			{25 * time.Minute, 0.5, 150, false}, // the rest of the first one would be on, had it lasted
			{30 * time.Minute, 0.5, 150, false},
			{32 * time.Minute, 0.1, 150, false}, // rested, and too low to begin
			{33 * time.Minute, 0.5, 150, true},
		} {
			at := now.Add(c.after)
			d := Divide(Input{At: at, Supply: fleet.KnownAt(cores(300), at), Tenants: []fleet.Tenant{pay}, Wants: []Want{{Tenant: "pay", Now: cores(c.wish)}},
				Level: Level{Share: fleet.KnownAt(c.level, at), Low: 0.05, High: 0.15}})
			x := d.Share("pay")
			if x.Bursting != c.on {
				t.Errorf("ended at a wish of %d, %s after: bursts %v at a level of %.2f, want %v: %s", wish, c.after, x.Bursting, c.level, c.on, x.BurstWhy)
			}
			pay.BurstSince = x.BurstSince
		}
	}
}
