package calendar

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
)

func TestOf(t *testing.T) {
	shanghai := zoneOf(t, "Asia/Shanghai")
	date := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, shanghai) }
	c := fleet.Calendar{Zone: shanghai, Days: []fleet.NamedDay{
		{Name: "Founders' sale", Month: time.December, Day: 31, Length: 3},
		{Name: "Opening", Year: 2026, Month: time.January, Day: 2, Length: 1},
		{Name: "Leap", Month: time.February, Day: 29, Length: 1},
	}}
	show := func(days []Day) []string {
		var out []string
		for _, d := range days {
			out = append(out, fmt.Sprintf("%s %s %s %d", d.From.Format(time.RFC3339), d.Name, d.Kind, d.Offset))
		}
		return out
	}
	if d := cmp.Diff([]string{
		"2026-01-01T00:00:00+08:00 Founders' sale own 1",
		"2026-01-02T00:00:00+08:00 Founders' sale own 2",
		"2026-01-02T00:00:00+08:00 Opening own 0",
	}, show(Of(&c, date(2026, 1, 1), date(2026, 3, 5)))); d != "" {
		t.Error(d)
	}
	if got := show(Of(&c, date(2028, 2, 1), date(2028, 3, 5))); !slices.Equal(got, []string{"2028-02-29T00:00:00+08:00 Leap own 0"}) {
		t.Errorf("leap year: %v", got)
	}
	c.Regions = []string{"CN", "US"}
	got := Of(&c, date(2026, 2, 1), date(2026, 3, 1))
	if !slices.IsSortedFunc(got, Compare) || find(got, spring, 0) != "2026-02-17" || find(got, "Presidents' Day", 0) != "2026-02-16" {
		t.Errorf("both regions: %v", show(got))
	}
	if got := Of(&fleet.Calendar{}, date(2026, 1, 1), date(2027, 1, 1)); got != nil {
		t.Errorf("no calendar: %v", got)
	}
}
