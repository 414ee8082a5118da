package report

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reason"
)

// Each stretch is reported, and where one is worst after its beginning.
func TestStretchText(t *testing.T) {
	day := time.Date(2026, 3, 2, 19, 0, 0, 0, time.UTC)
	got := shortText([]quota.Short{{From: day, Until: day.Add(time.Hour), Worst: day, By: fleet.Resources{CPU: 5000},
		Why: reason.Said("a")},
		{From: day.Add(24 * time.Hour), Worst: day.Add(26 * time.Hour), By: fleet.Resources{CPU: 200_000},
			Why: reason.Said("b")}})
	want := "short of up to cpu=5 from 2026-03-02T19:00:00Z until 2026-03-02T20:00:00Z: a; " +
		"short of up to cpu=200 from 2026-03-03T19:00:00Z, at worst from 2026-03-03T21:00:00Z: b"
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// The level of the low-priority capacity stands on the offline pool that its watermarks are set on.
func TestReportWatermark(t *testing.T) {
	for share, want := range map[float64]string{0.2: "AboveLowWatermark=True/High",
		0.1: "AboveLowWatermark=True/BelowHigh", 0.01: "AboveLowWatermark=False/Low"} {
		var c conditions
		c.at = kubetest.Now
		p := &fleet.Pool{ID: "offline"}
		l := quota.Level{Pool: "offline", Share: fleet.KnownAt(share, kubetest.Now), Low: 0.05, High: 0.15}
		watermark(&c, &l, p)
		watermark(&c, &l, &fleet.Pool{ID: "online"})
		if got := kubetest.Said(c.list); len(got) != 1 || got[0] != want {
			t.Errorf("%v: %v, want %s", share, got, want)
		}
	}
}
