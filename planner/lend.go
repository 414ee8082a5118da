package planner

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
	"github.com/springtide/springtide/reclaim"
)

// pinnedShown bounds the list of pinned machines in a view.
const pinnedShown = 20

// lend judges each online pool: what must come home first, and what may go only when nothing must.
func (m *lender) lend() {
	s := m.in.Snapshot
	for i := range s.Pools {
		if s.Pools[i].Class == fleet.Online {
			m.lendPool(m.ledgerOf(&s.Pools[i]))
		}
	}
	m.lenders()
}

func (m *lender) lendPool(l *ledger) {
	parts := m.leadOf(l)
	lead := parts.Total()
	view := m.view(l, lead)
	view.Lead = parts
	defer func() {
		m.plan.Pools = append(m.plan.Pools, view)
		m.survivals(l, parts)
	}()

	if by := m.in.permit(loansOf(l.pool), gives); !by.None() {
		view.Note = by
		return
	}
	if ask, ok := m.shortage(l, lead); ok {
		view.Note = ask.Why
		m.bringHome(l, ask)
		return
	}
	if by := m.in.permit(lendingOf(l.pool), takes); !by.None() {
		view.Note = by
		return
	}
	far := max(lead, m.borrowLead(parts))
	if far > lead {
		if ask, ok := m.foreseen(l, far); ok && m.borrowAhead(l, ask) {
			view.Note = ask.Why
			return
		}
	}
	term := l.pool.MinimumTerm
	far += 2 * lookStep // what was begun for a shortage that was foreseen is not sent back before it
	// A machine on its way home although the tide turned may stay, before anything new begins.
	spare := l.Above(l.pool.HighWatermark).Sub(l.worst(0, max(lead+term, far)).CPUAndMemory())
	if m.turnBack(l, spare) {
		view.Note = reason.Of(reason.NoticesTakenBack)
		return
	}
	if view.Note = m.giveBack(l, far, spare); !view.Note.None() {
		return
	}
	if view.Note = l.tooBlind(); !view.Note.None() {
		return
	}
	if l.waitsLately(m.in.Options.ClaimHold) {
		view.Note = reason.Of(reason.PodsFirst)
		return
	}
	view.Pinned, view.Note = m.begin(l, lead, term)
}

// shortage looks along the lead for the first moment at which online would want more than it has with what is already on its way home.
// The low watermark is kept free. A new leader, who has not watched a window, answers only a shortage that is seen now: pods that wait.
func (m *lender) shortage(l *ledger, lead time.Duration) (reclaim.Ask, bool) {
	s := m.in.Snapshot
	if short := m.lacking(l).Sub(withGPUs(l.Coming)).Floor(); !short.IsZero() {
		return reclaim.Ask{Pool: l.pool.ID, Amount: short, Due: s.At, Emergency: true, Claimant: l.claimant,
			Why: reason.Of(reason.PodsWait, l.waiting())}, true
	}
	if !m.in.permit(loansOf(l.pool), takes).None() {
		return reclaim.Ask{}, false
	}
	return m.foreseen(l, lead)
}

// lookStep is how finely shortages are looked for.
const lookStep = 5 * time.Minute

// foreseen is what forecasts say is short within a lead, and a step more: what is not short within the lead itself may yet wait.
func (m *lender) foreseen(l *ledger, lead time.Duration) (reclaim.Ask, bool) {
	s := m.in.Snapshot
	have := l.Above(l.pool.LowWatermark).Add(l.Coming.CPUAndMemory())
	for at := time.Duration(0); at <= lead+lookStep; at += lookStep {
		short := l.need(at, at+lookStep).CPUAndMemory().Sub(have).Floor()
		if short.IsZero() {
			continue
		}
		worst := l.need(0, lead+lookStep).CPUAndMemory().Sub(have).Floor()
		soon := l.need(0, lead).CPUAndMemory().Sub(have).Floor()
		return reclaim.Ask{Pool: l.pool.ID, Amount: worst, Later: worst.Sub(soon).Floor(), Due: s.At.Add(max(at-l.startUp(), 0)),
			Why: reason.Of(reason.Foreseen, at, l.need(at, at+lookStep), short, l.shutNote())}, true
	}
	return reclaim.Ask{}, false
}

