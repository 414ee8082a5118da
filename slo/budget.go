package slo

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

const (
	// recentFor is how many of the newest minutes are kept one by one: the longest window whose burn is exact to the
	// minute.
	recentFor = 6 * 60
	// mostNames bounds the levels that are counted by name. A service states ten at most; the rest are those it stated
	// before.
	mostNames = 16
	perHour   = 60
	perDay    = 24 * perHour
)

// The bounds of an objective's window, and what is used where none is stated.
const (
	LeastOver   = 24 * time.Hour
	DefaultOver = 28 * 24 * time.Hour
	MostOver    = 90 * 24 * time.Hour
	// DefaultGood is the share of good minutes that is shown, as a default, where none is stated: 201 bad minutes in 28
	// days.
	DefaultGood = 0.995
)

// BurnWindows are the windows over which burn is computed: three pairs of the SRE workbook's alerts share two of them.
func BurnWindows() []time.Duration {
	return []time.Duration{5 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 24 * time.Hour,
		72 * time.Hour}
}

// Count is a number of minutes by their state.
type Count struct{ Good, Bad, Unknown int }

// Known is the number of minutes of which it is known how they were.
func (c Count) Known() int { return c.Good + c.Bad }

func (c *Count) plus(h hour) {
	c.Good, c.Bad, c.Unknown = c.Good+int(h.good), c.Bad+int(h.bad), c.Unknown+int(h.unknown)
}

func (c *Count) add(s State) {
	var h hour
	h.add(s)
	c.plus(h)
}

// hour is the minutes of one hour, in as few bytes as thousands of services with weeks of hours want.
type hour struct{ good, bad, unknown uint8 }

func (h *hour) add(s State) {
	switch s {
	case Good:
		h.good++
	case Bad:
		h.bad++
	default:
		h.unknown++
	}
}

func (h hour) known() int { return int(h.good) + int(h.bad) }

// Hour is the minutes of one hour, for [Budget.Restore].
type Hour struct {
	At        time.Time
	Good, Bad int
}

// Budget holds the good, bad and unknown minutes of a service by hour over its window, and the newest six hours by
// minute. Minutes of which nothing was added are unknown. The zero Budget is empty.
type Budget struct {
	// since and next are the first minute and the one after the newest.
	since, next int64
	recent      [recentFor]State // by minute modulo its length
	// hours follow each other from the hour first on, days from the day of that hour on.
	hours []hour
	first int64
	days  []tally
	names []string
}

// tally is what one day (UTC) says of bad minutes: by level, in the order of names, and by cause.
type tally struct {
	levels []int
	causes [causes]int
}

// Empty reports whether no minute was counted yet.
func (b *Budget) Empty() bool { return len(b.hours) == 0 }

// Since is the first minute that counts, Until the end of the newest one; zero while the budget is empty.
func (b *Budget) Since() time.Time {
	if b.Empty() {
		return time.Time{}
	}
	return timeOf(max(b.since, b.first*perHour))
}

// Until is the end of the newest minute.
func (b *Budget) Until() time.Time {
	if b.Empty() {
		return time.Time{}
	}
	return timeOf(b.next)
}

// Add counts a minute. Those between the newest one and it are unknown; one that is not newer is left out. The
// window of over ends with it.
func (b *Budget) Add(m Minute, over time.Duration) {
	at := minuteOf(m.At)
	if at < 0 || at >= mostMinute {
		return // no time that a clock of ours shows
	}
	if b.Empty() || at-b.next >= int64(over/time.Minute) {
		*b = Budget{since: at, next: at, first: floorDiv(at, perHour), names: b.names}
	}
	if at < b.next {
		return
	}
	for b.next < at {
		b.put(Unknown)
	}
	b.put(m.All)
	if m.All == Bad {
		b.attribute(&m)
	}
	b.trim(over)
}

// put counts the next minute.
func (b *Budget) put(s State) {
	b.recent[b.next%recentFor] = s
	for at := floorDiv(b.next, perHour); b.first+int64(len(b.hours)) <= at; {
		b.hours = append(b.hours, hour{})
	}
	b.hours[len(b.hours)-1].add(s)
	b.next++
	for b.firstDay()+int64(len(b.days)) <= floorDiv(b.next-1, perDay) {
		b.days = append(b.days, tally{levels: make([]int, len(b.names))})
	}
}

func (b *Budget) firstDay() int64 { return floorDiv(b.first, 24) }

// attribute puts a bad minute down to its levels and its cause.
func (b *Budget) attribute(m *Minute) {
	b.rename(m.Names)
	today := &b.days[len(b.days)-1]
	for i, name := range m.Names {
		if k := slices.Index(b.names, name); k >= 0 && m.States[i] == Bad {
			today.levels[k]++
		}
	}
	if m.Cause > NoCause && m.Cause < causes {
		today.causes[m.Cause]++
	}
}

// rename makes room for levels that have no column yet. A level that the service no longer states keeps its column
// while minutes of it are counted and there is room.
func (b *Budget) rename(names []string) {
	missing := func(name string) bool { return !slices.Contains(b.names, name) }
	if !slices.ContainsFunc(names, missing) {
		return
	}
	next := slices.Clone(names[:min(len(names), mostNames)])
	for i, name := range b.names {
		counted := slices.ContainsFunc(b.days, func(t tally) bool { return t.levels[i] > 0 })
		if counted && len(next) < mostNames && !slices.Contains(next, name) {
			next = append(next, name)
		}
	}
	for d := range b.days {
		levels := make([]int, len(next))
		for i, name := range next {
			if k := slices.Index(b.names, name); k >= 0 {
				levels[i] = b.days[d].levels[k]
			}
		}
		b.days[d].levels = levels
	}
	b.names = next
}

