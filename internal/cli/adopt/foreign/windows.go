package foreign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/hpa"
)

const (
	day     = 24 * time.Hour
	week    = 7 * day
	longest = week // of a window
	// clockChange is more than any clock moves at once.
	clockChange = 3 * time.Hour
	// lookFor covers each rule of a zone, on each day of the week on which a change of its clocks may fall.
	lookFor = 2 * 365 * day
	// mostEvents bounds the look at schedules that start every few minutes.
	mostEvents = 50_000
	// mostPieces bounds the windows that one level becomes: a service has 32.
	mostPieces = 8
)

// lookFrom is when the look at occurrences begins: a fixed Monday, so that one object is read the same way on every day.
var lookFrom = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// span is a stretch of time, its end not included.
type span struct{ from, to time.Time }

// spans lists the stretches in which a level of a foreign autoscaler holds, by the rules of a zone.
type spans func(zone *time.Location, from, to time.Time) []span

// add appends a stretch; stretches that meet are one.
func add(list []span, s span) []span {
	if n := len(list); n > 0 && !s.from.After(list[n-1].to) {
		if s.to.After(list[n-1].to) {
			list[n-1].to = s.to
		}
		return list
	}
	return append(list, s)
}

// between is KEDA's rule for a cron trigger: it is active while its next end comes before its next start, or with it.
func between(start, end hpa.Schedule) spans {
	return func(zone *time.Location, from, to time.Time) []span {
		var out []span
		s, e := start.Next(from, zone), end.Next(from, zone)
		for at, n := from, 0; at.Before(to) && n < mostEvents && !s.IsZero() && !e.IsZero(); n++ {
			next := s
			if !s.Before(e) {
				next = e
				out = add(out, span{at, e})
			}
			at = next
			if !s.After(at) {
				s = start.Next(at, zone)
			}
			if !e.After(at) {
				e = end.Next(at, zone)
			}
		}
		return out
	}
}

// job is one size of a CronHorizontalPodAutoscaler.
type job struct {
	schedule         hpa.Schedule
	text, name, path string
	size             int32
}

// holds is when the size of one job holds: from its start until another job starts. Of jobs that start together the largest counts.
func holds(jobs []job, i int) spans {
	return func(zone *time.Location, from, to time.Time) []span {
		var out []span
		next := make([]time.Time, len(jobs))
		for k := range jobs {
			next[k] = jobs[k].schedule.Next(from, zone)
		}
		holder, at := -1, from
		for n := 0; at.Before(to) && n < mostEvents; n++ {
			k := 0
			for j := range next {
				if next[j].Before(next[k]) || next[j].Equal(next[k]) && jobs[j].size > jobs[k].size {
					k = j
				}
			}
			if holder == i {
				out = add(out, span{at, next[k]})
			}
			holder, at = k, next[k]
			for j := range next {
				if !next[j].After(at) {
					next[j] = jobs[j].schedule.Next(at, zone)
				}
			}
		}
		return out
	}
}

// weekly reports whether a schedule names no day of the month and no month: it is the same in every week.
func weekly(text string) bool {
	f := strings.Fields(text)
	return len(f) == 5 && (f[2] == "*" || f[2] == "?") && (f[3] == "*" || f[3] == "?")
}

// piece is a window without its level.
type piece struct {
	start  string
	length time.Duration
}

// fitted are the windows that stand for a level.
type fitted struct {
	pieces []piece
	// never says that the level never holds: a larger one begins whenever it does.
	never bool
	// short and over are the longest stretches that the windows leave out of one occurrence, or add to one.
	short, over time.Duration
}

