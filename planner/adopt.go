package planner

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/reclaim"
)

// patientTurns is after how many loans that came to nothing, one after another, stray pods of a machine are no longer answered at once: the pause of the machine
// doubles with each, up to an hour.
const patientTurns = 2

// strayPods says which offline pods are on room that is home.
func strayPods(n *fleet.Node, pods []*fleet.Pod, part bool) reason.Reason {
	switch {
	case len(pods) == 1 && part:
		return reason.Of(reason.StrayPodOnSockets, pods[0].Name, n.Name)
	case part:
		return reason.Of(reason.StrayPodsOnSockets, len(pods), n.Name, pods[0].Name)
	case len(pods) == 1:
		return reason.Of(reason.StrayPodAtHome, pods[0].Name, n.Name)
	}
	return reason.Of(reason.StrayPodsAtHome, len(pods), n.Name, pods[0].Name)
}

// adopt makes loans again. A NodeShare and its loans are two records of one fact, and a user may delete one of them; and pods may be on a
// machine of which no record says that it is lent: its Node was deleted and made again, or the loan ended by hand. Either way the borrower uses a
// parcel and no recall reaches it. The loan that is made for it begins with the notice, and everything else follows from it as from any other: time,
// evictions, the ladder, a tide that turns.
//
// An entry of a share that gives the cells to their home says nothing that holds without its loan, and is cleared.
func (m *adopter) adopt() {
	s := m.in.Snapshot
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for k := range n.Share.Parcels {
			if e := &n.Share.Parcels[k]; s.Orphaned(e) {
				m.adoptOrphan(n, e)
			}
		}
		m.adoptStrays(n)
	}
}

// adoptOrphan makes the loan of an entry again, or clears the entry where the parcel is home.
func (m *adopter) adoptOrphan(n *fleet.Node, e *fleet.ShareParcel) {
	s := m.in.Snapshot
	if slices.ContainsFunc(m.on(n.ID).Loans, func(l *fleet.Loan) bool { return !l.Phase.Ended() && fleet.Overlap(l.Cells, e.Cells) }) {
		return // that loan's own steps bring the share in line
	}
	cells := slices.DeleteFunc(slices.Clone(e.Cells), func(c int) bool { return !slices.Contains(n.AllCells(), c) })
	from, to := m.partiesOf(n, e)
	m.used[n.ID] = reason.Of(reason.NamesGoneLoan, e.Loan)
	gone := func(so reason.Code) reason.Reason {
		return reason.Of(reason.LoanGone, n.Name, e.Cells, e.Loan, reason.Of(so))
	}
	if from == "" || to == "" {
		m.stray(n, from, gone(reason.NoPoolKnown), reason.Of(reason.NoPool))
		return
	}
	home := fleet.SameSide(e.Holder, from, s.ClassOf)
	if home || len(cells) == 0 {
		if other := s.Loan(e.Loan); other != nil && other.UID != e.LoanUID {
			return // another loan has the name; it is forgotten first
		}
		was := fleet.Loan{ID: e.Loan, UID: e.LoanUID, Node: n.ID, NodeName: n.Name, Cells: e.Cells, From: from, To: to, Epoch: e.Epoch}
		if home {
			was.From = e.Holder // a pool of the same side, where the machine was moved
		}
		m.propose(passAdopt, MoveClear, was, was, gone(reason.EntryRemoved))
		return
	}
	if n.Agentless() {
		cells = n.AllCells() // no part of it can be reported clean
	}
	why := gone(reason.MadeAgain)
	m.stray(n, from, why, m.adoptCells(n, from, to, cells, why))
}

// partiesOf are the home of an entry's cells and their borrower. Where the machine is in no pool by now, the entry tells; a holder that is no pool of
// the other side stands for the first that is.
func (m *adopter) partiesOf(n *fleet.Node, e *fleet.ShareParcel) (from, to fleet.PoolID) {
	s := m.in.Snapshot
	class := func(id fleet.PoolID) fleet.Class {
		if p := s.Pool(id); p != nil {
			return p.Class
		}
		return ""
	}
	other := func(c fleet.Class) fleet.PoolID {
		if i := slices.IndexFunc(s.Pools, func(p fleet.Pool) bool { return p.Class != c }); i >= 0 {
			return s.Pools[i].ID
		}
		return ""
	}
	from = n.Pool
	if from == "" && class(e.Holder) != "" {
		from = cmp.Or(e.Next, other(class(e.Holder)))
	}
	side := class(from)
	for _, id := range [...]fleet.PoolID{e.Holder, e.Next} {
		if c := class(id); id != from && c != "" && c != side {
			return from, id
		}
	}
	if side == "" {
		return from, ""
	}
	return from, other(side)
}

