package e2e

import (
	"testing"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/world"
)

// Without node agents the controller decides when a machine is clean: whole machines are lent and come home, and no socket is. The watcher
// looks at each step whether a cell is in two hands and whether an online pod was evicted.
func TestNoAgents(t *testing.T) {
	reported := 0
	_, s := play(t, world.Options{Nodes: 60, Services: 12, Length: 12 * time.Hour, NoAgents: true}, func(_ *world.World, s *watcher) bool {
		for i := range s.shares {
			st := &s.shares[i].Status
			if len(st.Parcels) > 0 && st.Reporter != v1alpha1.ReporterController {
				t.Errorf("the share of %s was reported by %q", s.shares[i].Name, st.Reporter)
			}
			for _, p := range st.Parcels {
				if p.Clean {
					reported++
				}
			}
		}
		return len(s.returned("Node")) >= 3
	})
	if got := s.returned("Node"); len(got) < 3 || reported == 0 {
		t.Errorf("%d machines went through all phases; loans by last phase: %s", len(got), s.summary())
	}
	for name, l := range s.loans {
		if l.Spec.Kind == "Socket" {
			t.Errorf("loan %s is of a socket, which needs an agent", name)
		}
	}
}
