package traces

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/springtide/springtide/internal/replay"
	"github.com/springtide/springtide/series"
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
)

// End is the virtual time at which every window ends.
func End() time.Time { return time.Date(2026, 6, 6, 0, 0, 0, 0, time.UTC) }

// ReplayStart is the virtual time at which the replay begins.
func ReplayStart() time.Time { return End().Add(-Replay) }

// frame is what every trace is cut to.
func frame() replay.Frame {
	return replay.Frame{End: End(), Replay: Replay, Pitch: pitch, Shortest: shortest}
}

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
func (w *window) history() series.Series { return frame().History(w.raw) }

// usable judges a window by its history alone.
func (w *window) usable() bool { return frame().Usable(w.raw) }

// windows cuts one trace from its end backwards.
func windows(t Trace, parts []series.Series) []window {
	var out []window
	for _, w := range frame().Cut(parts) {
		out = append(out, window{trace: t, number: w.Number, young: w.Young, raw: w.Raw, shift: w.Shift})
	}
	return out
}

// toMinutes brings a window to one-minute steps.
func toMinutes(w *window, seed uint64) series.Series {
	return replay.Minutes(w.raw, frame().Split(w.raw), rand.New(rand.NewPCG(seed, replay.Seed(w.trace.Name, strconv.Itoa(w.number)))))
}
