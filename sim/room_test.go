package sim

import (
	"testing"

	"github.com/springtide/springtide/sim/scenario"
)

// Pods go where the product's placement puts them: no more than memory holds, over the zones, and none where the cells are offline's.
func TestRooms(t *testing.T) {
	steady := func(n float64) *scenario.Built {
		b := tiny(6, 1, tide(n, n))
		b.Fleet.Zones = 3
		return b
	}
	on := func(w *World) (machines, most int, byZone [3]int) {
		for i := range w.machines {
			if n := len(w.machines[i].pods); n > 0 {
				machines, most = machines+1, max(most, n)
				byZone[i%3] += n
			}
		}
		return machines, most, byZone
	}
	b := steady(10) // 12 replicas by the rule
	if _, most, byZone := on(NewWorld(b, NewRates(b))); most != 4 || byZone != [3]int{4, 4, 4} {
		t.Errorf("12 replicas over three zones: %v, at most %d on a machine", byZone, most)
	}
	b.Services[0].Spec.MemoryPerCoreGiB = 16 // two replicas fill a machine's memory
	w := NewWorld(b, NewRates(b))
	if machines, most, _ := on(w); machines != 6 || most != 2 {
		t.Errorf("replicas of 128 GiB: on %d machines, at most %d on one", machines, most)
	}
	if free := w.machines[0].free; free != 48 {
		t.Errorf("%d cores stay free", free)
	}
	w.services[0].desired = 20
	w.resize(0)
	w.schedule()
	if w.services[0].waiting != 8 {
		t.Errorf("%d replicas wait for memory", w.services[0].waiting)
	}
	lent := &w.machines[3]
	lent.away, lent.toOffline = w.rooms.cells[1:], true // one socket, whose memory the replicas there need
	w.open(3)
	if w.addMember(0, w.rooms.members[0]); w.offlineHeld != 0 {
		t.Error("a member is on cells whose machine online has overdrawn")
	}
	for len(lent.pods) > 0 {
		w.kill(lent.pods[0])
		w.tick += ticks(grace)
		w.kubelets()
	}
	if w.addMember(0, w.rooms.members[0]); lent.offline != 16 {
		t.Errorf("the lent socket holds %d cores of offline work", lent.offline)
	}
}

// Two replicas of 24 cores fit a machine of 64, and a third of what they ask for again belongs to no pod. Online is
// given machines by what they hold, not by their cores, so no pod waits for long while parcels are lent (an invariant
// of every run), and no minute is harmed.
func TestReplicasThatDoNotDivideMachines(t *testing.T) {
	long(t)
	b := tiny(30, 36, tide(8, 40), tide(2, 6))
	for i := range b.Services {
		o := &b.Services[i]
		before := o.Capacity()
		o.Cores = 24
		for k := range o.Load.Values {
			o.Load.Values[k] *= o.Capacity() / before
		}
	}
	out := play(t, b, whole)
	if out.HarmMinutes > 0 || out.RecallsLate > 0 || out.Moves == 0 {
		t.Errorf("harm %d, late %d, moves %d", out.HarmMinutes, out.RecallsLate, out.Moves)
	}
}
