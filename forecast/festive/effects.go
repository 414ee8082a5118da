package festive

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/forecast/calendar"
	"github.com/springtide/springtide/series"
)

// Effects are what the days of a calendar did to one series: plain numbers that can be stored, one for each slot of each day
// seen.
type Effects struct {
	// Slots is the number of parts of a day that are distinguished, 24 at steps of an hour or less; 0 while nothing was
	// learned.
	Slots int
	// Shift is added before a logarithm is taken, so that zeros have one.
	Shift float64
	// Week is the logarithm of ordinary days of the newest weeks, Sunday first.
	Week []float64
	// Noise is the mean square by which an ordinary day's slots miss the ordinary days around it.
	Noise float64
	// Seen are in order of date.
	Seen []Occurrence
}

// Occurrence is one day that was seen.
type Occurrence struct {
	Name   string
	Kind   calendar.Kind
	Offset int
	// Day is the number of days from 1 January 1970 to its date.
	Day int
	// Log is its effect by slot.
	Log []float64
}

// key is what makes two days occurrences of one.
type key struct {
	name   string
	kind   calendar.Kind
	offset int
}

func (o *Occurrence) key() key  { return key{o.Name, o.Kind, o.Offset} }
func keyOf(d *calendar.Day) key { return key{d.Name, d.Kind, d.Offset} }
func (a key) compare(b key) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.offset, b.offset))
}
func (o *Occurrence) wday() int       { return weekday(o.Day) }
func (e *Effects) of(w int) []float64 { return e.Week[w*e.Slots : (w+1)*e.Slots] }

// mostSeen is how many occurrences of one day are kept, the newest: what a service did four years ago says little of it.
const mostSeen = 3

// Learn returns what is known with what a history shows of the days in it. A day of the history that was learned before
// is learned again, since the weeks after it have come; one that lies before the history is kept. A day counts once
// three quarters of it are known, and nothing is read of a day but its history: days to come do no harm.
func Learn(known Effects, history series.Series, days []calendar.Day) Effects {
	if len(days) == 0 || history.Len() == 0 || history.Step <= 0 {
		return known
	}
	marks := mark(days)
	t := newTable(history, marks, days[0].From.Location())
	out := Effects{Slots: t.slots, Shift: t.shift, Week: rounded(t.week()), Noise: t.noise()}
	if out.Week == nil {
		return known
	}
	fresh := map[int]bool{}
	for i := range t.rows {
		d, ok := marks[t.first+i]
		if !ok {
			continue
		}
		if log := t.effect(i); log != nil {
			out.Seen = append(out.Seen, Occurrence{Name: d.Name, Kind: d.Kind, Offset: d.Offset, Day: t.first + i, Log: rounded(log)})
			fresh[t.first+i] = true
		}
	}
	for _, o := range known.Seen {
		if !fresh[o.Day] && len(o.Log) == out.Slots {
			out.Seen = append(out.Seen, o)
		}
	}
	out.trim()
	return out
}

// rounded keeps four decimals of logarithms, a hundredth of a percent of the load: a third of the bytes where they are stored as text.
func rounded(log []float64) []float64 {
	for s, x := range log {
		log[s] = math.Round(x*1e4) / 1e4
	}
	return log
}

// trim puts what was seen in order and drops the oldest of each name.
func (e *Effects) trim() {
	slices.SortStableFunc(e.Seen, func(a, b Occurrence) int { return cmp.Or(cmp.Compare(b.Day, a.Day), a.key().compare(b.key())) })
	count := map[key]int{}
	e.Seen = slices.DeleteFunc(e.Seen, func(o Occurrence) bool {
		count[o.key()]++
		return count[o.key()] > mostSeen
	})
	slices.Reverse(e.Seen)
}

// slotOf is the slot of a time by the clock of its zone.
func slotOf(t time.Time, slots int) int { return (t.Hour()*60 + t.Minute()) * slots / (24 * 60) }
