package model

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDemands(t *testing.T) {
	f := flat(t)
	tr := newTruth(t, f)
	if d := cmp.Diff(DemandReport{}, tr.Report(0).Demands); d != "" {
		t.Errorf("of none, -want +got:\n%s", d)
	}
	play(t, tr, 1, StepFacts{Services: staticPods(f), Demands: []DemandFacts{{15 * time.Second, 2 * time.Second}, {0, time.Second}}})
	play(t, tr, 1, StepFacts{Services: staticPods(f), Demands: []DemandFacts{{5 * time.Second, 3 * time.Second}}})
	of := func(v float64) *float64 { return &v }
	want := DemandReport{Count: 3, P50Seconds: of(5), P99Seconds: of(15), P50WallSeconds: of(2), P99WallSeconds: of(3)}
	if d := cmp.Diff(want, tr.Report(0).Demands); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
