package model

import (
	"slices"
	"time"
)

// DemandFacts is one answer to online pods that wait for room: a recall for their service.
type DemandFacts struct {
	// Virtual and Wall are the time from the scheduler's word on the first of the pods to the notice, as a watch sees both. The virtual
	// clock stands still while controllers work, so that Virtual is the time that a cycle was waited for, and Wall what the work took.
	Virtual, Wall time.Duration
}

// DemandReport is how soon the controller answers online pods for which the scheduler found no room.
type DemandReport struct {
	// Count are the recalls for pods that no earlier recall answered.
	Count      int      `json:"count"`
	P50Seconds *float64 `json:"p50Seconds"`
	P99Seconds *float64 `json:"p99Seconds"`
	// The same by the wall.
	P50WallSeconds *float64 `json:"p50WallSeconds"`
	P99WallSeconds *float64 `json:"p99WallSeconds"`
}

func (t *Truth) reportDemands() DemandReport {
	virtual, wall := make([]float64, len(t.demands)), make([]float64, len(t.demands))
	for i, d := range t.demands {
		virtual[i], wall[i] = d.Virtual.Seconds(), d.Wall.Seconds()
	}
	slices.Sort(virtual)
	slices.Sort(wall)
	return DemandReport{Count: len(t.demands), P50Seconds: nearestRank(virtual, 0.5), P99Seconds: nearestRank(virtual, 0.99),
		P50WallSeconds: nearestRank(wall, 0.5), P99WallSeconds: nearestRank(wall, 0.99)}
}
