package planner_test

import (
	"fmt"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
)

// A snapshot, portraits, tides and live signals go in; one plan comes out, with the reason of each action. The service runs two replicas of 8 cores
// for a load of 20 cores. Frozen, the same facts give no action: the plan says what it withheld.
func ExampleMake() {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	cores := func(n int64) fleet.Resources {
		return fleet.Resources{CPU: fleet.MilliCPU(1000 * n), Memory: fleet.Bytes(n) * fleet.GiB}
	}
	s := &fleet.Snapshot{At: noon, WatchedSince: noon.Add(-time.Hour),
		Pools: []fleet.Pool{{ID: "online", Class: fleet.Online, Mode: fleet.Auto}},
		Services: []fleet.Service{{ID: "shop/web", Target: fleet.Name{Namespace: "shop", Name: "web"}, TargetKind: "Deployment", TargetFound: true,
			Mode: fleet.Auto, Pause: fleet.PauseNone, Actuation: fleet.ByScale, SLO: fleet.Levels(fleet.CPU(0.7)), Min: 1,
			Max: 50, Quantile: 0.95,
			Request: cores(8), Desired: fleet.KnownAt[int32](2, noon)}},
	}
	for _, name := range []string{"m1", "m2"} {
		s.Nodes = append(s.Nodes, fleet.Node{ID: fleet.NodeID(name), Name: name, Pool: "online", Ready: true,
			Allocatable: fleet.Resources{CPU: 64_000, Memory: 256 * fleet.GiB, Pods: 110}})
	}
	const load = 20.0 // cores, now and for the next hours
	tide := forecast.Tide{Service: "shop/web", Signal: portrait.CPU, Made: noon, Start: noon, Step: time.Hour, Trusted: true,
		Quantiles: []float64{0.5, 0.95}, Paths: [][]float64{{load, load, load}, {load, load, load}}}
	in := planner.Input{Snapshot: s, Options: planner.DefaultOptions(),
		Portraits: map[fleet.ServiceID]portrait.Portrait{"shop/web": {Service: "shop/web", Signal: portrait.CPU}},
		Tides:     map[fleet.ServiceID]forecast.Tide{"shop/web": tide},
		Live:      map[fleet.ServiceID]hpa.Live{"shop/web": {Load: fleet.KnownAt(load, noon)}}}

	plan := planner.Make(in)
	for _, r := range plan.Raises {
		fmt.Printf("raise %s from %d to %d\n", r.Service, r.From, r.To)
	}
	s.Frozen = "INC-1234"
	plan = planner.Make(in)
	for _, w := range plan.Withheld {
		fmt.Printf("%d actions; withheld from %s: %s\n", plan.CountActions(), w.Subject.String(), w.By.Text())
	}
	// Output:
	// raise shop/web from 2 to 4
	// 0 actions; withheld from service shop/web: freeze: INC-1234
}
