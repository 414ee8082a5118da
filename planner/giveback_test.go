package planner

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// An HPA that no ElasticService asks for goes back once the leader has watched for a window, and not under a freeze.
func TestOrphansAreGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fleet.Snapshot)
		held   string
	}{
		"at once":      {func(*fleet.Snapshot) {}, ""},
		"frozen":       {func(s *fleet.Snapshot) { s.Frozen = "network change" }, "freeze: network change"},
		"a new leader": {func(s *fleet.Snapshot) { s.WatchedSince = t0.Add(-time.Minute) }, reason.NewLeader.Text()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1)
			w.s.Orphans = []fleet.AdoptedHPA{{Name: fleet.Name{Namespace: "shop", Name: "mine"}, ID: "h", Min: 9, Own: 3}}
			c.change(&w.s)
			p := made(w.input())
			if c.held == "" {
				if len(p.GiveBacks) != 1 || p.GiveBacks[0].From != 9 || p.GiveBacks[0].To != 3 || p.GiveBacks[0].ID != "h" || len(p.Withheld) > 0 {
					t.Errorf("%+v, withheld %+v", p.GiveBacks, p.Withheld)
				}
				return
			}
			if len(p.GiveBacks) > 0 || len(p.Withheld) != 1 || p.Withheld[0].By.Text() != c.held || p.Withheld[0].Subject.String() != "hpa shop/mine" {
				t.Errorf("%+v, withheld %+v; want it held by %q", p.GiveBacks, p.Withheld, c.held)
			}
		})
	}
}
