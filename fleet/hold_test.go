package fleet

import (
	"testing"
	"time"
)

// Pauses end by the time of the snapshot, hold their directions together, and the most specific of the widest is named.
func TestHeldAt(t *testing.T) {
	now := time.Date(2026, 8, 8, 6, 0, 0, 0, time.UTC)
	hold := func(source string, p Pause, until time.Duration) Hold {
		h := Hold{Source: source, Pause: p}
		if until != 0 {
			h.Until = now.Add(until)
		}
		return h
	}
	for name, c := range map[string]struct {
		holds        []Hold
		pause        Pause
		named, ended string
	}{
		"none":             {},
		"spec says none":   {holds: []Hold{hold("spec", PauseNone, 0)}},
		"without an end":   {holds: []Hold{hold("spec", PauseAll, 0)}, pause: PauseAll, named: "spec"},
		"a second is left": {holds: []Hold{hold("note", PauseIn, time.Second)}, pause: PauseIn, named: "note"},
		"over at its end":  {holds: []Hold{hold("note", PauseAll, -time.Nanosecond)}, ended: "note"},
		"one of two is over": {holds: []Hold{hold("note", PauseAll, -time.Hour), hold("spec", PauseOut, 0)},
			pause: PauseOut, named: "spec", ended: "note"},
		"the wider is named": {holds: []Hold{hold("note", PauseIn, 0), hold("namespace", PauseAll, time.Hour)},
			pause: PauseAll, named: "namespace"},
		"the first of equals": {holds: []Hold{hold("note", PauseAll, time.Hour), hold("namespace", PauseAll, 0)},
			pause: PauseAll, named: "note"},
		"both directions": {holds: []Hold{hold("note", PauseIn, 0), hold("spec", PauseOut, 0)},
			pause: PauseAll, named: "note"},
	} {
		got := HeldAt(now, c.holds...)
		if got.Pause != c.pause || got.Hold.Source != c.named || got.Ended.Source != c.ended {
			t.Errorf("%s: %+v", name, got)
		}
	}
	at := hold("note", PauseAll, time.Hour)
	if at.Over(at.Until.Add(-1)) || !at.Over(at.Until) {
		t.Error("a pause is over at its end, and not before")
	}
}
