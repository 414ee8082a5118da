package fleet

import (
	"testing"
	"time"
)

// TestTakeovers: only writes that undid one of ours count, each within an hour of the one before and by the same manager.
func TestTakeovers(t *testing.T) {
	t0 := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	at := func(m int) time.Time { return t0.Add(time.Duration(m) * time.Minute) }
	var x Takeovers
	for _, c := range []struct {
		what     string
		by       string
		at, ours int
		want     int32
	}{
		{"the first", "argocd", 1, 0, 1},
		{"the same write again", "argocd", 1, 0, 1},
		{"another write of theirs, none of ours between", "argocd", 2, 0, 1},
		{"after one of ours", "argocd", 4, 3, 2},
		{"again", "argocd", 6, 5, 3},
		{"another manager", "flux", 8, 7, 1},
		{"an hour later", "flux", 68, 60, 1},
	} {
		if x = x.Taken(c.by, at(c.at), at(c.ours)); x.Count != c.want || x.By != c.by {
			t.Errorf("%s: %+v, want %d by %s", c.what, x, c.want, c.by)
		}
	}
}
