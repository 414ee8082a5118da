// Package promtest gives tests a Prometheus.
package promtest

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/springtide/springtide/lab/prom"
)

// Level is a series that had one value all along.
type Level struct {
	Labels labels.Labels
	Value  float64
}

// Empty serves a Prometheus without samples until the test ends, and returns its address.
func Empty(t *testing.T) string { return Levels(t, time.Time{}, 0) }

// Levels serves a Prometheus that holds series with a sample a minute, over a span that ends at a time, until the test ends. It returns its address.
func Levels(t *testing.T, until time.Time, span time.Duration, of ...Level) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := prom.Open(t.TempDir(), prom.Options{})
	must(err)
	t.Cleanup(func() { _ = db.Close() })
	if len(of) > 0 {
		past, err := db.Backfill()
		must(err)
		for _, l := range of {
			var points []prom.Point
			for at := until.Add(-span).Truncate(time.Minute); !at.After(until); at = at.Add(time.Minute) {
				points = append(points, prom.Point{At: at, Value: l.Value})
			}
			must(past.AppendSeries(past.Series(l.Labels), points))
		}
		must(past.Commit(t.Context()))
	}
	url, err := db.Serve("127.0.0.1:0")
	must(err)
	return url
}
