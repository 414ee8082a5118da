package hpa

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// A forecast whose skill was just lost is as good as one by fall-back: it still asks for more, and nothing scales in meanwhile.
func TestLostSkill(t *testing.T) {
	for _, tt := range []struct {
		name string
		w    *world
		held reason.Code
	}{{"ebb", falling(20, 4), HeldForecast}, {"flood", calm(4), ""}} {
		if tt.held == "" {
			tt.w.tide(5000)
		}
		sound := tt.w.size()
		tt.w.t.Trusted, tt.w.t.SkillLost = false, true
		lost := tt.w.size()
		p := part(t, lost, "forecast")
		if want := part(t, sound, "forecast").Replicas; p.Replicas != want ||
			!strings.HasSuffix(p.Why.Text(), ", of a forecast whose skill is lost") {
			t.Errorf("%s: the forecast asks for %v (%s), want %v as before", tt.name, p.Replicas, p.Why, want)
		}
		want := sound.Replicas
		if tt.held != "" {
			want = lost.Current
			if sound.Replicas >= want {
				t.Errorf("%s: a trusted tide goes from %d to %d", tt.name, want, sound.Replicas)
			}
		}
		if lost.Replicas != want || lost.Held != tt.held || lost.DataFresh {
			t.Errorf("%s: %d replicas, held by %q, fresh %v; want %d, held by %q", tt.name, lost.Replicas, lost.Held, lost.DataFresh, want, tt.held)
		}
	}
}

// After an hour without skill the live signals decide alone, at the utilisation for latency, for everybody who has proof of all else.
func TestSkillLostForLong(t *testing.T) {
	lost := func(w *world, ago time.Duration) {
		w.svc.SLO = fleet.Levels(fleet.CPU(0.9)) // sized for 0.81
		w.t.Trusted, w.t.SkillLost = false, true
		w.p.Record.Skill.Lost, w.p.Record.Skill.Since = true, w.now.Add(-ago)
	}
	for _, c := range []struct {
		name  string
		ago   time.Duration
		other func(*world)
		want  int32
		held  reason.Code
		alone bool
	}{
		{"59 minutes", 59 * time.Minute, nil, 20, HeldForecast, false},
		// A pod uses 30 % of its request: 20 × 0.3 / 0.6.
		{"an hour", time.Hour, nil, 10, "", true},
		{"an hour, and no load", time.Hour, func(w *world) { w.live.Load.OK = false }, 20, HeldStale, false},
		{"an hour, and a new leader", time.Hour, func(w *world) { w.watched(time.Minute) }, 20, HeldJustStarted, true},
		{"a fall-back speaks", time.Hour, func(w *world) { w.t.SkillLost = false }, 20, HeldForecast, false},
		{"an old tide", time.Hour, func(w *world) { w.t.Made = w.now.Add(-time.Hour) }, 20, HeldForecast, false},
	} {
		w := falling(20, 4)
		w.cpu(300)
		lost(w, c.ago)
		if c.other != nil {
			c.other(w)
		}
		tg := w.size()
		// A load of 100/s, twice that at the 33.75/s that a replica carries at 81 %, which the forecast would be sized with: where that is all that is missing.
		most := int32(6)
		if !w.t.SkillLost || !w.live.Load.OK {
			most = 0
		}
		if tg.LiveMost != most {
			t.Errorf("%s: twice the load takes %d replicas, want %d", c.name, tg.LiveMost, most)
		}
		if tg.Replicas != c.want || tg.Held != c.held || tg.LiveAlone != c.alone || tg.DataFresh ||
			!slices.Contains(tg.Missing, Missing{MissingForecast, ""}) {
			t.Errorf("%s: %d replicas, held by %q, live alone %v, fresh %v; want %d, %q, %v: %s", c.name, tg.Replicas, tg.Held,
				tg.LiveAlone, tg.DataFresh, c.want, c.held, c.alone, tg.Why())
		}
	}
}
