package model

import (
	"slices"
	"time"
)

// ReturnFacts is one parcel that came home while online pods waited for the room.
type ReturnFacts struct {
	// Virtual and Wall are the time from Returned to the first online pod that was bound on the machine, as a watch sees both; of a return on which none was bound
	// yet, the time since it. The virtual clock stands still while the scheduler works, so that Virtual is what the pods waited for and Wall what the work took.
	Virtual, Wall time.Duration
}

// ReturnReport is how soon online takes the room of a parcel that came home. Returns on which no pod waits do not count: such room is taken when a pod needs it.
type ReturnReport struct {
	// Count are the parcels that came home while pods waited that fit them.
	Count int `json:"count"`
	// Unbound are those of them on which no pod was bound while the pods waited on, until the end of the run. They count with their time so far.
	Unbound    int      `json:"unbound"`
	P50Seconds *float64 `json:"p50Seconds"`
	P99Seconds *float64 `json:"p99Seconds"`
	// The same by the wall.
	P50WallSeconds *float64 `json:"p50WallSeconds"`
	P99WallSeconds *float64 `json:"p99WallSeconds"`
}

func (t *Truth) reportReturns() ReturnReport {
	var virtual, wall []float64
	for _, r := range slices.Concat(t.returns, t.unbound) {
		virtual, wall = append(virtual, r.Virtual.Seconds()), append(wall, r.Wall.Seconds())
	}
	slices.Sort(virtual)
	slices.Sort(wall)
	return ReturnReport{Count: len(virtual), Unbound: len(t.unbound), P50Seconds: nearestRank(virtual, 0.5), P99Seconds: nearestRank(virtual, 0.99),
		P50WallSeconds: nearestRank(wall, 0.5), P99WallSeconds: nearestRank(wall, 0.99)}
}
