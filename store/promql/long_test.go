package promql

import "testing"

// long marks a test that asks a Prometheus about hours and proves nothing about goroutines that a shorter one does not: -short leaves it out, and so
// does the race detector in `make test`.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("asks a Prometheus about hours; run without -short")
	}
}
