package loop_test

import "testing"

// long marks a test that plays hours of a fleet and proves nothing about goroutines that a shorter one does not: -short leaves it out, and so does
// the race detector in `make test`.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("plays hours of a fleet; run without -short")
	}
}
