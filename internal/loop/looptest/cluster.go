package looptest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/fleet"
)

const (
	// goneAfter is how long a pod takes to end, ackAfter how long one takes to answer a notice, cleanAfter the node side's check.
	goneAfter  = 10 * time.Second
	ackAfter   = 20 * time.Second
	cleanAfter = 15 * time.Second
)

// pod is a pod with what the cluster knows of its future.
type pod struct {
	fleet.Pod
	readyAt, goneAt, ackAt time.Time
}

// reconcile lets the parts of the cluster that are not ours catch up with the time: kubelets, controllers, the scheduler, the node side.
func (w *World) reconcile() {
	w.kubelets()
	for i := range w.services {
		w.workload(&w.services[i])
	}
	w.job(&w.jobs[0].Members[0])
	w.schedule()
	for i := range w.nodes {
		w.nodeSide(&w.nodes[i])
	}
}

func (w *World) kubelets() {
	w.pods = slices.DeleteFunc(w.pods, func(p *pod) bool { return p.Deleting && !w.now.Before(p.goneAt) })
	for _, p := range w.pods {
		if !p.Ready && !p.readyAt.IsZero() && !w.now.Before(p.readyAt) {
			p.Ready, p.ReadySince = true, fleet.KnownAt(p.readyAt, p.readyAt)
		}
		if !p.ackAt.IsZero() && !w.now.Before(p.ackAt) {
			p.AckEpoch = p.NoticeEpoch
		}
	}
}

// workload keeps a service at its replicas; the cheapest pods by deletion cost leave first, then the youngest.
func (w *World) workload(svc *fleet.Service) {
	var alive []*pod
	for _, p := range w.pods {
		if p.Service == svc.ID && !p.Deleting {
			alive = append(alive, p)
		}
	}
	for n := len(alive); n < int(svc.Desired.Value); n++ {
		w.add(fleet.Pod{Name: w.name(svc.Target), Class: fleet.PodOnline, Service: svc.ID, Requests: svc.Request, CurrentRevision: true})
	}
	slices.SortFunc(alive, func(a, b *pod) int {
		return cmp.Or(fleet.TrueFirst(!a.Ready, !b.Ready), cmp.Compare(a.DeletionCost, b.DeletionCost), -a.Created.Compare(b.Created), a.Name.Compare(b.Name))
	})
	for i := range max(len(alive)-int(svc.Desired.Value), 0) {
		w.end(alive[i])
	}
}

// job keeps the offline work at its parallelism.
func (w *World) job(m *fleet.Member) {
	m.Active, m.Ending = 0, 0
	var alive []*pod
	for _, p := range w.pods {
		switch {
		case p.Class != fleet.PodOffline:
		case p.Deleting:
			m.Ending++
		default:
			alive = append(alive, p)
		}
	}
	// A member that is leaving is replaced only once it is gone.
	for n := len(alive) + int(m.Ending); n < int(m.Desired); n++ {
		alive = append(alive, w.add(fleet.Pod{Name: w.name(m.Workload), Class: fleet.PodOffline, Job: w.jobs[0].ID, Role: m.Role, Requests: m.Request}))
	}
	slices.SortFunc(alive, func(a, b *pod) int {
		return cmp.Or(fleet.TrueFirst(a.NodeName == "", b.NodeName == ""), -a.Created.Compare(b.Created), a.Name.Compare(b.Name))
	})
	for len(alive) > int(m.Desired) {
		w.end(alive[0])
		alive = alive[1:]
	}
	m.Active = int32(len(alive))
}

func (w *World) name(of fleet.Name) fleet.Name {
	w.made++
	return fleet.Name{Namespace: of.Namespace, Name: fmt.Sprintf("%s-%06d", of.Name, w.made)}
}

func (w *World) add(p fleet.Pod) *pod {
	p.ID, p.Phase, p.Created = fleet.UID("uid-"+p.Name.String()), fleet.PodPending, w.now
	added := &pod{Pod: p}
	w.pods = append(w.pods, added)
	return added
}

func (w *World) end(p *pod) {
	if !p.Deleting {
		p.Deleting, p.goneAt = true, w.now.Add(goneAfter)
	}
}

// schedule binds what waits, to the fullest machine that has room.
func (w *World) schedule() {
	free := make([]fleet.Resources, len(w.nodes))
	for i := range w.nodes {
		free[i] = w.nodes[i].Allocatable
	}
	index := map[fleet.NodeID]int{}
	for i := range w.nodes {
		index[w.nodes[i].ID] = i
	}
	for _, p := range w.pods {
		if i, ok := index[p.Node]; ok {
			free[i] = free[i].Sub(p.Requests.OnePod())
		}
	}
	for _, p := range w.pods {
		if p.NodeName != "" || p.Deleting {
			continue
		}
		best := -1
		for i := range w.nodes {
			if w.fits(p, &w.nodes[i], free[i]) && (best < 0 || free[i].CPU < free[best].CPU) {
				best = i
			}
		}
		if p.Unschedulable = best < 0; best < 0 {
			continue
		}
		n := &w.nodes[best]
		free[best] = free[best].Sub(p.Requests.OnePod())
		p.Node, p.NodeName, p.Phase, p.Started = n.ID, n.Name, fleet.PodRunning, fleet.KnownAt(w.now, w.now)
		p.readyAt = w.now
		if p.Class == fleet.PodOnline {
			p.readyAt = w.now.Add(w.o.StartUp)
		}
	}
}

func (w *World) fits(p *pod, n *fleet.Node, free fleet.Resources) bool {
	switch {
	case !p.Requests.OnePod().Fits(free):
		return false
	case p.Class == fleet.PodOffline:
		return n.Marks.OfflineLabel
	case p.Class == fleet.PodFiller:
		return p.HoldsOn == n.Name
	}
	return !n.Marks.HolderTaint
}

// nodeSide plays the agent of a machine. Its margin counts from the phase on.
func (w *World) nodeSide(n *fleet.Node) {
	m := share.Machine{Node: n, ClassOf: w.classOf, Agent: n.AgentAlive, Ready: n.Ready}
	for _, p := range w.pods {
		if p.Node == n.ID {
			m.Occupants = append(m.Occupants, share.Occupant{Name: p.Name.String(), Class: p.Class, Ask: p.Requests})
		}
	}
	for i := range n.Share.Parcels {
		e := &n.Share.Parcels[i]
		l := w.Loan(e.Loan)
		if l == nil || e.IsClean(e.Epoch) {
			continue
		}
		if m.Judge(e, l.Since, w.now, share.Options{Margin: cleanAfter}).Clean {
			e.Clean, e.CleanEpoch, e.CleanAt = true, e.Epoch, w.now
			n.Share.Version = w.api.Version()
		}
	}
}

func (w *World) classOf(id fleet.PoolID) fleet.Class {
	if id == OfflinePool {
		return fleet.Offline
	}
	return fleet.Online
}

// Loan implements fleetapi.World.
func (w *World) Loan(id fleet.LoanID) *fleet.Loan {
	for i := range w.loans {
		if w.loans[i].ID == id {
			return &w.loans[i]
		}
	}
	return nil
}

func (w *World) node(name string) *fleet.Node {
	for i := range w.nodes {
		if w.nodes[i].Name == name {
			return &w.nodes[i]
		}
	}
	return nil
}
