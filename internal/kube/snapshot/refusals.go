package snapshot

import (
	"time"

	"github.com/springtide/springtide/internal/kube/watch"
)

// How long after its newest event a controller is taken to fail still. The Job controller tries again within a minute,
// that of StatefulSets within 17. But controllers report no more than 25 events of one object at once, and then one in
// five minutes.
const (
	jobRefusedFor         = 7 * time.Minute
	statefulSetRefusedFor = 20 * time.Minute
)

// addRefusals notes the newest refusal of each owner of pods.
func (a *assembly) addRefusals() {
	a.refusals, a.refusedRoles = map[watch.Owned]*watch.RefusalFacts{}, map[memberRef]*watch.RefusalFacts{}
	for _, f := range a.c.Refusals.All() {
		a.addRefusal(f)
	}
}

// addRefusal passes over an event of a clock that is far ahead: it would say so for as long as it is there.
func (a *assembly) addRefusal(f *watch.RefusalFacts) {
	if was := a.refusals[f.Owner]; !f.Last.After(a.wall.Add(aheadSpan)) && (was == nil || f.Last.After(was.Last)) {
		a.refusals[f.Owner] = f
	}
}

// refused is the newest event that pods of an owner cannot be made; nil where it is older than a span.
func (a *assembly) refused(owner watch.Owned, span time.Duration) *watch.RefusalFacts {
	if f := a.refusals[owner]; f != nil && a.wall.Sub(f.Last) < span {
		return f
	}
	return nil
}

// refuseMembers says of members why their pods cannot be made. A pod that was made after the event is the end of it,
// whatever else of the member is missing.
func (a *assembly) refuseMembers() {
	made := make(map[memberRef]time.Time, len(a.refusedRoles))
	for i := range a.s.Pods {
		p := &a.s.Pods[i]
		if ref := (memberRef{p.Job, p.Role}); a.refusedRoles[ref] != nil && p.Created.After(made[ref]) {
			made[ref] = p.Created
		}
	}
	for i := range a.s.Jobs {
		j := &a.s.Jobs[i]
		for k := range j.Members {
			m := &j.Members[k]
			ref := memberRef{j.ID, m.Role}
			if f := a.refusedRoles[ref]; f != nil && m.Active < m.Desired && !made[ref].After(a.at(f.Last)) {
				m.PodsRefused = f.Text
			}
		}
	}
}
