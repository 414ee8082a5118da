package measure

import (
	"math"
	"time"
)

// Work is what one member of an offline job does.
type Work struct {
	// Cores are what a member uses as long as it runs.
	Cores float64
	// Every is the work between two checkpoints, Restore the time to read one at the start. Checkpoints on the way are written in the
	// background and cost nothing; the one at a recall is waited for.
	Every, Restore time.Duration
}

// Worker is one member: restoring, then working, then (after a notice) saving, then idle until it goes. Times must not
// run backwards.
type Worker struct {
	at       time.Time // up to which it was played
	restored time.Time
	unsaved  float64   // core-seconds of work since the last checkpoint
	ack      time.Time // end of saving; zero while it has no notice
}

// StartWorker returns a member that begins to restore.
func StartWorker(w Work, at time.Time) Worker { return Worker{at: at, restored: at.Add(w.Restore)} }

// Play brings the member to a time and returns the core-seconds that became safe meanwhile.
func (m *Worker) Play(w Work, to time.Time) (saved float64) {
	if !to.After(m.at) {
		return 0
	}
	begin := m.at
	if begin.Before(m.restored) {
		begin = m.restored
	}
	// Work stops when saving starts, which is at m.at: Notice plays the member up to that moment first.
	if m.ack.IsZero() && to.After(begin) {
		step := w.Cores * w.Every.Seconds()
		m.unsaved += w.Cores * to.Sub(begin).Seconds()
		saved = math.Floor(m.unsaved/step) * step
		m.unsaved -= saved
	}
	if m.Acked(to) {
		saved += m.unsaved
		m.unsaved = 0
	}
	m.at = to
	return saved
}

// Notice makes a member that was played up to now save for a time and leave; it returns when it will acknowledge. A
// second notice gets the same answer.
func (m *Worker) Notice(at time.Time, save time.Duration) time.Time {
	if m.ack.IsZero() {
		m.ack = at.Add(save)
	}
	return m.ack
}

// Noticed reports whether the member has a notice.
func (m *Worker) Noticed() bool { return !m.ack.IsZero() }

// Resume takes the notice of a member that was played up to now back.
func (m *Worker) Resume() { m.ack = time.Time{} }

// Acked reports whether the member has saved its work by a time.
func (m *Worker) Acked(by time.Time) bool { return !m.ack.IsZero() && !m.ack.After(by) }

// Unsaved is the work since the last checkpoint, in core-seconds: what is lost when the member goes now.
func (m *Worker) Unsaved() float64 { return m.unsaved }

// Finish takes the work since the last checkpoint out: the job is done, and it counts.
func (m *Worker) Finish() { m.unsaved = 0 }

// Used are the cores in use as of the last Play: a member computes while it restores, works and saves, and idles once it has acknowledged.
func (m *Worker) Used(w Work) float64 {
	if m.Acked(m.at) {
		return 0
	}
	return w.Cores
}
