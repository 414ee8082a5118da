package festival_test

import (
	"math"
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	"github.com/springtide/springtide/festival"
	"github.com/springtide/springtide/fleet"
)

func zone(t interface{ Fatal(...any) }, name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// reading is what the wall clock shows, as a number that grows with it.
func reading(t time.Time) int64 {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC).Unix() / 60
}

// TestExpandMinuteByMinute evaluates plans around changes of clocks as an operator with a watch would: minute by
// minute, a phase begins once the wall clock of the zone has reached its start. Ramps are straight lines between.
func TestExpandMinuteByMinute(t *testing.T) {
	changes := []struct {
		zone string
		day  fleet.Date
	}{
		{"Europe/Berlin", fleet.Date{Year: 2026, Month: time.March, Day: 29}},
		{"Europe/Berlin", fleet.Date{Year: 2026, Month: time.October, Day: 25}},
		{"America/New_York", fleet.Date{Year: 2026, Month: time.November, Day: 1}},
		{"America/Sao_Paulo", fleet.Date{Year: 2018, Month: time.November, Day: 4}}, // at midnight
		{"Australia/Lord_Howe", fleet.Date{Year: 2026, Month: time.April, Day: 5}},  // by half an hour
		{"Asia/Shanghai", fleet.Date{Year: 2026, Month: time.November, Day: 11}},
	}
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(changes).Draw(t, "change")
		z := zone(t, c.zone)
		minutes := rapid.SliceOfNDistinct(rapid.IntRange(-24*60, 48*60), 3, 5, rapid.ID[int]).Draw(t, "starts")
		slices.Sort(minutes)
		clock := func(m int) festival.Clock {
			day := int(math.Floor(float64(m) / (24 * 60)))
			return festival.Clock{Day: day, Hour: (m - day*24*60) / 60, Minute: (m - day*24*60) % 60}
		}
		p := festival.Plan{ID: "p", Zone: z, When: festival.When{First: c.day, From: clock(minutes[0]),
			To: clock(minutes[len(minutes)-1])}}
		for i := range len(minutes) - 1 {
			ramp := rapid.SampledFrom([]time.Duration{0, 5 * time.Minute, 12 * time.Minute, 4 * time.Hour})
			ph := festival.Phase{Start: clock(minutes[i]), RampUp: ramp.Draw(t, "up"), RampDown: ramp.Draw(t, "down")}
			if rapid.Bool().Draw(t, "lifts") {
				ph.Lifts = []festival.Lift{{Service: "a/b", Factor: rapid.Float64Range(1, 9).Draw(t, "factor"),
					Floor: rapid.Int32Range(1, 50).Draw(t, "floor")}}
			}
			p.Phases = append(p.Phases, ph)
		}
		f := festival.Expand(&p, time.Time{})

		// The watch: the minute at which each start was reached.
		midnight := time.Date(c.day.Year, c.day.Month, c.day.Day, 0, 0, 0, 0, time.UTC).Unix() / 60
		begin := time.Date(c.day.Year, c.day.Month, c.day.Day-3, 0, 0, 0, 0, time.UTC)
		reached := make([]time.Time, len(minutes))
		for now := begin; now.Before(begin.AddDate(0, 0, 8)); now = now.Add(time.Minute) {
			for i, m := range minutes {
				if reached[i].IsZero() && reading(now.In(z)) >= midnight+int64(m) {
					reached[i] = now
				}
			}
		}
		for now := begin; now.Before(begin.AddDate(0, 0, 8)); now = now.Add(time.Minute) {
			factor, floor, least := 0.0, int32(0), 0.0
			for _, l := range f.Lifts {
				if !now.Before(l.Start) && now.Before(l.End) {
					factor, floor = max(factor, l.Factor), max(floor, l.Floor)
				}
			}
			wantFull, atLeast, atMost := 0.0, 0.0, 0.0
			for i, ph := range p.Phases {
				if len(ph.Lifts) == 0 {
					continue
				}
				x, from, to := ph.Lifts[0].Factor, reached[i], reached[i+1]
				switch {
				case !now.Before(from) && now.Before(to):
					wantFull = max(wantFull, x)
					least = max(least, float64(ph.Lifts[0].Floor))
				case now.Before(from) && !now.Before(from.Add(-ph.RampUp)):
					line := 1 - float64(from.Sub(now))/float64(ph.RampUp)
					atLeast, atMost = max(atLeast, 1+(x-1)*line), max(atMost, x)
				case !now.Before(to) && now.Before(to.Add(ph.RampDown)):
					line := 1 - float64(now.Sub(to))/float64(ph.RampDown)
					atLeast, atMost = max(atLeast, 1+(x-1)*line), max(atMost, x)
				}
			}
			if factor < max(wantFull, atLeast)-1e-9 || factor > max(wantFull, atMost)+1e-9 || float64(floor) < least {
				t.Fatalf("%v: factor %v, want %v, or a ramp's %v to %v; floor %v of %v", now.In(z), factor, wantFull, atLeast,
					atMost, floor, least)
			}
			if factor > 0 && (now.Before(f.Start) || !now.Before(f.End)) {
				t.Fatalf("%v: lifted outside of the festival, %v to %v", now.In(z), f.Start, f.End)
			}
		}
	})
}

