package loop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// slowSource is a source of samples that answers after the plan was carried out, which goes on after the source was asked.
type slowSource struct {
	*benchFleet
	asked, applied chan struct{}
	over           bool
	err            error
}

func (s *slowSource) Apply(ctx context.Context, p *planner.Plan) (loop.Receipt, error) {
	select {
	case <-s.asked:
	case <-ctx.Done():
		return loop.Receipt{}, ctx.Err()
	}
	close(s.applied)
	return s.benchFleet.Apply(ctx, p)
}

func (s *slowSource) Prefetch(ctx context.Context, _ []fleet.Service, _ time.Time) error {
	close(s.asked)
	select {
	case <-s.applied:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.over = true
	return s.err
}

// TestSamplesAreReadMeanwhile: a slow source of samples holds up no action of its cycle, the cycle waits for it at its end, and what it says is not lost.
func TestSamplesAreReadMeanwhile(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // for a loop that does one after the other
	defer cancel()
	f := &slowSource{benchFleet: &benchFleet{s: fleet.Snapshot{At: benchStart}}, asked: make(chan struct{}), applied: make(chan struct{}), err: errors.New("the source is down")}
	r := prometheus.NewRegistry()
	l := loop.New(loop.Ports{Observer: f, History: f, Actuator: f, Reporter: f, Journal: f, Memory: f, Clock: f, Metrics: loop.NewMetrics(r)}, loop.DefaultOptions())
	if _, err := l.Cycle(ctx); err != nil {
		t.Fatal(err)
	}
	if !f.over {
		t.Error("the cycle ended before its samples were read")
	}
	want := `# HELP springtide_source_up 1 while what the loop depends on answers: the cluster, the history, the store.
# TYPE springtide_source_up gauge
springtide_source_up{source="cluster"} 1
springtide_source_up{source="history"} 0
springtide_source_up{source="store"} 1
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "springtide_source_up"); err != nil {
		t.Error(err)
	}
}
