package planner

import (
	"time"

	"github.com/springtide/springtide/fleet"
)

// perMinute is how many parcels of a pool come home in a minute while there is time: as many as its budget lets go in one.
func perMinute(p *fleet.Pool) int { return max((p.MovesPerHour+59)/60, 1) }

// recalledLately counts the pool's loans that were recalled within a minute, in this plan too. Notices that were taken back do not count.
func (m *maker) recalledLately(p *fleet.Pool) int {
	s, n := m.in.Snapshot, 0
	for i := range s.Loans {
		if l := &s.Loans[i]; l.From == p.ID && !l.FirstNotice.IsZero() && s.At.Sub(l.FirstNotice) < time.Minute {
			n++
		}
	}
	for i := range m.plan.Moves {
		if x := &m.plan.Moves[i]; (x.Kind == MoveRecall || x.Kind == MoveAdopt) && x.Before.From == p.ID {
			n++
		}
	}
	return n
}
