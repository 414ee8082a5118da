package looptest

import (
	"context"
	"slices"

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
	if idle(p) {
		return r, nil // as most plans are, and facts are what a small world costs most
	}
	d := loop.NewDoor(w.facts())
	held := d.CheckPlan(p)
	try := func(action, subject string, check error, do func()) {
		if held != nil {
			check = held
		}
		if check != nil {
			r.Results = append(r.Results, loop.Result{Action: action, Subject: subject, Outcome: loop.Stale, Message: check.Error()})
			return
		}
		do()
		r.Results = append(r.Results, loop.Result{Action: action, Subject: subject, Outcome: loop.Done})
	}
	for i := range p.Lowers {
		a := &p.Lowers[i]
		try("Scale", string(a.Service), d.CheckScale(a), func() { w.scale(a) })
	}
	for i := range p.Moves {
		m := &p.Moves[i]
		try("Move", string(m.Before.ID), d.CheckMove(m), func() { w.move(m) })
	}
	for i := range p.Notices {
		n := &p.Notices[i]
		try("Notice", n.Pod.Name.String(), d.CheckNotice(n), func() { w.notice(n) })
	}
	for i := range p.Evictions {
		e := &p.Evictions[i]
		try("Evict", e.Pod.Name.String(), d.CheckEviction(e), func() { w.evict(e) })
	}
	for i := range p.Jobs {
		j := &p.Jobs[i]
		try("JobScale", string(j.Job), d.CheckJobScale(j), func() { w.jobs[0].Members[0].Desired = j.To })
	}
	for i := range p.Fillers {
		f := &p.Fillers[i]
		try("Filler", f.Name, d.CheckFiller(f), func() { w.fill(f) })
	}
	for i := range p.Marks {
		m := &p.Marks[i]
		try("Mark", m.Node, d.CheckMark(m), func() { w.node(m.Node).Marks = m.Want })
	}
	for i := range p.Raises {
		a := &p.Raises[i]
		try("Scale", string(a.Service), d.CheckScale(a), func() { w.scale(a) })
	}
	return r, nil
}

// idle reports whether there is nothing to do.
func idle(p *planner.Plan) bool {
	return len(p.Lowers)+len(p.Moves)+len(p.Notices)+len(p.Evictions)+len(p.Jobs)+len(p.Fillers)+len(p.Marks)+len(p.Raises) == 0
}

func (w *World) scale(a *planner.Scale) {
	for _, c := range a.Charges {
		for i := range w.Pools {
			if w.Pools[i].ID == c.Pool {
				w.Pools[i].Ledger = w.Pools[i].Ledger.Charge(w.now, (&fleet.Service{ID: a.Service}).Owner(), c.Pods)
			}
		}
	}
	for _, l := range a.Leavers {
		w.pod(l.ID).DeletionCost = -1
	}
	for i := range w.services {
		if w.services[i].ID == a.Service {
			w.services[i].Desired = fleet.KnownAt(a.To, w.now)
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