// bringHome covers a shortage: borrowed machines that were on their way back and parcels that are still being emptied cost nothing and come
// first, loans are recalled for the rest, and what is short then is borrowed from offline. In an emergency idle machines of offline pools go
// before any recall: they are there in less than the shortest notice.
func (m *lender) bringHome(l *ledger, ask reclaim.Ask) {
	s := m.in.Snapshot
	ask.Amount = m.keepBorrowed(l, ask)
	ask.Amount = m.keepEmptying(l, ask)
	if ask.Amount.Floor().IsZero() {
		return
	}
	o := m.in.Options
	if ask.Emergency {
		if ask.Amount = m.borrow(l, ask, ask.Amount, true); ask.Amount.Floor().IsZero() {
			return
		}
	}
	take, short := reclaim.Choose(s, ask, m.recalls())
	for i, r := range take {
		if r.NoticeAt.After(s.At.Add(o.Interval)) {
			continue // There is time: the next cycle sees the tide more clearly.
		}
		loan := s.Loan(r.Loan)
		if r.MayWait && !m.recalled[loan.Node] && m.recalledLately(l.pool) >= perMinute(l.pool) {
			m.withhold(Subject{SubjectPool, string(l.pool.ID)}, reason.Of(reason.RecallNode, loan.NodeName),
				reason.Of(reason.RecallBudget, perMinute(l.pool)),
				reason.Of(reason.Flood, ask.Why, reason.Of(reason.RecallsWait, len(take)-i)))
			break
		}
		after, err := loan.Recall(s.At, r.Deadline, r.Due, r.Why)
		after.Claimant = ask.Claimant
		m.step(passBringHome, MoveRecall, *loan, after, err)
		m.stopEmptying(loan.Node, r.Why)
	}
	m.borrow(l, ask, short, false)
}

// turnBack takes notices back, machine by machine, as long as the room beyond the high watermark lets the whole machine go. A recall that an
// operator asked for stands, and so does that of a machine that is to be taken away. It reports whether this plan takes one back.
func (m *lender) turnBack(l *ledger, spare fleet.Resources) bool {
	s := m.in.Snapshot
	done := false
	for i := range s.Nodes {
		n := &s.Nodes[i]
		loans := m.noticedOn(n.ID)
		// Only a machine whose loans are all in Noticed and may all turn: what drains cannot, what came home is kept for its claimant, and the parcels of a machine stay
		// together.
		if n.Pool != l.pool.ID || len(loans) == 0 || n.Leaving != "" || m.on(n.ID).Moves.Homeward != len(loans) || m.guestOfOnline(loans[0], n) != nil || m.occupied(loans[0]) ||
			slices.ContainsFunc(m.on(n.ID).Loans, func(x *fleet.Loan) bool { return x.Phase == fleet.Returned && x.From == l.pool.ID }) ||
			slices.ContainsFunc(loans, func(x *fleet.Loan) bool { return x.Asked != "" || !m.wins(x.ID, proposal{passTurnBack, MoveTurnBack}) }) {
			continue
		}
		// spare was computed without what is coming home, so a notice that turns back takes nothing from it.
		if !fleet.Resources.Fits(fleet.Resources{}, spare) {
			break
		}
		for _, loan := range loans {
			after, err := loan.TurnBack(s.At, reason.Of(reason.TideTurned, reason.Of(reason.NotNeededAtHome)))
			after.Due = s.At.Add(l.pool.MinimumTerm).Truncate(time.Second) // for so long there is room
			if m.step(passTurnBack, MoveTurnBack, *loan, after, err) {
				m.uninvite(loan.ID) // no pod gets a notice that the same plan takes back
				done = true
			}
		}
	}
	return done
}

