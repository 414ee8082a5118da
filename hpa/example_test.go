package hpa_test

import (
	"fmt"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
)

// A service, its portrait, its tide and what was just measured go in; a replica count with its reason comes out. The tide asks for more than runs,
// so replicas are added before the load is there. The CPU of the pods is not measured here, so nothing could scale in.
func ExampleAsk() {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	svc := fleet.Service{ID: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, TargetKind: "Deployment", TargetFound: true,
		Mode: fleet.Auto, Pause: fleet.PauseNone, Actuation: fleet.ByScale, SLO: fleet.Levels(fleet.Latency(0.99,
			200*time.Millisecond)),
		Min: 2, Max: 40, Quantile: 0.95, Request: fleet.Resources{CPU: 1000}, Desired: fleet.KnownAt[int32](8, noon)}
	// A request costs 0.02 cores, an idle replica 0.1: at 60 % of its one core a replica carries 25 requests a second.
	p := portrait.Portrait{Service: svc.ID, Signal: portrait.Requests, CPUPerLoad: fleet.KnownAt(0.02, noon), CPUIdle: fleet.KnownAt(0.1, noon),
		StartUp: [3]time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}, StartUps: 20}
	tide := forecast.Tide{Service: svc.ID, Signal: portrait.Requests, Made: noon, Start: noon, Step: 5 * time.Minute, Trusted: true,
		Quantiles: []float64{0.5, 0.95}, Paths: [][]float64{{225, 225}, {250, 250}}}
	live := hpa.Live{Load: fleet.KnownAt(180.0, noon)}

	d := hpa.Ask(&svc, p, tide, live, noon, hpa.Options{})
	t := d.Within(hpa.Bounds{})
	fmt.Printf("%d -> %d\n", t.Current, t.Replicas)
	fmt.Printf("%s: %s\n", &t.Parts[0], t.Parts[0].Why)
	t = d.Within(hpa.Bounds{Quota: 9, QuotaWhy: reason.Said("quota shop leaves 9 cores")})
	fmt.Printf("%d -> %d, limited by the %s\n", t.Current, t.Replicas, t.Limited.Text())
	// Output:
	// 8 -> 10
	// forecast: 250/s at p95 within 3m, 25/s a replica
	// 8 -> 9, limited by the quota
}