// stray notes a machine that is used without a loan, once; by is what keeps the plan from making one.
func (m *adopter) stray(n *fleet.Node, home fleet.PoolID, why, by reason.Reason) {
	if !by.None() {
		m.withholdOnce(Subject{SubjectNode, n.Name}, reason.Of(reason.AdoptNode), by, why)
	}
	if k := len(m.plan.Strays); k > 0 && m.plan.Strays[k-1].ID == n.ID {
		return
	}
	m.plan.Strays = append(m.plan.Strays, Stray{Node: n.Name, ID: n.ID, Pool: home, Why: why, Held: by})
}

// adoptCells proposes a loan that begins with the notice, or says what holds it back.
func (m *adopter) adoptCells(n *fleet.Node, from, to fleet.PoolID, cells []int, why reason.Reason) (by reason.Reason) {
	s, o := m.in.Snapshot, m.in.Options
	if slices.ContainsFunc(m.adopted[n.ID], func(c int) bool { return slices.Contains(cells, c) }) {
		return by // with another entry of the machine
	}
	pool := s.Pool(from)
	if by = m.in.permit(loansOf(pool), takes); !by.None() {
		return by
	}
	if pool != nil && m.recalledLately(pool) >= perMinute(pool) && !m.lacksMore(pool) {
		return reason.Of(reason.RecallBudget, perMinute(pool))
	}
	c := reclaim.Candidate{Node: n, Kind: fleet.KindSocket, Cells: cells, Capacity: n.CapacityOf(cells)}
	if len(cells) == len(n.AllCells()) {
		c.Kind = fleet.KindNode
	}
	after := m.newLoan(from, to, c)
	notice := m.noticeOn(&after)
	if s.FromOffline(&after) {
		notice = reclaim.EmergencyNotice // no pod is notified: online leaves by scale-in
	}
	deadline := s.At.Add(notice)
	after = after.Adopt(s.At, deadline, deadline.Add(o.Drain+o.Clean), why)
	before := after
	before.Phase, before.Epoch = "", 0
	if m.propose(passAdopt, MoveAdopt, before, after, why) {
		if pool != nil && len(m.adopted[n.ID]) == 0 {
			m.countAdopted(n, pool)
		}
		m.adopted[n.ID] = append(m.adopted[n.ID], cells...)
	}
	return by
}

// lacksMore reports whether pods wait for more room than is on its way home: one pod that waits is no reason to clear every machine at once.
func (m *adopter) lacksMore(p *fleet.Pool) bool {
	if p.Class != fleet.Online {
		return false
	}
	l := m.ledgerOf(p)
	return !m.lacking(l).Sub(withGPUs(l.Coming)).Floor().IsZero()
}

// countAdopted counts a machine as on its way home, as the next plan does: recalls of this plan ask for what is short beyond it.
func (m *adopter) countAdopted(n *fleet.Node, p *fleet.Pool) {
	if p.Class != fleet.Online || n.Pool != p.ID || !n.Lasts() {
		return
	}
	l := m.ledgerOf(p)
	room := m.on(n.ID).Coming()
	l.Coming = l.Coming.Add(room)
	if m.on(n.ID).Moves.Live == 0 {
		l.Usable = l.Usable.Sub(room)
	}
}

