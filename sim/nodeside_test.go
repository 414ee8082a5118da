package sim

import (
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/sim/scenario"
)

// The node side says Clean behind marks that let no pod of the leaving side land, and its time counts from those marks
// on.
func TestNodeSideAsksForItsMarks(t *testing.T) {
	for _, x := range []struct {
		phase        fleet.Phase
		open, closed fleet.NodeMarks
	}{
		{fleet.Emptying, fleet.NodeMarks{}, fleet.NodeMarks{HolderTaint: true}},
		{fleet.Draining, fleet.NodeMarks{HolderTaint: true, OfflineLabel: true}, fleet.NodeMarks{HolderTaint: true}},
	} {
		b := troubled(1, 1, scenario.Faults{})
		w := NewWorld(b, NewRates(b))
		c := newController(w, controllerOptions{Lends: true}, nil)
		l := fleet.Loan{ID: "l", Kind: fleet.KindNode, Node: w.facts[1].ID, NodeName: w.facts[1].Name, From: onlinePool, To: offlinePool, Phase: x.phase, Epoch: 1}
		c.loans = []fleet.Loan{l}
		share := &w.facts[1].Share
		share.Parcels = []fleet.ShareParcel{{Loan: l.ID, Holder: l.Holder(), Next: l.Next(), Epoch: 1}}
		w.machines[1].online, w.machines[1].offline = 0, 0
		cleanAt := func(marks fleet.NodeMarks, after int32) bool {
			w.facts[1].Marks = marks
			c.nodeSides()
			w.now = w.now.Add(time.Duration(after) * tick)
			c.nodeSides()
			return share.Parcels[0].IsClean(1)
		}
		if cleanAt(x.open, 10*ticks(confine)) {
			t.Fatalf("%s: clean behind %+v", x.phase, x.open)
		}
		if cleanAt(x.closed, ticks(confine)-1) {
			t.Fatalf("%s: the time does not count from the marks on", x.phase)
		}
		if !cleanAt(x.closed, 1) {
			t.Errorf("%s: not clean behind %+v", x.phase, x.closed)
		}
	}
}
