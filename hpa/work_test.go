package hpa

import (
	"slices"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
)

// By hand: a replica does 25 a second. 400 a second need 16 replicas; 1,500 that wait are 25 more a second within a
// minute, and 17 replicas do both.
func TestWork(t *testing.T) {
	throughput := fleet.Level{Kind: fleet.LevelThroughput, Name: fleet.LevelNameThroughput, PerReplica: 25}
	learned := fleet.Level{Kind: fleet.LevelThroughput, Name: fleet.LevelNameThroughput}
	backlog := fleet.Level{Kind: fleet.LevelBacklog, Name: fleet.LevelNameBacklog, DrainWithin: time.Minute}
	known := func(v float64) fleet.Known[float64] { return fleet.KnownAt(v, noon) }
	for _, tt := range []struct {
		name             string
		levels           []fleet.Level
		arrives, waits   fleet.Known[float64]
		want, wantDrains int32 // -1 is unknown, 0 no part at all
		edit             func(w *world)
	}{
		{"arrivals", []fleet.Level{throughput}, known(400), known(0), 16, 0, nil},
		{"arrivals and what waits", []fleet.Level{throughput, backlog}, known(400), known(1500), 16, 17, nil},
		{"nothing waits", []fleet.Level{throughput, backlog}, known(400), known(0), 16, 16, nil},
		{"what waits is not known", []fleet.Level{throughput, backlog}, known(400), fleet.Known[float64]{}, 16, -1, nil},
		{"arrivals are not known", []fleet.Level{throughput, backlog}, fleet.Known[float64]{}, known(1500), -1, -1, nil},
		{"arrivals of an hour ago", []fleet.Level{throughput, backlog}, fleet.KnownAt(400.0, noon.Add(-time.Hour)),
			known(1500), -1, -1, nil},
		{"the tide brings more", []fleet.Level{throughput, backlog}, known(400), known(1500), 16, 30,
			// 720 in the median and 25 a second to drain
			func(w *world) { w.tide(800) }},
		{"the tide is too old", []fleet.Level{throughput, backlog}, known(400), known(1500), 16, 17,
			func(w *world) { w.tide(800); w.t.Made = noon.Add(-6 * time.Hour) }},
		{"learned of the load", []fleet.Level{learned, backlog}, known(400), known(1500), 16, 17, nil},
		{"a backlog of requests", []fleet.Level{backlog}, known(400), known(1500), 0, 17,
			func(w *world) { w.load(400) }},
		{"a backlog below zero", []fleet.Level{throughput, backlog}, known(400), known(-12000), 16, -1, nil},
		{"two an hour", []fleet.Level{{Kind: fleet.LevelThroughput, Name: fleet.LevelNameThroughput, PerReplica: 0.0004}},
			known(0.004), known(0), 10, 0, nil},
		{"five an hour", []fleet.Level{{Kind: fleet.LevelThroughput, Name: fleet.LevelNameThroughput, PerReplica: 0.0014}},
			known(0.014), known(0), 10, 0, nil},
		{"nothing says what a replica does", []fleet.Level{learned, backlog}, known(400), known(1500), 0, 0,
			func(w *world) { w.p.CPUPerLoad = fleet.Known[float64]{} }},
		{"CPU is the load", []fleet.Level{learned, backlog}, known(400), known(1500), 0, 0,
			func(w *world) { w.p.Signal, w.t.Signal = portrait.CPU, portrait.CPU }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := calm(8)
			w.svc.SLO = fleet.Levels(tt.levels...)
			w.live.Levels = map[string]fleet.Known[float64]{"throughput": tt.arrives, "backlog": tt.waits}
			if tt.edit != nil {
				tt.edit(w)
			}
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

// The operator's figure of what a replica does bounds the forecast too, where the work that arrives is the load.
func TestRuleOfWork(t *testing.T) {
	for _, c := range []struct {
		name   string
		stated float64
		signal portrait.Signal
		want   float64
	}{
		{"learned", 0, portrait.Requests, 25},
		{"stated lower", 10, portrait.Requests, 10},
		{"stated higher", 40, portrait.Requests, 25},
		{"CPU is the load", 10, portrait.CPU, 0.6},
	} {
		w := calm(4)
		w.svc.SLO = fleet.Levels(fleet.Level{Kind: fleet.LevelThroughput, Name: fleet.LevelNameThroughput,
			PerReplica: c.stated})
		w.p.Signal = c.signal
		if got := Rule(&w.svc, &w.p); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%s: a replica is sized for %g, want %g", c.name, got, c.want)
		}
	}
}
