package validate

import (
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// An annotation that cannot be read holds what it meant to hold, and all where that is not known. It ends at its end,
// if that can be read, and says what is wrong with it.
func TestPause(t *testing.T) {
	end := time.Date(2026, 8, 8, 6, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		text  string
		on    PausedKind
		pause fleet.Pause
		at    int32 // -1 where none is stated
		until time.Time
		wrong string
	}{
		"whole": {`{"reason":"INC-1","by":"ann","since":"2026-08-08T04:00:00Z","until":"2026-08-08T06:00:00Z","at":6}`,
			PausedService, fleet.PauseAll, 6, end, ""},
		"another zone": {`{"reason":"INC-1","until":"2026-08-08T08:00:00+02:00"}`,
			PausedPool, fleet.PauseAll, -1, end, ""},
		"one direction": {`{"reason":"INC-1","pause":"In"}`, PausedService, fleet.PauseIn, -1, time.Time{}, ""},
		"no JSON":       {`until tomorrow`, PausedJob, fleet.PauseAll, -1, time.Time{}, "no JSON of a pause"},
		"empty":         {``, PausedJob, fleet.PauseAll, -1, time.Time{}, "no JSON of a pause"},
		"two of them": {`{"reason":"a"}{"reason":"b"}`,
			PausedJob, fleet.PauseAll, -1, time.Time{}, "text after its end"},
		"an unknown field": {`{"reason":"INC-1","untill":"2026-08-08T06:00:00Z","pause":"In"}`,
			PausedService, fleet.PauseIn, -1, time.Time{}, `unknown field "untill"`},
		"no reason": {`{"until":"2026-08-08T06:00:00Z"}`,
			PausedPool, fleet.PauseAll, -1, end, "it has no reason"},
		"a bad time": {`{"reason":"INC-1","until":"tomorrow","at":4}`,
			PausedService, fleet.PauseAll, 4, time.Time{}, `until "tomorrow" is no time`},
		"a number as time": {`{"reason":"INC-1","until":7,"pause":"Out"}`,
			PausedService, fleet.PauseOut, -1, time.Time{}, "no JSON of a pause"},
		"a bad direction": {`{"reason":"INC-1","pause":"Sideways"}`,
			PausedService, fleet.PauseAll, -1, time.Time{}, `pause "Sideways"`},
		"a direction of a pool": {`{"reason":"INC-1","pause":"In"}`,
			PausedPool, fleet.PauseAll, -1, time.Time{}, "for a service alone"},
		"a size of a job": {`{"reason":"INC-1","at":4}`,
			PausedJob, fleet.PauseAll, -1, time.Time{}, "for a service alone"},
		"a negative size": {`{"reason":"INC-1","at":-4}`,
			PausedService, fleet.PauseAll, -1, time.Time{}, "not negative"},
		"a size and a direction": {`{"reason":"INC-1","at":4,"pause":"In"}`,
			PausedService, fleet.PauseIn, -1, time.Time{}, "needs pause All"},
		"too long": {`{"reason":"` + strings.Repeat("x", maxPause) + `"}`,
			PausedService, fleet.PauseAll, -1, time.Time{}, "write at most 4096"},
	} {
		h := Pause(c.text, c.on)
		at := int32(-1)
		if h.Replicas.OK {
			at = h.Replicas.Value
		}
		if h.Pause != c.pause || at != c.at || !h.Until.Equal(c.until) {
			t.Errorf("%s: %+v", name, h)
		}
		if (h.Unreadable == "") != (c.wrong == "") || !strings.Contains(h.Unreadable, c.wrong) {
			t.Errorf("%s: %q, want %q", name, h.Unreadable, c.wrong)
		}
		if c.wrong != "" && !strings.Contains(h.Unreadable, "springtide resume") {
			t.Errorf("%s: %q names no fix", name, h.Unreadable)
		}
	}
}

func TestPauseText(t *testing.T) {
	for _, h := range []fleet.Hold{
		{Pause: fleet.PauseAll, Reason: "INC-1"},
		{Pause: fleet.PauseIn, Reason: "INC-1", By: "ann", Since: time.Unix(1e9, 0).UTC(), Until: time.Unix(2e9, 0).UTC()},
		{Pause: fleet.PauseAll, Reason: `a "quoted" reason`, Replicas: fleet.Known[int32]{Value: 0, OK: true}},
	} {
		want := h
		want.Source = "springtide.dev/pause"
		if got := Pause(PauseText(&h), PausedService); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
