package loop

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

// longestStart drops what is rather a pod that lost and regained its readiness.
const longestStart = 30 * time.Minute

// startsOf are the start-ups that ended in (after, to] and of which it was seen whether the machine had the images. History knows the times
// to Ready of all pods, but not that. A pod with a container that started again is Ready once more long after its start, and teaches nothing.
func startsOf(svc *fleet.Service, after, to time.Time) []portrait.Start {
	var out []portrait.Start
	for i := range svc.Pods {
		p := &svc.Pods[i]
		if !p.Ready || p.Restarts > 0 || !p.ReadySince.OK || !p.ImagePresent.OK || !p.Started.OK {
			continue
		}
		at, took := p.ReadySince.Value, p.ReadySince.Value.Sub(p.Started.Value)
		if !at.After(after) || at.After(to) || took <= 0 || took > longestStart {
			continue
		}
		image := portrait.ImageAbsent
		if p.ImagePresent.Value {
			image = portrait.ImagePresent
		}
		out = append(out, portrait.Start{Took: took, Image: image})
	}
	return out
}
