package fleetapi

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/planner"
)

// hands is a small fleet whose records a hand writes: machines with two sockets of an online pool, their NodeShares, loans and offline pods. An administrator is about to
// take all of them away, so nothing new is lent.
type hands struct {
	t     *testing.T
	s     fleet.Snapshot
	api   *API
	free  map[share.Handover]time.Time
	story []string
}

func newHands(t *testing.T, machines int, agents bool) *hands {
	h := &hands{t: t, free: map[share.Handover]time.Time{}}
	h.api = New(h)
	h.s = fleet.Snapshot{At: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC), LeaderEpoch: 1}
	h.s.WatchedSince = h.s.At.Add(-time.Hour)
	budget := fleet.DisruptionBudget{EvictionsPerMinute: 1000, ServiceShare: 1, FleetShare: 1}
	h.s.Pools = []fleet.Pool{{ID: "offline", Class: fleet.Offline, Mode: fleet.Auto, Budget: budget},
		{ID: "online", Class: fleet.Online, Mode: fleet.Auto, Unit: fleet.UnitSocket, LowWatermark: 0.05, HighWatermark: 0.1, Notice: 2 * time.Minute, NoticeMax: 10 * time.Minute,
			MovesAtOnce: 10, MovesPerHour: 600, MinimumTerm: 30 * time.Minute, Budget: budget}}
	for i := range machines {
		n := fleet.Node{ID: fleet.NodeID(fmt.Sprintf("uid-%d", i)), Name: fmt.Sprintf("m%d", i), Pool: "online", Ready: true, Leaving: "the condition MaintenancePlanned", AgentAlive: agents, AgentKnown: agents,
			Allocatable: fleet.Resources{CPU: 64000, Memory: 256 * fleet.GiB, Pods: 110}, Share: fleet.Share{Exists: true, Version: h.api.Version()}}
		for c := range 4 {
			n.Cells = append(n.Cells, fleet.Cell{ID: c, Socket: c / 2, Capacity: fleet.Resources{CPU: 16000, Memory: 64 * fleet.GiB}})
		}
		h.s.Nodes = append(h.s.Nodes, n)
	}
	return h
}

// lent adds a loan of some cells in a phase, with its entry, marks and an offline pod.
func (h *hands) lent(n *fleet.Node, phase fleet.Phase, cells ...int) {
	l := fleet.Loan{ID: fleet.LoanID(fmt.Sprintf("%s-%d", n.Name, cells[0])), Node: n.ID, NodeName: n.Name, Kind: fleet.KindSocket, Cells: cells, From: "online", To: "offline",
		Phase: phase, Epoch: 1, Created: h.s.At.Add(-time.Hour), Since: h.s.At.Add(-10 * time.Minute), Version: h.api.Version(), Capacity: n.CapacityOf(cells)}
	l.UID = UIDOf(l.ID)
	if len(cells) == len(n.AllCells()) {
		l.Kind = fleet.KindNode
	}
	if phase == fleet.Noticed || phase == fleet.Draining || phase == fleet.Returned {
		l.Epoch, l.FirstNotice, l.Deadline, l.Due = 2, h.s.At.Add(-time.Minute), h.s.At.Add(time.Minute), h.s.At.Add(5*time.Minute)
	}
	if phase == fleet.Returned {
		l.Since, l.CleanAt = h.s.At.Add(-time.Minute), h.s.At.Add(-time.Minute)
	}
	h.s.Loans = append(h.s.Loans, l)
	n.Share.Parcels = append(n.Share.Parcels, fleet.ParcelOf(&l))
	if phase.Away() {
		h.pod(n)
	}
	n.Marks = fleet.NodeMarks{HolderTaint: phase.Away() || phase == fleet.Emptying, OfflineLabel: phase == fleet.Lent, KeepNode: true}
}

