package traces

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/internal/series"
)

const day = 24 * time.Hour

// The frame of every window. Windows end on Saturday at midnight, so that the replay is a Thursday and a Friday: the busiest working days,
// and the youngest traces end on a Saturday.
const (
	// Replay is the stretch at the end of a window that is replayed; all before it is history.
	Replay = 2 * day
	// pitch is the distance from one window of a trace to the next, in whole weeks.
	pitch = 21 * day
	// shortest is the least length of a window that is not young: 13 days of history would not show two of every weekday.
	shortest = 16 * day
	// week is the stretch of history that scales a service.
	week = 7 * day
)

// End is the virtual time at which every window ends.
func End() time.Time { return time.Date(2026, 6, 6, 0, 0, 0, 0, time.UTC) }

// ReplayStart is the virtual time at which the replay begins.
func ReplayStart() time.Time { return End().Add(-Replay) }

// window is one stretch of a trace: raw values, re-dated.
type window struct {
	trace Trace
	// number counts the windows of a trace from 1, in order of time.
	number int
	young  bool
	// raw is re-dated; shift brings a virtual time back to the trace's own.
	raw   series.Series
	shift time.Duration
}

// history is the part of the window before the replay.
func (w *window) history() series.Series {
	n := max(0, min(w.raw.Len(), int(ReplayStart().Sub(w.raw.Start)/w.raw.Step)))
	return series.Series{Start: w.raw.Start, Step: w.raw.Step, Values: w.raw.Values[:n:n]}
}

// windows cuts one trace from its end backwards. A part that yields no window of full length yields a young one.
func windows(t Trace, parts []series.Series) []window {
	var out []window
	for _, p := range parts {
		end := lastSaturday(p.End())
		for first := true; ; first = false {
			begin := end.Add(-pitch)
			if begin.Before(p.Start) {
				begin = p.Start
			}
			young := end.Sub(begin) < shortest
			if end.Sub(begin) <= Replay || young && !first {
				break
			}
			shift := End().Sub(end)
			from, to := p.Index(begin), p.Index(end)
			out = append(out, window{trace: t, young: young, shift: shift, raw: series.Series{
				Start: p.Time(from).Add(shift), Step: p.Step, Values: p.Values[from:to:to],
			}})
			end = end.Add(-pitch)
		}
	}
	slices.SortFunc(out, func(a, b window) int { return cmp.Compare(b.shift, a.shift) }) // the earlier moved further
	for i := range out {
		out[i].number = i + 1
	}
	return out
}

func lastSaturday(t time.Time) time.Time {
	d := t.UTC().Truncate(day)
	return d.AddDate(0, 0, -int((d.Weekday()-time.Saturday+7)%7))
}

// usable judges a window by its history alone: nearly whole, alive, and without one spike that would own its scale.
func (w *window) usable() bool {
	h := w.history()
	last := h.Since(ReplayStart().Add(-week))
	if missing(h) > 0.05 || missing(last) > 0.05 {
		return false
	}
	var known []float64
	for _, v := range last.Values {
		if !math.IsNaN(v) {
			known = append(known, v)
		}
	}
	slices.Sort(known)
	p99 := known[(len(known)*99)/100]
	return p99 > 0 && known[len(known)-1] <= 4*p99
}

func missing(s series.Series) float64 {
	if s.Len() == 0 {
		return 1
	}
	return 1 - float64(s.Known())/float64(s.Len())
}
