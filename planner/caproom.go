package planner

import (
	"fmt"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reason"
)

// capRoom shares the room of online pools that are full. Most of what services ask for beyond their load is insurance;
// where all of it does not fit, the first service would take all of it, and the load of the last would wait for room.
// So each is left what it asks for if the tide comes as its median has it, and all of them the same part of their
// insurance. Their wishes stay as they are, so that nothing is lent meanwhile, and the plan recalls or borrows what it
// can.
func (m *scaler) capRoom() {
	for i := range m.in.Snapshot.Pools {
		if p := &m.in.Snapshot.Pools[i]; p.Class == fleet.Online && !p.Waits {
			m.capPool(m.ledgerOf(p))
		}
	}
}

func (m *scaler) capPool(l *ledger) {
	// A machine that is not ready counts: pods of a lost machine are created again, and a restart takes no service's
	// insurance.
	room, want := l.Holds.Add(l.borrowedCapacity()).CPUAndMemory(), l.Other.CPUAndMemory()
	for _, v := range l.services {
		want = want.Add(l.holds(v, v.takes(v.target)))
	}
	if l.Machines == 0 || quota.Fits(want, room) {
		return
	}
	least := l.Other.CPUAndMemory()
	medians := make([]int32, len(l.services))
	for k, v := range l.services {
		medians[k] = v.takes(v.target)
		if v.insured() {
			t := m.sizing.decide(v.index, m.sizing.demands[v.index].Median())
			medians[k] = min(medians[k], v.takes(&t))
		}
		least = least.Add(l.holds(v, medians[k]))
	}
	part := leastPart(room.Sub(least).Floor(), want.Sub(least))
	for k, v := range l.services {
		insurance := v.takes(v.target) - medians[k]
		if insurance <= 0 {
			continue
		}
		m.sizing.bind(v.index, func(b *hpa.Bounds) {
			b.Room = max(medians[k]+int32(part*float64(insurance)), 1)
			b.RoomWhy = reason.Of(reason.RoomForPart, l.pool.ID, fmt.Sprintf("%.0f", 100*part))
		})
	}
}

// takes is the room that a service will take by a sizing, in replicas.
func (v *sized) takes(t *hpa.Target) int32 {
	switch {
	case !v.insured():
		return max(t.Current, t.Replicas)
	case t.Limited == hpa.LimitedMax || t.Limited == hpa.LimitedQuota:
		return t.Replicas
	}
	return t.Wanted
}

// holds is what machines must hold for that many replicas.
func (l *ledger) holds(v *sized, replicas int32) fleet.Resources {
	return grossUp(v.svc.Replica().Times(int64(replicas)), l.unfilled()).CPUAndMemory()
}

// insured reports whether a service is sized by its tide and its signals; the others keep what they have.
func (v *sized) insured() bool {
	t := v.target
	return v.svc.Mode.Acts() && !v.svc.Blocked.Any() && v.svc.Pause == fleet.PauseNone && (t.DataFresh || t.LiveAlone)
}
