package input

import (
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": now.Add(-time.Hour), "2d": now.AddDate(0, 0, -2), "1767225600": time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		"2026-01-05T08:00:00+08:00": time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC),
	} {
		if got, err := moment("from", text, now, time.Hour); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}
