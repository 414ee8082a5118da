package sim

import (
	"github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/sim/scenario"
)

// nodeSides plays the agents of machines whose parcels move: each reports Clean once [share.Machine.Judge] says so.
func (c *controller) nodeSides() {
	w := c.w
	if len(w.faults) > 0 {
		for n := range w.facts {
			_, silent := w.hit(scenario.AgentSilent, n)
			_, down := w.hit(scenario.NotReady, n)
			f := &w.facts[n]
			if f.AgentAlive = !silent && !down; f.Ready == down {
				f.Ready = !down
				w.open(int32(n))
			}
		}
	}
	for i := range c.loans {
		l := &c.loans[i]
		n, ok := c.machineOf(l.NodeName)
		if l.Next() == "" || !ok || w.machines[n].gone || w.facts[n].ID != l.Node || !w.facts[n].AgentAlive {
			continue
		}
		e := w.facts[n].Share.Find(l.ID)
		if e == nil || e.IsClean(e.Epoch) {
			continue
		}
		handover := share.HandoverOf(e)
		v := w.nodeSide(n).Judge(e, c.free[handover], w.now, share.Options{Margin: confine})
		if c.free[handover] = v.Free; v.Free.IsZero() || v.Clean {
			delete(c.free, handover)
		}
		if v.Clean {
			e.Clean, e.CleanEpoch, e.CleanAt = true, e.Epoch, w.now
			w.facts[n].Share.Version = c.api.Version()
			w.changed = true
		}
	}
}

// nodeSide is what the agent of a machine knows: the pods of each side, in sum.
func (w *World) nodeSide(n int32) *share.Machine {
	x := &w.machines[n]
	m := &share.Machine{Node: &w.facts[n], ClassOf: classOfPool, ByCells: w.rooms.decides, Agent: true, Ready: true}
	for _, side := range []struct {
		class fleet.PodClass
		cores int32
	}{{fleet.PodOnline, x.online}, {fleet.PodOffline, x.offline}} {
		if side.cores > 0 {
			m.Occupants = append(m.Occupants, share.Occupant{Class: side.class, Ask: fleet.Resources{CPU: fleet.MilliCPU(side.cores) * 1000}})
		}
	}
	return m
}

func classOfPool(p fleet.PoolID) fleet.Class {
	if p == offlinePool {
		return fleet.Offline
	}
	return fleet.Online
}
