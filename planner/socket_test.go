package planner

import (
	"testing"

	"github.com/springtide/springtide/fleet"
)

// halves makes the loan of a machine one of its second socket, and adds one of its first in Emptying that is reported clean.
func (w *world) halves(machine int, phase fleet.Phase) {
	l := w.loan(machine, phase, 2)
	n := &w.s.Nodes[machine]
	l.Kind, l.Cells = fleet.KindSocket, []int{2, 3}
	n.Share.Parcels[0].Cells = l.Cells
	first := *l
	first.ID, first.Cells, first.Phase, first.Epoch = l.ID+"-first", []int{0, 1}, fleet.Emptying, 1
	first.Created = t0
	w.s.Loans = append(w.s.Loans, first)
	n.Share.Parcels = append(n.Share.Parcels, fleet.ShareParcel{Cells: first.Cells, Holder: first.Holder(), Next: first.Next(), Loan: first.ID,
		Epoch: 1, Clean: true, CleanEpoch: 1, CleanAt: t0})
}

func TestTheOtherSocketIsHandedOver(t *testing.T) {
	const first = "loan-m03-first"
	for _, c := range []struct {
		name string
		bend func(*world)
		pods int
		load float64
		want MoveKind
	}{
		{"nobody is on it any more", nil, 6, 30, MoveLend},
		{"online pods are, whatever was reported", func(w *world) { w.service("late", 1, 3, 1, 5) }, 6, 30, ""},
		{"the machine is on its way home", func(w *world) { w.s.Loans[0].Phase, w.s.Loans[0].Deadline = fleet.Noticed, t0.Add(1) }, 6, 30, MoveCancel},
		{"this plan calls the machine home", nil, 18, 130, MoveCancel},
	} {
		w := newWorld(4).service("web", c.pods, 0, 3, c.load)
		w.halves(3, fleet.Lent)
		if c.bend != nil {
			c.bend(w)
		}
		e := &w.s.Nodes[3].Share.Parcels[0]
		e.Holder, e.Next = w.s.Loans[0].Holder(), w.s.Loans[0].Next()
		plan := made(w.input())
		var got MoveKind
		recalled := false
		for _, m := range plan.Moves {
			if m.Before.ID == first {
				got = m.Kind
			}
			recalled = recalled || m.Kind == MoveRecall
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q: %+v", c.name, got, c.want, plan.Pools)
		}
		if (c.load == 130) != recalled {
			t.Errorf("%s: recalled %v", c.name, recalled)
		}
	}
}
