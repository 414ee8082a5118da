package loop

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

func TestAgree(t *testing.T) {
	svc := fleet.Service{Request: fleet.Resources{CPU: 2000}, SLO: fleet.Levels(
		fleet.Latency(0.99, 250*time.Millisecond),
		fleet.Level{Kind: fleet.LevelErrors, Name: fleet.LevelNameErrors, Limit: 0.001},
		fleet.Level{Kind: fleet.LevelThroughput, Name: fleet.LevelNameThroughput},
	)}
	svc.SLO.Objective.GoodMinutes = 0.999
	l := portrait.Levels{Of: []portrait.LevelValues{{Name: "latency-p99"}, {Name: "latency-p50"}, {Name: "throughput"},
		{Name: "errors"}}}
	agree(&l, &svc, &portrait.Portrait{Signal: portrait.CPU})
	want := portrait.Levels{Rule: 1.2, Of: []portrait.LevelValues{
		{Name: "latency-p99", Limit: 0.25, Objective: 0.999}, {Name: "errors", Limit: 0.001, Objective: 0.999},
	}}
	if d := cmp.Diff(want, l); d != "" {
		t.Error(d)
	}
}