// adoptStrays finds offline work on room of a machine that is home, and adopts what it is on. Work on idle room needs
// no parcel where an agent confines it, and the planner waits for pods that end already.
func (m *adopter) adoptStrays(n *fleet.Node) {
	s := m.in.Snapshot
	pool, borrower := s.Pool(n.Pool), borrowerOf(s)
	if pool == nil || pool.Class != fleet.Online || borrower == "" || len(m.on(n.ID).Pods) == 0 {
		return
	}
	away := m.awayCells(n)
	var pods []*fleet.Pod
	var ask fleet.Resources
	for _, p := range m.on(n.ID).Pods {
		if p.Class != fleet.PodOffline || p.Deleting || p.Daemon || p.Reclaimed && n.AgentAlive {
			continue
		}
		if len(away) > 0 && p.Phase != fleet.PodRunning {
			continue // the kubelet has not let it in: a tenant may name a machine in a pod that asks for anything
		}
		pods, ask = append(pods, p), ask.Add(p.Requests)
	}
	// The agent keeps offline pods on the cells that offline has. Which cells the annotation of a pod names proves nothing, since its tenant may write it: the pods
	// use room at home where they ask for more than those cells have.
	if len(pods) == 0 || len(away) > 0 && ask.Fits(cellRoom(n, away)) {
		return
	}
	why := reason.Of(reason.StrayPods, strayPods(n, pods, len(away) > 0))
	m.used[n.ID] = reason.Of(reason.OfflineThere, pods[0].Name)
	switch {
	case !n.Ready:
		m.stray(n, pool.ID, why, reason.Of(reason.MachineNotReady))
	case n.AgentKnown && !n.AgentAlive:
		// Nothing could say that the machine is clean, so it would be kept from online for as long; and pods of class reclaimed, whom the agent let stay, would be
		// evicted by an upgrade of the agent.
		m.stray(n, pool.ID, why, reason.Of(reason.AgentSilent, n.Name))
	case n.Share.Rest.Turns >= patientTurns && s.At.Before(n.Share.Rest.Until):
		// Pods that no node selector brings to lent machines land here again. Each try costs them their work, and online the machine for as long.
		m.stray(n, pool.ID, why, reason.Of(reason.MachineRests,
			n.Share.Rest.Until.UTC().Format("15:04 MST"), n.Share.Rest.Turns, "springtide.dev/offline=true"))
	case len(away) == 0:
		m.stray(n, pool.ID, why, m.adoptCells(n, pool.ID, borrower, n.AllCells(), why))
	default:
		var by reason.Reason // of the last socket that is held back
		for _, socket := range n.Sockets() {
			if of := n.CellsOf(socket); !fleet.Overlap(of, away) {
				if held := m.adoptCells(n, pool.ID, borrower, of, why); !held.None() {
					by = held
				}
			}
		}
		m.stray(n, pool.ID, why, by)
	}
}

// cellRoom is what pods may ask of cells at most: their own capacity, or their part of what the machine offers, whichever is more. A scheduler fills either.
func cellRoom(n *fleet.Node, cells []int) fleet.Resources {
	var own fleet.Resources
	for _, c := range n.Cells {
		if slices.Contains(cells, c.ID) {
			own = own.Add(c.Capacity)
		}
	}
	part := n.CapacityOf(cells)
	own = own.Max(part)
	own.Pods = n.Allocatable.Pods // cells bound no number of pods
	return own
}

// awayCells are the cells of a machine that are not simply at home: a loan that is under way has them, or an entry of the share that no loan answers for.
func (m *adopter) awayCells(n *fleet.Node) []int {
	var out []int
	for _, l := range m.on(n.ID).Loans {
		if !l.Phase.Ended() {
			out = append(out, l.Cells...)
		}
	}
	for i := range n.Share.Parcels {
		if e := &n.Share.Parcels[i]; !fleet.SameSide(e.Holder, n.Pool, m.in.Snapshot.ClassOf) && m.in.Snapshot.Orphaned(e) {
			out = append(out, e.Cells...)
		}
	}
	return out
}

// adoptAgain is what a loan becomes whose share says that it was adopted, after a crash between the two writes.
func (m *maker) adoptAgain(l *fleet.Loan, e *fleet.ShareParcel) (fleet.Loan, error) {
	s, o := m.in.Snapshot, m.in.Options
	notice := m.noticeOn(l)
	if s.FromOffline(l) {
		notice = reclaim.EmergencyNotice
	}
	deadline := s.At.Add(notice)
	return l.AdoptAgain(s.At, deadline, deadline.Add(o.Drain+o.Clean), e, reason.Of(reason.UsedWithoutLoan))
}
