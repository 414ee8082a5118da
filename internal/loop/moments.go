package loop

import (
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
)

// momentsKept bounds what waits for the history of its step to arrive: an hour at one sample in fifteen seconds.
const momentsKept = 240

// catch keeps the live loads until the portraits are folded to their steps.
func (l *Loop) catch(live map[fleet.ServiceID]hpa.Live) {
	for id, now := range live {
		load, kept := now.Load, l.moments[id]
		p, known := l.portraits[id]
		switch {
		case !known || !load.OK || now.LoadSignal != "" && now.LoadSignal != p.Signal:
			continue
		case len(kept) > 0 && !load.At.After(kept[len(kept)-1].At):
			continue
		case len(kept) >= momentsKept:
			kept = kept[1:]
		}
		l.moments[id] = append(kept, portrait.Moment{At: load.At, Load: load.Value})
	}
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
