package loop

import (
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

// linkEvery is how often the ratios of link groups are learned: they are medians of hours, so an hour brings one more.
const linkEvery = time.Hour

// linkMemory is what is known of link groups. It is learned from portraits, so that a restart forgets nothing.
type linkMemory struct {
	known   map[fleet.ServiceID]planner.Link
	learned time.Time
	// of are the services and their groups that it was learned of.
	of map[fleet.ServiceID]string
}

// fill gives a plan how the members of link groups follow each other.
func (m *linkMemory) fill(in *planner.Input) {
	s := in.Snapshot
	of := map[fleet.ServiceID]string{}
	changed := false
	for i := range s.Services {
		if svc := &s.Services[i]; svc.LinkGroup != "" {
			of[svc.ID] = svc.LinkGroup
			changed = changed || m.of[svc.ID] != svc.LinkGroup
		}
	}
	if changed || len(of) != len(m.of) || s.At.Sub(m.learned) >= linkEvery {
		m.known, m.learned, m.of = planner.LearnLinks(s, in.Portraits), s.At, of
	}
	in.Links = m.known
}
