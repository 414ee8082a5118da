package hpa

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// oneByOne finds the stretches start by start.
func oneByOne(s Schedule, zone *time.Location, d time.Duration, from, to time.Time) []span {
	var out []span
	for start := s.Next(from.Add(-d), zone); !start.IsZero() && start.Before(to); start = s.Next(start, zone) {
		if n := len(out); n > 0 && !start.After(out[n-1].end) {
			out[n-1].end = start.Add(d)
			continue
		}
		out = append(out, span{start, start.Add(d)})
	}
	return out
}

// The stretches are those that each start by itself makes, whatever the schedule, and across changes of the clock.
func TestSpansAreThoseOfEachStart(t *testing.T) {
	zones := []*time.Location{time.UTC, zone(t, "Europe/Berlin"), zone(t, "America/New_York"),
		zone(t, "Australia/Lord_Howe")}
	begins := []time.Time{time.Date(2026, 3, 28, 20, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 20, 0, 0, 0, time.UTC),
		time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 4, 4, 12, 0, 30, 0, time.UTC)}
	rapid.Check(t, func(t *rapid.T) {
		minute := rapid.SampledFrom([]string{"*", "0", "30", "*/7", "0,1,2,50", "5-40"}).Draw(t, "minute")
		hour := rapid.SampledFrom([]string{"*", "2", "0-11", "*/5", "1,2,3", "22-23"}).Draw(t, "hour")
		day := rapid.SampledFrom([]string{"*", "1-5", "0", "6,0"}).Draw(t, "day")
		s, err := ParseSchedule(minute + " " + hour + " * * " + day)
		if err != nil {
			t.Fatal(err)
		}
		z := rapid.SampledFrom(zones).Draw(t, "zone")
		d := time.Duration(rapid.IntRange(1, 3*24*60).Draw(t, "minutes")) * time.Minute
		from := rapid.SampledFrom(begins).Draw(t, "begin").Add(time.Duration(rapid.IntRange(0, 48*60).Draw(t,
			"after")) * time.Minute)
		to := from.Add(time.Duration(rapid.IntRange(1, 48*60).Draw(t, "ahead")) * time.Minute)
		got, want := s.spans(z, d, from, to), oneByOne(s, z, d, from, to)
		same := slices.EqualFunc(got, want, func(a, b span) bool { return a.start.Equal(b.start) && a.end.Equal(b.end) })
		if !same {
			t.Fatalf("%v, start by start %v", got, want)
		}
	})
}
