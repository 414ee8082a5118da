// Package promtest gives tests a Prometheus.
package promtest

import (
	"testing"

	"github.com/springtide/springtide/lab/prom"
)

// Empty serves a Prometheus without samples until the test ends, and returns its address.
func Empty(t *testing.T) string {
	t.Helper()
	db, err := prom.Open(t.TempDir(), prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	url, err := db.Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return url
}
