package model

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheQuietestHour(t *testing.T) {
	hour := time.Date(2026, 6, 1, 2, 0, 0, 0, time.UTC)
	truth := &Truth{}
	if r := truth.reportWrites(time.Hour); r.QuietestHour != nil || r.PerLoanHour != nil || r.Total != 0 {
		t.Errorf("of nothing: %+v", r)
	}
	truth.Wrote("nodes", 50) // before the first whole hour
	for i, writes := range []map[string]int{{"loans/status": 9}, {"nodes": 1, "elasticservices/status": 3}, {"pods": 5}} {
		at := hour.Add(time.Duration(i) * time.Hour)
		truth.markWrites(at)
		for d := time.Duration(0); d < time.Hour; d += Step {
			truth.loanTime += 4 * Step // four loans
		}
		truth.Wrote("events", 100)
		for resource, n := range writes {
			truth.Wrote(resource, n)
		}
		truth.markWrites(at.Add(30 * time.Minute)) // no whole hour
	}
	truth.markWrites(hour.Add(3 * time.Hour))
	quarter := 0.25
	want := &WriteHour{From: hour.Add(time.Hour), Loans: 4, PerLoan: &quarter, Others: 3, ByResource: map[string]int{"nodes": 1, "elasticservices/status": 3}}
	r := truth.reportWrites(3 * time.Hour)
	if d := cmp.Diff(want, r.QuietestHour); d != "" || r.Total != 68 {
		t.Errorf("of %d writes, -want +got:\n%s", r.Total, d)
	}
}
