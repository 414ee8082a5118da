package v1alpha1_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
)

func TestDurations(t *testing.T) {
	for text, want := range map[v1alpha1.Duration]time.Duration{
		"250ms": 250 * time.Millisecond, "90s": 90 * time.Second, "1m30s": 90 * time.Second, "1h30m": 90 * time.Minute,
		"5m":  5 * time.Minute,
		"28d": 28 * 24 * time.Hour, "0s": 0, "9999d": 9999 * 24 * time.Hour, "1s500ms": 1500 * time.Millisecond,
	} {
		if got, err := text.Parse(); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []v1alpha1.Duration{"", "5", "1.5h", "-1s", "1w", "1d12h", "30s1m", "5us", "5 m", "d",
		"10000d", "1h1h", "9999999h"} {
		if got, err := text.Parse(); err == nil {
			t.Errorf("%q is %v, and must be refused", text, got)
		}
	}
	for d, want := range map[time.Duration]v1alpha1.Duration{
		0: "0s", time.Microsecond: "0s", 250 * time.Millisecond: "250ms", 1500 * time.Millisecond: "1s500ms",
		90 * time.Minute: "1h30m",
		24 * time.Hour:   "24h", 48 * time.Hour: "2d", 49 * time.Hour: "49h", 28 * 24 * time.Hour: "28d", -time.Hour: "0s",
	} {
		if got := v1alpha1.DurationOf(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}

func TestPercentsAndQuantiles(t *testing.T) {
	for text, want := range map[v1alpha1.Percent]float64{"70%": 0.7, "99.95%": 0.9995, "0.1%": 0.001, "100%": 1,
		"99.9999%": 0.999999, "7%": 0.07} {
		got, err := text.Share()
		if err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
		if back := v1alpha1.PercentOf(got); back != text {
			t.Errorf("%q comes back as %q", text, back)
		}
	}
	for _, text := range []v1alpha1.Percent{"", "%", "70", "101%", "100.1%", "-1%", "1e1%", ".5%", "5.%", "70 %",
		"0.00001%"} {
		if got, err := text.Share(); err == nil {
			t.Errorf("%q is %v, and must be refused", text, got)
		}
	}
	for text, want := range map[v1alpha1.Percentile]float64{"50": 0.5, "99": 0.99, "99.9": 0.999, "99.99": 0.9999,
		"99.95": 0.9995, "90.05": 0.9005} {
		got, err := text.Quantile()
		if err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
		if back := v1alpha1.PercentileOf(got); back != text {
			t.Errorf("%q comes back as %q", text, back)
		}
	}
	for _, text := range []v1alpha1.Percentile{"", "49", "100", "99.90", "99.", "99.999", "0.99", "p99", "99%"} {
		if got, err := text.Quantile(); err == nil {
			t.Errorf("%q is %v, and must be refused", text, got)
		}
	}
	for text, ok := range map[v1alpha1.Quantile]bool{"0.95": true, "0.5": true, "0.999": true, "95": false,
		"1.0": false, "0.": false, ".95": false, "0.99999": false} {
		if got, err := text.Number(); (err == nil) != ok {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

// Go's own parser reads the same, and a duration that was written is read again as the same.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"250ms", "1h30m", "28d", "1d", "", "1.5h", "999999h9999999m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := v1alpha1.Duration(text).Parse()
		if err != nil {
			return
		}
		if !strings.HasSuffix(text, "d") {
			if want, err := time.ParseDuration(text); err != nil || want != got {
				t.Fatalf("%q is %v, Go reads %v, %v", text, got, want, err)
			}
		}
		if got < 0 {
			t.Fatalf("%q is %v", text, got)
		}
		if got > 99999*time.Hour {
			return // longer than any field takes
		}
		if again, err := v1alpha1.DurationOf(got).Parse(); err != nil || again != got {
			t.Fatalf("%q is %v, and comes back as %v, %v", text, got, again, err)
		}
	})
}

// A share lies between 0 and 1, and the text that is written for it gives the same one again.
func FuzzPercent(f *testing.F) {
	for _, s := range []string{"70%", "99.95%", "100%", "0%", "99", "99.9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := v1alpha1.Percent(text).Share(); err == nil {
			if again, err := v1alpha1.PercentOf(got).Share(); !(got >= 0 && got <= 1) || err != nil || again != got {
				t.Fatalf("%q is %v, and comes back as %v, %v", text, got, again, err)
			}
		}
		if got, err := v1alpha1.Percentile(text).Quantile(); err == nil {
			if back := v1alpha1.PercentileOf(got); !(got >= 0.5 && got < 1) || string(back) != text {
				t.Fatalf("percentile %q is %v, and comes back as %q", text, got, back)
			}
		}
		if got, err := v1alpha1.Quantile(text).Number(); err == nil && !(got >= 0 && got < 1 && !math.Signbit(got)) {
			t.Fatalf("quantile %q is %v", text, got)
		}
	})
}
