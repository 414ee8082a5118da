package festive

import (
	"slices"
	"time"

	"github.com/springtide/springtide/forecast/calendar"
)

// The kinds of days that are made from the calendar's own.
const (
	eve    calendar.Kind = "eve"
	after  calendar.Kind = "after"
	bridge calendar.Kind = "bridge" // a working day between two free ones
)

// dayNumber is the number of a date, whatever the zone.
func dayNumber(t time.Time) int {
	y, m, d := t.Date()
	return int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

func weekday(number int) int { return ((number+4)%7 + 7) % 7 } // day 0 was a Thursday

func weekend(number int) bool { return weekday(number) == sunday || weekday(number) == saturday }

// mark gives each date its day: that which says most of it, or the neighbour of one. Numbers are those of the dates.
func mark(days []calendar.Day) map[int]calendar.Day {
	marks := map[int]calendar.Day{}
	sorted := slices.Clone(days)
	slices.SortStableFunc(sorted, calendar.Compare)
	for _, d := range sorted {
		if _, taken := marks[dayNumber(d.From)]; !taken {
			marks[dayNumber(d.From)] = d
		}
	}
	free := func(n int) (holiday, off bool) {
		d, ok := marks[n]
		holiday = ok && (d.Kind == calendar.Holiday || d.Kind == calendar.Own)
		return holiday, holiday || weekend(n) && !ok
	}
	beside := map[int]calendar.Day{}
	for _, d := range sorted {
		n := dayNumber(d.From)
		if marks[n] != d || d.Kind == calendar.Feast || d.Kind == calendar.Minor || d.Kind == calendar.Work {
			continue
		}
		for _, side := range []struct {
			kind calendar.Kind
			days int
		}{{after, 1}, {eve, -1}} {
			at := n + side.days
			if _, taken := marks[at]; taken {
				continue
			}
			kind := side.kind
			h1, off1 := free(at - 1)
			h2, off2 := free(at + 1)
			if !weekend(at) && off1 && off2 && (h1 || h2) {
				kind = bridge
			}
			// A day between two holidays is the eve of the second: the later one overwrites.
			beside[at] = calendar.Day{Name: d.Name, Kind: kind, From: d.From.AddDate(0, 0, side.days), To: d.To.AddDate(0, 0, side.days)}
		}
	}
	for n, d := range beside {
		marks[n] = d
	}
	return marks
}
