package hpa

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

func TestMeet(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	w := func(schedule string, d time.Duration, zone *time.Location) *fleet.Window {
		return &fleet.Window{Schedule: schedule, Duration: d, Zone: zone}
	}
	from := time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		a, b *fleet.Window
		want string
	}{
		{"lunch within the day", w("30 11 * * *", 2*time.Hour, time.UTC), w("0 8 * * *", 12*time.Hour, time.UTC), "2028-01-01T11:30:00Z"},
		{"one ends when the other begins", w("0 8 * * *", 2*time.Hour, time.UTC), w("0 10 * * *", 2*time.Hour, time.UTC), ""},
		{"the same reading in two zones", w("0 20 * * *", 2*time.Hour, time.UTC), w("0 20 * * *", 2*time.Hour, shanghai), ""},
		{"the same moment in two zones", w("0 12 * * *", time.Hour, time.UTC), w("0 20 * * *", time.Hour, shanghai), "2028-01-01T12:00:00Z"},
		{"a leap day on a weekday window", w("0 9 29 2 *", time.Hour, time.UTC), w("0 8 * * 2", 4*time.Hour, time.UTC), "2028-02-29T09:00:00Z"},
		{"every minute meets all", w("* * * * *", time.Minute, time.UTC), w("0 0 24 12 *", time.Hour, time.UTC), "2028-12-24T00:00:00Z"},
		{"not to be read", w("0 0 * *", time.Hour, time.UTC), w("0 0 * * *", time.Hour, time.UTC), ""},
		{"no zone", w("0 0 * * *", time.Hour, nil), w("0 0 * * *", time.Hour, time.UTC), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, pair := range [][2]*fleet.Window{{c.a, c.b}, {c.b, c.a}} {
				got := ""
				if at, ok := Meet(pair[0], pair[1], from); ok {
					got = at.UTC().Format(time.RFC3339)
				}
				if got != c.want {
					t.Errorf("they meet at %q, want %q", got, c.want)
				}
			}
		})
	}
}
