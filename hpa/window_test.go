package hpa

import (
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

func TestParseScheduleSaysTheFix(t *testing.T) {
	for expr, want := range map[string]string{
		"":                        `schedule "" has 0 fields: write five (minute hour day-of-month month day-of-week), as in "0 9 * * 1-5"`,
		"0 9 * *":                 `schedule "0 9 * *" has 4 fields: write five`,
		"0 0 9 * * *":             `schedule "0 0 9 * * *" has 6 fields: write five`,
		"@daily":                  `descriptors are not taken: write five fields`,
		"TZ=Asia/Tokyo 0 9 * * *": `a zone does not belong here: write it in timeZone`,
		"CRON_TZ=UTC":             `a zone does not belong here: write it in timeZone`,
		"60 9 * * *":              `above maximum (59)`,
		"0 24 * * *":              `hour 0-23`,
		"0 9 * * 7":               `Sunday is 0`,
		"0 9 30 2 *":              `schedule "0 9 30 2 *" never starts: name a day that its months have`,
		strings.Repeat("1", 300):  `schedule of 300 characters: write at most 256`,
	} {
		_, err := ParseSchedule(expr)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSchedule(%q) = %v, want an error with %q", expr, err, want)
		}
	}
	for _, expr := range []string{"0 9 * * 1-5", "*/15 * * * *", " 0  9 29 2 * ", "0 9 * JAN,DEC SUN"} {
		if _, err := ParseSchedule(expr); err != nil {
			t.Errorf("ParseSchedule(%q) = %v", expr, err)
		}
	}
}

func FuzzParseSchedule(f *testing.F) {
	for _, s := range []string{"0 9 * * 1-5", "TZ=", "CRON_TZ=UTC 0 0 * * *", "*/0 * * * *", "@every 1h", "0 0 31 2,4 *", "? ? ? ? ?", "1-0 * * * *"} {
		f.Add(s)
	}
	now := time.Date(2025, 3, 9, 6, 0, 0, 0, time.UTC)
	ny := zone(f, "America/New_York")
	f.Fuzz(func(t *testing.T, expr string) {
		s, err := ParseSchedule(expr)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "schedule ") {
				t.Fatalf("error does not name the schedule: %v", err)
			}
			return
		}
		if next := s.Next(now, ny); next.IsZero() || !next.After(now) {
			t.Fatalf("%q starts at %v after %v", expr, next, now)
		}
	})
}

// open reports whether a window is open at an instant.
func open(t *testing.T, expr, zoneName string, d time.Duration, at time.Time) bool {
	t.Helper()
	l := levels([]fleet.Window{{Name: "w", Schedule: expr, Duration: d, Zone: zone(t, zoneName), Min: 5}}, at, at.Add(24*time.Hour))
	if l[0].err != nil {
		t.Fatal(l[0].err)
	}
	_, ok := l[0].at(at)
	return ok
}

func TestWindowIsALevel(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		name, expr, zone string
		d                time.Duration
		at               string
		want             bool
	}{
		{"before its start", "0 19 * * *", "Asia/Shanghai", 4 * time.Hour, "2026-03-02T18:59:59+08:00", false},
		{"at its start", "0 19 * * *", "Asia/Shanghai", 4 * time.Hour, "2026-03-02T19:00:00+08:00", true},
		{"long after a start that nobody saw", "0 19 * * *", "Asia/Shanghai", 4 * time.Hour, "2026-03-02T22:59:59+08:00", true},
		{"at its end", "0 19 * * *", "Asia/Shanghai", 4 * time.Hour, "2026-03-02T23:00:00+08:00", false},
		{"over midnight", "0 22 * * *", "Europe/London", 4 * time.Hour, "2026-03-03T01:30:00Z", true},
		{"a week end's window on Monday", "0 0 * * 6", "UTC", 48 * time.Hour, "2026-03-02T00:00:00Z", false},
		{"a week end's window on Sunday", "0 0 * * 6", "UTC", 48 * time.Hour, "2026-03-01T23:59:59Z", true},
		{"longer than its period", "0 0 * * *", "UTC", 30 * time.Hour, "2026-03-02T12:00:00Z", true},

		// New York, 9 March 2025: 02:00 EST becomes 03:00 EDT, so 02:30 never comes and holds from the change on.
		{"skipped start, before the change", "30 2 * * *", "America/New_York", time.Hour, "2025-03-09T01:59:59-05:00", false},
		{"skipped start, at the change", "30 2 * * *", "America/New_York", time.Hour, "2025-03-09T03:00:00-04:00", true},
		{"skipped start, its duration later", "30 2 * * *", "America/New_York", time.Hour, "2025-03-09T04:00:00-04:00", false},
		{"start before the skipped hour runs its full duration", "0 1 * * *", "America/New_York", 2 * time.Hour, "2025-03-09T03:59:59-04:00", true},
		{"start before the skipped hour ends by elapsed time", "0 1 * * *", "America/New_York", 2 * time.Hour, "2025-03-09T04:00:00-04:00", false},
		// New York, 2 November 2025: 02:00 EDT becomes 01:00 EST, so 01:30 comes twice and opens at the first.
		{"doubled start, first", "30 1 * * *", "America/New_York", 20 * time.Minute, "2025-11-02T01:30:00-04:00", true},
		{"doubled start, over", "30 1 * * *", "America/New_York", 20 * time.Minute, "2025-11-02T01:50:00-04:00", false},
		{"doubled start, second", "30 1 * * *", "America/New_York", 20 * time.Minute, "2025-11-02T01:30:00-05:00", false},
		{"an hourly window in the first of the doubled hours", "0 * * * *", "America/New_York", time.Hour, "2025-11-02T01:10:00-04:00", true},
		{"an hourly window in the second of the doubled hours", "0 * * * *", "America/New_York", 15 * time.Minute, "2025-11-02T01:10:00-05:00", true},
		// São Paulo, 4 November 2018: midnight itself was skipped.
		{"skipped midnight", "0 0 * * *", "America/Sao_Paulo", 30 * time.Minute, "2018-11-04T01:00:00-02:00", true},
		{"skipped midnight, before", "0 0 * * *", "America/Sao_Paulo", 30 * time.Minute, "2018-11-03T23:59:59-03:00", false},
		// Lord Howe Island moves by half an hour: on 5 October 2025 02:00 became 02:30.
		{"half an hour skipped", "15 2 * * *", "Australia/Lord_Howe", 10 * time.Minute, "2025-10-05T02:30:00+11:00", true},
		// Samoa went without 30 December 2011 altogether.
		{"a skipped day", "0 12 30 12 *", "Pacific/Apia", time.Hour, "2011-12-31T00:00:00+14:00", true},
	} {
		if got := open(t, c.expr, c.zone, c.d, at(c.at)); got != c.want {
			t.Errorf("%s: open = %v, want %v", c.name, got, c.want)
		}
	}
}

