package loop

import (
	"maps"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

// longestStart drops what is rather a pod that lost and regained its readiness.
const longestStart = 30 * time.Minute

// firstReady is when each pod was ready first, as far as this process saw: the API server keeps the last time alone.
type firstReady map[fleet.UID]time.Time

// neverReady is how soon after its start the Ready condition of a pod that was never ready changes last: hpa
// distinguishes them by the same.
const neverReady = 30 * time.Second

// see notes the pods of one snapshot and forgets those that are gone. It is called in each cycle: between two of them a pod may become ready, and
// hardly lose it and regain it.
func (f firstReady) see(s *fleet.Snapshot) {
	alive := make(map[fleet.UID]bool, len(s.Pods))
	for i := range s.Services {
		for k := range s.Services[i].Pods {
			p := &s.Services[i].Pods[k]
			alive[p.ID] = true
			if _, known := f[p.ID]; known || !p.ReadySince.OK {
				continue
			}
			switch {
			case p.Ready:
				f[p.ID] = p.ReadySince.Value
			case p.Started.OK && p.ReadySince.Value.Sub(p.Started.Value) > neverReady:
				f[p.ID] = time.Time{} // its condition changed long after its start: it was ready at some time before that
			}
		}
	}
	maps.DeleteFunc(f, func(id fleet.UID, _ time.Time) bool { return !alive[id] })
}

// of is when a pod that is ready now became so first.
func (f firstReady) of(p *fleet.Pod) time.Time {
	if at, known := f[p.ID]; known && at.Before(p.ReadySince.Value) {
		return at
	}
	return p.ReadySince.Value
}

// startsOf are the start-ups that ended in (after, to] and of which it was seen whether the machine had the images. History knows the times
// to Ready of all pods, but not that. A pod with a container that started again is Ready once more long after its start, and teaches nothing; nor
// does one that lost its readiness and regained it, beyond the first time.
func startsOf(svc *fleet.Service, first firstReady, after, to time.Time) []portrait.Start {
	var out []portrait.Start
	for i := range svc.Pods {
		p := &svc.Pods[i]
		if !p.Ready || p.Restarts > 0 || !p.ReadySince.OK || !p.ImagePresent.OK || !p.Started.OK {
			continue
		}
		at := first.of(p)
		took := at.Sub(p.Started.Value)
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
