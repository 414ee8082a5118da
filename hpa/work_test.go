package hpa

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// By hand: a replica does 25 a second. 400 a second need 16 replicas; 1,500 that wait are 25 more a second within a
// minute, and 17 replicas do both.
func TestWork(t *testing.T) {
	throughput := fleet.Level{Kind: fleet.LevelThroughput, Name: fleet.LevelNameThroughput, PerReplica: 25}
	backlog := fleet.Level{Kind: fleet.LevelBacklog, Name: fleet.LevelNameBacklog, DrainWithin: time.Minute}
	known := func(v float64) fleet.Known[float64] { return fleet.KnownAt(v, noon) }
	for _, tt := range []struct {
		name             string
		levels           []fleet.Level
		arrives, waits   fleet.Known[float64]
		want, wantDrains int32 // -1 is unknown, 0 no part at all
	}{
		{"arrivals", []fleet.Level{throughput}, known(400), known(0), 16, 0},
		{"arrivals and what waits", []fleet.Level{throughput, backlog}, known(400), known(1500), 16, 17},
		{"nothing waits", []fleet.Level{throughput, backlog}, known(400), known(0), 16, 16},
		{"what waits is not known", []fleet.Level{throughput, backlog}, known(400), fleet.Known[float64]{}, 16, -1},
		{"arrivals are not known", []fleet.Level{throughput, backlog}, fleet.Known[float64]{}, known(1500), -1, -1},
		{"arrivals of an hour ago", []fleet.Level{throughput, backlog}, fleet.KnownAt(400.0, noon.Add(-time.Hour)),
			known(1500), -1, -1},
		{"nothing says what a replica does", []fleet.Level{{Kind: fleet.LevelThroughput, Name: "throughput"}, backlog},
			known(400), known(1500), 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := calm(8)
			w.svc.SLO = fleet.Levels(tt.levels...)
			w.live.Levels = map[string]fleet.Known[float64]{"throughput": tt.arrives, "backlog": tt.waits}
			tg := w.size()
			for name, want := range map[string]int32{"throughput": tt.want, "backlog": tt.wantDrains} {
				i := slices.IndexFunc(tg.Parts, func(p Part) bool { return p.Name == name })
				switch {
				case (i < 0) != (want == 0):
					t.Errorf("%s has a part: %v", name, i >= 0)
				case i >= 0 && (tg.Parts[i].Replicas.OK != (want > 0) || want > 0 && tg.Parts[i].Replicas.Value != want):
					t.Errorf("%s asks for %+v, want %d", name, tg.Parts[i], want)
				}
				missing := slices.Contains(tg.Missing, Missing{MissingMetric, name})
				if missing != (want < 0) {
					t.Errorf("%s is missing: %v; %v", name, missing, tg.Missing)
				}
			}
			if tt.want > 0 && tg.Wanted < max(tt.want, tt.wantDrains) {
				t.Errorf("wanted %d, want at least %d", tg.Wanted, max(tt.want, tt.wantDrains))
			}
		})
	}
}
