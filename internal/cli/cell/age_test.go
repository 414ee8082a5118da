package cell

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestShortAge: a table says how old a row is, and gives the time itself where an age by the clock of this machine means nothing.
func TestShortAge(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	for age, want := range map[time.Duration]string{
		15 * time.Second: "15s", 9*time.Minute + 59*time.Second: "9m", 150 * time.Minute: "2h", 24 * time.Hour: "06-01 12:00Z", -time.Minute: "06-01 12:00Z",
	} {
		if got := ShortAge(&at, at.Add(age)); got != want {
			t.Errorf("%v later: %q, want %q", age, got, want)
		}
	}
	if got := ShortAge(nil, at.Time); got != None {
		t.Errorf("never: %q", got)
	}
}
