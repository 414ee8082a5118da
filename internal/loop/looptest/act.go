package looptest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/fleetapi"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// Apply implements loop.Actuator: the plan's session runs on the world's API.
func (w *World) Apply(_ context.Context, p *planner.Plan) (loop.Receipt, error) {
	r := loop.Receipt{Revision: p.Revision}
	if w.ApplyErr != nil {
		return r, w.ApplyErr
	}
	if p.CountActions() == 0 {
		return r, nil // as most plans are, and facts are what a small world costs most
	}
	r.Results = w.api.Run(protocol.New(p, w.facts()), w.now, nil)
	return r, nil
}

// Look implements fleetapi.World.
func (w *World) Look(o protocol.Object) protocol.Fact {
	switch o.Kind {
	case protocol.ObjectLoan:
		if l := w.Loan(fleet.LoanID(o.Name)); l != nil {
			return protocol.Fact{Exists: true, UID: l.UID, Version: l.Version, LeaderEpoch: l.LeaderEpoch}
		}
	case protocol.ObjectShare:
		if s := w.Share(o.Name); s != nil {
			return protocol.Fact{Exists: true, Version: s.Version}
		}
	case protocol.ObjectPool:
		for i := range w.Pools {
			if p := &w.Pools[i]; string(p.ID) == o.Name {
				return protocol.Fact{Exists: true, Version: p.Version, Ledger: p.Ledger}
			}
		}
	case protocol.ObjectNode:
		if n := w.node(o.Name); n != nil {
			return protocol.Fact{Exists: true, UID: fleet.UID(n.ID)}
		}
	case protocol.ObjectPod, protocol.ObjectFiller:
		if p := w.podNamed(o); p != nil {
			return protocol.Fact{Exists: true, UID: p.ID}
		}
	case protocol.ObjectService:
		for i := range w.services {
			if s := &w.services[i]; string(s.ID) == o.Name {
				return protocol.Fact{Exists: true, Size: s.Desired}
			}
		}
	case protocol.ObjectJobMember:
		m := &w.jobs[0].Members[0]
		return protocol.Fact{Exists: true, Size: fleet.KnownAt(m.Desired, w.now)}
	}
	return protocol.Fact{}
}

// Refuse implements fleetapi.World: nothing is refused here.
func (w *World) Refuse(*protocol.Write) error { return nil }

// Commit implements fleetapi.World.
func (w *World) Commit(x *protocol.Write, version string) {
	switch c := x.Change.(type) {
	case protocol.CreateLoan:
		l := *c.Loan
		l.UID, l.Version = fleetapi.UIDOf(l.ID), version
		w.loans = append(w.loans, l)
	case protocol.SetLoan:
		l := w.Loan(c.Loan.ID)
		uid := l.UID
		*l = *c.Loan
		l.UID, l.Version = uid, version
	case protocol.DeleteLoan:
		w.loans = slices.DeleteFunc(w.loans, func(l fleet.Loan) bool { return string(l.ID) == x.Object.Name })
	case protocol.SetShare:
		w.node(x.Object.Name).Share = fleet.Share{Exists: true, Version: version, Parcels: slices.Clone(c.Parcels), Rest: c.Rest}
	case protocol.SetLedger:
		for i := range w.Pools {
			if p := &w.Pools[i]; string(p.ID) == x.Object.Name {
				p.Ledger, p.Version = c.Ledger, version
			}
		}
	case protocol.SetSize:
		for i := range w.services {
			if s := &w.services[i]; string(s.ID) == x.Object.Name {
				s.Desired = fleet.KnownAt(c.To, w.now)
			}
		}
	case protocol.SetParallelism:
		w.jobs[0].Members[0].Desired = c.To
	case protocol.SetMarks:
		w.node(x.Object.Name).Marks = c.Want
	case protocol.CreateFiller:
		f := c.Filler
		w.add(fleet.Pod{Name: fleet.Name{Namespace: fillersIn, Name: f.Name}, Class: fleet.PodFiller, HoldsOn: f.Node, Requests: f.Room})
	case protocol.DeleteFiller:
		w.pods = slices.DeleteFunc(w.pods, func(p *pod) bool { return p.ID == x.If.UID })
	default:
		w.commitPod(w.podNamed(x.Object), x.Change)
	}
}

// commitPod changes a pod.
func (w *World) commitPod(p *pod, change protocol.Change) {
	switch c := change.(type) {
	case protocol.Steer:
		p.DeletionCost, p.LeavesAt = protocol.VictimCost, fleet.KnownAt(c.At, w.now)
	case protocol.Unsteer:
		p.LeavesAt = fleet.Known[int32]{}
		if c.Cost {
			p.DeletionCost = 0
		}
	case protocol.SetInService:
		if p.Ready, p.Standby = c.In, fleet.KnownAt(w.now, w.now); c.In {
			p.Standby = fleet.Known[time.Time]{}
		}
	case protocol.NoteCPU:
		p.FullCPU = p.Requests.CPU
	case protocol.LowerCPU:
		p.Requests.CPU = fleet.StandbyCPU(p.Requests.CPU)
	case protocol.RestoreCPU:
		p.Requests.CPU = max(p.Requests.CPU, p.FullCPU)
	case protocol.SetNotice:
		if !c.Again {
			p.NoticeLoan, p.NoticeEpoch, p.AckEpoch, p.ackAt = c.Loan, c.Epoch, 0, w.now.Add(ackAfter)
		}
	case protocol.DropNotice:
		p.NoticeLoan, p.NoticeEpoch, p.AckEpoch, p.ackAt = "", 0, 0, time.Time{}
	case protocol.EvictPod:
		w.Evicted = append(w.Evicted, p.Pod)
		w.end(p)
	case protocol.KillPod:
		p.Deleting, p.goneAt = true, w.now
	default:
		panic("a change that no plan of this world makes")
	}
}

// fillersIn is the namespace of fillers.
const fillersIn = "springtide-system"

func (w *World) podNamed(o protocol.Object) *pod {
	name := o.Name
	if o.Kind == protocol.ObjectFiller {
		name = fillersIn + "/" + name
	}
	i := slices.IndexFunc(w.pods, func(p *pod) bool { return strings.HasPrefix(name, p.Name.Namespace+"/") && p.Name.String() == name })
	if i < 0 {
		return nil
	}
	return w.pods[i]
}

// Share implements fleetapi.World.
func (w *World) Share(node string) *fleet.Share {
	if n := w.node(node); n != nil && n.Share.Exists {
		return &n.Share
	}
	return nil
}
