package planner

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/scripttest"
	"github.com/springtide/springtide/reason"
)

// holdsLine reads a line of a script that pauses an object by its annotation.
func (w *world) holdsLine(f scripttest.Line) bool {
	h := fleet.Hold{Pause: fleet.PauseAll, Source: "springtide.dev/pause", By: "ann", Reason: "INC-1"}
	if f[3] != "-" {
		h.Until = t0.Add(time.Duration(f.Int(3)) * time.Minute)
	}
	if f.Has(4) {
		h.Replicas = fleet.KnownAt(int32(f.Int(4)), t0)
	}
	held := fleet.HeldAt(t0, h)
	switch f[1] {
	case "service":
		svc := w.service1(f[2])
		svc.Pause, svc.Hold, svc.Ended = held.Pause, held.Hold, held.Ended
	case "job":
		for i := range w.s.Jobs {
			if j := &w.s.Jobs[i]; j.ID == fleet.JobID(f[2]) {
				j.Hold, j.Ended = held.Hold, held.Ended
			}
		}
	case "pool":
		for i := range w.s.Pools {
			if p := &w.s.Pools[i]; p.ID == fleet.PoolID(f[2]) {
				p.Hold, p.Ended = held.Hold, held.Ended
			}
		}
	default:
		return false
	}
	return true
}

// The size that a pause states lies within the service's bounds, needs no evidence, and holds requests all the same.
func TestPinned(t *testing.T) {
	hold := func(n int32) func(*fleet.Service) {
		return func(s *fleet.Service) {
			s.Pause, s.Hold = fleet.PauseAll, fleet.Hold{Pause: fleet.PauseAll, Replicas: fleet.KnownAt(n, t0)}
		}
	}
	for name, c := range map[string]struct {
		change func(*fleet.Service)
		want   int32
	}{
		"down":          {hold(9), 9},
		"up":            {hold(14), 14},
		"where it is":   {hold(12), 12},
		"above its max": {hold(4000), 1000},
		"below its min": {func(s *fleet.Service) { s.Min = 5; hold(2)(s) }, 5},
		"one direction": {func(s *fleet.Service) { hold(9)(s); s.Pause = fleet.PauseIn }, 12},
		"set to 0":      {func(s *fleet.Service) { hold(9)(s); s.SetToZero = "kubectl" }, 12},
	} {
		w := newWorld(12).service("web", 12, 0, 12, 10) // which asks for 2
		svc := &w.s.Services[0]
		svc.Max = 1000
		c.change(svc)
		in := w.input()
		for id := range in.Live {
			delete(in.Live, id) // blind: no scale-in of its own
		}
		p := made(in)
		acts := len(p.Lowers) + len(p.Raises)
		if tg := &p.Targets[0]; tg.Replicas != c.want || acts != min(1, int(max(c.want-12, 12-c.want))) {
			t.Errorf("%s: %d, want %d, by %d actions: %s; %v", name, tg.Replicas, c.want, acts, tg.Why(), p.Withheld)
		}
	}
	in := Input{Snapshot: &fleet.Snapshot{At: t0, WatchedSince: t0.Add(-time.Hour)}, Options: DefaultOptions()}
	svc := fleet.Service{Mode: fleet.Auto, Max: 9}
	hold(3)(&svc)
	if by := in.permit(requestsOf(&svc), replaces); by.Code != reason.Paused {
		t.Errorf("requests of a pinned service: %q", by.Code)
	}
}

// Each pause says in one sentence where it stands, what it holds, by whom, why, and until when.
func TestPausedBy(t *testing.T) {
	end := time.Date(2026, 8, 8, 6, 0, 0, 0, time.UTC)
	const note = "springtide.dev/pause"
	for _, c := range []struct {
		what fleet.Pause
		hold *fleet.Hold
		want string
	}{
		{fleet.PauseIn, nil, "spec.pause is In"},
		{fleet.PauseAll, &fleet.Hold{Source: PauseField, Reason: "INC-1", Until: end},
			"spec.pause is All: INC-1, until 2026-08-08 06:00 UTC"},
		{fleet.PauseAll, &fleet.Hold{Source: note, By: "ann", Reason: "INC-1"},
			"springtide.dev/pause is All, by ann: INC-1, until it is removed"},
		{fleet.PauseAll, &fleet.Hold{Source: note, Unreadable: "at -1"},
			"springtide.dev/pause is All: it cannot be read (at -1), until it is removed"},
	} {
		if got := PausedBy(c.what, c.hold).Text(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