func (h *hands) pod(n *fleet.Node) {
	name := fmt.Sprintf("w-%d", len(h.s.Pods))
	h.s.Pods = append(h.s.Pods, fleet.Pod{ID: fleet.UID("uid-" + name), Name: fleet.Name{Namespace: "batch", Name: name}, Node: n.ID, NodeName: n.Name, Class: fleet.PodOffline,
		Phase: fleet.PodRunning, Ready: true, Requests: fleet.Resources{CPU: 16000, Memory: 32 * fleet.GiB}, Created: h.s.At.Add(-time.Hour)})
}

func (h *hands) node(name string) *fleet.Node {
	i := slices.IndexFunc(h.s.Nodes, func(n fleet.Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &h.s.Nodes[i]
}

func (h *hands) podNamed(name string) *fleet.Pod {
	i := slices.IndexFunc(h.s.Pods, func(p fleet.Pod) bool { return p.Name.String() == name })
	if i < 0 {
		return nil
	}
	return &h.s.Pods[i]
}

// Look implements World.
func (h *hands) Look(o protocol.Object) protocol.Fact {
	switch o.Kind {
	case protocol.ObjectLoan:
		if l := h.Loan(fleet.LoanID(o.Name)); l != nil {
			return protocol.Fact{Exists: true, UID: l.UID, Version: l.Version}
		}
	case protocol.ObjectShare:
		if s := h.Share(o.Name); s != nil {
			return protocol.Fact{Exists: true, Version: s.Version}
		}
	case protocol.ObjectPool:
		return protocol.Fact{Exists: true, Version: "1"}
	case protocol.ObjectNode:
		return protocol.Fact{Exists: true, UID: fleet.UID(h.node(o.Name).ID), Version: "1"}
	case protocol.ObjectPod:
		if p := h.podNamed(o.Name); p != nil {
			return protocol.Fact{Exists: true, UID: p.ID}
		}
	}
	return protocol.Fact{}
}

// Loan implements World.
func (h *hands) Loan(id fleet.LoanID) *fleet.Loan {
	i := slices.IndexFunc(h.s.Loans, func(l fleet.Loan) bool { return l.ID == id })
	if i < 0 {
		return nil
	}
	return &h.s.Loans[i]
}

// Share implements World.
func (h *hands) Share(name string) *fleet.Share {
	if n := h.node(name); n != nil && n.Share.Exists {
		return &n.Share
	}
	return nil
}

// Refuse implements World.
func (h *hands) Refuse(*protocol.Write) error { return nil }

// Commit implements World.
func (h *hands) Commit(w *protocol.Write, version string) {
	switch c := w.Change.(type) {
	case protocol.CreateLoan:
		l := *c.Loan
		l.UID, l.Version, l.Phase, l.Epoch = UIDOf(l.ID), version, fleet.Emptying, 1
		h.s.Loans = append(h.s.Loans, l)
	case protocol.SetLoan:
		l := h.Loan(c.Loan.ID)
		uid := l.UID
		*l = *c.Loan
		l.UID, l.Version = uid, version
	case protocol.DeleteLoan:
		h.s.Loans = slices.DeleteFunc(h.s.Loans, func(l fleet.Loan) bool { return string(l.ID) == w.Object.Name })
	case protocol.SetShare:
		h.node(w.Object.Name).Share = fleet.Share{Exists: true, Version: version, Parcels: slices.Clone(c.Parcels), Rest: c.Rest}
	case protocol.SetNotice:
		p := h.podNamed(w.Object.Name)
		p.NoticeLoan, p.NoticeEpoch = c.Loan, c.Epoch
	case protocol.DropNotice:
		p := h.podNamed(w.Object.Name)
		p.NoticeLoan, p.NoticeEpoch = "", 0
	case protocol.EvictPod, protocol.KillPod:
		h.s.Pods = slices.DeleteFunc(h.s.Pods, func(p fleet.Pod) bool { return p.Name.String() == w.Object.Name })
	case protocol.SetMarks:
		h.node(w.Object.Name).Marks = c.Want
	}
}

// cycle is one cycle of the controller, and of the machines' agents.
func (h *hands) cycle() {
	h.s.At = h.s.At.Add(15 * time.Second)
	for i := range h.s.Loans {
		h.s.Loans[i].Asked = "all come home"
	}
	h.s.Sort()
	s := h.s
	s.Nodes, s.Loans, s.Pods = slices.Clone(h.s.Nodes), slices.Clone(h.s.Loans), slices.Clone(h.s.Pods)
	for i := range s.Nodes {
		s.Nodes[i].Share.Parcels = slices.Clone(s.Nodes[i].Share.Parcels)
	}
	plan := planner.Make(planner.Input{Snapshot: &s, Options: planner.DefaultOptions()})
	if faults := plan.Unresolved(); len(faults) > 0 {
		h.t.Fatalf("%+v\n%s", faults, strings.Join(h.story, "\n"))
	}
	plan.Fillers = nil
	for _, r := range h.api.Run(protocol.New(&plan, &s), h.s.At, nil) {
		h.story = append(h.story, fmt.Sprintf("%s %s %s: %s %s", h.s.At.Format("15:04:05"), r.Action, r.Subject, r.Outcome, r.Message))
	}
	classOf := func(id fleet.PoolID) fleet.Class { return h.s.ClassOf(id) }
	for i := range h.s.Nodes {
		n := &h.s.Nodes[i]
		m := &share.Machine{Node: n, ClassOf: classOf, Agent: n.AgentAlive, Ready: true}
		for k := range h.s.Pods {
			if p := &h.s.Pods[k]; p.Node == n.ID {
				m.Occupants = append(m.Occupants, share.Occupant{Name: p.Name.String(), Class: p.Class, Ask: p.Requests})
			}
		}
		for k := range n.Share.Parcels {
			e := &n.Share.Parcels[k]
			v := m.Judge(e, h.free[share.HandoverOf(e)], h.s.At, share.Options{Margin: share.DefaultMargin})
			h.free[share.HandoverOf(e)] = v.Free
			if v.Clean && !e.IsClean(e.Epoch) {
				e.Clean, e.CleanEpoch, e.CleanAt = true, e.Epoch, h.s.At
				n.Share.Version = h.api.Version()
			}
		}
	}
}

// forge writes something by hand, as the API server lets it, and says what.
func (h *hands) forge(r *rand.Rand) string {
	n := &h.s.Nodes[r.IntN(len(h.s.Nodes))]
	pools := []fleet.PoolID{"online", "offline", "nowhere", ""}
	var e *fleet.ShareParcel
	if k := len(n.Share.Parcels); k > 0 {
		e = &n.Share.Parcels[r.IntN(k)]
	}
	unused := slices.DeleteFunc(n.AllCells(), func(c int) bool { return n.Share.Over([]int{c}) != nil })
	defer func() { n.Share.Version = h.api.Version() }()
	switch k := r.IntN(14); {
	case k == 0 && len(h.s.Loans) > 0:
		i := r.IntN(len(h.s.Loans))
		id := h.s.Loans[i].ID
		h.s.Loans = slices.Delete(h.s.Loans, i, i+1)
		return "deleted loan " + string(id)
	case k == 1:
		n.Share = fleet.Share{}
		return "deleted the share of " + n.Name
	case k == 2:
		n.Marks = fleet.NodeMarks{HolderTaint: r.IntN(2) == 0, OfflineLabel: r.IntN(2) == 0, KeepNode: r.IntN(2) == 0}
		return fmt.Sprintf("marked %s %+v", n.Name, n.Marks)
	case k == 3 && len(unused) > 0:
		n.Share.Parcels = append(n.Share.Parcels, fleet.ShareParcel{Cells: unused[:1+r.IntN(len(unused))], Holder: pools[r.IntN(3)], Loan: "ghost", LoanUID: "ghost", Epoch: 1 + r.Int64N(5)})
		return "a ghost on " + n.Name
	case e == nil:
		return ""
	case k == 4:
		e.Holder = pools[r.IntN(3)]
	case k == 5:
		e.Next = pools[r.IntN(4)]
	case k == 6:
		e.Epoch += 1 + r.Int64N(4)
	case k == 7:
		e.LoanUID = "forged"
	case k == 8:
		e.Loan = "forged"
	case k == 9 && len(e.Cells) > 1:
		e.Cells = e.Cells[:1]
	case k == 10 && len(unused) > 0:
		e.Cells = append(slices.Clone(e.Cells), unused[r.IntN(len(unused))])
	case k == 11 && len(unused) > 0:
		e.Cells = unused
	case k == 12 && len(unused) > 0:
		again := *e
		again.Cells = unused
		n.Share.Parcels = append(n.Share.Parcels, again)
	case k == 13:
		i := slices.IndexFunc(n.Share.Parcels, func(x fleet.ShareParcel) bool { return x.Loan == e.Loan && fleet.SameCells(x.Cells, e.Cells) })
		n.Share.Parcels = slices.Delete(n.Share.Parcels, i, i+1)
		return "removed an entry of " + n.Name
	default:
		return ""
	}
	if e.Next == e.Holder {
		e.Next = "" // the API server refuses it
	}
	e.Clean = e.Clean && r.IntN(2) == 0
	return fmt.Sprintf("wrote into the share of %s: %+v", n.Name, n.Share.Parcels)
}

// Whatever a hand writes, shares and loans say the same two minutes later, and each machine comes home: no entry, loan, mark or pod stays for longer than an hour and a half.
func TestHandsConverge(t *testing.T) {
	seeds := 400
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 56))
		h := newHands(t, 1+r.IntN(3), r.IntN(4) > 0)
		phases := []fleet.Phase{fleet.Emptying, fleet.Lent, fleet.Noticed, fleet.Draining, fleet.Returned}
		for i := range h.s.Nodes {
			n := &h.s.Nodes[i]
			switch {
			case !n.AgentAlive || r.IntN(3) == 0:
				h.lent(n, phases[r.IntN(len(phases))], 0, 1, 2, 3)
			case r.IntN(2) == 0:
				h.lent(n, phases[r.IntN(len(phases))], 0, 1)
			default:
				phase := phases[r.IntN(len(phases))]
				h.lent(n, phase, 0, 1)
				h.lent(n, phase, 2, 3)
			}
		}
		h.s.Sort()
		for range 1 + r.IntN(3) {
			if what := h.forge(r); what != "" {
				h.story = append(h.story, what)
			}
			for range r.IntN(12) {
				h.cycle()
			}
		}
		for range 8 {
			h.cycle()
		}
		for i := range h.s.Nodes {
			for _, e := range h.s.Nodes[i].Share.Parcels {
				switch l := h.Loan(e.Loan); {
				case e.Holder == "online" && e.Next == "" && (l == nil || l.UID != e.LoanUID || l.Phase.Ended()): // at home, whatever it names
				case l == nil || l.UID != e.LoanUID:
					t.Errorf("seed %d: two minutes later no loan answers for %+v", seed, e)
				case !fleet.SameCells(l.Cells, e.Cells) || e.Holder != l.Holder() || e.Next != l.Next():
					t.Errorf("seed %d: two minutes later the share says %+v and the loan %+v", seed, e, *l)
				}
			}
		}
		for range 352 {
			h.cycle()
		}
		for i := range h.s.Nodes {
			n := &h.s.Nodes[i]
			if len(n.Share.Parcels) > 0 || n.Marks != (fleet.NodeMarks{}) {
				t.Errorf("seed %d: %s has %+v, marks %+v", seed, n.Name, n.Share.Parcels, n.Marks)
			}
		}
		if len(h.s.Loans)+len(h.s.Pods) > 0 || planner.Drift(&h.s) > 0 {
			t.Errorf("seed %d: loans %+v, pods %d, drift %d", seed, h.s.Loans, len(h.s.Pods), planner.Drift(&h.s))
		}
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(h.story[:min(len(h.story), 80)], "\n"))
		}
	}
}