// begin starts loans into what the tide leaves free for longer than the minimum term, within the move budget.
func (m *lender) begin(l *ledger, lead, term time.Duration) (pins []Pin, note reason.Reason) {
	s, o := m.in.Snapshot, m.in.Options
	m.giveUpPinned(l, term)
	borrower := borrowerOf(s)
	if borrower == "" {
		return nil, reason.Of(reason.NoBorrower)
	}
	count, budget := m.movesLeft(l.pool, false)
	room := m.roomOf(l, lead, term)
	if room.CPU <= 0 || room.Memory <= 0 {
		return nil, reason.Of(reason.NoRoomToLend, l.worst(0, o.EmptyFor+term), l.Usable, l.unfilledNote(), l.shutNote())
	}
	ask := room
	ask.GPU, ask.Pods = math.MaxInt64, math.MaxInt64 // not what lending is computed in
	take, pinned := reclaim.Lendable(s, reclaim.LendAsk{Pool: l.pool, Room: ask, Now: l.atOnce(), Drops: l.drops(term + lead), Count: max(count, 1),
		Pins: pinnedShown, On: m.room, Held: m.used, Frees: m.frees})
	take, pins = m.withPlaces(l, take, o.EmptyFor, o.EmptyFor+term+lead)
	for _, p := range pinned[:max(min(len(pinned), pinnedShown-len(pins)), 0)] {
		pins = append(pins, Pin(p))
	}
	for _, c := range take {
		if count <= 0 {
			m.withhold(Subject{SubjectPool, string(l.pool.ID)}, reason.Of(reason.LendNode, c.Node.Name), budget,
				reason.Of(reason.Ebb, c.Why))
			break
		}
		c.Why = reason.Of(reason.Ebb, c.Why)
		loan := m.newLoan(l.pool.ID, borrower, c)
		// So far it is known to be free; the forecast says more once it is lent.
		loan.Due = s.At.Add(o.EmptyFor + term).Truncate(time.Second)
		m.propose(passLend, MoveBegin, loan, loan, loan.Reason)
	}
	return pins, reason.Of(reason.CanBeLent, room, term, len(take))
}

// room is what online can give up: over the time in which parcels are emptied and for the whole term after it, everything asked for must
// fit into what stays, with the high watermark left free. Machines that are being emptied count with nothing, since their pods are leaving, and
// so do borrowed ones on their way home.
func (m *lender) roomOf(l *ledger, lead, term time.Duration) fleet.Resources {
	o := l.in.Options
	var goes fleet.Resources
	for _, on := range l.On {
		if emptyingWhole(on) {
			goes = goes.Add(on.Asked())
		}
	}
	for _, x := range l.Borrowed {
		// A machine that goes home to offline is no room of the days to come: its pods end, or find room on the pool's
		// own machines.
		if on := m.on(x.Node); !held(x) && on.Node != nil && on.Node.Ready {
			goes = goes.Add(on.Asked())
		}
	}
	wanted := l.worst(o.EmptyFor, o.EmptyFor+term+lead).Add(goes)
	return l.Above(l.pool.HighWatermark).Sub(wanted.CPUAndMemory()).Floor()
}

// atOnce is the free room that online can do without from the moment at which a loan begins: nothing new lands on a machine while its pods
// leave it, so its free room is gone at once, and what it holds only with them. It is bounded as [maker.shortage] bounds what is recalled, at
// the low watermark: a loan that takes more would be called off by the very next plan.
func (l *ledger) atOnce() fleet.Resources {
	return l.Above(l.pool.LowWatermark).Sub(l.worst(0, l.in.Options.EmptyFor).CPUAndMemory()).Floor()
}

func emptyingWhole(on *fleet.Machine) bool {
	return slices.ContainsFunc(on.Loans, func(x *fleet.Loan) bool { return x.Phase == fleet.Emptying }) && on.Node != nil && fleet.TakeAll(on.Node, on.Loans)
}

