package model

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReturns: what was bound counts once, and what was not by the end of the run counts with its time so far.
func TestReturns(t *testing.T) {
	f := flat(t)
	tr := newTruth(t, f)
	if d := cmp.Diff(ReturnReport{}, tr.Report(0).Returns); d != "" {
		t.Errorf("of none, -want +got:\n%s", d)
	}
	play(t, tr, 1, StepFacts{Services: staticPods(f), Returns: []ReturnFacts{{0, time.Second}, {15 * time.Second, 2 * time.Second}}, Unbound: []ReturnFacts{{30 * time.Second, 3 * time.Second}}})
	play(t, tr, 1, StepFacts{Services: staticPods(f), Unbound: []ReturnFacts{{45 * time.Second, 4 * time.Second}}})
	of := func(v float64) *float64 { return &v }
	want := ReturnReport{Count: 3, Unbound: 1, P50Seconds: of(15), P99Seconds: of(45), P50WallSeconds: of(2), P99WallSeconds: of(4)}
	if d := cmp.Diff(want, tr.Report(0).Returns); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
