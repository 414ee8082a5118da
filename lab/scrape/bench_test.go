package scrape_test

import (
	"testing"

	"github.com/springtide/springtide/lab/scrape"
)

// BenchmarkMinute is a virtual minute of the demo's Prometheus: four scrapes, each followed by a controller's read, and one evaluation of the
// rules.
func BenchmarkMinute(b *testing.B) {
	w := newTown(b, 40, 1000, scrape.Options{})
	minute := func() {
		for range 4 {
			w.step()
			if err := w.history.Prefetch(b.Context(), w.services, w.now); err != nil {
				b.Fatal(err)
			}
		}
	}
	for range 30 {
		minute()
	}
	for b.Loop() {
		minute()
	}
}
