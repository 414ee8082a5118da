package planner

import (
	"fmt"
	"testing"
)

// BenchmarkLook looks a week ahead for 1,000 services: what jobs that wait cost every quarter of an hour.
func BenchmarkLook(b *testing.B) {
	w := newWorld(200)
	for i := range 1000 {
		w.service(fmt.Sprintf("s%04d", i), 4, i%200, 4, 20)
	}
	in := w.input()
	for b.Loop() {
		Look(&in)
	}
}
