package loop

import (
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
)

// momentsKept bounds what waits for the history of its step to arrive: an hour at one sample in fifteen seconds.
const momentsKept = 240

// steadyOver is how far back the load is averaged to tell where it stands: minutes differ by chance, and a flood that is two minutes old
// is two minutes lost.
const steadyOver = 2 * time.Minute

// catch keeps the live loads until the portraits are folded to their steps, and tells where each load stands.
func (l *Loop) catch(live map[fleet.ServiceID]hpa.Live) {
	for id, now := range live {
		load, kept := now.Load, l.moments[id]
		p, known := l.portraits[id]
		if !known || !load.OK || now.LoadSignal != "" && now.LoadSignal != p.Signal {
			continue
		}
		if len(kept) == 0 || load.At.After(kept[len(kept)-1].At) {
			kept = append(kept[max(0, len(kept)+1-momentsKept):], portrait.Moment{At: load.At, Load: load.Value})
			l.moments[id] = kept
		}
		now.Steady = steady(kept)
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

// folded drops the moments that the portrait of a service has learned.
func (l *Loop) folded(id fleet.ServiceID) {
	kept, end := l.moments[id], l.portraits[id].End
	i := slices.IndexFunc(kept, func(m portrait.Moment) bool { return !m.At.Before(end) })
	if i < 0 {
		i = len(kept)
	}
	l.moments[id] = slices.Delete(kept, 0, i)
}
