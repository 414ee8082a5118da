package sim

import (
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
)

// returned is a parcel that came home while online pods waited that fit it, and that none of them has taken yet.
type returned struct{ node, at int32 }

// cameHome notes a parcel that came home for pods that wait.
func (w *World) cameHome(l *fleet.Loan, n int32) {
	fits := func(r podRef) bool {
		p := &w.pods[r.id]
		return p.uid == r.uid && int64(p.cores) <= int64(l.Capacity.CPU)/1000 && (l.Claimant == "" || l.Claimant == w.services[p.owner].id)
	}
	if w.tick >= w.scored && slices.ContainsFunc(w.waiting, fits) {
		w.acc.returns = append(w.acc.returns, returned{n, w.tick})
	}
}

// taken ends the wait for pods on a machine, on which one was bound.
func (w *World) taken(n int32) {
	w.acc.returns = slices.DeleteFunc(w.acc.returns, func(r returned) bool {
		if r.node == n {
			w.acc.took = append(w.acc.took, time.Duration(w.tick-r.at)*tick)
		}
		return r.node == n
	})
}

// returnsTaken is how soon the parcels that came home for waiting pods were taken: those that were not count with their time so far.
func (w *World) returnsTaken() (count int, p50, p99 *float64) {
	all := slices.Clone(w.acc.took)
	for _, r := range w.acc.returns {
		all = append(all, time.Duration(w.tick-r.at)*tick)
	}
	slices.Sort(all)
	of := func(q float64) *float64 {
		if len(all) == 0 {
			return nil
		}
		v := all[max(0, int(math.Ceil(q*float64(len(all))))-1)].Seconds()
		return &v
	}
	return len(all), of(0.5), of(0.99)
}
