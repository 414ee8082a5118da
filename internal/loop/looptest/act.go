package looptest

import (
	"context"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/planner"
)

// Apply implements loop.Actuator: each action passes the door, and is done at once.
func (w *World) Apply(_ context.Context, p *planner.Plan) (loop.Receipt, error) {
	r := loop.Receipt{Revision: p.Revision}
	if w.ApplyErr != nil {
		return r, w.ApplyErr
	}
	if loop.Actions(p) == 0 {
		return r, nil // as most plans are, and facts are what a small world costs most
	}
	for st := range loop.NewDoor(w.facts()).Steps(p) {
		check := st.Check()
		if check == nil {
			w.do(st.Act)
		}
		r.Results = append(r.Results, st.Did(check))
	}
	return r, nil
}

func (w *World) do(act any) {
	switch a := act.(type) {
	case *planner.Unmark:
		w.pod(a.Pod.ID).DeletionCost, w.pod(a.Pod.ID).LeavesAt = 0, fleet.Known[int32]{}
	case *planner.Scale:
		w.scale(a)
	case *planner.Move:
		w.move(a)
	case *planner.Notice:
		w.notice(a)
	case *planner.Eviction:
		w.evict(a)
	case *planner.Kill:
		w.pod(a.Pod.ID).Deleting, w.pod(a.Pod.ID).goneAt = true, w.now
	case *planner.JobScale:
		w.charge(a.Job.Owner(), a.Charges)
		w.jobs[0].Members[0].Desired = a.To
	case *planner.Filler:
		w.fill(a)
	case *planner.Mark:
		w.node(a.Node).Marks = a.Want
	}
}

func (w *World) scale(a *planner.Scale) {
	w.charge((&fleet.Service{ID: a.Service}).Owner(), a.Charges)
	for _, l := range a.Leavers {
		w.pod(l.ID).DeletionCost, w.pod(l.ID).LeavesAt = -1, fleet.KnownAt(a.To, w.now)
	}
	for i := range w.services {
		if w.services[i].ID == a.Service {
			w.services[i].Desired = fleet.KnownAt(a.To, w.now)
		}
	}
}

func (w *World) charge(owner string, charges []planner.Charge) {
	for _, c := range charges {
		for i := range w.Pools {
			if w.Pools[i].ID == c.Pool {
				w.Pools[i].Ledger = c.On(w.Pools[i].Ledger, w.now, owner)
			}
		}
	}
}

// move writes the share and the loan, as one.
func (w *World) move(m *planner.Move) {
	n, after := w.node(m.Node), m.After
	switch m.Kind {
	case planner.MoveForget:
		w.loans = slices.DeleteFunc(w.loans, func(l fleet.Loan) bool { return l.ID == m.Before.ID })
		n.Share.Parcels = slices.DeleteFunc(n.Share.Parcels, func(e fleet.ShareParcel) bool { return e.Loan == m.Before.ID })
		return
	case planner.MoveBegin:
		after.UID = fleet.UID("uid-" + string(after.ID))
		w.loans = append(w.loans, after)
		n.Share.Exists = true
		n.Share.Parcels = append(n.Share.Parcels, fleet.ShareParcel{Cells: after.Cells, Loan: after.ID})
	default:
		*w.loan(after.ID) = after
	}
	e := n.Share.Find(after.ID)
	e.Holder, e.Next, e.Epoch = after.Holder(), after.Next(), after.Epoch
}

func (w *World) notice(n *planner.Notice) {
	p := w.pod(n.Pod.ID)
	switch {
	case n.Again:
		return
	case n.TakenBack:
		p.NoticeLoan, p.NoticeEpoch, p.AckEpoch, p.ackAt = "", 0, 0, time.Time{}
		return
	}
	p.NoticeLoan, p.NoticeEpoch, p.AckEpoch, p.ackAt = n.Loan, n.Epoch, 0, w.now.Add(ackAfter)
}

func (w *World) evict(e *planner.Eviction) {
	p := w.pod(e.Pod.ID)
	w.Evicted = append(w.Evicted, p.Pod)
	w.end(p)
}

func (w *World) fill(f *planner.Filler) {
	if f.Delete {
		w.pods = slices.DeleteFunc(w.pods, func(p *pod) bool { return p.ID == f.ID })
		return
	}
	w.add(fleet.Pod{Name: fleet.Name{Namespace: "springtide-system", Name: f.Name}, Class: fleet.PodFiller, HoldsOn: f.Node, Requests: f.Room})
}
