package explain

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cell"
)

func TestPortraitText(t *testing.T) {
	ready := metav1.NewTime(time.Date(2026, 6, 2, 19, 0, 0, 0, time.UTC))
	for want, p := range map[string]*v1alpha1.PortraitStatus{
		"none yet: no sample of its history was read": nil,
		"none yet: no sample of its history was read; the last read that failed: 2026-06-01T12:00:00Z: the metrics source does not answer": {LastError: "2026-06-01T12:00:00Z: the metrics source does not answer"},
		"class new; of requests, quality 30 %, 200 points where a forecast needs 576; 3 gaps; forecasts from " + cell.Stamp(&ready) +
			"; too young for a season; the last read that failed: 2026-06-01T12:00:00Z: connection refused": {Class: "new", Signal: "requests", QualityPercent: 30, Points: 200, PointsNeeded: 576,
			Gaps: 3, ReadyTime: &ready, Note: "too young for a season", LastError: "2026-06-01T12:00:00Z: connection refused"},
		"class tidal; of requests, quality 100 %, 4000 points where a forecast needs 576; periods 24h, 168h; " +
			"a pod is ready after 45 s (12 s where the image is there, 81 s where it is pulled); noise 5 %; 4.2 ± 0.1 millicores a request per second": {Class: "tidal",
			Signal: "requests", QualityPercent: 100, Points: 4000, PointsNeeded: 576, Periods: []string{"24h", "168h"}, StartupSeconds: 45, StartupImagePresentSeconds: 12,
			StartupImageAbsentSeconds: 81, NoisePercent: 5, Cost: "4.2 ± 0.1 millicores a request per second"},
	} {
		if got := portraitText(p); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

func TestRequestsText(t *testing.T) {
	applied := metav1.NewTime(time.Date(2026, 6, 2, 19, 0, 0, 0, time.UTC))
	r := &v1alpha1.RecommendationStatus{CPUMillicores: &v1alpha1.RequestBounds{Current: 2000, Lower: 200, Target: 501, Upper: 1000},
		MemoryBytes: &v1alpha1.RequestBounds{Current: 2 << 30, Lower: 1 << 30, Target: 3 << 30, Upper: 4 << 30}, HistoryHours: 84, AppliedTime: &applied, Note: "memory alone is applied"}
	want := "mode Recreate; CPU 2000m, usage asks for 501m (200m to 1000m will do); memory 2048Mi, usage asks for 3072Mi (1024Mi to 4096Mi will do); " +
		"by 84 h of usage; changed " + cell.Stamp(&applied) + "; memory alone is applied"
	if got := requestsText("Recreate", r); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := requestsText("Off", nil); got != "mode Off: nothing is recommended" {
		t.Errorf("%q", got)
	}
}

func TestFirstScaleIn(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	ready := metav1.NewTime(now.Add(31*time.Hour + 10*time.Minute))
	young := &v1alpha1.PortraitStatus{Points: 200, PointsNeeded: 576, ReadyTime: &ready}
	for want, got := range map[string]string{
		"once its history was read for the first time and holds two days":                                                                                            firstScaleIn("Auto", nil, now),
		"once a forecast can be trusted: 200 of 576 points are there, the rest in about 31h10m, on " + cell.Stamp(&ready):                                            firstScaleIn("Auto", young, now),
		"once a forecast can be trusted: 200 of 576 points are there, the rest in about 31h10m, on " + cell.Stamp(&ready) + "; and in mode Auto alone (now Observe)": firstScaleIn("Observe", young, now),
		"once a forecast can be trusted: 200 of 576 points are there, the rest was due on " + cell.Stamp(&ready) + ": see gaps of the portrait":                      firstScaleIn("Auto", young, ready.Add(time.Hour)),
		"": firstScaleIn("Auto", &v1alpha1.PortraitStatus{Points: 576, PointsNeeded: 576}, now),
	} {
		if got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

func TestAgeText(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	if got := ageText(&at, at.Add(15*time.Second)); got != cell.Stamp(&at) {
		t.Errorf("%q: one cycle is no age", got)
	}
	if got := ageText(&at, at.Add(4000*time.Hour)); !strings.Contains(got, "no controller writes here") {
		t.Errorf("%q: by a clock that is months ahead, the lab's for one, an age says nothing", got)
	}
	want := cell.Stamp(&at) + ", 9m2s ago; what an operator acts on is written at once, plain changes within ten minutes, small scales within two hours"
	if got := ageText(&at, at.Add(9*time.Minute+2*time.Second)); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}