// movesLeft is what the pool's budget leaves, and the name of the bound. Each pool has its own: what online lends in the ebb is not taken from
// what offline may lend when the flood comes. The hour is what the process remembers and what the snapshot shows, so that a new one forgets no
// loan that stands. Windows of change bound no loan that pods wait for now.
func (m *lender) movesLeft(p *fleet.Pool, urgent bool) (int, reason.Reason) {
	s := m.in.Snapshot
	moving, begun := 0, map[fleet.LoanID]bool{}
	for i := range s.Loans {
		if l := &s.Loans[i]; l.From == p.ID {
			if l.Phase.Moving() {
				moving++
			}
			if s.At.Sub(l.Created) < time.Hour {
				begun[l.ID] = true
			}
		}
	}
	for _, b := range m.in.Begun {
		if b.From == p.ID && s.At.Sub(b.At) < time.Hour {
			begun[b.Loan] = true
		}
	}
	for i := range m.plan.Moves {
		if x := &m.plan.Moves[i]; x.Kind == MoveBegin && x.Before.From == p.ID {
			moving++
			begun[x.Before.ID] = true
		}
	}
	atOnce := p.MovesAtOnce - moving
	most, why := m.in.changes.most(p.ID, fleet.ChangeMoves, m.room.Pool(p.ID).Machines)
	if !urgent && most-moving < atOnce {
		return max(most-moving, 0), why
	}
	hourly := p.MovesPerHour - len(begun)
	if hourly < atOnce {
		return max(hourly, 0), reason.Of(reason.HourlyBudget, p.MovesPerHour)
	}
	return max(atOnce, 0), reason.Of(reason.MotionBudget, p.MovesAtOnce)
}

// newLoan names the loan after its machine, its first cell and the time, so that a plan that is made twice names it twice alike.
func (m *maker) newLoan(from, to fleet.PoolID, c reclaim.Candidate) fleet.Loan {
	at := m.in.Snapshot.At
	l := fleet.Loan{
		ID:     fleet.LoanID(fmt.Sprintf("%s-c%d-%s", c.Node.Name, c.Cells[0], at.UTC().Format("20060102t150405"))),
		Parcel: fleet.MakeParcelID(c.Node.ID, c.Cells), Kind: c.Kind, Node: c.Node.ID, NodeName: c.Node.Name, Cells: c.Cells,
		Capacity: c.Capacity, From: from, To: to,
	}
	return l.Begin(at, c.Why)
}

// view is what operators are shown of the pool.
func (m *lender) view(l *ledger, lead time.Duration) PoolView {
	v := PoolView{Pool: l.pool.ID, Nodes: l.Machines, Capacity: l.Capacity, Requested: l.Asked, Need: l.need(0, 0), NeedAhead: l.need(0, lead),
		Unfilled: l.unfilled(), Shut: l.shut(), Lent: map[fleet.ParcelKind]int{}, Moving: map[fleet.ParcelKind]int{}, Borrowed: l.borrowedCapacity()}
	for i := range m.in.Snapshot.Loans {
		loan := &m.in.Snapshot.Loans[i]
		if loan.From != l.pool.ID {
			continue
		}
		if loan.Phase.Away() && !loan.Phase.Lost() {
			v.Lent[loan.Kind]++
			v.LentCapacity = v.LentCapacity.Add(loan.Capacity)
		}
		if loan.Phase.Moving() {
			v.Moving[loan.Kind]++
		}
		if loan.Phase == fleet.Noticed || loan.Phase == fleet.Draining {
			v.Promised = v.Promised.Add(loan.Capacity)
			v.Released = v.Released.Add(m.released(loan))
		}
		if loan.Phase.Lost() {
			v.Lost = v.Lost.Add(loan.Capacity)
		}
		if loan.Phase == fleet.WrittenOff {
			v.WrittenOff++
		}
	}
	return v
}
