package validate

import (
	"fmt"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
)

// lookFrom is when the search for windows that are open together begins: the first day of a leap year, which has every date. A fixed day
// gives one answer for one object, whenever it is asked.
var lookFrom = time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)

// contradictions finds windows of one service of which one asks for more replicas than another one allows at the same time. Open ceilings
// join by maximum, so a window that states its own maxReplicas lifts the other one's; without it the floor wins and the other ceiling says
// nothing.
func contradictions(ws []v1alpha1.Window) []Problem {
	var out []Problem
	for i := range ws {
		for j := range ws {
			floor, ceiling := &ws[i], &ws[j]
			if i == j || floor.MinReplicas == nil || floor.MaxReplicas != nil || ceiling.MaxReplicas == nil || *floor.MinReplicas <= *ceiling.MaxReplicas {
				continue
			}
			a, okA := windowOf(floor)
			b, okB := windowOf(ceiling)
			if !okA || !okB {
				continue
			}
			at, meet := hpa.Meet(a, b, lookFrom)
			if !meet {
				continue
			}
			out = append(out, Problem{fmt.Sprintf("spec.windows[%d].minReplicas", i), fmt.Sprintf(
				"window %s wants at least %d replicas while window %s allows %d (both are open on %s): give %s a maxReplicas of its own, or times of its own",
				floor.Name, *floor.MinReplicas, ceiling.Name, *ceiling.MaxReplicas, at.UTC().Format("Mon 2 Jan 15:04 MST"), floor.Name)})
			break // one sentence for each floor
		}
	}
	return out
}

func windowOf(w *v1alpha1.Window) (*fleet.Window, bool) {
	zone, err := Zone(w.TimeZone)
	length, wrong := w.Duration.Parse()
	return &fleet.Window{Schedule: w.Start, Zone: zone, Duration: length}, err == nil && wrong == nil
}
