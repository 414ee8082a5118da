package hpa

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// A window of change is a level: at each moment it is open or closed, and says when it opened last and opens next, also
// at both edges of daylight saving, on excepted days, and where it opens once.
func TestChangeLevel(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	at := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		x, err := time.Parse("2006-01-02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	daily := func(cron string, d time.Duration, except ...fleet.Date) fleet.ChangeWindow {
		return fleet.ChangeWindow{Schedule: cron, Zone: berlin, Duration: d, Except: except}
	}
	christmas, everyChristmas := fleet.Date{Year: 2026, Month: 12, Day: 25}, fleet.Date{Month: 12, Day: 25}
	spring := fleet.Date{Year: 2026, Month: 3, Day: 29}
	once := fleet.ChangeWindow{Once: at("2026-08-08 06:00"), Duration: 2 * time.Hour}
	for name, c := range map[string]struct {
		w                      fleet.ChangeWindow
		now, until, last, next string // in UTC
	}{
		"a skipped hour holds from the jump": {daily("30 2 * * *", time.Hour), "2026-03-29 01:30",
			"2026-03-29 02:00", "2026-03-29 01:00", "2026-03-30 00:30"},
		"a doubled hour holds from its first coming": {daily("30 2 * * *", time.Hour), "2026-10-25 00:45",
			"2026-10-25 01:30", "2026-10-25 00:30", "2026-10-26 01:30"},
		"and not from its second": {daily("30 2 * * *", time.Hour), "2026-10-25 01:30",
			"", "2026-10-25 00:30", "2026-10-26 01:30"},
		"a night of 25 hours": {daily("0 22 * * *", 8*time.Hour), "2026-10-25 03:59",
			"2026-10-25 04:00", "2026-10-24 20:00", "2026-10-25 21:00"},
		"closed on an excepted day": {daily("0 9 * * *", 8*time.Hour, christmas), "2026-12-25 09:00",
			"", "2026-12-24 08:00", "2026-12-26 08:00"},
		"on one of every year": {daily("0 9 * * *", 8*time.Hour, everyChristmas), "2031-12-25 09:00",
			"", "2031-12-24 08:00", "2031-12-26 08:00"},
		"of another year": {daily("0 9 * * *", 8*time.Hour, christmas), "2031-12-25 09:00",
			"2031-12-25 16:00", "2031-12-25 08:00", "2031-12-26 08:00"},
		"what began before an excepted day lasts": {daily("0 22 * * *", 8*time.Hour, christmas), "2026-12-25 02:00",
			"2026-12-25 05:00", "2026-12-24 21:00", "2026-12-26 21:00"},
		"every hour but on a day of 23 hours": {daily("0 * * * *", 10*time.Minute, spring),
			"2026-03-29 10:00", "", "2026-03-28 22:00", "2026-03-29 22:00"},
		"once, before":       {once, "2026-08-08 05:59", "", "", "2026-08-08 06:00"},
		"once, at its start": {once, "2026-08-08 06:00", "2026-08-08 08:00", "2026-08-08 06:00", ""},
		"once, at its end":   {once, "2026-08-08 08:00", "", "2026-08-08 06:00", ""},
		"a leap day": {daily("0 9 29 2 *", time.Hour), "2027-06-01 00:00",
			"", "2024-02-29 08:00", "2028-02-29 08:00"},
	} {
		got := ChangeLevel(&c.w, at(c.now))
		if got.Open != (c.until != "") || !got.Until.Equal(at(c.until)) || !got.Last.Equal(at(c.last)) ||
			!got.Next.Equal(at(c.next)) {
			t.Errorf("%s: %v until %v, last %v, next %v", name, got.Open, got.Until.UTC(), got.Last.UTC(), got.Next.UTC())
		}
		if c.w.Schedule == "" || len(c.w.Except) > 0 {
			continue
		}
		plain := fleet.Window{Schedule: c.w.Schedule, Zone: c.w.Zone, Duration: c.w.Duration}
		if same, ok := LevelOf(&plain, at(c.now)); !ok || same != got {
			t.Errorf("%s: as a window of a service %+v", name, same)
		}
		if until, open := OpenUntil(&plain, at(c.now)); open != got.Open || !until.Equal(got.Until) {
			t.Errorf("%s: open until %v", name, until)
		}
	}
	for name, w := range map[string]fleet.ChangeWindow{"no cron": daily("61 9 * * *", time.Hour),
		"no zone":   {Schedule: "0 9 * * *", Duration: time.Hour},
		"a problem": {Schedule: "0 9 * * *", Zone: berlin, Problem: "no day"}} {
		if got := ChangeLevel(&w, at("2026-08-08 06:00")); got != (Level{Open: true}) {
			t.Errorf("%s: %+v, want open without an end", name, got)
		}
	}
}
