package festival

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast/calendar"
)

// Day names a day that comes once a year: a day of a region's calendar, a date, or the nth weekday of a month.
type Day struct {
	// Region and Name are of the calendar: CN and Spring Festival.
	Region, Name string
	// Month and Date are a date of each year; Nth is set in place of Date for a weekday of the month, -1 for the last.
	Month   time.Month
	Date    int
	Nth     int
	Weekday time.Weekday
}

var nths = map[string]int{"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}

// ParseDay reads "Spring Festival" with a region, "11-11", or "last Friday of November".
func ParseDay(region, text string) (Day, error) {
	if region != "" {
		return named(region, text)
	}
	if t, err := time.Parse(time.DateOnly, "2000-"+text); err == nil { // a leap year: 29 February is a date
		return Day{Month: t.Month(), Date: t.Day()}, nil
	}
	if words := strings.Fields(text); len(words) == 4 && words[2] == "of" {
		d := Day{Nth: nths[strings.ToLower(words[0])], Month: monthOf(words[3])}
		weekday, ok := weekdayOf(words[1])
		if d.Weekday = weekday; ok && d.Nth != 0 && d.Month != 0 {
			return d, nil
		}
	}
	return Day{},
		fmt.Errorf("day %q is not known: write a date such as 11-11, a weekday such as last Friday of November, "+
			"or the name of a day of the calendar with its region", text)
}

// named finds a day of a region's calendar in the years that its tables know.
func named(region, name string) (Day, error) {
	if !slices.Contains(calendar.Regions(), region) {
		return Day{}, fmt.Errorf("region %q has no calendar: write one of %s", region, strings.Join(calendar.Regions(), ", "))
	}
	from := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	var names []string
	for _, d := range calendar.Days(region, from, from.AddDate(2, 0, 0), time.UTC) {
		if d.Offset != 0 || slices.Contains(names, d.Name) {
			continue
		}
		if names = append(names, d.Name); d.Name == name {
			return Day{Region: region, Name: name}, nil
		}
	}
	slices.Sort(names)
	return Day{}, fmt.Errorf("region %s has no day %q: write one of %s", region, name, strings.Join(names, ", "))
}

func monthOf(word string) time.Month {
	for m := time.January; m <= time.December; m++ {
		if strings.EqualFold(word, m.String()) {
			return m
		}
	}
	return 0
}

func weekdayOf(word string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(word, d.String()) {
			return d, true
		}
	}
	return 0, false
}

// In is the date of the day in a year; false where it does not come: 29 February, a lunar day beyond the calendar's
// tables.
func (d Day) In(year int) (fleet.Date, bool) {
	first := time.Date(year, max(d.Month, time.January), 1, 0, 0, 0, 0, time.UTC)
	switch {
	case d.Region != "":
		for _, x := range calendar.Days(d.Region, first, first.AddDate(1, 0, 0), time.UTC) {
			if x.Name == d.Name && x.Offset == 0 {
				return dateOf(x.From), true
			}
		}
		return fleet.Date{}, false
	case d.Nth < 0:
		last := first.AddDate(0, 1, -1)
		return dateOf(last.AddDate(0, 0, -days(d.Weekday, last.Weekday()))), true
	case d.Nth > 0:
		return dateOf(first.AddDate(0, 0, days(first.Weekday(), d.Weekday)+7*(d.Nth-1))), true
	}
	out := fleet.Date{Year: year, Month: d.Month, Day: d.Date}
	return out, dateOf(first.AddDate(0, 0, d.Date-1)) == out
}

// days is how many days lie between a day of the week and the next of another one: 0 to 6.
func days(from, to time.Weekday) int { return int(to-from+7) % 7 }