// fit finds windows that are open when a level holds, by the zone's rules for each occurrence. A window has one length: where clocks change
// within an occurrence, the window takes the shortest one, and a second window that begins after the change reaches to the end.
func fit(text string, starts hpa.Schedule, everyWeek bool, of spans, zone *time.Location) fitted {
	truth := of(zone, lookFrom, lookFrom.Add(lookFor))
	if len(truth) > 1 {
		truth = truth[1:] // the first one may have begun before
	}
	if len(truth) == 0 {
		return fitted{never: true}
	}
	until := truth[len(truth)-1].from
	groups := []group{{text: text, starts: starts}}
	if everyWeek {
		pattern := inWeek(of)
		if len(pattern) == 1 && !pattern[0].to.Before(pattern[0].from.Add(week)) {
			return fitted{pieces: []piece{{"0 0 * * *", 25 * time.Hour}}} // always; an hour more, for the day that has one
		}
		if !each(pattern, starts) {
			groups = grouped(pattern, 0)
		}
	}
	if len(groups) > mostPieces {
		return fitted{short: longest}
	}
	if everyWeek {
		for _, g := range groups {
			if least, most := lengths(g.starts, truth, until, zone); least != most {
				groups = apart(inWeek(of), truth, until, zone)
				break
			}
		}
	}
	var pieces []piece
	for _, g := range groups {
		least, _ := lengths(g.starts, truth, until, zone)
		if least > 0 {
			pieces = append(pieces, piece{g.text, min(least, longest)})
		}
	}
	best := fitted{pieces: pieces}
	best.short, best.over = differ(pieces, truth, until, zone)
	if !everyWeek || best.short == 0 || best.short > clockChange {
		return best
	}
	pattern := inWeek(of)
	for x := 30 * time.Minute; x <= 12*time.Hour; x += 30 * time.Minute {
		more := slices.Clone(pieces)
		for _, g := range grouped(pattern, x) {
			if least, _ := lengths(g.starts, truth, until, zone); least > 0 {
				more = append(more, piece{g.text, least})
			}
		}
		if len(more) > mostPieces {
			continue
		}
		if short, over := differ(more, truth, until, zone); short < best.short && over <= best.over {
			best = fitted{pieces: more, short: short, over: over}
			if short == 0 {
				break
			}
		}
	}
	return best
}

// inWeek are the stretches of a week without changes of the clock that begin in it.
func inWeek(of spans) []span {
	monday := lookFrom.Add(2 * week)
	all := of(time.UTC, lookFrom, lookFrom.Add(6*week))
	if len(all) == 1 && all[0].to.Sub(all[0].from) > 2*week {
		return all
	}
	return slices.DeleteFunc(all, func(s span) bool { return s.from.Before(monday) || !s.from.Before(monday.Add(week)) })
}

// each reports whether each start of a schedule begins a stretch, and each stretch begins so, all of one length.
func each(pattern []span, starts hpa.Schedule) bool {
	monday := lookFrom.Add(2 * week)
	at := monday.Add(-time.Second)
	for _, s := range pattern {
		at = starts.Next(at, time.UTC)
		if !at.Equal(s.from) || s.to.Sub(s.from) != pattern[0].to.Sub(pattern[0].from) {
			return false
		}
	}
	return !starts.Next(at, time.UTC).Before(monday.Add(week))
}

// group are stretches that begin at one time of the day, and have one length.
type group struct {
	text   string
	starts hpa.Schedule
}

// grouped sorts stretches by the time of day at which they begin and by their length. With a tail, it is the last stretch of this length of
// each that counts; stretches that are no longer have none.
func grouped(pattern []span, tail time.Duration) []group {
	type key struct {
		at     time.Duration
		length time.Duration
	}
	days := map[key][]int{}
	for _, s := range pattern {
		from, length := s.from, s.to.Sub(s.from)
		if tail > 0 {
			if length <= tail {
				continue
			}
			from, length = s.to.Add(-tail), tail
		}
		k := key{from.Sub(from.Truncate(day)), length}
		days[k] = append(days[k], int(from.Weekday()))
	}
	var out []group
	for _, k := range slices.SortedFunc(maps.Keys(days), func(a, b key) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.length, b.length)) }) {
		slices.Sort(days[k])
		on := "*"
		if set := slices.Compact(days[k]); len(set) < 7 {
			on = strings.Trim(strings.ReplaceAll(fmt.Sprint(set), " ", ","), "[]")
		}
		text := fmt.Sprintf("%d %d * * %s", int(k.at.Minutes())%60, int(k.at.Hours()), on)
		starts, err := hpa.ParseSchedule(text)
		if err != nil { // a text of ours is always read
			panic(err)
		}
		out = append(out, group{text, starts})
	}
	return out
}

