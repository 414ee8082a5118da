package clitest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/store"
)

// Evening is a cluster of one service that doubles every hour until 15:00, and what the controller learned about it.
func Evening(t *testing.T) (*fleet.Snapshot, string) {
	t.Helper()
	ctx, now := context.Background(), time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	dsn := "sqlite://" + filepath.Join(t.TempDir(), "store.db")
	s, err := store.Open(ctx, dsn, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tide := forecast.Tide{Service: "shop/cart", Signal: portrait.Requests, Made: now, Start: now, Step: time.Hour, Quantiles: []float64{0.5, 0.95},
		Paths: [][]float64{{100, 200, 400, 800, 400}, {120, 240, 480, 960, 480}}, Model: "seasonal", Trusted: true}
	p := portrait.Portrait{Version: portrait.Version, Service: "shop/cart", Signal: portrait.Requests,
		CPUPerLoad: fleet.KnownAt(0.02, now), CPUIdle: fleet.KnownAt(0.05, now), Peak: 800}
	if err := s.SaveTides(ctx, []forecast.Tide{tide}); err != nil {
		t.Fatal(err)
	}
	if err := s.SavePortraits(ctx, []portrait.Portrait{p}); err != nil {
		t.Fatal(err)
	}
	record := &loop.Record{Revision: 12, At: now, LeaderEpoch: 7, Plan: &planner.Plan{Revision: 12, At: now,
		Raises: []planner.Scale{{Service: "shop/cart", From: 31, To: 42,
			Why: reason.Of(reason.Sized, reason.Said("peak at 12:30"), reason.Reason{})}}},
		Receipt: &loop.Receipt{Revision: 12, Results: []loop.Result{{Action: "Scale", Subject: "shop/cart", Outcome: loop.Done}}}}
	if err := s.Append(ctx, record); err != nil {
		t.Fatal(err)
	}
	facts := &fleet.Snapshot{At: now,
		Pools: []fleet.Pool{{ID: "online", Class: fleet.Online}, {ID: "offline", Class: fleet.Offline}},
		Nodes: []fleet.Node{
			{ID: "a", Pool: "online", Ready: true, Allocatable: fleet.Resources{CPU: 56_000, Memory: 256 << 30, Pods: 110}},
			{ID: "b", Pool: "offline", Ready: true, Allocatable: fleet.Resources{CPU: 56_000, Memory: 256 << 30, Pods: 110}},
		},
		Tenants: []fleet.Tenant{{ID: "shop", Namespaces: []string{"shop"}, Accepted: true, Guarantee: fleet.Resources{CPU: 35_000, Memory: 120 << 30},
			BorrowingLimit: fleet.KnownAt(fleet.Resources{CPU: 20_000, Memory: 1 << 30}, now),
			Slices: []fleet.Slice{{Guarantee: fleet.Resources{CPU: 50_000},
				Window: fleet.Window{Name: "noon", Schedule: "0 12 * * *", Duration: 2 * time.Hour, Zone: time.UTC}}}}},
		Services: []fleet.Service{{ID: "shop/cart", Target: fleet.Name{Namespace: "shop", Name: "cart"}, Min: 3, Max: 60, Quantile: 0.95, TargetFound: true,
			SLO:     fleet.Levels(fleet.Latency(0.99, 250*time.Millisecond)),
			Request: fleet.Resources{CPU: 1000, Memory: 2 << 30}, Desired: fleet.KnownAt(int32(10), now)}},
	}
	facts.Sort()
	return facts, dsn
}
