package calendar

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Of are the days of a service's calendar that overlap [from, to), in order. Days of the operator's are of the kind [Own]; a feast of
// several days has its offsets from the first. 29 February comes in leap years alone.
func Of(c *fleet.Calendar, from, to time.Time) []Day {
	zone := c.Zone
	if zone == nil {
		zone = time.UTC
	}
	var out []Day
	for _, r := range c.Regions {
		out = append(out, Days(r, from, to, zone)...)
	}
	for _, d := range c.Days {
		first, last := d.Year, d.Year
		if d.Year == 0 {
			first, last = from.In(zone).Year()-1, to.In(zone).Year()
		}
		for year := first; year <= last; year++ {
			if on("", Own, 0, year, d.Month, d.Day, zone).From.Month() != d.Month {
				continue
			}
			for k := range max(1, d.Length) {
				one := on(d.Name, Own, k, year, d.Month, d.Day+k, zone)
				if one.From.Before(to) && from.Before(one.To) {
					out = append(out, one)
				}
			}
		}
	}
	slices.SortFunc(out, Compare)
	return slices.Compact(out)
}