// apart groups stretches by the shortest length that they have on their day of the week, so that a change of clocks, which falls on one
// day, shortens no other.
func apart(pattern, truth []span, until time.Time, zone *time.Location) []group {
	by := map[time.Duration][]span{}
	for _, s := range pattern {
		least, _ := lengths(grouped([]span{s}, 0)[0].starts, truth, until, zone)
		by[least] = append(by[least], s)
	}
	var out []group
	for _, least := range slices.Sorted(maps.Keys(by)) {
		out = append(out, grouped(by[least], 0)...)
	}
	return out
}

// lengths are the least and the most that it takes from a start within a stretch to the end of that.
func lengths(starts hpa.Schedule, truth []span, until time.Time, zone *time.Location) (least, most time.Duration) {
	i := 0
	for at := starts.Next(truth[0].from.Add(-time.Second), zone); !at.IsZero() && at.Before(until); at = starts.Next(at, zone) {
		for i < len(truth) && !truth[i].to.After(at) {
			i++
		}
		if i == len(truth) || truth[i].from.After(at) {
			continue // this start begins nothing
		}
		d := truth[i].to.Sub(at)
		if least == 0 || d < least {
			least = d
		}
		most = max(most, d)
	}
	return least, most
}

// differ is how much windows leave out of a stretch, and add to one, at most.
func differ(pieces []piece, truth []span, until time.Time, zone *time.Location) (short, over time.Duration) {
	var open []span
	for _, p := range pieces {
		starts, err := hpa.ParseSchedule(p.start)
		if err != nil {
			continue
		}
		for at := starts.Next(truth[0].from.Add(-time.Second), zone); !at.IsZero() && at.Before(until); at = starts.Next(at, zone) {
			open = append(open, span{at, at.Add(p.length)})
		}
	}
	slices.SortFunc(open, func(a, b span) int { return a.from.Compare(b.from) })
	var joined []span
	for _, s := range open {
		joined = add(joined, s)
	}
	return without(truth, joined, until), without(joined, truth, until)
}

// without is the longest stretch of one list that the other one does not cover.
func without(list, other []span, until time.Time) time.Duration {
	var most time.Duration
	i := 0
	for _, s := range list {
		at := s.from
		for i < len(other) && !other[i].to.After(at) {
			i++
		}
		for k := i; k < len(other) && other[k].from.Before(s.to); k++ {
			most = max(most, gap(at, other[k].from, until))
			if other[k].to.After(at) {
				at = other[k].to
			}
		}
		most = max(most, gap(at, s.to, until))
	}
	return most
}

func gap(from, to, until time.Time) time.Duration {
	if to.After(until) {
		to = until
	}
	return max(0, to.Sub(from))
}

// window writes the windows of a level. Time that they leave out or add around a change of the clocks is a note, more
// than that is lost.
func (a *Adoption) window(path, name string, names map[string]bool, f fitted, zone string, least int32) {
	switch {
	case f.never:
		a.note("%s never holds, and needs no window", path)
		return
	case len(f.pieces) == 0:
		a.lose(path, "windows cannot follow its schedule: write them by hand")
		return
	case f.short > clockChange || f.over > clockChange:
		a.lose(path, "it does not last equally long each time: the window takes the shortest, and leaves out up to %s", max(f.short, f.over))
	case f.short > 0:
		a.note("window %s ends up to %s early on the weekday on which clocks change", name, f.short)
	case f.over > 0:
		a.note("window %s is open up to %s longer on the weekday on which clocks change", name, f.over)
	}
	for i, p := range f.pieces {
		called := name
		if i > 0 {
			called = plainName(name, names)
		}
		a.Service.Spec.Windows = append(a.Service.Spec.Windows, v1alpha1.Window{Name: called, Start: p.start,
			Duration: v1alpha1.DurationOf(p.length), TimeZone: zone, MinReplicas: &least})
	}
}
