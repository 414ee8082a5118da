package replay

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/series"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// Frame is what windows are cut to.
type Frame struct {
	// End is when every window ends, Replay the stretch before it that is replayed; all before that is history.
	End    time.Time
	Replay time.Duration
	// Pitch is the distance from one window to the next, in whole weeks, and the length of a window.
	Pitch time.Duration
	// Shortest is the least length of a window that is not young.
	Shortest time.Duration
}

// Start is when the replay begins.
func (f Frame) Start() time.Time { return f.End.Add(-f.Replay) }

// Window is one stretch of a trace, re-dated by whole weeks, so that it keeps its weekday and its hour.
type Window struct {
	// Number counts the windows of a trace from 1, in order of time.
	Number int
	Young  bool
	// Raw is re-dated; subtracting Shift brings a time of it back to the trace's own.
	Raw   series.Series
	Shift time.Duration
}

// Cut cuts the parts of a trace, each from its end backwards, into windows that never overlap. A part that yields no window of full length
// yields a young one.
func (f Frame) Cut(parts []series.Series) []Window {
	var out []Window
	for _, p := range parts {
		end := f.lastEnd(p.End())
		for first := true; ; first = false {
			begin := end.Add(-f.Pitch)
			if begin.Before(p.Start) {
				begin = p.Start
			}
			young := end.Sub(begin) < f.Shortest
			if end.Sub(begin) <= f.Replay || young && !first {
				break
			}
			shift := f.End.Sub(end)
			from, to := p.Index(begin), p.Index(end)
			out = append(out, Window{Young: young, Shift: shift, Raw: series.Series{
				Start: p.Time(from).Add(shift), Step: p.Step, Values: p.Values[from:to:to],
			}})
			end = end.Add(-f.Pitch)
		}
	}
	slices.SortFunc(out, func(a, b Window) int { return cmp.Compare(b.Shift, a.Shift) }) // the earlier moved further
	for i := range out {
		out[i].Number = i + 1
	}
	return out
}

// lastEnd is the last time up to t that lies whole weeks from End.
func (f Frame) lastEnd(t time.Time) time.Time {
	d := f.End.Sub(t) % week
	if d > 0 {
		d -= week
	}
	return t.Add(d)
}

// Split is the number of values of a series that are history.
func (f Frame) Split(s series.Series) int {
	return max(0, min(s.Len(), int(f.Start().Sub(s.Start)/s.Step)))
}

// History is the part of a series before the replay.
func (f Frame) History(s series.Series) series.Series {
	n := f.Split(s)
	return series.Series{Start: s.Start, Step: s.Step, Values: s.Values[:n:n]}
}

// LastWeek is the week of a series before the replay: what static provisioning uses.
func (f Frame) LastWeek(s series.Series) series.Series {
	return f.History(s).Since(f.Start().Add(-week))
}

// Usable judges a window by its history alone: nearly whole, alive, and without one spike that would own its scale.
func (f Frame) Usable(s series.Series) bool { return f.Flaw(s) == "" }

// Flaw says why a window is not usable; nothing where it is.
func (f Frame) Flaw(s series.Series) string {
	h, last := f.History(s), f.LastWeek(s)
	if missing(h) > 0.05 || missing(last) > 0.05 {
		return "more than 5 % of the history is missing"
	}
	var known []float64
	for _, v := range last.Values {
		if !math.IsNaN(v) {
			known = append(known, v)
		}
	}
	slices.Sort(known)
	most, p99 := known[len(known)-1], known[(len(known)*99)/100]
	switch {
	case most <= 0:
		return "the last week before the start has no load at all"
	case p99 <= 0:
		return "99 % of the last week before the start has no load"
	case most > 4*p99:
		return "one spike owns last week's scale"
	}
	return ""
}

func missing(s series.Series) float64 {
	if s.Len() == 0 {
		return 1
	}
	return 1 - float64(s.Known())/float64(s.Len())
}

// Peak is the largest known value; 0 where none is.
func Peak(s series.Series) float64 {
	out := 0.0
	for _, v := range s.Values {
		if !math.IsNaN(v) {
			out = max(out, v)
		}
	}
	return out
}

// Newest is a series without what lies more than history before the replay.
func (f Frame) Newest(s series.Series, history time.Duration) series.Series {
	return s.Since(f.Start().Add(-history))
}
