package loop

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/forecast/calendar"
	"github.com/springtide/springtide/forecast/festive"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/series"
)

// Days are what the days of its calendar did to one service.
type Days struct {
	festive.Effects
	// Made is when they were last learned. Kin tells whose they can be compared with, Dates which days they were learned by.
	Made       time.Time
	Kin, Dates string
}

const (
	// daysFirst is the history that a calendar is first learned from, where the source keeps so much: a year, and the weeks that its first
	// days are measured by. Afterwards daysAgain is enough: the weeks on both sides of a day, and those that the noise is taken from.
	daysFirst, daysAgain = 400 * day, 98 * day
	// daysSettled is when what was learned is made again though no day passed: the weeks after a day say as much of it
	// as those before.
	daysSettled = 2 * week
	// daysAtOnce bounds the history that one reading takes to it, summed over its services: twice that of the summaries
	// made again. Each five minutes one service reads its first year, or six what a holiday left: 1,000 take three days
	// and a half for that, and half a day for this.
	daysAtOnce = 2 * 20 * 15 * day
)

// calendarDays are the days of one calendar around now, shared by all services that name them.
type calendarDays struct {
	made time.Time
	all  []calendar.Day
}

// kinOf distinguishes calendars by what they name: services of one such calendar are kin, whenever their own days fall.
func kinOf(c *fleet.Calendar) string {
	var names []string
	for _, d := range c.Days {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return zoneOf(c).String() + "|" + strings.Join(c.Regions, ",") + "|" + strings.Join(slices.Compact(names), "|")
}

// datesOf distinguishes calendars by their days.
func datesOf(c *fleet.Calendar) string {
	key := kinOf(c)
	for _, d := range c.Days {
		key += fmt.Sprintf("|%d-%d-%d+%d", d.Year, d.Month, d.Day, d.Length)
	}
	return key
}

func zoneOf(c *fleet.Calendar) *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// daysOf are the days of a service's calendar from the first that may still be learned to the last that a tide may reach.
func (l *Loop) daysOf(c *fleet.Calendar, now time.Time) []calendar.Day {
	key := datesOf(c)
	known := l.calendars[key]
	if now.Sub(known.made) >= day || now.Before(known.made) {
		known = calendarDays{made: now, all: calendar.Of(c, now.Add(-daysFirst-week), now.Add(5*week))}
		l.calendars[key] = known
	}
	return known.all
}

// calendarsOf are the days of the services that have a calendar.
func (l *Loop) calendarsOf(services []fleet.Service, now time.Time) map[fleet.ServiceID][]calendar.Day {
	out := map[fleet.ServiceID][]calendar.Day{}
	for i := range services {
		if c := &services[i].Calendar; !c.Empty() {
			out[services[i].ID] = l.daysOf(c, now)
		}
	}
	return out
}

// between are the days that overlap [from, to), with a week on either side: neighbours of a holiday are learned with it.
func between(days []calendar.Day, from, to time.Time) []calendar.Day {
	from, to = from.Add(-week), to.Add(week)
	var out []calendar.Day
	for _, d := range days {
		if d.From.Before(to) && from.Before(d.To) {
			out = append(out, d)
		}
	}
	return out
}

// dueDays is how much history is to be read of a service, or 0: all there is for a calendar that is new, some weeks where one of its days
// passed, or settled, since it was last learned.
func (l *Loop) dueDays(svc *fleet.Service, now time.Time) time.Duration {
	if svc.Calendar.Empty() {
		return 0
	}
	known, ok := l.days[svc.ID]
	if !ok || known.Dates != datesOf(&svc.Calendar) {
		return daysFirst
	}
	if now.Sub(known.Made) >= daysSettled {
		return daysAgain
	}
	for _, d := range l.daysOf(&svc.Calendar, now) {
		// The day after a holiday is learned too.
		if over := d.To.Add(day + lateHistory); over.After(known.Made) && !over.After(now) {
			return daysAgain
		}
	}
	return 0
}

// learnDays learns what days did to the services for which that is due, those first that were learned longest ago, and pools what they
// know once a day, or each hour while calendars are new. A reading that fails is only told: nothing is lost by learning tomorrow what yesterday did.
func (l *Loop) learnDays(ctx context.Context, now time.Time, services []fleet.Service) {
	var due []fleet.Service
	for i := range services {
		if l.dueDays(&services[i], now) > 0 {
			due = append(due, services[i])
		}
	}
	slices.SortStableFunc(due, func(a, b fleet.Service) int {
		return cmp.Or(l.days[a.ID].Made.Compare(l.days[b.ID].Made), cmp.Compare(a.ID, b.ID))
	})
	first, again, taken := []fleet.Service{}, []fleet.Service{}, time.Duration(0)
	for i := range due {
		length := l.dueDays(&due[i], now)
		if taken += length; taken > daysAtOnce {
			break
		}
		if length == daysFirst {
			first = append(first, due[i])
		} else {
			again = append(again, due[i])
		}
	}
	l.readDays(ctx, now, first, daysFirst)
	l.readDays(ctx, now, again, daysAgain)
	if len(first) > 0 {
		l.newcomers = true
	}
	every := day
	if l.newcomers {
		every = time.Hour
	}
	if len(l.days) > 0 && (l.pooled.IsZero() || now.Sub(l.pooled) >= every) {
		l.pooled, l.newcomers = now, false
		l.pool()
	}
}

// readDays learns the days of some services from one reading of history.
func (l *Loop) readDays(ctx context.Context, now time.Time, services []fleet.Service, length time.Duration) {
	if len(services) == 0 {
		return
	}
	batches, read, err := l.since(ctx, services, now.Add(-length), now)
	if err != nil {
		l.p.Log.Warn("what the calendar's days did could not be learned", "services", len(services), "err", err)
		return
	}
	services = read
	of := make(map[fleet.ServiceID]portrait.Batch, len(services))
	for id, b := range batches {
		of[id] = b
	}
	lists := make([][]calendar.Day, len(services))
	for i := range services {
		lists[i] = l.daysOf(&services[i].Calendar, now)
	}
	learned := make([]Days, len(services))
	each(len(services), func(i int) {
		id, c := services[i].ID, &services[i].Calendar
		known := l.days[id]
		if known.Kin != kinOf(c) {
			known = Days{}
		}
		learned[i] = Days{Effects: festive.Learn(known.Effects, loadOf(of[id]), lists[i]), Made: now, Kin: kinOf(c), Dates: datesOf(c)}
	})
	for i := range learned {
		l.days[services[i].ID] = learned[i]
	}
}

// loadOf is the series that a portrait of a batch follows.
func loadOf(b portrait.Batch) series.Series {
	if b.Load.Known() > 0 {
		return b.Load
	}
	return b.CPU
}

// pool lets services of one calendar hear of each other's days.
func (l *Loop) pool() {
	of := map[string][]festive.Effects{}
	for _, id := range slices.Sorted(maps.Keys(l.days)) {
		d := l.days[id]
		of[d.Kin] = append(of[d.Kin], d.Effects)
	}
	l.kin = make(map[string]*festive.Kin, len(of))
	for key, all := range of {
		l.kin[key] = festive.Pool(all)
	}
}

// ordinary is a batch as it would have been without the calendar's days, so that the portrait is of ordinary days. CPU and replicas go with
// the load: what one request costs and what one replica uses stay as they were.
func (l *Loop) ordinary(id fleet.ServiceID, b portrait.Batch, days []calendar.Day) portrait.Batch {
	known, ok := l.days[id]
	load := loadOf(b)
	if !ok || known.Slots == 0 || load.Len() == 0 {
		return b
	}
	days = between(days, load.Start, load.End())
	if len(days) == 0 {
		return b
	}
	clean := known.Clean(load, days, l.kin[known.Kin])
	scaled := func(s series.Series) series.Series {
		out := series.Series{Start: s.Start, Step: s.Step, Values: slices.Clone(s.Values)}
		for i := range out.Values {
			if a, b := clean.At(s.Time(i)), load.At(s.Time(i)); b > 0 && !math.IsNaN(a) && a != b {
				out.Values[i] *= a / b
			}
		}
		return out
	}
	b.Load, b.CPU, b.Ready = scaled(b.Load), scaled(b.CPU), scaled(b.Ready)
	return b
}

// lift puts the calendar's days on a tide.
func (l *Loop) lift(id fleet.ServiceID, t forecast.Tide, days []calendar.Day) forecast.Tide {
	known, ok := l.days[id]
	if !ok || known.Slots == 0 || len(t.Paths) == 0 || len(days) == 0 {
		return t
	}
	days = between(days, t.Start, t.Start.Add(time.Duration(len(t.Paths[0]))*t.Step))
	lifts := known.Expect(days, l.kin[known.Kin])
	return lifts.Lift(t)
}
