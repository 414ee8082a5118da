package loop

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/signal"
)

// momentsKept bounds what waits for the history of its step to arrive: an hour at one sample in fifteen seconds.
const momentsKept = 240

// steadyOver is how far back the load is averaged to see where it stands: minutes differ by chance, and a flood that is
// two minutes old is two minutes lost.
const steadyOver = 2 * time.Minute

// moments are live loads of one service: those that no portrait has learned yet, and those that show where the load
// stands.
type moments struct {
	kept []portrait.Moment
	// since is when samples began to come without a gap as long as a reading of history, last the newest one.
	since, last time.Time
}

// add keeps a sample that is newer than those before it.
func (m moments) add(at time.Time, load float64, gap time.Duration) moments {
	if !at.After(m.last) {
		return m
	}
	if m.since.IsZero() || at.Sub(m.last) >= gap {
		m.since = at
	}
	m.last = at
	m.kept = append(m.kept[max(0, len(m.kept)+1-momentsKept):], portrait.Moment{At: at, Load: load})
	return m
}

// settled are the moments to learn from. A rate over a window that began before the counters did, or before their scrapes came back, is lower
// than the load was: taken for chance, the first ones would teach that the load of a minute is far from that of its step.
func (m moments) settled(after time.Duration) []portrait.Moment {
	from := m.since.Add(after)
	i := slices.IndexFunc(m.kept, func(x portrait.Moment) bool { return !x.At.Before(from) })
	if i < 0 {
		return nil
	}
	return m.kept[i:]
}

// addSamples keeps the live loads until the portraits are folded to their steps, and finds where each load stands.
func (l *Loop) addSamples(live map[fleet.ServiceID]hpa.Live) {
	for id, now := range live {
		load := now.Load
		p, known := l.portraits[id]
		if !known || !load.OK || !signal.Sound(load.Value) || now.LoadSignal != "" && now.LoadSignal != p.Signal {
			continue
		}
		progress := l.progressOf(id)
		progress.moments = progress.moments.add(load.At, load.Value, l.o.Learn)
		now.Steady = steady(progress.moments.kept)
		live[id] = now
	}
}

// steady is the mean of the newest moments.
func steady(kept []portrait.Moment) fleet.Known[float64] {
	end := kept[len(kept)-1].At
	sum, n := 0.0, 0
	for i := len(kept) - 1; i >= 0 && end.Sub(kept[i].At) < steadyOver; i-- {
		sum += kept[i].Load
		n++
	}
	return fleet.KnownAt(sum/float64(n), end)
}

// folded drops the moments that the portrait of a service has learned, except those that show where the load stands.
// The moments of the newest step are learned with the step to come. Those that came in while the portrait was in doubt
// teach nothing: the next that do begin as after a silence.
func (l *Loop) folded(id fleet.ServiceID, doubted bool, now time.Time) {
	m := &l.progressOf(id).moments
	if m.last.IsZero() {
		return
	}
	if doubted {
		m.since = now
	}
	p := l.portraits[id]
	learned, standing := p.End.Add(-p.Step), m.last.Add(-steadyOver)
	m.kept = slices.DeleteFunc(m.kept, func(x portrait.Moment) bool { return x.At.Before(learned) && !x.At.After(standing) })
}
