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
	truth.Wrote("nodes", 50) // before the first mark
	// The writes of each quarter of three hours: the quietest hour begins with the first mark after those to pods.
	quarters := []map[string]int{
		{"loans/status": 9}, {}, {}, {},
		{"pods": 5}, {"nodes": 1}, {}, {"elasticservices/status": 3},
		{}, {"pods": 5}, {}, {},
	}
	for at := hour; at.Before(hour.Add(3 * time.Hour)); at = at.Add(time.Minute) {
		truth.markWrites(at)
		truth.loanTime += 4 * time.Minute // four loans
		if since := at.Sub(hour); since%(15*time.Minute) == 0 {
			for resource, n := range quarters[since/(15*time.Minute)] {
				truth.Wrote(resource, n)
			}
			truth.Wrote("events", 100)
		}
	}
	truth.markWrites(hour.Add(3 * time.Hour))
	quarter := 0.25
	want := &WriteHour{From: hour.Add(65 * time.Minute), Loans: 4, PerLoan: &quarter, Others: 3, ByResource: map[string]int{"nodes": 1, "elasticservices/status": 3}}
	r := truth.reportWrites(3 * time.Hour)
	if d := cmp.Diff(want, r.QuietestHour); d != "" || r.Total != 73 {
		t.Errorf("of %d writes, -want +got:\n%s", r.Total, d)
	}
}
