package hpa

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/springtide/springtide/fleet"
)

// maxExpr bounds the text of a schedule; the longest sensible one lists every minute.
const maxExpr = 256

var fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// Schedule is when windows open: a five-field cron expression. The cron library serves as parser and for its Next
// alone; a window is a level, computed from the clock at each look, so that a start that was not seen still holds.
type Schedule struct {
	spec *cron.SpecSchedule
	// everyHour schedules run by elapsed time, all others by the wall clock: a window every hour opens in both hours of a doubled hour,
	// a window at 01:30 in the first only.
	everyHour bool
	// once is the one start of a schedule without a spec; except are days on which none lies.
	once   time.Time
	except []fleet.Date
}

// ParseSchedule reads a five-field cron expression. Its error is a sentence with the fix in it.
func ParseSchedule(expr string) (Schedule, error) {
	if len(expr) > maxExpr {
		return Schedule{}, fmt.Errorf("schedule of %d characters: write at most %d", len(expr), maxExpr)
	}
	fields := strings.Fields(expr)
	switch {
	case len(fields) > 0 && strings.Contains(fields[0], "="):
		return Schedule{}, fmt.Errorf("schedule %q: a zone does not belong here: write it in timeZone", expr)
	case len(fields) > 0 && strings.HasPrefix(fields[0], "@"):
		return Schedule{}, fmt.Errorf("schedule %q: descriptors are not taken: write five fields, as in \"0 9 * * 1-5\"", expr)
	case len(fields) != 5:
		return Schedule{}, fmt.Errorf("schedule %q has %d fields: write five (minute hour day-of-month month day-of-week), as in \"0 9 * * 1-5\"",
			expr, len(fields))
	}
	parsed, err := fiveFields.Parse(strings.Join(fields, " "))
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule %q: %w: write minute 0-59, hour 0-23, day-of-month 1-31, month 1-12, day-of-week 0-6 (Sunday is 0)",
			expr, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Schedule{}, fmt.Errorf("schedule %q: write five fields, as in \"0 9 * * 1-5\"", expr)
	}
	// Five years from any date hold every date that exists, 29 February too.
	if spec.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, fmt.Errorf("schedule %q never starts: name a day that its months have", expr)
	}
	const allHours = 1<<24 - 1
	return Schedule{spec: spec, everyHour: spec.Hour&allHours == allHours}, nil
}

// Next is the first start after a time, or the zero time if none is near.
//
// By the wall clock, a start in an hour that is skipped when clocks go forward holds at once, at the moment of the change; a start in an
// hour that comes twice when they go back holds from its first coming.
//
// A start on an excepted day is none: the search goes on with the first moment of the next day.
func (s Schedule) Next(after time.Time, zone *time.Location) time.Time {
	if s.spec == nil {
		if s.once.After(after) {
			return s.once.In(zone)
		}
		return time.Time{}
	}
	start := s.next(after, zone)
	for !start.IsZero() && slices.ContainsFunc(s.except, func(d fleet.Date) bool { return d.Is(start) }) {
		start = s.next(resolve(nextDay(start), zone).Add(-1), zone)
	}
	return start
}

// nextDay is the wall clock's reading at the beginning of the next day, dressed as UTC.
func nextDay(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
}

// next is Next of every day.
func (s Schedule) next(after time.Time, zone *time.Location) time.Time {
	if s.everyHour {
		return s.spec.Next(after.In(zone))
	}
	// Wall-clock readings are walked through as if they were UTC, which has no edges, and each is then resolved to its moment. Both
	// steps keep the order, so that no start is passed over.
	for reading := s.spec.Next(wall(after, zone)); !reading.IsZero(); reading = s.spec.Next(reading) {
		if start := resolve(reading, zone); start.After(after) {
			return start
		}
	}
	return time.Time{}
}

