package fleet

import (
	"testing"
	"time"
)

// TestTakeovers: only writes that undid one of ours count, each within an hour of the one before. Two managers that take turns are one fight: the last of them is named.
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
		{"another manager", "horizontal-pod-autoscaler", 8, 7, 4},
		{"the first one again", "argocd", 10, 9, 5},
		{"an hour later", "argocd", 70, 60, 1},
	} {
		if x = x.Taken(c.by, at(c.at), at(c.ours)); x.Count != c.want || x.By != c.by {
			t.Errorf("%s: %+v, want %d by %s", c.what, x, c.want, c.by)
		}
	}
}

// TestContested: while a fight is not an hour old, the field is left alone, no matter which of its writers holds it; without one it is ours again.
func TestContested(t *testing.T) {
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		writer string
		count  int32
		want   bool
	}{{"argocd", 3, true}, {"horizontal-pod-autoscaler", 3, true}, {"argocd", 2, false}, {"", 3, false}} {
		s := Service{ForeignWriter: c.writer, Takeovers: Takeovers{By: "argocd", Count: c.count, Last: at}}
		if got := s.Contested(at); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
