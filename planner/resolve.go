package planner

import (
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/reason"
)

// pass names a step of Make that proposes moves of loans.
type pass string

// The passes, in the order in which Make runs them.
const (
	passShorten   pass = "shorten notices"
	passAdopt     pass = "adopt parcels"
	passFollow    pass = "follow loans"
	passHeartbeat pass = "hear heartbeats" // a part of follow loans
	passBringHome pass = "bring home"
	passBorrow    pass = "borrow"
	passTurnBack  pass = "turn back"
	passGiveBack  pass = "give back"
	passGiveUp    pass = "give up pinned"
	passLend      pass = "lend"
	passTogether  pass = "recall together"
	passHandOver  pass = "hand over"
)

// proposal is the pass that wants a move, and the move's kind.
type proposal struct {
	pass pass
	kind MoveKind
}

func (p proposal) act() reason.Reason { return reason.Of(reason.StepOfRule, p.kind, p.pass) }

// verdict says which of two proposals for one loan a plan carries out.
type verdict int

const (
	undeclared verdict = iota
	earlierStands
	// laterStands is for an earlier Announce only: other kinds leave traces in the plan (evictions, machines that are begun or recalled).
	laterStands
)

// precedences names every pair of proposals for one loan that one plan may hold, and which of them it carries out. Make runs the passes in a fixed
// order, so a pair has one order only. A pair that is missing here is a fault: the earlier proposal stands, and the later one is withheld.
var precedences = [...]struct {
	earlier, later proposal
	stands         verdict
	why            string
}{
	{proposal{passShorten, MoveAnnounce}, proposal{passFollow, MoveRepair}, earlierStands,
		"online pods wait for the machine; the next plan repairs the share"},
	{proposal{passShorten, MoveAnnounce}, proposal{passTurnBack, MoveTurnBack}, earlierStands,
		"online pods wait for the machine, whatever the sums of free room say"},

	{proposal{passAdopt, MoveClear}, proposal{passFollow, MoveForget}, earlierStands,
		"an entry that does not say that the loan is over is removed before the loan is forgotten"},

	{proposal{passHeartbeat, MoveAnnounce}, proposal{passTurnBack, MoveTurnBack}, laterStands,
		"a borrower that stays needs no later deadline"},
	{proposal{passFollow, MoveAnnounce}, proposal{passTurnBack, MoveTurnBack}, laterStands,
		"a borrower that stays needs no notice again"},
	{proposal{passFollow, MoveDrain}, proposal{passTurnBack, MoveTurnBack}, earlierStands,
		"the deadline passed or everybody answered, and this plan evicts: what drains cannot turn"},
	{proposal{passFollow, MoveRepair}, proposal{passTurnBack, MoveTurnBack}, earlierStands,
		"a NodeShare that disagrees with its loan is repaired before the loan moves"},
	{proposal{passFollow, MoveRecall}, proposal{passBringHome, MoveRecall}, earlierStands,
		"both recall the machine: the first reason is kept"},
	{proposal{passFollow, MoveRepair}, proposal{passBringHome, MoveRecall}, earlierStands,
		"a NodeShare that disagrees with its loan is repaired before the loan moves"},
	{proposal{passFollow, MoveRepair}, proposal{passBringHome, MoveCancel}, earlierStands,
		"a NodeShare that disagrees with its loan is repaired before the loan moves"},
	{proposal{passFollow, MoveRepair}, proposal{passGiveUp, MoveCancel}, earlierStands,
		"a NodeShare that disagrees with its loan is repaired before the loan moves"},
	{proposal{passFollow, MoveCancel}, proposal{passBringHome, MoveCancel}, earlierStands,
		"both call the loan off: the first reason is kept"},
	{proposal{passFollow, MoveCancel}, proposal{passGiveUp, MoveCancel}, earlierStands,
		"both call the loan off: the first reason is kept"},

	{proposal{passBringHome, MoveCancel}, proposal{passBringHome, MoveCancel}, earlierStands,
		"several parcels of one machine are recalled: what is still emptied of it is called off once"},
	{proposal{passBringHome, MoveCancel}, proposal{passHandOver, MoveLend}, earlierStands,
		"the machine goes home: all its parcels go together"},
	{proposal{passGiveUp, MoveCancel}, proposal{passHandOver, MoveLend}, earlierStands,
		"the machine is given up: all its parcels stay together"},
}

// resolve decides between two proposals for one loan.
func resolve(earlier, later proposal) verdict {
	for _, p := range precedences {
		if p.earlier == earlier && p.later == later {
			return p.stands
		}
	}
	return undeclared
}

// Unresolved lists the loan moves that the planner withheld from itself: second proposals for one loan that no precedence names, and transitions that
// the phase machine refuses. Each is a fault of the planner. Tests and simulators fail on it; in production the loan waits for the next plan.
func (p *Plan) Unresolved() (out []Withheld) {
	for _, w := range p.Withheld {
		if w.By.Code == reason.Undeclared || w.By.Code == reason.Refused {
			out = append(out, w)
		}
	}
	return out
}

// decided reports whether the plan already takes a step with a loan.
func (m *maker) decided(id fleet.LoanID) bool {
	_, yes := m.proposed[id]
	return yes
}

// wins reports whether a proposal for a loan would be carried out, as far as the plan stands.
func (m *maker) wins(id fleet.LoanID, p proposal) bool {
	at, second := m.proposed[id]
	return !second || resolve(at.proposal, p) == laterStands
}

// proposed is a move of the plan in the making: who proposed it, and where it stands in the plan's list.
type proposed struct {
	proposal
	at int
}

// propose resolves one pass's proposal for a loan against what earlier passes proposed for it, and reports whether the plan carries it out.
func (m *maker) propose(by pass, kind MoveKind, before, after fleet.Loan, why reason.Reason) bool {
	p := proposal{by, kind}
	at := len(m.plan.Moves)
	if first, second := m.proposed[before.ID]; second {
		switch resolve(first.proposal, p) {
		case earlierStands:
			return false
		case undeclared:
			m.withhold(Subject{SubjectLoan, string(before.ID)}, p.act(), reason.Of(reason.Undeclared),
				reason.Of(reason.SecondProposal, first.act(), why))
			return false
		}
		at = first.at
	}
	m.proposed[before.ID] = proposed{p, at}
	if kind == MoveBegin || kind == MoveAdopt {
		m.begun[before.Node] = append(m.begun[before.Node], before.Cells...)
	}
	m.recalled[before.Node] = m.recalled[before.Node] || kind == MoveRecall || kind == MoveAdopt
	m.returning[before.ID] = kind == MoveReturn || kind == MoveCancel
	after.LeaderEpoch = m.in.Snapshot.LeaderEpoch
	move := Move{Kind: kind, Before: before, After: after, Node: before.NodeName, Rest: m.rest(kind, &before), Why: why}
	if at < len(m.plan.Moves) {
		m.plan.Moves[at] = move
		return true
	}
	m.plan.Moves = append(m.plan.Moves, move)
	return true
}

// step proposes what the phase machine made of a loan, for the reason that the loan gives. A pass proposes only what the phase allows, so a refusal is a fault: it is withheld.
func (m *maker) step(by pass, kind MoveKind, before, after fleet.Loan, err error) bool {
	if err != nil {
		m.withhold(Subject{SubjectLoan, string(before.ID)}, proposal{by, kind}.act(), reason.Of(reason.Refused),
			reason.Of(reason.StepRefused, err))
		return false
	}
	return m.propose(by, kind, before, after, after.Reason)
}