// trim forgets what is older than the window: it ends with the running hour.
func (b *Budget) trim(over time.Duration) {
	most := max(int(over/time.Hour), 1)
	if n := len(b.hours) - most; n > 0 {
		before := b.firstDay()
		b.hours = slices.Delete(b.hours, 0, n)
		b.first += int64(n)
		b.days = slices.Delete(b.days, 0, int(b.firstDay()-before))
	}
}

// Restore fills hours of which nothing, or less, is known from a record of them, as Prometheus keeps it: a store was
// lost. An hour of which the budget knows more itself stays as it is. Causes of such minutes are not known.
func (b *Budget) Restore(record []Hour, now time.Time, over time.Duration) {
	if len(record) == 0 || now.Unix() < 0 {
		return
	}
	if b.Empty() {
		*b = Budget{since: minuteOf(now), next: minuteOf(now), first: floorDiv(minuteOf(now), perHour)}
		b.hours, b.days = []hour{{}}, []tally{{}}
	}
	oldest := floorDiv(b.next-1, perHour) - int64(over/time.Hour) + 1
	for _, h := range record {
		if at := floorDiv(minuteOf(h.At), perHour); at >= oldest && at < b.first+int64(len(b.hours)) {
			b.restore(at, h)
		}
	}
}

func (b *Budget) restore(at int64, h Hour) {
	whole := int(min(b.next-at*perHour, perHour))
	good, bad := max(h.Good, 0), max(h.Bad, 0)
	if good+bad > whole { // increases are extrapolated to the edges of their hour
		bad = min(bad, whole)
		good = whole - bad
	}
	if good+bad <= 0 {
		return
	}
	if n := int(b.first - at); n > 0 {
		days := int(b.firstDay() - floorDiv(at, 24))
		for range days {
			b.days = slices.Insert(b.days, 0, tally{levels: make([]int, len(b.names))})
		}
		b.hours = slices.Concat(unknownHours(n), b.hours)
		if head := int(b.since - b.first*perHour); head > 0 {
			b.hours[n].unknown += uint8(head) // of its own first hour, the minutes before it began
		}
		b.first, b.since = at, at*perHour
	}
	c := &b.hours[at-b.first]
	if c.known() >= good+bad {
		return
	}
	b.days[floorDiv(at, 24)-b.firstDay()].causes[Unwatched] += max(bad-int(c.bad), 0)
	*c = hour{good: uint8(good), bad: uint8(bad), unknown: uint8(max(whole-good-bad, 0))}
	b.since = min(b.since, at*perHour)
}

func unknownHours(n int) []hour {
	out := make([]hour, n)
	for i := range out {
		out[i].unknown = perHour
	}
	return out
}

// Sum is all minutes of the window.
func (b *Budget) Sum() Count {
	var sum Count
	for _, h := range b.hours {
		sum.plus(h)
	}
	return sum
}

// Met is the share of the known minutes that were good.
func (b *Budget) Met() fleet.Known[float64] {
	sum := b.Sum()
	if sum.Known() == 0 {
		return fleet.Known[float64]{}
	}
	return fleet.KnownAt(float64(sum.Good)/float64(sum.Known()), b.Until())
}

// Allowed is how many minutes of a window may be bad.
func Allowed(good float64, over time.Duration) float64 { return (1 - good) * over.Minutes() }

// Left is how many minutes may still be bad; negative once the objective is missed. Unknown minutes, and those
// before the service was measured, use nothing up.
func (b *Budget) Left(good float64, over time.Duration) float64 {
	return Allowed(good, over) - float64(b.Sum().Bad)
}

// Burn is how many times faster than the objective allows the budget was used up within a window: the share of bad
// minutes over the share allowed. It is unknown where nothing of the window is known. Where less than half of it is
// known, half of it counts as known: a few minutes of a service that has just begun are no reason to wake an
// operator.
func (b *Budget) Burn(window time.Duration, good float64) fleet.Known[float64] {
	c := b.within(window)
	if c.Known() == 0 || !(good < 1) {
		return fleet.Known[float64]{}
	}
	share := float64(c.Bad) / max(float64(c.Known()), window.Minutes()/2)
	return fleet.KnownAt(share/(1-good), b.Until())
}

// within is the newest minutes: by minute up to six hours, beyond by whole hours, the running one and as many before
// it as fill the window.
func (b *Budget) within(window time.Duration) Count {
	var c Count
	if n := int64(window / time.Minute); n <= recentFor {
		for at := max(b.next-n, b.since); at < b.next; at++ {
			c.add(b.recent[at%recentFor])
		}
		return c
	}
	for _, h := range b.hours[max(len(b.hours)-int(window/time.Hour), 0):] {
		c.plus(h)
	}
	return c
}

// Named is bad minutes that were put down to a level or a cause.
type Named struct {
	Name string
	Bad  int
}

// ByLevel is the bad minutes of each level, to the day: the first day of the window counts whole. Minutes in which
// several levels are broken count with each of them.
func (b *Budget) ByLevel() []Named {
	out := make([]Named, len(b.names))
	for i, name := range b.names {
		out[i].Name = name
		for d := range b.days {
			out[i].Bad += b.days[d].levels[i]
		}
	}
	return out
}

// ByCause is the bad minutes of each cause that has any, to the day as [Budget.ByLevel].
func (b *Budget) ByCause() []Named {
	var out []Named
	for _, c := range Causes() {
		n := 0
		for d := range b.days {
			n += b.days[d].causes[c]
		}
		if n > 0 {
			out = append(out, Named{c.String(), n})
		}
	}
	return out
}
