package calendar

import (
	"slices"
	"time"
)

const china = "CN"

// chinaYear holds the dates (month*100+day) of what the moon and the sun fix in one year.
type chinaYear struct {
	year                                              int
	spring, qingming, dragon, sevens, midAutumn, nine int
}

// arrangement is a run of days off, or of days worked in exchange, that was announced for a holiday.
type arrangement struct {
	from int // year*10000+month*100+day
	days int
	name string // as chinese-days has it
	work bool
}

// chinaNames are our names of holidays by those of the table.
var chinaNames = map[string]string{
	"New Year's Day": newYear, "Spring Festival": spring, "Tomb-sweeping Day": qingming, "Labour Day": labour,
	"Dragon Boat Festival": dragon, "Mid-autumn Festival": midAutumn, "National Day": national,
	"Anti-Fascist 70th Day": "Victory Day",
}

const (
	newYear   = "New Year's Day"
	spring    = "Spring Festival"
	qingming  = "Qingming"
	labour    = "Labour Day"
	dragon    = "Dragon Boat Festival"
	midAutumn = "Mid-Autumn Festival"
	national  = "National Day"
)

// chinaDays are the days of a year in China: its days off and working days in exchange as announced, or what the law of 2025 gives in a
// year that was not announced; the festivals that are no days off; the sales. The table ends with 2060; later years have fixed days alone.
func chinaDays(year int, zone *time.Location) []Day {
	var out []Day
	add := func(name string, kind Kind, offset int, at time.Time) {
		out = append(out, on(name, kind, offset, at.Year(), at.Month(), at.Day()+offset, zone))
	}
	fixedOn := func(monthDay int) time.Time {
		return time.Date(year, time.Month(monthDay/100), monthDay%100, 0, 0, 0, 0, time.UTC)
	}
	named := map[string]time.Time{newYear: fixedOn(101), labour: fixedOn(501), national: fixedOn(1001)}
	if i := year - chinaYears[0].year; i >= 0 && i < len(chinaYears) {
		t := chinaYears[i]
		named[spring], named[qingming] = fixedOn(t.spring), fixedOn(t.qingming)
		named[dragon], named[midAutumn] = fixedOn(t.dragon), fixedOn(t.midAutumn)
		add("Lantern Festival", Feast, 0, fixedOn(t.spring).AddDate(0, 0, 14))
		add("Double Seventh", Feast, 0, fixedOn(t.sevens))
		add("Double Ninth", Feast, 0, fixedOn(t.nine))
	}
	off := chinaOff(year, named, zone)
	out = append(out, off...)
	if first, ok := named[spring]; ok && !slices.ContainsFunc(off, func(d Day) bool { return d.Name == spring && d.Offset == -1 }) {
		add(spring, Feast, -1, first) // New Year's Eve is kept whether it is a day off or not
	}
	add("6.18", Sale, 0, fixedOn(618))
	add("11.11", Sale, 0, fixedOn(1111))
	add("12.12", Sale, 0, fixedOn(1212))
	return out
}

// chinaUsual are the days off of a holiday in a year that was not announced, from an offset on: since 2025 the law gives the eve and three
// days at Spring Festival, two at Labour Day, three at National Day, and exchanges have made eight, five and seven of them.
var chinaUsual = []struct {
	name       string
	from, days int
}{{newYear, 0, 1}, {spring, -1, 8}, {qingming, 0, 1}, {labour, 0, 5}, {dragon, 0, 1}, {midAutumn, 0, 1}, {national, 0, 7}}

// chinaOff are the days off of a year and the days worked in exchange. Offsets count from the festival itself, since its days resemble
// those of other years by the moon and not by how the weeks fall.
func chinaOff(year int, named map[string]time.Time, zone *time.Location) []Day {
	var out []Day
	announced := false
	off := map[time.Time]bool{}
	for _, a := range chinaArranged {
		if a.from/10000 != year {
			continue
		}
		announced = true
		for k := range a.days {
			d := on(chinaNames[a.name], Holiday, 0, year, time.Month(a.from/100%100), a.from%100+k, zone)
			if a.work {
				d.Name, d.Kind = "Working weekend", Work
			} else if main, ok := named[d.Name]; ok {
				d.Offset = daysBetween(main, d.From)
			}
			off[d.From] = !a.work
			out = append(out, d)
		}
	}
	for _, u := range chinaUsual {
		main, ok := named[u.name]
		if !ok {
			continue
		}
		if announced {
			// Festivals were kept before they were days off (some of them: 2008).
			if d := on(u.name, Feast, 0, year, main.Month(), main.Day(), zone); !off[d.From] {
				out = append(out, d)
			}
			continue
		}
		for k := range u.days {
			out = append(out, on(u.name, Holiday, u.from+k, year, main.Month(), main.Day()+u.from+k, zone))
		}
	}
	return out
}

// daysBetween are the days from a festival to a date; the last days of December belong to the next New Year.
func daysBetween(main, date time.Time) int {
	y, m, d := date.Date()
	at := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	if at.Sub(main) > 180*24*time.Hour {
		main = main.AddDate(1, 0, 0)
	}
	return int(at.Sub(main) / (24 * time.Hour))
}
