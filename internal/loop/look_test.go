package loop

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/slo"
)

// Each level is judged by what the source measures of it. By hand: two replicas that do 25 a second do 50; while 40
// arrive they drain 10 a second, 600 in a minute.
func TestLook(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	known := func(v float64) fleet.Known[float64] { return fleet.KnownAt(v, now) }
	work := fleet.Level{Kind: fleet.LevelThroughput, Name: "throughput", PerReplica: 25}
	backlog := fleet.Level{Kind: fleet.LevelBacklog, Name: "backlog", DrainWithin: time.Minute}
	errors := fleet.Level{Kind: fleet.LevelErrors, Name: "errors", Limit: 0.01}
	learned := work
	learned.PerReplica = 0
	for name, c := range map[string]struct {
		levels []fleet.Level
		live   map[string]fleet.Known[float64]
		want   map[string]slo.State
	}{
		"two latencies and errors": {
			[]fleet.Level{fleet.Latency(0.5, 100*time.Millisecond), fleet.Latency(0.99, time.Second), errors},
			map[string]fleet.Known[float64]{"latency-p50": known(0.2), "latency-p99": known(0.9), "errors": known(0.01)},
			map[string]slo.State{"latency-p50": slo.Bad, "latency-p99": slo.Good, "errors": slo.Good}},
		"an old value is unknown": {[]fleet.Level{errors},
			map[string]fleet.Known[float64]{"errors": fleet.KnownAt(0.5, now.Add(-time.Hour))},
			map[string]slo.State{"errors": slo.Unknown}},
		"work is done in time": {[]fleet.Level{work, backlog},
			map[string]fleet.Known[float64]{"throughput": known(40), "backlog": known(600)},
			map[string]slo.State{"throughput": slo.Good, "backlog": slo.Good}},
		"a backlog is not": {[]fleet.Level{work, backlog},
			map[string]fleet.Known[float64]{"throughput": known(40), "backlog": known(601)},
			map[string]slo.State{"throughput": slo.Good, "backlog": slo.Bad}},
		"more arrives than is done": {[]fleet.Level{work, backlog},
			map[string]fleet.Known[float64]{"throughput": known(51), "backlog": known(0)},
			map[string]slo.State{"throughput": slo.Bad, "backlog": slo.Good}},
		"no figure of a replica": {[]fleet.Level{learned, backlog, errors},
			map[string]fleet.Known[float64]{"throughput": known(40), "backlog": known(600), "errors": known(0)},
			map[string]slo.State{"errors": slo.Good}},
		"arrivals are not known": {[]fleet.Level{work, backlog},
			map[string]fleet.Known[float64]{"backlog": known(600)},
			map[string]slo.State{"throughput": slo.Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			svc := fleet.Service{SLO: fleet.Levels(c.levels...), Pods: []fleet.Pod{{Ready: true, CurrentRevision: true},
				{Ready: true, CurrentRevision: true}}}
			v := view{s: &fleet.Snapshot{At: now}, svc: &svc, target: &hpa.Target{}, live: &hpa.Live{Levels: c.live},
				portrait: &portrait.Portrait{}}
			got := v.look(&slo.Record{})
			for i, name := range got.Names {
				if want, ok := c.want[name]; !ok || got.States[i] != want {
					t.Errorf("%s is %v, want %v", name, got.States[i], want)
				}
			}
			if len(got.Names) != len(c.want) {
				t.Errorf("%v are judged, want %v", got.Names, c.want)
			}
			if broken := slices.Contains(got.States, slo.Bad); broken != (got.Cause != slo.NoCause) {
				t.Errorf("broken %v, by %v", broken, got.Cause)
			}
		})
	}
}