// wall is the reading of the zone's wall clock, dressed as UTC.
func wall(t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// resolve is the first moment at which the zone's wall clock shows a reading, or the moment at which it jumped over it.
func resolve(reading time.Time, zone *time.Location) time.Time {
	// Offsets lie within 14 hours of UTC, so that the zone's offsets one day before and after the reading bracket every change near it.
	var first time.Time
	var before int
	for i, probe := range [...]time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := reading.Add(probe).In(zone).Zone()
		if i == 0 {
			before = offset
		}
		t := reading.Add(-time.Duration(offset) * time.Second)
		if wall(t, zone).Equal(reading) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if !first.IsZero() {
		return first.In(zone)
	}
	jump, _ := reading.Add(-time.Duration(before) * time.Second).In(zone).ZoneBounds()
	return jump.In(zone)
}

// span is a stretch of time, its end not included.
type span struct{ start, end time.Time }

func (s span) holds(t time.Time) bool { return !t.Before(s.start) && t.Before(s.end) }

func (s span) meets(from, to time.Time) bool { return s.start.Before(to) && s.end.After(from) }

// spans lists the stretches that touch [from, to), in which a window of the given duration is open; those that meet are one.
func (s Schedule) spans(zone *time.Location, d time.Duration, from, to time.Time) []span {
	var out []span
	if d <= 0 {
		return nil
	}
	for start := s.Next(from.Add(-d), zone); !start.IsZero() && start.Before(to); start = s.Next(start, zone) {
		stretch := span{start, start.Add(d)}
		for {
			until := stretch.end
			if !until.Before(to) {
				until = to.Add(-1)
			}
			again := s.last(start, until, zone)
			if again.IsZero() {
				break
			}
			start, stretch.end = again, again.Add(d)
		}
		out = append(out, stretch)
	}
	return out
}

// last is the last start in (after, until]; the zero time where there is none. It takes as many looks as the stretch
// has doublings of a minute: a window that opens each minute for a week would else be looked at ten thousand times.
func (s Schedule) last(after, until time.Time, zone *time.Location) time.Time {
	found := s.Next(after, zone)
	if found.IsZero() || found.After(until) {
		return time.Time{}
	}
	for none := until; none.Sub(found) >= time.Minute; {
		middle := found.Add(none.Sub(found) / 2)
		if next := s.Next(middle, zone); next.IsZero() || next.After(until) {
			none = middle
		} else {
			found = next
		}
	}
	return found
}

// OpenUntil reports whether a window is open at a time, and until when the starts up to then hold it open. A window
// that cannot be read is closed.
func OpenUntil(w *fleet.Window, now time.Time) (time.Time, bool) {
	s, err := ParseSchedule(w.Schedule)
	if err != nil || w.Zone == nil {
		return time.Time{}, false
	}
	return s.openUntil(w.Zone, w.Duration, now)
}

// ChangeOpenUntil is [OpenUntil] of a window of change. One that cannot be read is open without an end: what it meant
// to hold is held.
func ChangeOpenUntil(w *fleet.ChangeWindow, now time.Time) (time.Time, bool) {
	s, zone, ok := scheduleOf(w)
	if !ok {
		return time.Time{}, true
	}
	return s.openUntil(zone, w.Duration, now)
}

func (s Schedule) openUntil(zone *time.Location, d time.Duration, now time.Time) (time.Time, bool) {
	for _, x := range s.spans(zone, d, now, now.Add(1)) {
		if x.holds(now) {
			return x.end, true
		}
	}
	return time.Time{}, false
}

// scheduleOf reads the schedule of a window of change, or its one start; ok is false where it cannot be read.
func scheduleOf(w *fleet.ChangeWindow) (s Schedule, zone *time.Location, ok bool) {
	if w.Problem != "" || w.Once.IsZero() && w.Zone == nil {
		return s, nil, false
	}
	if w.Once.IsZero() {
		var err error
		if s, err = ParseSchedule(w.Schedule); err != nil {
			return s, nil, false
		}
	}
	s.once, s.except = w.Once, w.Except
	return s, cmp.Or(w.Zone, time.UTC), true
}

// Level is a window at one moment, as a status shows it.
type Level struct {
	Open bool
	// Until is until when the starts up to now hold it open; zero while it is closed.
	Until time.Time
	// Last is the last start up to now, Next the first after it; zero where there is none within years.
	Last, Next time.Time
}

// LevelOf is a window with a schedule at one moment; ok is false where it cannot be read.
func LevelOf(w *fleet.Window, now time.Time) (l Level, ok bool) {
	s, err := ParseSchedule(w.Schedule)
	if err != nil || w.Zone == nil {
		return l, false
	}
	return s.level(w.Zone, w.Duration, now), true
}

// ChangeLevel is a window of change at one moment; see [ChangeOpenUntil].
func ChangeLevel(w *fleet.ChangeWindow, now time.Time) Level {
	s, zone, ok := scheduleOf(w)
	if !ok {
		return Level{Open: true}
	}
	return s.level(zone, w.Duration, now)
}

// longAgo is how far back the last start of a schedule is looked for: 29 February comes again within it.
const longAgo = 8

// level is a schedule whose windows last for a time, at one moment.
func (s Schedule) level(zone *time.Location, d time.Duration, now time.Time) (l Level) {
	l.Last, l.Next = s.last(now.AddDate(-longAgo, 0, 0), now, zone), s.Next(now, zone)
	l.Until, l.Open = s.openUntil(zone, d, now)
	return l
}

// windowSize is one window of a service over the horizon of a sizing.
type windowSize struct {
	name     string
	min, max int32
	open     []span
	err      error
}

// levels computes every window of a service from now to the end of its horizon. A window that cannot be read keeps its
// error: validation has refused it long before, and here it can agree to nothing.
func levels(ws []fleet.Window, now, end time.Time) []windowSize {
	out := make([]windowSize, 0, len(ws))
	for i := range ws {
		w := &ws[i]
		l := windowSize{name: w.Name, min: w.Min, max: w.Max}
		s, err := ParseSchedule(w.Schedule)
		switch {
		case err != nil:
			l.err = err
		case w.Zone == nil:
			l.err = fmt.Errorf("window %q has no time zone: write an IANA zone, as in \"Asia/Shanghai\"", w.Name)
		default:
			l.open = s.spans(w.Zone, w.Duration, now, end)
		}
		out = append(out, l)
	}
	return out
}

// at returns the stretch that holds a time.
func (l *windowSize) at(t time.Time) (span, bool) {
	for _, s := range l.open {
		if s.holds(t) {
			return s, true
		}
	}
	return span{}, false
}

// within reports whether the window is open at any time in [from, to).
func (l *windowSize) within(from, to time.Time) bool {
	for _, s := range l.open {
		if s.meets(from, to) {
			return true
		}
	}
	return false
}