// A window opens exactly once on each day of a year in every zone, whatever its clocks do, unless its hour is every hour.
func TestWindowOpensOnceADay(t *testing.T) {
	for _, name := range []string{"America/New_York", "Europe/London", "Australia/Lord_Howe", "Asia/Shanghai", "Africa/Casablanca", "UTC"} {
		z := zone(t, name)
		for _, expr := range []string{"30 1 * * *", "30 2 * * *", "0 3 * * *", "15 0 * * *"} {
			s, err := ParseSchedule(expr)
			if err != nil {
				t.Fatal(err)
			}
			n, end := 0, time.Date(2026, 1, 1, 0, 0, 0, 0, z)
			for at := s.Next(time.Date(2025, 1, 1, 0, 0, 0, 0, z), z); at.Before(end); at = s.Next(at, z) {
				n++
			}
			if n != 365 {
				t.Errorf("%q in %s opened %d times in 2025, want 365", expr, name, n)
			}
		}
	}
}

func TestOverlappingWindowsJoinByMaximum(t *testing.T) {
	w := calm(8)
	w.svc.Windows = []fleet.Window{
		{Name: "day", Schedule: "0 8 * * *", Duration: 12 * time.Hour, Zone: time.UTC, Min: 12, Max: 14},
		{Name: "lunch", Schedule: "30 11 * * *", Duration: 2 * time.Hour, Zone: time.UTC, Min: 18, Max: 20},
		{Name: "night", Schedule: "0 22 * * *", Duration: 2 * time.Hour, Zone: time.UTC, Min: 30},
	}
	tg := w.size()
	if tg.Replicas != 18 || len(tg.Missing) > 0 {
		t.Errorf("replicas %d, want the larger of two open floors, 18: %s", tg.Replicas, tg.Why())
	}
	if n := part(t, tg, "window:day").Replicas; n.Value != 12 {
		t.Errorf("window:day asks for %v, want 12", n)
	}
	w.tide(2000) // wants 80 replicas
	if tg := w.size(); tg.Replicas != 20 || tg.Limited != LimitedMax ||
		!strings.Contains(tg.Why().Text(), "cut to the maximum 20 of window lunch") {
		t.Errorf("replicas %d limited %q, want the larger of two open ceilings, 20: %s", tg.Replicas, tg.Limited, tg.Why())
	}
}

func TestWindowCeilingNeverPressesBelowAFloor(t *testing.T) {
	w := calm(8)
	w.svc.Windows = []fleet.Window{
		{Name: "save", Schedule: "0 8 * * *", Duration: 12 * time.Hour, Zone: time.UTC, Max: 4},
		{Name: "lunch", Schedule: "30 11 * * *", Duration: 2 * time.Hour, Zone: time.UTC, Min: 18},
	}
	if tg := w.size(); tg.Replicas != 18 {
		t.Errorf("replicas %d, want the floor 18 to win over the ceiling 4: %s", tg.Replicas, tg.Why())
	}
	w.svc.Max = 10
	if tg := w.size(); tg.Replicas != 10 {
		t.Errorf("replicas %d, want the service's own maximum 10 over any window: %s", tg.Replicas, tg.Why())
	}
}

func TestUnreadableWindowAgreesToNothing(t *testing.T) {
	for name, win := range map[string]fleet.Window{
		"bad cron": {Name: "w", Schedule: "0 9 * *", Duration: time.Hour, Zone: time.UTC, Min: 5},
		"no zone":  {Name: "w", Schedule: "0 9 * * *", Duration: time.Hour, Min: 5},
	} {
		w := falling(8, 4)
		w.svc.Windows = []fleet.Window{win}
		tg := w.size()
		if tg.Replicas != 8 || tg.DataFresh || part(t, tg, "window:w").Replicas.OK {
			t.Errorf("%s: replicas %d, want 8 kept: %s", name, tg.Replicas, tg.Why())
		}
	}
}
