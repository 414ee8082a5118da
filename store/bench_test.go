package store

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/reason"
)

// BenchmarkCycle is what one cycle of 2,000 services costs the embedded store: their decisions, and a record in which one service changed.
func BenchmarkCycle(b *testing.B) {
	s, err := Open(b.Context(), "sqlite://"+filepath.Join(b.TempDir(), "bench.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	r, ds := cycle(0), map[fleet.ServiceID][]hpa.Decision{}
	r.Plan.Targets = nil
	for i := range 2000 {
		id := fleet.ServiceID(fmt.Sprintf("ns%d/service-%d", i%50, i))
		r.Plan.Targets = append(r.Plan.Targets,
			hpa.Target{Service: id, Replicas: 10, Notes: []reason.Reason{reason.Of(reason.LiveSignalsAlone, 60)},
				Ahead: make([]int32, 48)})
		ds[id] = []hpa.Decision{{Replicas: 10, From: 10}}
	}
	i := 0
	for b.Loop() {
		i++
		r.Revision, r.At = fleet.Revision(i), epoch.Add(time.Duration(i)*15*time.Second)
		r.Plan.Targets[i%2000].Replicas++
		for _, d := range ds {
			d[0].At = r.At
		}
		if err := s.SaveDecisions(b.Context(), ds); err != nil {
			b.Fatal(err)
		}
		if err := s.Append(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
