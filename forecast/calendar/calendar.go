// Package calendar names the days on which load is unlike that of other days: public holidays, lunar festivals, sales. It says when they
// are, not what they do to a service: that is learned (package festive).
//
// Fixed days come from rickar/cal. The lunar festivals and the exchanged working days of China come from a generated
// table, whose dates a test computes again from new moons and the sun's longitude.
package calendar

import (
	"cmp"
	"slices"
	"time"
)

// Kind is what kind of day a day is. Days of one kind tend to resemble each other: that is what is expected of one that was never seen.
type Kind string

// The kinds, from the one that says most of a day's load to the one that says least: where several days fall on one date the first counts.
const (
	Own     Kind = "own"     // named by the operator
	Sale    Kind = "sale"    // shops draw crowds: 11.11, Black Friday
	Work    Kind = "work"    // a day of the weekend that is worked in exchange for another
	Holiday Kind = "holiday" // a day off
	Minor   Kind = "minor"   // a day off of the state's offices that most others work through: Columbus Day
	Feast   Kind = "feast"   // kept by many and no day off: Lantern Festival, Christmas Eve
)

var kinds = []Kind{Own, Sale, Work, Holiday, Minor, Feast}

// Day is one day of a name: the same name and offset at another date is another occurrence of it.
type Day struct {
	Name string
	Kind Kind
	// Offset is the number of days after the day that has given a feast of several days its name; below zero before it.
	Offset int
	// From and To bound the day: midnights of its zone, so that it may have 23 or 25 hours.
	From, To time.Time
}

// Compare orders days by time, and those of one date by how much they say.
func Compare(a, b Day) int {
	return cmp.Or(a.From.Compare(b.From), cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Offset, b.Offset))
}

// Regions are those whose days are known, sorted: ISO 3166 codes of countries.
func Regions() []string {
	out := []string{china}
	for _, r := range fixed {
		out = append(out, r.code)
	}
	slices.Sort(out)
	return out
}

// Days are the days of a region that overlap [from, to), in order. A region that is not known has none.
func Days(region string, from, to time.Time, zone *time.Location) []Day {
	if zone == nil {
		zone = time.UTC
	}
	var all []Day
	// A day may be kept in the year before its own: New Year's Day on a Saturday is kept on the Friday.
	for year := from.In(zone).Year() - 1; year <= to.In(zone).Year()+1; year++ {
		all = append(all, ofYear(region, year, zone)...)
	}
	all = slices.DeleteFunc(all, func(d Day) bool { return !d.From.Before(to) || !from.Before(d.To) })
	slices.SortFunc(all, Compare)
	return slices.Compact(all)
}

// ofYear are the days of a region that belong to one year.
func ofYear(region string, year int, zone *time.Location) []Day {
	if region == china {
		return chinaDays(year, zone)
	}
	for _, r := range fixed {
		if r.code == region {
			return r.days(year, zone)
		}
	}
	return nil
}

// on is a day by its date; dates beyond a month's end are those of the next month, as time.Date has them.
func on(name string, kind Kind, offset int, year int, month time.Month, day int, zone *time.Location) Day {
	return Day{Name: name, Kind: kind, Offset: offset,
		From: time.Date(year, month, day, 0, 0, 0, 0, zone), To: time.Date(year, month, day+1, 0, 0, 0, 0, zone)}
}

// Number gives days that follow each other under one name their offsets, as in a list that has a row for each day of a feast, and the
// kind [Own] to those that have none. Days that have an offset keep it. The result is sorted.
func Number(days []Day) []Day {
	out := slices.Clone(days)
	slices.SortStableFunc(out, Compare)
	last := map[string]int{}
	for i := range out {
		d := &out[i]
		if d.Kind == "" {
			d.Kind = Own
		}
		if before, ok := last[d.Name]; ok && d.Offset == 0 && out[before].To.Equal(d.From) {
			d.Offset = out[before].Offset + 1
		}
		last[d.Name] = i
	}
	slices.SortStableFunc(out, Compare)
	return out
}

// Kinds are all kinds, from the one that says most of a day's load to the one that says least.
func Kinds() []Kind { return slices.Clone(kinds) }
