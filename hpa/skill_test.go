package hpa

import (
	"strings"
	"testing"
)

// A forecast whose skill is lost is as good as one by fall-back: it still asks for more, and nothing scales in meanwhile.
func TestLostSkill(t *testing.T) {
	for _, tt := range []struct {
		name string
		w    *world
		held string
	}{{"ebb", falling(20, 4), HeldForecast}, {"flood", calm(4), ""}} {
		if tt.held == "" {
			tt.w.tide(5000)
		}
		sound := tt.w.size()
		tt.w.t.Trusted, tt.w.t.SkillLost = false, true
		lost := tt.w.size()
		p := part(t, lost, "forecast")
		if want := part(t, sound, "forecast").Replicas; p.Replicas != want || !strings.HasSuffix(p.Detail, ", of a forecast whose skill is lost") {
			t.Errorf("%s: the forecast asks for %v (%s), want %v as before", tt.name, p.Replicas, p.Detail, want)
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
