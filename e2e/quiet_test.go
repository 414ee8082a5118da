package e2e

import (
	"testing"
	"time"

	"github.com/springtide/springtide/lab/world"
)

// TestQuietNight counts what the controller writes in the quietest hour of a night in which most machines are lent to
// work on node agents. The writes of loans in a steady state are held to a number, as their protocol needs no writes
// then. All other writes are a reported figure: most of them are scales, which follow the load, and a bound on them
// would be paid for by replicas that stay.
func TestQuietNight(t *testing.T) {
	// The hour is the quietest of those that begin every five minutes (docs/benchmarks/lab-writes.md).
	const perLoan = 0.5
	w, s := play(t, world.Options{Nodes: 50, Services: 10, Begin: 90 * time.Minute, Length: 3*time.Hour + 30*time.Minute}, nil)
	writes := w.Report().APIWrites
	hour := writes.QuietestHour
	if hour == nil || hour.PerLoan == nil {
		t.Fatalf("no whole hour with loans was counted: %+v", writes)
	}
	t.Logf("from %s: %.1f loans, %.2f writes for each, %d others: %v", hour.From.Format("15:04"), hour.Loans, *hour.PerLoan, hour.Others, hour.ByResource)
	if hour.Loans < 20 || hour.Others == 0 {
		t.Errorf("%.1f loans and %d other writes: too few to judge; loans by last phase: %s", hour.Loans, hour.Others, s.summary())
	}
	if *hour.PerLoan >= perLoan {
		t.Errorf("%.2f writes for each loan, want fewer than %v: %v", *hour.PerLoan, perLoan, hour.ByResource)
	}
}