func TestDays(t *testing.T) {
	for _, c := range []struct {
		region, day string
		year        int
		want        string
	}{
		{"CN", "Spring Festival", 2026, "2026-02-17"},
		{"CN", "Spring Festival", 2027, "2027-02-06"},
		{"CN", "Mid-Autumn Festival", 2026, "2026-09-25"},
		{"CN", "Spring Festival", 2061, ""}, // beyond the table
		{"US", "Black Friday", 2026, "2026-11-27"},
		{"", "11-11", 2026, "2026-11-11"},
		{"", "02-29", 2026, ""},
		{"", "02-29", 2028, "2028-02-29"},
		{"", "last Friday of November", 2026, "2026-11-27"},
		{"", "last Monday of November", 2026, "2026-11-30"},
		{"", "first Sunday of November", 2026, "2026-11-01"},
		{"", "fourth thursday of november", 2026, "2026-11-26"},
	} {
		d, err := festival.ParseDay(c.region, c.day)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if x, ok := d.In(c.year); ok {
			got = time.Date(x.Year, x.Month, x.Day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		}
		if got != c.want {
			t.Errorf("%s %s in %d: %q, want %q", c.region, c.day, c.year, got, c.want)
		}
	}
	for _, c := range [][2]string{{"CN", "Spring"}, {"XX", "11-11"}, {"", "Spring Festival"}, {"", "13-40"},
		{"", "fifth Friday of May"}, {"", "last Friday in May"}} {
		if d, err := festival.ParseDay(c[0], c[1]); err == nil {
			t.Errorf("%q: read as %+v", c, d)
		}
	}
}

// yearly is a plan for a day of each year, from its eve on.
func yearly(t *testing.T, region, day string) festival.Plan {
	t.Helper()
	d, err := festival.ParseDay(region, day)
	if err != nil {
		t.Fatal(err)
	}
	return festival.Plan{ID: "p", Zone: zone(t, "Asia/Shanghai"),
		When: festival.When{Day: d, From: festival.Clock{Day: -1}, To: festival.Clock{Day: 7}},
		Phases: []festival.Phase{{RampUp: time.Hour, RampDown: time.Hour, Lifts: []festival.Lift{{Service: "a/b",
			Factor: 2}}}}}
}

func TestYearlyOccurrences(t *testing.T) {
	p := yearly(t, "CN", "Spring Festival")
	at := func(s string) time.Time {
		x, err := time.ParseInLocation("2006-01-02 15:04", s, p.Zone)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, c := range [][2]string{
		{"2026-01-01 00:00", "2026-02-15 23:00"},
		{"2026-02-20 12:00", "2026-02-15 23:00"},
		{"2026-02-24 00:59", "2026-02-15 23:00"}, // the ramp down is part of it
		{"2026-02-24 01:00", "2027-02-04 23:00"},
	} {
		if f := festival.Expand(&p, at(c[0])); !f.Start.Equal(at(c[1])) || f.Lifts[0].Start != f.Start {
			t.Errorf("at %s: from %v, want %s", c[0], f.Start, c[1])
		}
	}
	p = yearly(t, "", "02-29")
	if f := festival.Expand(&p, at("2026-06-01 00:00")); f.Start.Year() != 2028 {
		t.Errorf("29 February comes next in 2028, not %v", f.Start)
	}
	p.When.Year = 2027
	if f := festival.Expand(&p, at("2026-06-01 00:00")); f.Problem == "" || f.Lifts != nil {
		t.Errorf("there is no 29 February in 2027: %+v", f)
	}
}

func TestInForce(t *testing.T) {
	at := time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	plan := func(id string, age int, approved bool, priority int32, from, to int, service fleet.ServiceID) festival.Plan {
		return festival.Plan{ID: id, Zone: time.UTC, Approved: approved, Priority: priority,
			Since: at.Add(-time.Duration(age) * time.Hour),
			When: festival.When{First: fleet.Date{Year: 2026, Month: time.November, Day: 11},
				From: festival.Clock{Hour: from}, To: festival.Clock{Hour: to}},
			Phases: []festival.Phase{{Freeze: true, Lifts: []festival.Lift{{Service: service, Factor: 2}}}}}
	}
	for _, c := range []struct {
		name  string
		plans []festival.Plan
		want  map[string]string // lifts of each plan by hours, or whom it conflicts with
	}{
		{"other services", []festival.Plan{plan("a", 2, true, 0, 1, 5, "s/x"), plan("b", 1, true, 0, 1, 5, "s/y")},
			map[string]string{"a": "1-5 ", "b": "1-5 "}},
		{"one after the other", []festival.Plan{plan("a", 2, true, 0, 1, 5, "s/x"), plan("b", 1, true, 0, 5, 7, "s/x")},
			map[string]string{"a": "1-5 ", "b": "5-7 "}},
		{"the older one stays", []festival.Plan{plan("a", 1, true, 0, 1, 5, "s/x"), plan("b", 2, true, 0, 4, 7, "s/x")},
			map[string]string{"a": "b from 4", "b": "4-7 "}},
		{"the approved one stays", []festival.Plan{plan("a", 1, true, 0, 1, 5, "s/x"), plan("b", 2, false, 0, 4, 7, "s/x")},
			map[string]string{"a": "1-5 ", "b": "a from 4"}},
		{"who is refused excludes nothing", []festival.Plan{plan("a", 3, true, 0, 1, 5, "s/x"), plan("b", 2, true, 0,
			4, 7, "s/x"),
			plan("c", 1, true, 0, 6, 8, "s/x")}, map[string]string{"a": "1-5 ", "b": "a from 4", "c": "6-8 "}},
		{"the higher one speaks", []festival.Plan{plan("a", 2, true, 0, 1, 9, "s/x"), plan("b", 1, true, 5, 4, 7, "s/x")},
			map[string]string{"a": "1-4 7-9 ", "b": "4-7 "}},
		{"once it is approved", []festival.Plan{plan("a", 2, true, 0, 1, 9, "s/x"), plan("b", 1, false, 5, 4, 7, "s/x")},
			map[string]string{"a": "1-9 ", "b": "4-7 "}},
		{"over three", []festival.Plan{plan("a", 3, true, 0, 1, 9, "s/x"), plan("b", 2, true, 5, 4, 7, "s/x"),
			plan("c", 1, true, 7, 5, 6, "s/x")}, map[string]string{"a": "1-4 7-9 ", "b": "4-5 6-7 ", "c": "5-6 "}},
	} {
		for _, f := range festival.InForce(c.plans, at) {
			got := ""
			for _, l := range f.Lifts {
				got += l.Start.Format("3-") + l.End.Format("3 ")
			}
			if f.Conflict.With != "" {
				got += f.Conflict.With + " from " + f.Conflict.From.Format("3")
			}
			if got != c.want[f.ID] || (len(f.Freezes) == 0) != (f.Conflict.With != "") {
				t.Errorf("%s: plan %s: %q, want %q; freezes %v", c.name, f.ID, got, c.want[f.ID], f.Freezes)
			}
		}
	}
}
